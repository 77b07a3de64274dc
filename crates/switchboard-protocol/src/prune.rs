//! Prunes items that are nested too deep from a page of a list, so that the rest can be parsed.
//!
//! One iterative pass over an answer that [`parse()`](crate::parse()) rejected. Only for lists: any other answer would
//! silently lose data. An item that is too deep is replaced by an object with the member [`TOO_DEEP`], so that the
//! other items are unaffected.

use std::fmt::Write as _;

use crate::{scan, string_scan::end_of_string};

/// The member of an object that replaces an item nested too deep; its value is the limit.
pub const TOO_DEEP: &str = "io.switchboard/too-deep";

/// The result of a message, with every list item nested deeper than `max_depth` replaced; `None` if the message is not
/// a response, or not JSON.
///
/// With `keeps_name`, the replacement has the item's name. Other members of the result that are too deep become null.
pub fn shallow_page(frame: &[u8], max_depth: usize, keeps_name: bool) -> Option<String> {
    let text = std::str::from_utf8(frame).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let members = scan::envelope(text.trim_matches([' ', '\t', '\r', '\n']), usize::MAX)?;
    members.id?;
    let page = members.result?.get();
    // The envelope and the page are one level each.
    let room = max_depth.checked_sub(2)?;
    let mut shallow = String::with_capacity(page.len().min(1 << 20));
    let mut values = Values::within(page).filter(|_| page.starts_with('{'))?;
    let mut is_first = true;
    shallow.push('{');
    while let Some(key) = values.next_key()? {
        if !std::mem::take(&mut is_first) {
            shallow.push(',');
        }
        shallow.push_str(key);
        shallow.push(':');
        let value = values.next_value()?;
        if value.depth <= room {
            shallow.push_str(value.text);
        } else if value.text.starts_with('[') {
            push_items(&mut shallow, value.text, room - 1, max_depth, keeps_name)?;
        } else {
            shallow.push_str("null");
        }
    }
    shallow.push('}');
    Some(shallow)
}

fn push_items(
    shallow: &mut String,
    list: &str,
    room: usize,
    limit: usize,
    keeps_name: bool,
) -> Option<()> {
    let mut items = Values::within(list)?;
    let mut is_first = true;
    shallow.push('[');
    while items.has_more()? {
        if !std::mem::take(&mut is_first) {
            shallow.push(',');
        }
        let item = items.next_value()?;
        if item.depth <= room {
            shallow.push_str(item.text);
            continue;
        }
        shallow.push('{');
        if keeps_name && let Some(name) = name_of(item.text) {
            shallow.push_str("\"name\":");
            shallow.push_str(name);
            shallow.push(',');
        }
        // Writing to a string cannot fail.
        let _ = write!(shallow, "\"{TOO_DEEP}\":{limit}}}");
    }
    shallow.push(']');
    Some(())
}

/// The last `name` member of an object, if it is a string.
fn name_of(object: &str) -> Option<&str> {
    if !object.starts_with('{') {
        return None;
    }
    let mut values = Values::within(object)?;
    let mut name = None;
    while let Some(key) = values.next_key()? {
        let value = values.next_value()?;
        if key == "\"name\"" {
            name = Some(value.text).filter(|text| text.starts_with('"'));
        }
    }
    name
}

/// The values in an object or array that is known to be valid JSON.
struct Values<'a> {
    text: &'a str,
    position: usize,
}

struct Found<'a> {
    text: &'a str,
    /// Nesting depth of arrays and objects, including the value itself.
    depth: usize,
}

impl<'a> Values<'a> {
    fn within(text: &'a str) -> Option<Self> {
        matches!(text.as_bytes().first(), Some(b'{' | b'[')).then_some(Self { text, position: 1 })
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.position)? {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => self.position += 1,
                byte => return Some(byte),
            }
        }
    }

    fn has_more(&mut self) -> Option<bool> {
        Some(!matches!(self.peek()?, b'}' | b']'))
    }

    /// The next key with its quotation marks; the inner `None` at the end.
    #[expect(clippy::option_option, reason = "a syntax error is not the end")]
    fn next_key(&mut self) -> Option<Option<&'a str>> {
        if !self.has_more()? {
            return Some(None);
        }
        Some(Some(self.next_value()?.text))
    }

    fn next_value(&mut self) -> Option<Found<'a>> {
        self.peek()?;
        let bytes = self.text.as_bytes();
        let start = self.position;
        let (mut depth, mut deepest) = (0_usize, 0_usize);
        loop {
            match *bytes.get(self.position)? {
                b'"' => self.position = end_of_string(bytes, self.position + 1)?.position,
                b'{' | b'[' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                    self.position += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.position += 1;
                }
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => {
                    self.position += 1;
                    continue;
                }
                _ => {
                    let rest = bytes.get(self.position..)?;
                    let is_end = |byte: &u8| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                    };
                    self.position += rest.iter().position(is_end).unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                let text = self.text.get(start..self.position)?;
                return Some(Found {
                    text,
                    depth: deepest,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!(
            "{}{}",
            r#"{"a":"#.repeat(levels),
            "1".to_owned() + &"}".repeat(levels)
        )
    }

    #[test]
    fn only_the_item_that_is_too_deep_is_replaced() {
        let check = |items: &str, expected: &str| {
            let frame = format!(
                "\u{feff} {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{ \"tools\" : [{items}],\"nextCursor\":\"x\"}}}}\n"
            );
            let page = shallow_page(frame.as_bytes(), 8, true);
            let expected = format!(r#"{{"tools":[{expected}],"nextCursor":"x"}}"#);
            assert_eq!(page.as_deref(), Some(expected.as_str()), "{items}");
        };
        check("", "");
        check(r#"{"name":"a","s":{}}"#, r#"{"name":"a","s":{}}"#);
        for levels in [5, 6, 100, 10_000, 1_000_000] {
            let deep = format!(
                r#"{{"x":"]}}","inputSchema":{},"name":"b\"c"}}"#,
                nested(levels)
            );
            let items = format!(r#"{{"name":"a"}}, {deep} ,{{"name":"d"}}"#);
            let replaced = r#"{"name":"b\"c","io.switchboard/too-deep":8}"#;
            check(
                &items,
                &format!(r#"{{"name":"a"}},{replaced},{{"name":"d"}}"#),
            );
        }
        // Exactly at the limit, and an item that is not an object.
        let just = format!(r#"{{"name":"e","s":{}}}"#, nested(4));
        check(&just, &just);
        let brackets = "[".repeat(9) + &"]".repeat(9);
        check(&brackets, r#"{"io.switchboard/too-deep":8}"#);
    }

    #[test]
    fn other_messages_give_none() {
        let deep = nested(10);
        for frame in [
            format!(r#"{{"id":1,"result":[{deep}]}}"#),
            format!(r#"{{"id":1,"error":{deep}}}"#),
            format!(r#"{{"result":{{"tools":[{deep}]}}}}"#),
            format!(r#"{{"id":1,"result":{{"tools":[{deep}]}}"#),
        ] {
            assert_eq!(shallow_page(frame.as_bytes(), 8, true), None, "{frame}");
        }
        let frame = format!(r#"{{"id":1,"result":{{"_meta":{deep},"tools":[]}}}}"#);
        let page = shallow_page(frame.as_bytes(), 8, false);
        assert_eq!(page.as_deref(), Some(r#"{"_meta":null,"tools":[]}"#));
    }
}
