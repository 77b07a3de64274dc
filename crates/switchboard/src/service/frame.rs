//! A frame from a client, parsed once.
//!
//! A front end parses each frame within its own limits and passes on the parsed messages, not the bytes. The front end
//! and the session therefore act on the same messages, and nothing parses the bytes again with other limits.

use bytes::Bytes;
use serde_json::value::RawValue;
use switchboard_protocol::serve::{self, Opened, Serving};
use switchboard_protocol::{
    ErrorCode, ErrorObject, Incoming, Limits, Message, Method, ParseError, Quirk, Received,
    RequestId, Revision, parse,
};

use crate::json::SharedJson;

/// One frame from a client: a message, a batch, or a parse error. It owns its messages, which share the frame's buffer.
#[derive(Debug)]
pub struct ClientFrame {
    messages: Messages,
    is_array: bool,
    size: usize,
    classified: Classified,
}

type Parsed = Result<ClientMessage, ParseError>;

#[derive(Debug)]
enum Messages {
    One(Parsed),
    Many(Vec<Parsed>),
}

/// One message from a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// Requires an answer.
    Request(ClientRequest),
    /// Requires none.
    Notification {
        /// Method of the notification.
        method: MethodName,
        /// Its parameters; `null` counts as none.
        params: Option<SharedJson>,
    },
    /// A result of a request that the server sent to the client.
    Response {
        /// The id of that request.
        id: RequestId<'static>,
        /// The result, undecoded.
        result: SharedJson,
    },
    /// An error of a request that the server sent to the client.
    Error {
        /// The id of that request; `None` if the client did not send it.
        id: Option<RequestId<'static>>,
        /// The error, decoded leniently.
        error: ErrorObject<'static>,
    },
    /// A message that is not JSON-RPC 2.0. Responses are exempt: they are matched by id.
    OtherVersion {
        /// The id for the error; `None` if the message is not a request.
        id: Option<RequestId<'static>>,
    },
}

/// A request from a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRequest {
    /// Id, echoed in the answer.
    pub id: RequestId<'static>,
    /// Requested method.
    pub method: MethodName,
    /// Its parameters; `null` counts as none.
    pub params: Option<SharedJson>,
}

/// Method of a message, looked up once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MethodName {
    /// A method of the specification.
    Known(Method),
    /// Any other name.
    Unknown(Box<str>),
}

impl MethodName {
    fn of(name: &str) -> Self {
        Method::from_name(name).map_or_else(|| Self::Unknown(name.into()), Self::Known)
    }

    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(method) => method.name(),
            Self::Unknown(name) => name,
        }
    }

    /// Whether it is this method.
    pub fn is(&self, method: Method) -> bool {
        *self == Self::Known(method)
    }
}

impl ClientFrame {
    /// Parses a frame within these limits. Unreadable messages are included, for the session to reject.
    pub fn parse(bytes: &Bytes, limits: &Limits) -> Self {
        let own = |received: Received<'_>| ClientMessage::part_of(bytes, received);
        let (messages, is_array) = match parse(bytes, limits) {
            Ok(Incoming::Single(received)) => (Messages::One(Ok(own(received))), false),
            Ok(Incoming::Batch(members)) => {
                let members = members.into_iter().map(|member| member.map(own));
                // Messages that only share a line are answered separately.
                let is_array = bytes.trim_ascii_start().first() == Some(&b'[');
                (Messages::Many(members.collect()), is_array)
            }
            Err(error) => (Messages::One(Err(error)), false),
        };
        Self {
            messages,
            is_array,
            size: bytes.len(),
            classified: Classified::Not,
        }
    }

    /// The frame as part of a session with this revision, so that the client session does not negotiate it again.
    #[must_use]
    pub const fn in_session(mut self, revision: Revision) -> Self {
        self.classified = Classified::Session(revision);
        self
    }

    /// The frame with its request already classified, so that the client session does not classify it again.
    #[must_use]
    pub const fn opened(mut self, opened: Opened) -> Self {
        self.classified = Classified::Request(opened);
        self
    }

    /// Its messages in order, each with its parse error if it is unreadable.
    pub fn messages(&self) -> &[Result<ClientMessage, ParseError>] {
        match &self.messages {
            Messages::One(message) => std::slice::from_ref(message),
            Messages::Many(messages) => messages,
        }
    }

    /// Its only message; `None` if it has several.
    pub const fn single(&self) -> Option<&Result<ClientMessage, ParseError>> {
        match &self.messages {
            Messages::One(message) => Some(message),
            Messages::Many(_) => None,
        }
    }

    /// Whether its messages form a JSON array and so are answered with one.
    pub const fn is_array(&self) -> bool {
        self.is_array
    }

    /// The size of the frame in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn classified(&self) -> Classified {
        self.classified
    }

    pub(super) fn into_messages(self) -> impl Iterator<Item = Parsed> {
        let (one, many) = match self.messages {
            Messages::One(message) => (Some(message), Vec::new()),
            Messages::Many(messages) => (None, messages),
        };
        one.into_iter().chain(many)
    }
}

impl ClientMessage {
    fn part_of(frame: &Bytes, received: Received<'_>) -> Self {
        let is_response = matches!(
            received.message,
            Message::Response { .. } | Message::Error { .. }
        );
        let is_other_version = received.quirks.contains(Quirk::OtherVersion)
            || received.quirks.contains(Quirk::NoVersion) && !is_response;
        let part = |value: &RawValue| SharedJson::part_of(frame, value);
        match received.message {
            Message::Request { id, .. } if is_other_version => Self::OtherVersion {
                id: Some(id.into_owned()),
            },
            _ if is_other_version => Self::OtherVersion { id: None },
            Message::Request { id, method, params } => Self::Request(ClientRequest {
                id: id.into_owned(),
                method: MethodName::of(&method),
                params: params.map(part),
            }),
            Message::Notification { method, params } => Self::Notification {
                method: MethodName::of(&method),
                params: params.map(part),
            },
            Message::Response { id, result } => Self::Response {
                id: id.into_owned(),
                result: part(result),
            },
            Message::Error { id, error } => Self::Error {
                id: id.map(RequestId::into_owned),
                error: error.into_owned(),
            },
        }
    }

    /// The error for a message that is not JSON-RPC 2.0.
    pub fn other_version() -> ErrorObject<'static> {
        ErrorObject::new(ErrorCode::INVALID_REQUEST, "jsonrpc must be \"2.0\"")
    }

    /// Whether it is a request with this method.
    pub fn requests(&self, method: Method) -> bool {
        matches!(self, Self::Request(request) if request.method.is(method))
    }

    /// Whether the session sends an answer to it.
    pub const fn is_answered(&self) -> bool {
        matches!(self, Self::Request(_) | Self::OtherVersion { id: Some(_) })
    }
}

impl ClientRequest {
    /// Its parameters; `None` if absent or `null`.
    pub fn params(&self) -> Option<&RawValue> {
        self.params.as_ref().map(SharedJson::raw)
    }
}

/// How far the front end has classified the requests of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Classified {
    /// Not classified: the revision settled by the handshake applies.
    Not,
    /// They belong to a session with this revision.
    Session(Revision),
    /// Its only request is classified.
    Request(Opened),
}

impl Classified {
    /// Classifies a request, given the revision settled by the handshake.
    pub(super) fn open(
        self,
        settled: impl FnOnce() -> Option<Revision>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Opened, ErrorObject<'static>> {
        let settled = match self {
            Self::Request(opened) => return Ok(opened),
            Self::Session(revision) => Some(revision),
            Self::Not => settled(),
        };
        let serving = Serving {
            supported: &Revision::ALL,
            settled,
        };
        let opening = serve::classify(serving, method, params).map_err(|refusal| refusal.error)?;
        Ok(opening.opened())
    }
}
