//! How large, how deep and how many: the bounds a message must keep.
//!
//! Owns [`Limits`] and the depth scan. Nothing here judges JSON: the scan counts brackets outside strings, so
//! that a hostile nesting is refused before anything recursive sees it.

use crate::string_scan::end_of_string;

/// Bounds on what a peer may send; [`Default`] gives the documented ones.
///
/// The first three hold for a message as [`parse()`](crate::parse()) reads it, the others for a value as the
/// [types](crate::types) are decoded from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message (a whole batch counts as one).
    pub max_bytes: usize,
    /// Arrays and objects inside one another, the envelope included.
    pub max_depth: usize,
    /// Members of one batch.
    pub max_batch: usize,
    /// Entries of one list or map, and unknown fields of one object.
    pub max_items: usize,
    /// Content blocks within content blocks (`tool_result` may hold blocks).
    pub max_nested_content: usize,
}

impl Limits {
    /// 16 MiB, 128 levels, a batch of 100, 100,000 items, 8 content blocks within one another.
    ///
    /// 128 is also where `serde_json` stops recursing, so what passes here can be decoded further. 100,000 items
    /// are ten times the longest tool list that Switchboard is measured with.
    pub const DEFAULT: Self = Self {
        max_bytes: 16 * 1024 * 1024,
        max_depth: 128,
        max_batch: 100,
        max_items: 100_000,
        max_nested_content: 8,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where nesting first passes `max_depth`: the offset of that opening bracket.
///
/// One iterative pass; strings are skipped with a vectorised search. A text that is not JSON gets an answer
/// too (brackets outside what looks like strings), never a panic.
pub fn depth_exceeded_at(bytes: &[u8], max_depth: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        match CLASSES[usize::from(byte)] {
            OTHER => {}
            QUOTE => {
                position = end_of_string(bytes, position + 1)?.position;
                continue;
            }
            OPEN => {
                depth += 1;
                if depth > max_depth {
                    return Some(position);
                }
            }
            _ => depth = depth.saturating_sub(1),
        }
        position += 1;
    }
    None
}

const OTHER: u8 = 0;
const QUOTE: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;

const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    classes[b'"' as usize] = QUOTE;
    classes[b'{' as usize] = OPEN;
    classes[b'[' as usize] = OPEN;
    classes[b'}' as usize] = CLOSE;
    classes[b']' as usize] = CLOSE;
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        let long = format!("\"{}[[[[\"", "x".repeat(100));
        for (text, max_depth, expected) in [
            ("", 0, None),
            ("[]", 1, None),
            ("[]", 0, Some(0)),
            ("[[]]", 1, Some(1)),
            ("[[],[],[]]", 2, None),
            (r#"{"a":{"b":[1]}}"#, 3, None),
            (r#"{"a":{"b":[1]}}"#, 2, Some(10)),
            (r#""[[[[""#, 0, None),
            (r#"["\"[[[["]"#, 1, None),
            (r#"["\\",[]]"#, 1, Some(6)),
            (r#"["\\\"[[",[]]"#, 2, None),
            ("]]]][", 1, None),
            (r#""unterminated [[[["#, 0, None),
            (r#""ends in a backslash \"#, 0, None),
            (long.as_str(), 0, None),
        ] {
            assert_eq!(
                depth_exceeded_at(text.as_bytes(), max_depth),
                expected,
                "{text}"
            );
        }
    }
}
