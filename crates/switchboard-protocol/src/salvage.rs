//! Recovers the id of a message that cannot be parsed.
//!
//! A best-effort scan over text that is truncated, too large, too deep, not UTF-8 or not quite JSON. It finds the
//! top-level `id`, so that the call fails at once instead of waiting for its deadline. The result is only a hint for
//! failing a call.

use crate::{id::RequestId, string_scan::end_of_string};

/// What could be recovered from a broken message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Salvaged {
    /// The first top-level `id`, if it is complete and is a string or a number.
    pub id: Option<RequestId<'static>>,
    /// Whether a top-level `method` was found: then the id belongs to a request of the peer, not to a call of ours.
    pub has_method: bool,
}

/// Finds the top-level `id` and `method` of a broken or truncated object, in one iterative pass.
///
/// Unlike in a complete message, the first `id` counts: after a syntax error the depth is unreliable, and a later `id`
/// may be nested.
pub fn salvage(bytes: &[u8]) -> Salvaged {
    let mut salvaged = Salvaged::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Some(start) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return salvaged;
    };
    if bytes.get(start) != Some(&b'{') {
        return salvaged;
    }
    let mut depth = 0_usize;
    let mut position = start;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'"' => {
                let Some(end) = end_of_string(bytes, position + 1) else {
                    return salvaged;
                };
                if depth == 1 {
                    note_member(bytes, position..end.position, &mut salvaged);
                }
                position = end.position;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        position += 1;
    }
    salvaged
}

/// Records the member if the string at `key` is one of the two keys.
fn note_member(bytes: &[u8], key: std::ops::Range<usize>, salvaged: &mut Salvaged) {
    let after = skip_whitespace(bytes, key.end);
    if bytes.get(after) != Some(&b':') {
        return;
    }
    let value = skip_whitespace(bytes, after + 1);
    match bytes.get(key).unwrap_or_default() {
        b"\"id\"" if salvaged.id.is_none() => salvaged.id = read_id(bytes, value),
        b"\"method\"" => salvaged.has_method |= bytes.get(value) == Some(&b'"'),
        _ => {}
    }
}

/// A complete scalar at `start`, followed by something: a number at the end may have been truncated.
fn read_id(bytes: &[u8], start: usize) -> Option<RequestId<'static>> {
    let end = if bytes.get(start) == Some(&b'"') {
        end_of_string(bytes, start + 1)?.position
    } else {
        let rest = bytes.get(start..)?;
        start
            + rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))?
    };
    let token = std::str::from_utf8(bytes.get(start..end)?).ok()?;
    let id = RequestId::from_json(token)?.into_owned();
    (!id.is_null()).then_some(id)
}

fn skip_whitespace(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start
        + rest
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())
            .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_broken_message_is_found() {
        let check = |text: &[u8], id: Option<&str>, has_method: bool| {
            let expected = Salvaged {
                id: id.map(|id| RequestId::from_json(id).unwrap().into_owned()),
                has_method,
            };
            assert_eq!(salvage(text), expected, "{}", String::from_utf8_lossy(text));
        };
        check(
            br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#,
            Some("7"),
            false,
        );
        check(
            br#" {"result":{"id":1},"id" : "a\"b" ,"#,
            Some(r#""a\"b""#),
            false,
        );
        check(br#"{"id":7,"method":"ping","params":{]"#, Some("7"), true);
        check(b"{\"result\":\"\xff\xfe\",\"id\":3}", Some("3"), false);
        check(b"\xef\xbb\xbf{\"id\":3,", Some("3"), false);
        check(br#"{"id":1.0,"id":2,"#, Some("1.0"), false);
        check(br#"{"result":NaN,"id":4}"#, Some("4"), false);
        check(br#"{"text":"id","x":"\"id\":9"}"#, None, false);
        check(br#"{"method":"id","id":null,"#, None, true);
        check(br#"{"id":12"#, None, false);
        check(br#"{"id":"cut"#, None, false);
        check(br#"{"id":{"id":1}}"#, None, false);
        check(br#"{"id":[1],"a":"#, None, false);
        check(br#"[{"id":1}"#, None, false);
        check(br#"INFO {"id":1}"#, None, false);
        check(b"", None, false);
    }
}
