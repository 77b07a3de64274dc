//! The envelope: what one message is, borrowed from the bytes it came in.
//!
//! Owns the shapes; reading them is [`parse`](crate::parse()), writing them [`encode`](crate::encode). Params and
//! results stay raw: only the method that asked knows how to decode them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{error::ErrorObject, id::RequestId, parse::ParseError};

/// What one frame (a line, an HTTP body, an SSE event) held.
#[derive(Debug, PartialEq)]
pub enum Incoming<'a> {
    /// One message.
    Single(Received<'a>),
    /// A JSON array of messages (revision 2025-03-26), or messages that share a frame without one
    /// ([`Quirk::SharedFrame`]). A bad member costs only itself.
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

/// A message and what was odd about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Received<'a> {
    /// The message.
    pub message: Message<'a>,
    /// What the peer got wrong and was forgiven.
    pub quirks: Quirks,
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// To be echoed in the answer.
        id: RequestId<'a>,
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object unless the peer is sloppy; `null` counts as none.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object unless the peer is sloppy; `null` counts as none.
        params: Option<&'a RawValue>,
    },
    /// A good answer.
    Response {
        /// Whose answer this is.
        id: RequestId<'a>,
        /// The result, undecoded.
        result: &'a RawValue,
    },
    /// A bad answer.
    Error {
        /// Whose answer this is; `None` where the peer could not tell (absent or `null`).
        id: Option<RequestId<'a>>,
        /// The error, read leniently.
        error: ErrorObject<'a>,
    },
}

impl<'a> Message<'a> {
    /// The id, where there is one.
    pub fn id(&self) -> Option<&RequestId<'a>> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_ref(),
            Self::Notification { .. } => None,
        }
    }

    /// The method, where there is one.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }

    /// The params, where there are any.
    pub fn params(&self) -> Option<&'a RawValue> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { .. } | Self::Error { .. } => None,
        }
    }
}

/// Raw values compare as text, since bytes are what a message must keep.
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

/// One thing a peer got wrong and was forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Quirk {
    /// No `jsonrpc` member.
    NoVersion = 1,
    /// A `jsonrpc` member other than `"2.0"`.
    OtherVersion = 1 << 1,
    /// A member of the envelope came twice; the last one counts.
    RepeatedMember = 1 << 2,
    /// A method with `"id": null`, read as a notification.
    NullId = 1 << 3,
    /// Both a result and an error; a `null` among them gives way, otherwise the error counts.
    ResultAndError = 1 << 4,
    /// A method beside a result or an error; read as a response.
    MethodInResponse = 1 << 5,
    /// Params that are no object (`null` or an array, say).
    OddParams = 1 << 6,
    /// An error that is no object with an integer code and a message.
    OddError = 1 << 7,
    /// Other messages, or other text, stand in the same frame: a peer forgot a newline.
    SharedFrame = 1 << 8,
    /// A result that is `null` or an empty array; read as an empty object where that is an answer.
    EmptyResult = 1 << 9,
}

/// A set of [`Quirk`]s.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks(u16);

impl Quirks {
    /// Every quirk, in the order of the bits.
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

    /// Whether the message was in order.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this was among the things forgiven.
    pub const fn contains(self, quirk: Quirk) -> bool {
        self.0 & quirk as u16 != 0
    }

    /// The things forgiven, one by one.
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
