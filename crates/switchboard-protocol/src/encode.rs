//! Messages to bytes: each function appends one whole message to a buffer.
//!
//! Owns the writing of the envelope. What it appends is always one line, whatever raw values it was given, so
//! the same bytes serve stdio, SSE and HTTP; the frame around it (newline, `data:`) is the transport's. On an
//! error the buffer is as it was before.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::ErrorObject,
    id::RequestId,
    message::Message,
    meta::{self, RequestMembers},
    types,
};

/// For a request or notification without params.
pub const NO_PARAMS: Option<&RawValue> = None;

/// Why a message could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The params or the result do not turn into JSON.
    #[error("the value cannot be written as JSON")]
    Value(#[source] serde_json::Error),
    /// The params cannot carry `_meta`.
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

/// Appends a request whose params get `members` merged into their `_meta`, without an intermediate copy.
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

/// A call of a tool, as its request has it.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The tool.
    pub name: &'a str,
    /// The arguments, an object.
    pub arguments: Option<&'a RawValue>,
    /// Whether it is to be run as a task (2025-11-25).
    pub as_task: bool,
}

impl ToolCall<'_> {
    /// The params without `_meta`, for whoever needs them by themselves.
    pub fn params(&self) -> String {
        let mut params = vec![b'{'];
        self.write(&mut params);
        params.push(b'}');
        String::from_utf8(params).unwrap_or_default()
    }

    /// The members, on one line. The name comes first: it is what a server looks for.
    fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(b"\"name\":");
        // Text in memory can always be written.
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

/// Appends a call of a tool with `members` as its `_meta`: what [`request_with_meta`] makes of its params, written in one
/// go.
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

/// Appends a good answer.
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

/// Appends a bad answer. Without an id the member is left out, as MCP's schema has it; give
/// [`RequestId::null`] to a peer that wants JSON-RPC's `null`.
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
/// JSON strings cannot hold either byte unescaped, so both only ever stand between tokens, where a space
/// means the same. Nothing moves and nothing is copied.
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

/// Runs `write`, closes the object, and keeps the promises: one line, or nothing at all.
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

/// A text that nearly always needs no escapes: the name of a method or of a tool.
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
        fn a_call_is_written_as_any_request_would_be(
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
