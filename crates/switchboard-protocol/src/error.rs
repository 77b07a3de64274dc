//! The JSON-RPC error object and its codes.
//!
//! [`ErrorObject`] is decoded leniently from whatever a peer sent as `error`, and encoded strictly, for responses and
//! failed tasks. What an error means for the era is decided in [`negotiate`](crate::negotiate).

use std::{borrow::Cow, fmt};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    decimal::Decimal,
    macros::serde_bridge,
    raw,
    revision::Revision,
    types::wire::{
        Decode, DecodeError, Encode, FieldInfo, Fields, IntoOwned, Lint, Linter, ObjectWriter,
        Reader, malformed,
    },
};

/// The `error` member of a response.
///
/// Decoding never fails: a malformed error is still an error, and its call must end.
#[derive(Debug, Clone)]
pub struct ErrorObject<'a> {
    /// The numeric code; [`ErrorCode::UNSTATED`] if the peer sent none, or not a number.
    pub code: ErrorCode,
    /// The message; a fallback text if the peer sent none.
    pub message: Cow<'a, str>,
    /// The `data` member, verbatim. If `error` was neither an object nor a string, its complete value.
    pub data: Option<Cow<'a, RawValue>>,
    /// A code that the peer sent as a string, such as `"ECONNREFUSED"`.
    pub named_code: Option<Cow<'a, str>>,
}

/// A JSON-RPC error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// A code that was missing or not a number; never sent by us.
    pub const UNSTATED: Self = Self(0);
    /// The text is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The params are invalid, or `_meta` lacks a member that the stateless era requires.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// Internal error of the receiver.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The resource does not exist, in revisions up to 2025-11-25; later ones use
    /// [`INVALID_PARAMS`](Self::INVALID_PARAMS).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user must visit a URL first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// HTTP headers and body disagree.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a capability the client did not declare.
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The protocol version is not supported; the error lists those that are.
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);

    /// The meaning of a code that the specification defines.
    pub const fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::PARSE_ERROR => "parse error",
            Self::INVALID_REQUEST => "invalid request",
            Self::METHOD_NOT_FOUND => "method not found",
            Self::INVALID_PARAMS => "invalid params",
            Self::INTERNAL_ERROR => "internal error",
            Self::RESOURCE_NOT_FOUND => "resource not found",
            Self::URL_ELICITATION_REQUIRED => "url elicitation required",
            Self::HEADER_MISMATCH => "header mismatch",
            Self::MISSING_CLIENT_CAPABILITY => "missing client capability",
            Self::UNSUPPORTED_VERSION => "unsupported protocol version",
            _ => return None,
        })
    }

    /// The HTTP status for this code in the stateless era.
    ///
    /// As fixed by the specification: 404 for an unknown method, 400 for a malformed or rejected request, 200 for
    /// everything else.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::METHOD_NOT_FOUND => 404,
            Self::PARSE_ERROR
            | Self::INVALID_REQUEST
            | Self::HEADER_MISMATCH
            | Self::MISSING_CLIENT_CAPABILITY
            | Self::UNSUPPORTED_VERSION => 400,
            _ => 200,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<'a> ErrorObject<'a> {
    /// An error without `data`.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            named_code: None,
        }
    }

    /// Adds `data`; a value that does not serialize is omitted, since the error itself must be sent.
    #[must_use]
    pub fn with_data<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok().map(Cow::Owned);
        self
    }

    /// The error for an unsupported version: −32022 with the supported versions.
    pub fn unsupported_version(requested: &str, supported: &[Revision]) -> Self {
        #[derive(Serialize)]
        struct Data<'d> {
            supported: &'d [Revision],
            requested: &'d str,
        }
        Self::new(
            ErrorCode::UNSUPPORTED_VERSION,
            "unsupported protocol version",
        )
        .with_data(&Data {
            supported,
            requested,
        })
    }

    /// The error for a request that needs an undeclared client capability: −32021 with its name.
    pub fn missing_client_capability<T: Serialize + ?Sized>(
        message: impl Into<Cow<'a, str>>,
        required: &T,
    ) -> Self {
        #[derive(Serialize)]
        struct Data<'d, T: ?Sized> {
            #[serde(rename = "requiredCapabilities")]
            required: &'d T,
        }
        Self::new(ErrorCode::MISSING_CLIENT_CAPABILITY, message).with_data(&Data { required })
    }

    /// Decodes any `error` member: an object, a string, a number, anything.
    pub fn from_raw(value: &'a RawValue) -> Self {
        if !raw::is_object(value) {
            return Self::from_scalar(value);
        }
        let (mut code, mut message, mut data) = (None, None, None);
        raw::for_each_member(value, |member| {
            if member.is("code") {
                code = Some(member.value);
            } else if member.is("message") {
                message = Some(member.value);
            } else if member.is("data") {
                data = Some(member.value);
            }
        });
        let named_code = code.and_then(raw::string);
        let number = match (&named_code, code) {
            (Some(text), _) => read_code(text),
            (None, Some(code)) => read_code(code.get()),
            (None, None) => None,
        };
        let code = number.unwrap_or(ErrorCode::UNSTATED);
        Self {
            code,
            message: read_message(message, data, code),
            data: data.map(Cow::Borrowed),
            named_code: named_code.filter(|_| number.is_none()),
        }
    }

    /// Copies borrowed data, so that the error outlives its message.
    pub fn into_owned(self) -> ErrorObject<'static> {
        ErrorObject {
            code: self.code,
            message: Cow::Owned(self.message.into_owned()),
            data: self.data.map(|data| Cow::Owned(data.into_owned())),
            named_code: self.named_code.map(|code| Cow::Owned(code.into_owned())),
        }
    }

    fn from_scalar(value: &'a RawValue) -> Self {
        if let Some(message) = raw::string(value) {
            return Self::new(ErrorCode::UNSTATED, message);
        }
        let code = read_code(value.get());
        Self {
            data: code.is_none().then_some(Cow::Borrowed(value)),
            ..Self::new(
                code.unwrap_or(ErrorCode::UNSTATED),
                stand_in(code.unwrap_or(ErrorCode::UNSTATED)),
            )
        }
    }
}

impl PartialEq for ErrorObject<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
            && self.message == other.message
            && self.named_code == other.named_code
            && self.data.as_deref().map(RawValue::get) == other.data.as_deref().map(RawValue::get)
    }
}

impl fmt::Display for ErrorObject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match (&self.named_code, self.code) {
            (Some(name), _) => write!(formatter, " (code {name})"),
            (None, ErrorCode::UNSTATED) => Ok(()),
            (None, code) => write!(formatter, " (code {code})"),
        }
    }
}

impl std::error::Error for ErrorObject<'_> {}

impl Fields for ErrorObject<'_> {
    // The protocol requires the first two; an error without them is still an error.
    const FIELDS: &'static [FieldInfo] = &[
        FieldInfo::optional("code"),
        FieldInfo::optional("message"),
        FieldInfo::optional("data"),
    ];
}

impl<'a> Decode<'a> for ErrorObject<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let value = raw::trusted(reader.raw()?).ok_or_else(malformed)?;
        Ok(Self::from_raw(value))
    }
}

impl Encode for ErrorObject<'_> {
    fn encode(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match &self.named_code {
            // Encoded as received: another reader may know it.
            Some(name) => object.field("code", name),
            None => object.field("code", &self.code),
        }
        object.field("message", &self.message);
        if let Some(data) = self.data.as_deref() {
            object.field("data", data);
        }
        object.finish();
    }
}

impl Encode for ErrorCode {
    fn encode(&self, out: &mut String) {
        out.push_str(&self.0.to_string());
    }
}

impl IntoOwned for ErrorObject<'_> {
    type Owned = ErrorObject<'static>;

    fn into_owned(self) -> Self::Owned {
        self.into_owned()
    }
}

impl Lint for ErrorObject<'_> {
    fn lint(&self, _linter: &mut Linter) {}
}

serde_bridge!(ErrorObject);

fn read_code(text: &str) -> Option<ErrorCode> {
    let integer = Decimal::parse(text.trim())?.to_integer()?;
    i64::try_from(integer).ok().map(ErrorCode)
}

fn read_message<'a>(
    message: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    code: ErrorCode,
) -> Cow<'a, str> {
    if let Some(message) = message.filter(|message| !raw::is_null(message)) {
        return raw::string(message).unwrap_or(Cow::Borrowed(message.get()));
    }
    data.and_then(raw::string)
        .unwrap_or(Cow::Borrowed(stand_in(code)))
}

fn stand_in(code: ErrorCode) -> &'static str {
    code.meaning().unwrap_or("the peer sent no message")
}
