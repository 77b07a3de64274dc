//! Encodes messages: each function appends one complete message to a buffer.
//!
//! The output is always a single line, whatever raw values it contains, so the same bytes work for stdio, SSE and HTTP;
//! framing (newline, `data:`) is left to the transport. On an error the buffer is unchanged.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::ErrorObject,
    id::RequestId,
    message::Message,
    meta::{self, RequestMembers},
    types,
};

/// For requests and notifications without params.
pub const NO_PARAMS: Option<&RawValue> = None;

/// The reason a message could not be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The params or the result do not serialize.
    #[error("cannot encode the value as JSON")]
    Value(#[source] serde_json::Error),
    /// `_meta` cannot be merged into the params.
    #[error(transparent)]
    Meta(#[from] meta::MergeError),
}

/// Appends a request.
pub fn request<P: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    id: &RequestId<'_>,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        start_request(buffer, id, method)?;
        write_member(buffer, b",\"params\":", params)
    })
}

/// Appends a request with `members` merged into the `_meta` of its params, without an intermediate copy.
pub fn request_with_meta<'a>(
    buffer: &mut Vec<u8>,
    id: &RequestId<'_>,
    method: &str,
    params: Option<&RawValue>,
    members: impl Into<RequestMembers<'a>>,
) -> Result<(), EncodeError> {
    let members = members.into();
    if members.is_empty() {
        return request(buffer, id, method, params);
    }
    append(buffer, |buffer| {
        start_request(buffer, id, method)?;
        buffer.extend_from_slice(b",\"params\":");
        Ok(meta::merge_into(buffer, params, members)?)
    })
}

/// The params of a `tools/call` request.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Arguments of the tool, an object.
    pub arguments: Option<&'a RawValue>,
    /// Whether to run it as a task (2025-11-25).
    pub as_task: bool,
}

impl ToolCall<'_> {
    /// The params without `_meta`.
    pub fn params(&self) -> String {
        let mut params = vec![b'{'];
        self.write(&mut params);
        params.push(b'}');
        String::from_utf8(params).unwrap_or_default()
    }

    /// The members, on one line. The name comes first, because servers look for it first.
    fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(b"\"name\":");
        // Encoding a string cannot fail.
        let _ = write_text(buffer, self.name);
        if let Some(arguments) = self.arguments {
            buffer.extend_from_slice(b",\"arguments\":");
            let start = buffer.len();
            buffer.extend_from_slice(arguments.get().as_bytes());
            if let Some(written) = buffer.get_mut(start..) {
                make_single_line(written);
            }
        }
        if self.as_task {
            buffer.extend_from_slice(b",\"task\":{}");
        }
    }
}

/// Appends a `tools/call` request with `members` as its `_meta`. The output equals that of [`request_with_meta`], but
/// is written in one pass.
pub fn tool_call<'a>(
    buffer: &mut Vec<u8>,
    id: &RequestId<'_>,
    call: &ToolCall<'_>,
    members: impl Into<RequestMembers<'a>>,
) {
    let members = members.into();
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(buffer);
    buffer.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{");
    if !members.is_empty() {
        buffer.extend_from_slice(b"\"_meta\":{");
        members.write(buffer);
        buffer.extend_from_slice(b"},");
    }
    call.write(buffer);
    buffer.extend_from_slice(b"}}");
}

/// Appends a notification.
pub fn notification<P: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
        write_value(buffer, method)?;
        write_member(buffer, b",\"params\":", params)
    })
}

/// Appends a successful response.
pub fn response<R: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    id: &RequestId<'_>,
    result: &R,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write_json(buffer);
        write_member(buffer, b",\"result\":", Some(result))
    })
}

/// Appends an error response. Without an id the member is omitted, as in MCP's schema; pass [`RequestId::null`] for a
/// peer that expects JSON-RPC's `null`.
pub fn error(
    buffer: &mut Vec<u8>,
    id: Option<&RequestId<'_>>,
    error: &ErrorObject<'_>,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
        if let Some(id) = id {
            buffer.extend_from_slice(b"\"id\":");
            id.write_json(buffer);
            buffer.push(b',');
        }
        buffer.extend_from_slice(b"\"error\":");
        buffer.extend_from_slice(types::encode(error).as_bytes());
        Ok(())
    })
}

/// Appends any message.
pub fn message(buffer: &mut Vec<u8>, message: &Message<'_>) -> Result<(), EncodeError> {
    match message {
        Message::Request { id, method, params } => request(buffer, id, method, *params),
        Message::Notification { method, params } => notification(buffer, method, *params),
        Message::Response { id, result } => response(buffer, id, *result),
        Message::Error { id, error: object } => error(buffer, id.as_ref(), object),
    }
}

/// Appends a batch, for a peer of revision 2025-03-26.
pub fn batch<'m, 'a: 'm>(
    buffer: &mut Vec<u8>,
    messages: impl IntoIterator<Item = &'m Message<'a>>,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    buffer.push(b'[');
    for (index, member) in messages.into_iter().enumerate() {
        if index > 0 {
            buffer.push(b',');
        }
        if let Err(error) = message(buffer, member) {
            buffer.truncate(start);
            return Err(error);
        }
    }
    buffer.push(b']');
    Ok(())
}

/// Makes JSON one line, in place: a raw newline or carriage return becomes a space.
///
/// JSON strings cannot contain either byte unescaped, so both occur only between tokens, where a space is equivalent.
/// In place: nothing is moved or copied.
pub fn make_single_line(json: &mut [u8]) {
    let mut rest = json;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let (head, tail) = rest.split_at_mut(at + 1);
        if let Some(byte) = head.last_mut() {
            *byte = b' ';
        }
        rest = tail;
    }
}

/// Runs `write` and closes the object; makes it one line, and restores the buffer on an error.
fn append(
    buffer: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    if let Err(error) = write(buffer) {
        buffer.truncate(start);
        return Err(error);
    }
    buffer.push(b'}');
    if let Some(written) = buffer.get_mut(start..) {
        make_single_line(written);
    }
    Ok(())
}

fn start_request(
    buffer: &mut Vec<u8>,
    id: &RequestId<'_>,
    method: &str,
) -> Result<(), EncodeError> {
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(buffer);
    buffer.extend_from_slice(b",\"method\":");
    write_text(buffer, method)
}

/// Writes a string that rarely needs escapes, such as the name of a method or tool.
fn write_text(buffer: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    if text
        .bytes()
        .any(|byte| byte < b' ' || byte == b'"' || byte == b'\\')
    {
        return write_value(buffer, text);
    }
    buffer.push(b'"');
    buffer.extend_from_slice(text.as_bytes());
    buffer.push(b'"');
    Ok(())
}

fn write_member<T: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    key: &[u8],
    value: Option<&T>,
) -> Result<(), EncodeError> {
    let Some(value) = value else { return Ok(()) };
    buffer.extend_from_slice(key);
    write_value(buffer, value)
}

fn write_value<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    serde_json::to_writer(buffer, value).map_err(EncodeError::Value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::meta::MetaMembers;

    proptest! {
        #[test]
        fn a_tool_call_is_encoded_like_any_request(
            name in ".{0,12}",
            text in prop::option::of(".{0,12}"),
            as_task: bool,
            is_stateless: bool,
            token in prop::option::of(0_u64..5),
        ) {
            let arguments = text.map(|text| {
                let text = serde_json::to_string(&text).unwrap();
                RawValue::from_string(format!("{{\n\"text\":\r{text}}}")).unwrap()
            });
            let call = ToolCall { name: &name, arguments: arguments.as_deref(), as_task };
            let params = RawValue::from_string(call.params()).unwrap();
            let mut meta = MetaMembers::default();
            if is_stateless {
                let lines = RawValue::from_string("{\n}".to_owned()).unwrap();
                meta.set("vendor/lines", &lines).unwrap();
            }
            let members = || match token {
                Some(token) => meta.with_progress(token),
                None => (&meta).into(),
            };
            let id = RequestId::from(7);
            let (mut at_once, mut in_two_steps) = (Vec::new(), Vec::new());
            tool_call(&mut at_once, &id, &call, members());
            request_with_meta(&mut in_two_steps, &id, "tools/call", Some(&params), members()).unwrap();
            prop_assert_eq!(String::from_utf8(at_once), String::from_utf8(in_two_steps));
        }
    }
}
