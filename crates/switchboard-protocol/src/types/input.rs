//! Input that a server requires from the client before it can answer (stateless era).

use super::elicitation::{ElicitRequestParams, ElicitResult};
use super::lifecycle::RequestParams;
use super::roots::ListRootsResult;
use super::sampling::{CreateMessageRequestParams, CreateMessageResult};
use super::wire::{DecodeError, Encode, Map, RawObject};
use crate::macros::{wire_struct, wire_union};
use crate::text::JsonStr;

wire_struct! {
    /// A result that requests input: repeat the request with the responses.
    pub struct InputRequiredResult<'a> {
        tag "resultType" = "input_required";
        optional {
            /// Opaque state to send back.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// The requests for input, by key.
            input_requests("inputRequests"): Map<'a, InputRequest<'a>>,
        }
    }
}

wire_union! {
    /// A request for input. In the stateful era these were separate requests.
    pub enum InputRequest<'a> by "method" {
        /// Sample the client's model.
        CreateMessage(CreateMessageRequest<'a>) = "sampling/createMessage",
        /// List the client's roots.
        ListRoots(ListRootsRequest<'a>) = "roots/list",
        /// Ask the client's user.
        Elicit(ElicitRequest<'a>) = "elicitation/create",
    }
}

wire_struct! {
    /// Requests sampling of the client's model.
    pub struct CreateMessageRequest<'a> {
        tag "method" = "sampling/createMessage";
        required {
            /// Parameters of the sampling request.
            params("params"): Box<CreateMessageRequestParams<'a>>,
        }
    }
}

wire_struct! {
    /// Requests the client's roots.
    pub struct ListRootsRequest<'a> {
        tag "method" = "roots/list";
        optional {
            /// Metadata only, if any.
            params("params"): RequestParams<'a>,
        }
    }
}

wire_struct! {
    /// Requests input of the client's user.
    pub struct ElicitRequest<'a> {
        tag "method" = "elicitation/create";
        required {
            /// Parameters of the elicitation.
            params("params"): Box<ElicitRequestParams<'a>>,
        }
    }
}

wire_struct! {
    /// The parameters of a repeated request that carry the responses.
    pub struct InputResponseRequestParams<'a> {
        optional {
            /// The opaque state of the result.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Responses to the input requests, by key. [`InputRequest::decode_response`] decodes them.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

/// A response to an [`InputRequest`]. Its type follows from the request only.
#[derive(Debug, Clone, PartialEq)]
pub enum InputResponse<'a> {
    /// The message of the model.
    CreateMessage(Box<CreateMessageResult<'a>>),
    /// The roots of the client.
    ListRoots(ListRootsResult<'a>),
    /// The answer of the user.
    Elicit(ElicitResult<'a>),
    /// A response to an unknown request.
    Unknown(RawObject<'a>),
}

/// Requests for input, by the server's keys.
pub type InputRequests<'a> = Map<'a, InputRequest<'a>>;

/// Responses to input requests, by the server's keys.
pub type InputResponses<'a> = Map<'a, RawObject<'a>>;

impl InputRequest<'_> {
    /// Decodes the response to this request.
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
