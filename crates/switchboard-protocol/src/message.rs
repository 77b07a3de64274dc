//! The JSON-RPC envelope: message types that borrow from the received bytes.
//!
//! Parsing is in [`parse`](crate::parse()), encoding in [`encode`](crate::encode). Params and results stay raw: their
//! types depend on the method.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{error::ErrorObject, id::RequestId, parse::ParseError};

/// The content of one frame (a line, an HTTP body, an SSE event).
#[derive(Debug, PartialEq)]
pub enum Incoming<'a> {
    /// One message.
    Single(Received<'a>),
    /// A JSON array of messages (revision 2025-03-26), or several messages in one frame without an array
    /// ([`Quirk::SharedFrame`]). An invalid member does not affect the others.
    Batch(Vec<Result<Received<'a>, ParseError>>),
}

impl<'a> Incoming<'a> {
    /// The messages in order, for a receiver that need not answer a batch with a batch.
    pub fn into_messages(self) -> impl Iterator<Item = Result<Received<'a>, ParseError>> {
        let (single, members) = match self {
            Self::Single(received) => (Some(Ok(received)), Vec::new()),
            Self::Batch(members) => (None, members),
        };
        single.into_iter().chain(members)
    }
}

/// A message and its quirks.
#[derive(Debug, Clone, PartialEq)]
pub struct Received<'a> {
    /// The parsed message.
    pub message: Message<'a>,
    /// Deviations from the specification that were tolerated.
    pub quirks: Quirks,
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A message that expects a response.
    Request {
        /// Echoed in the response.
        id: RequestId<'a>,
        /// Name of the method.
        method: Cow<'a, str>,
        /// The params, an object unless the peer is sloppy; `null` counts as none.
        params: Option<&'a RawValue>,
    },
    /// A message without a response.
    Notification {
        /// Name of the method.
        method: Cow<'a, str>,
        /// The params, an object unless the peer is sloppy; `null` counts as none.
        params: Option<&'a RawValue>,
    },
    /// A successful response.
    Response {
        /// Id of the answered request.
        id: RequestId<'a>,
        /// The raw result.
        result: &'a RawValue,
    },
    /// An error response.
    Error {
        /// Id of the answered request; `None` if the peer could not determine it (absent or `null`).
        id: Option<RequestId<'a>>,
        /// The error, decoded leniently.
        error: ErrorObject<'a>,
    },
}

impl<'a> Message<'a> {
    /// The id, if any.
    pub fn id(&self) -> Option<&RequestId<'a>> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_ref(),
            Self::Notification { .. } => None,
        }
    }

    /// The method, if any.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }

    /// The params, if any.
    pub fn params(&self) -> Option<&'a RawValue> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }
}

/// Raw values are compared as text, since their bytes must be preserved.
impl PartialEq for Message<'_> {
    fn eq(&self, other: &Self) -> bool {
        let answers_agree = match (self, other) {
            (Self::Response { result: left, .. }, Self::Response { result: right, .. }) => {
                left.get() == right.get()
            }
            (Self::Error { error: left, .. }, Self::Error { error: right, .. }) => left == right,
            (Self::Request { .. }, Self::Request { .. })
            | (Self::Notification { .. }, Self::Notification { .. }) => true,
            _ => false,
        };
        answers_agree
            && self.id() == other.id()
            && self.method() == other.method()
            && self.params().map(RawValue::get) == other.params().map(RawValue::get)
    }
}

/// A deviation from the specification that was tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Quirk {
    /// No `jsonrpc` member.
    NoVersion = 1,
    /// A `jsonrpc` member other than `"2.0"`.
    OtherVersion = 1 << 1,
    /// A member of the envelope is repeated; the last one counts.
    RepeatedMember = 1 << 2,
    /// A method with `"id": null`, treated as a notification.
    NullId = 1 << 3,
    /// Both a result and an error; a `null` one is ignored, otherwise the error counts.
    ResultAndError = 1 << 4,
    /// A method next to a result or an error; treated as a response.
    MethodInResponse = 1 << 5,
    /// Params that are not an object, such as `null` or an array.
    OddParams = 1 << 6,
    /// An error that is not an object with an integer code and a message.
    OddError = 1 << 7,
    /// The frame contains other messages or text: the peer forgot a newline.
    SharedFrame = 1 << 8,
    /// A result that is `null` or an empty array; treated as an empty object if that is a valid result.
    EmptyResult = 1 << 9,
}

/// A set of [`Quirk`]s.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks(u16);

impl Quirks {
    /// All quirks, in the order of their bits.
    const ALL: [Quirk; 10] = [
        Quirk::NoVersion,
        Quirk::OtherVersion,
        Quirk::RepeatedMember,
        Quirk::NullId,
        Quirk::ResultAndError,
        Quirk::MethodInResponse,
        Quirk::OddParams,
        Quirk::OddError,
        Quirk::SharedFrame,
        Quirk::EmptyResult,
    ];

    /// Whether the message had no quirks.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the message had this quirk.
    pub const fn contains(self, quirk: Quirk) -> bool {
        self.0 & quirk as u16 != 0
    }

    /// The quirks, one by one.
    pub fn iter(self) -> impl Iterator<Item = Quirk> {
        Self::ALL
            .into_iter()
            .filter(move |quirk| self.contains(*quirk))
    }

    pub(crate) const fn add(&mut self, quirk: Quirk) {
        self.0 |= quirk as u16;
    }
}

impl FromIterator<Quirk> for Quirks {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Self {
        let mut set = Self::default();
        for quirk in quirks {
            set.add(quirk);
        }
        set
    }
}

impl std::fmt::Debug for Quirks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}
