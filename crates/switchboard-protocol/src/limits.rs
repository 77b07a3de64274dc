//! Limits on the size, depth and count of messages, and the depth scan.
//!
//! The scan does not validate JSON: it counts brackets outside strings, so that hostile nesting is rejected before any
//! recursive code runs.

use crate::string_scan::end_of_string;

/// Limits on what a peer may send; [`Default`] has the documented values.
///
/// The first three apply when [`parse()`](crate::parse()) reads a message, the others when the [types](crate::types)
/// are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes per message; a batch counts as one message.
    pub max_bytes: usize,
    /// Nesting depth of arrays and objects, including the envelope.
    pub max_depth: usize,
    /// Messages per batch.
    pub max_batch: usize,
    /// Entries of one list or map, and unknown fields of one object.
    pub max_items: usize,
    /// Nesting depth of content blocks (`tool_result` may contain blocks).
    pub max_nested_content: usize,
}

impl Limits {
    /// 16 MiB, 128 levels, a batch of 100, 100,000 items, 8 nested content blocks.
    ///
    /// `serde_json` also stops recursing at 128 levels, so anything accepted here can be decoded further. 100,000 items
    /// are ten times the longest tool list in our benchmarks.
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

/// The offset of the first opening bracket beyond `max_depth`, if any.
///
/// One iterative pass; strings are skipped with a vectorized search. Invalid JSON also gets a result (brackets outside
/// apparent strings), never a panic.
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
