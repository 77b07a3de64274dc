//! What a server needs from the client before it can answer (stateless era).

use super::elicitation::{ElicitRequestParams, ElicitResult};
use super::lifecycle::RequestParams;
use super::roots::ListRootsResult;
use super::sampling::{CreateMessageRequestParams, CreateMessageResult};
use super::wire::{DecodeError, Encode, Map, RawObject};
use crate::macros::{wire_struct, wire_union};
use crate::text::JsonStr;

wire_struct! {
    /// An answer that is not one yet: ask again, with what is wanted here.
    pub struct InputRequiredResult<'a> {
        tag "resultType" = "input_required";
        optional {
            /// What to send back unread.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// What is wanted, by keys to answer under.
            input_requests("inputRequests"): Map<'a, InputRequest<'a>>,
        }
    }
}

wire_union! {
    /// One thing a server wants. These were requests of their own in the stateful era.
    pub enum InputRequest<'a> by "method" {
        /// An answer of the model.
        CreateMessage(CreateMessageRequest<'a>) = "sampling/createMessage",
        /// The folders.
        ListRoots(ListRootsRequest<'a>) = "roots/list",
        /// An answer of the user.
        Elicit(ElicitRequest<'a>) = "elicitation/create",
    }
}

wire_struct! {
    /// Wants an answer of the model.
    pub struct CreateMessageRequest<'a> {
        tag "method" = "sampling/createMessage";
        required {
            /// What to ask it.
            params("params"): Box<CreateMessageRequestParams<'a>>,
        }
    }
}

wire_struct! {
    /// Wants the folders.
    pub struct ListRootsRequest<'a> {
        tag "method" = "roots/list";
        optional {
            /// Nothing but metadata.
            params("params"): RequestParams<'a>,
        }
    }
}

wire_struct! {
    /// Wants an answer of the user.
    pub struct ElicitRequest<'a> {
        tag "method" = "elicitation/create";
        required {
            /// What to ask them.
            params("params"): Box<ElicitRequestParams<'a>>,
        }
    }
}

wire_struct! {
    /// The part of a repeated request's parameters that answers.
    pub struct InputResponseRequestParams<'a> {
        optional {
            /// What the server asked to get back.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Answers to what the server asked, by its keys. [`InputRequest::decode_response`] reads them.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

/// An answer to an [`InputRequest`]. The request tells which one it is; the answer itself does not.
#[derive(Debug, Clone, PartialEq)]
pub enum InputResponse<'a> {
    /// What the model said.
    CreateMessage(Box<CreateMessageResult<'a>>),
    /// The folders.
    ListRoots(ListRootsResult<'a>),
    /// What the user did.
    Elicit(ElicitResult<'a>),
    /// The answer to a request we do not know.
    Unknown(RawObject<'a>),
}

/// What is wanted, by the server's keys.
pub type InputRequests<'a> = Map<'a, InputRequest<'a>>;

/// Answers, by the server's keys.
pub type InputResponses<'a> = Map<'a, RawObject<'a>>;

impl InputRequest<'_> {
    /// Decodes what came back for this request.
    pub fn decode_response<'r>(
        &self,
        response: &'r RawObject<'_>,
    ) -> Result<InputResponse<'r>, DecodeError> {
        match self {
            Self::CreateMessage(_) => response.decode().map(InputResponse::CreateMessage),
            Self::ListRoots(_) => response.decode().map(InputResponse::ListRoots),
            Self::Elicit(_) => response.decode().map(InputResponse::Elicit),
            Self::Unknown(_) => response.decode().map(InputResponse::Unknown),
        }
    }
}

impl Encode for InputResponse<'_> {
    fn encode(&self, out: &mut String) {
        match self {
            Self::CreateMessage(result) => result.encode(out),
            Self::ListRoots(result) => result.encode(out),
            Self::Elicit(result) => result.encode(out),
            Self::Unknown(result) => result.encode(out),
        }
    }
}
