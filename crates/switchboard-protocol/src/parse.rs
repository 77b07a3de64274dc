//! Parses bytes into messages in one pass, borrowed and leniently.
//!
//! A deviation with one sensible interpretation is accepted and reported as a [`Quirk`]; anything else is an error that
//! carries the id if there is one, so that its call can be failed. Nested values are skipped iteratively and stay raw,
//! so the input cannot cause recursion. Common messages take the fast path of `scan`; all others go through
//! `serde_json`, which also produces the error texts.
//!
//! For repeated members the last one counts, as in JavaScript, Python and Go, so that every party reads the same
//! message from the same bytes.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    id::RequestId,
    limits::{Limits, depth_exceeded_at},
    message::{Incoming, Message, Quirk, Quirks, Received},
    printable::printable,
    raw,
    salvage::{Salvaged, salvage},
    scan::{self, Members},
};

/// Parses one frame: a message, or a batch of them.
///
/// A leading byte order mark and surrounding whitespace are accepted. In a truncated batch, the members before the
/// error are returned, followed by the error. Consecutive objects without a newline are returned like a batch, and so
/// is a message followed by a log line.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, ParseError> {
    let text = admit(bytes, limits)?;
    if let Some(members) = scan::envelope(text, limits.max_depth) {
        return classify(&members).map(Incoming::Single);
    }
    check_depth(bytes, limits.max_depth)?;
    let mut outcome = match text.as_bytes().first() {
        None => Err(ParseError::bare(ParseErrorKind::Empty)),
        Some(b'{') => match read_object(text) {
            Ok(received) => Ok(Incoming::Single(received)),
            Err(error) => read_shared_frame(text, limits.max_batch)
                .map_or(Err(error), |members| members.map(Incoming::Batch)),
        },
        Some(b'[') => read_batch(text, limits.max_batch).map(Incoming::Batch),
        Some(_) => Err(ParseError::bare(
            match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => ParseErrorKind::NotAnObject,
                Err(error) => not_json(text, &error),
            },
        )),
    };
    // Error offsets include the trimmed bytes. Both are slices of one frame.
    let trimmed = (text.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    let fault = match &mut outcome {
        Err(error) => Some(error),
        Ok(Incoming::Batch(members)) => members.last_mut().and_then(|last| last.as_mut().err()),
        Ok(Incoming::Single(_)) => None,
    };
    if let Some(ParseErrorKind::NotJson { offset, .. }) = fault.map(|error| &mut error.kind) {
        *offset += trimmed;
    }
    outcome
}

/// A parse error, with the id of the affected call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct ParseError {
    /// The cause, with limits and offsets.
    pub kind: ParseErrorKind,
    /// The id of the message, if it could be recovered.
    pub id: Option<RequestId<'static>>,
    /// Whether the message had a method: then the id is the peer's request, to be answered with an error.
    pub has_method: bool,
}

/// The ways in which a message can be invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Nothing but whitespace.
    #[error("empty message")]
    Empty,
    /// More bytes than [`Limits::max_bytes`].
    #[error("message of {size} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Size of the message in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Deeper than [`Limits::max_depth`].
    #[error("message is nested deeper than the limit of {limit} levels at byte {offset}")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
        /// Offset of the first bracket beyond the limit.
        offset: usize,
    },
    /// More members than [`Limits::max_batch`].
    #[error("batch has more members than the limit of {limit}")]
    TooManyMembers {
        /// The limit on members.
        limit: usize,
    },
    /// A batch without members.
    #[error("empty batch")]
    EmptyBatch,
    /// Not UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// Not JSON.
    #[error("not JSON at byte {offset}: {reason}, near `{excerpt}`")]
    NotJson {
        /// Approximate offset of the error.
        offset: usize,
        /// Error text of the parser.
        reason: String,
        /// The text around the error, with control characters escaped.
        excerpt: String,
    },
    /// JSON, but a string, number, boolean or `null`; in a batch, also an array.
    #[error("a message must be a JSON object")]
    NotAnObject,
    /// The id is a boolean, an array or an object.
    #[error("the id is neither a string nor a number")]
    InvalidId,
    /// The method is not a string.
    #[error("the method is not a string")]
    InvalidMethod,
    /// A result without an id.
    #[error("a result without an id")]
    ResultWithoutId,
    /// An id without a result and an error.
    #[error("a response with neither a result nor an error")]
    NoResultNorError,
    /// An object that is not a message.
    #[error("neither a request nor a response")]
    Ambiguous,
}

impl ParseError {
    /// The error code for the response to a peer's request.
    pub const fn code(&self) -> ErrorCode {
        match self.kind {
            ParseErrorKind::Empty
            | ParseErrorKind::NotUtf8 { .. }
            | ParseErrorKind::NotJson { .. } => ErrorCode::PARSE_ERROR,
            _ => ErrorCode::INVALID_REQUEST,
        }
    }

    fn bare(kind: ParseErrorKind) -> Self {
        Self {
            kind,
            id: None,
            has_method: false,
        }
    }

    /// Cold, so that the scan for the id does not slow down valid messages.
    #[cold]
    fn salvaged(kind: ParseErrorKind, bytes: &[u8]) -> Self {
        let Salvaged { id, has_method } = salvage(bytes);
        Self {
            kind,
            id,
            has_method,
        }
    }
}

/// Checks size and encoding before parsing, and trims.
fn admit<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, ParseError> {
    if bytes.len() > limits.max_bytes {
        let kind = ParseErrorKind::TooLarge {
            size: bytes.len(),
            limit: limits.max_bytes,
        };
        return Err(ParseError::salvaged(kind, bytes));
    }
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let valid_up_to = std::str::from_utf8(bytes)
            .err()
            .map(|error| error.valid_up_to());
        let kind = ParseErrorKind::NotUtf8 {
            offset: valid_up_to.unwrap_or_default(),
        };
        ParseError::salvaged(kind, bytes)
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(text.trim_matches([' ', '\t', '\r', '\n']))
}

/// Checks the depth of input that the fast path did not accept.
fn check_depth(bytes: &[u8], max_depth: usize) -> Result<(), ParseError> {
    // Each level needs an opening and a closing bracket, so a short text cannot be too deep.
    if bytes.len() <= max_depth.saturating_mul(2) {
        return Ok(());
    }
    match depth_exceeded_at(bytes, max_depth) {
        None => Ok(()),
        Some(offset) => {
            let kind = ParseErrorKind::TooDeep {
                limit: max_depth,
                offset,
            };
            Err(ParseError::salvaged(kind, bytes))
        }
    }
}

/// Parses an object through `serde_json`, which produces the error texts and accepts more than the fast path.
fn read_object(text: &str) -> Result<Received<'_>, ParseError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer
        .deserialize_map(EnvelopeVisitor)
        .and_then(|members| deserializer.end().map(|()| members))
        .map_err(|error| ParseError::salvaged(not_json(text, &error), text.as_bytes()))?;
    classify(&members)
}

/// Determines the kind of message from its members.
fn classify<'a>(members: &Members<'a>) -> Result<Received<'a>, ParseError> {
    let mut quirks = Quirks::default();
    match members.jsonrpc.map(RawValue::get) {
        Some("\"2.0\"") => {}
        Some(_) => quirks.add(Quirk::OtherVersion),
        None => quirks.add(Quirk::NoVersion),
    }
    if members.repeated {
        quirks.add(Quirk::RepeatedMember);
    }

    let not_null = |value: Option<&'a RawValue>| value.filter(|value| !raw::is_null(value));
    let method = not_null(members.method);
    let fail = |kind, id: Option<RequestId<'_>>| {
        Err(ParseError {
            kind,
            id: id.map(RequestId::into_owned),
            has_method: method.is_some(),
        })
    };
    let id = match not_null(members.id) {
        None => None,
        Some(id) => match RequestId::from_raw(id) {
            Some(id) => Some(id),
            None => return fail(ParseErrorKind::InvalidId, None),
        },
    };
    let error = not_null(members.error);
    let result = not_null(members.result);
    let answers =
        error.is_some() || result.is_some() || (method.is_none() && members.result.is_some());

    if answers {
        if method.is_some() {
            quirks.add(Quirk::MethodInResponse);
        }
        if members.error.is_some() && members.result.is_some() {
            quirks.add(Quirk::ResultAndError);
        }
        let message = match (error, result.or(members.result), id) {
            (Some(error), _, id) => {
                let error = ErrorObject::from_raw(error);
                if error.code == ErrorCode::UNSTATED || !is_tidy(members.error) {
                    quirks.add(Quirk::OddError);
                }
                Message::Error { id, error }
            }
            (None, Some(result), Some(id)) => {
                if raw::says_nothing(result) {
                    quirks.add(Quirk::EmptyResult);
                }
                Message::Response { id, result }
            }
            (None, _, id) => return fail(ParseErrorKind::ResultWithoutId, id),
        };
        return Ok(Received { message, quirks });
    }

    let Some(method) = method else {
        return match id {
            Some(id) => fail(ParseErrorKind::NoResultNorError, Some(id)),
            None => fail(ParseErrorKind::Ambiguous, None),
        };
    };
    let Some(method) = raw::string(method) else {
        return fail(ParseErrorKind::InvalidMethod, id);
    };
    if members.params.is_some_and(|params| !raw::is_object(params)) {
        quirks.add(Quirk::OddParams);
    }
    let params = not_null(members.params);
    let message = if let Some(id) = id {
        Message::Request { id, method, params }
    } else {
        if members.id.is_some() {
            quirks.add(Quirk::NullId);
        }
        Message::Notification { method, params }
    };
    Ok(Received { message, quirks })
}

/// Whether an error object has an integer code and a message, as specified.
fn is_tidy(error: Option<&RawValue>) -> bool {
    let Some(error) = error else { return false };
    let integer = |value: &RawValue| value.get().parse::<i64>().is_ok();
    raw::member(error, "code").is_some_and(integer)
        && raw::member(error, "message").is_some_and(|message| message.get().starts_with('"'))
}

struct EnvelopeVisitor;

impl<'a> Visitor<'a> for EnvelopeVisitor {
    type Value = Members<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
        let mut members = Members::default();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            // A key with invalid escapes is treated as unknown.
            let Some(name) = raw::string(key) else {
                continue;
            };
            if let Some(slot) = members.slot(name.as_bytes())
                && slot.replace(value).is_some()
            {
                members.repeated = true;
            }
        }
        Ok(members)
    }
}

fn read_batch(
    text: &str,
    max_batch: usize,
) -> Result<Vec<Result<Received<'_>, ParseError>>, ParseError> {
    let mut values = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = deserializer
        .deserialize_seq(BatchVisitor {
            values: &mut values,
            max_batch,
        })
        .and_then(|()| deserializer.end());
    if values.len() > max_batch {
        return Err(ParseError::bare(ParseErrorKind::TooManyMembers {
            limit: max_batch,
        }));
    }
    let broken = outcome.err().map(|error| not_json(text, &error));
    let mut members: Vec<_> = values
        .into_iter()
        .map(|value| {
            if raw::is_object(value) {
                read_object(value.get())
            } else {
                Err(ParseError::bare(ParseErrorKind::NotAnObject))
            }
        })
        .collect();
    match broken {
        // A log line such as `[INFO] ready` starts like a batch, but is not one.
        Some(kind) if members.iter().all(Result::is_err) => Err(ParseError::bare(kind)),
        Some(kind) => {
            members.push(Err(ParseError::bare(kind)));
            Ok(members)
        }
        None if members.is_empty() => Err(ParseError::bare(ParseErrorKind::EmptyBatch)),
        None => Ok(members),
    }
}

/// Parses consecutive messages without a newline, or a message followed by other text.
///
/// `None` if the frame is neither: the first object extends to the end of the text, or nothing in it is a message.
#[cold]
fn read_shared_frame(
    text: &str,
    max_batch: usize,
) -> Option<Result<Vec<Result<Received<'_>, ParseError>>, ParseError>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut members = Vec::new();
    let mut start = 0;
    while let Some(value) = stream.next() {
        if members.len() == max_batch {
            let kind = ParseErrorKind::TooManyMembers { limit: max_batch };
            return Some(Err(ParseError::bare(kind)));
        }
        match value {
            Ok(value) if raw::is_object(value) => {
                members.push(read_object(value.get()).map(|mut received| {
                    received.quirks.add(Quirk::SharedFrame);
                    received
                }));
            }
            Ok(_) => members.push(Err(ParseError::bare(ParseErrorKind::NotAnObject))),
            Err(error) => {
                let rest = text.get(start..).unwrap_or_default();
                let kind = not_json(text, &error);
                members.push(Err(ParseError::salvaged(kind, rest.as_bytes())));
                break;
            }
        }
        start = stream.byte_offset();
    }
    (members.len() > 1 && members.iter().any(Result::is_ok)).then_some(Ok(members))
}

/// Collects into an external vector, so that the members before an error are preserved.
struct BatchVisitor<'v, 'a> {
    values: &'v mut Vec<&'a RawValue>,
    max_batch: usize,
}

impl<'a> Visitor<'a> for BatchVisitor<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a batch of messages")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(value) = sequence.next_element()? {
            self.values.push(value);
            if self.values.len() > self.max_batch {
                break;
            }
        }
        Ok(())
    }
}

#[cold]
fn not_json(text: &str, error: &serde_json::Error) -> ParseErrorKind {
    let offset = if error.is_eof() {
        text.len()
    } else {
        offset_of(text, error.line(), error.column())
    };
    let full = error.to_string();
    let reason = full
        .rsplit_once(" at line ")
        .map_or(full.as_str(), |(reason, _)| reason);
    ParseErrorKind::NotJson {
        offset,
        reason: reason.to_owned(),
        excerpt: excerpt(text, offset),
    }
}

/// `serde_json` counts lines from one; the column is the number of bytes consumed in the line.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start = match line.checked_sub(2) {
        None => 0,
        Some(skip) => memchr::memchr_iter(b'\n', text.as_bytes())
            .nth(skip)
            .map_or(0, |newline| newline + 1),
    };
    (line_start + column.saturating_sub(1)).min(text.len())
}

/// A few characters around `offset`, printable.
fn excerpt(text: &str, offset: usize) -> String {
    const BEFORE: usize = 16;
    const LENGTH: usize = 40;
    let mut start = offset.saturating_sub(BEFORE).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    printable(text.get(start..).unwrap_or_default(), LENGTH)
}
