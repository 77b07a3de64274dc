//! The fast depth scan against one that looks at a byte at a time, and against serde_json's own parser.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_protocol::limits::depth_exceeded_at;

fuzz_target!(|input: (u8, &[u8])| {
    let (max_depth, bytes) = (usize::from(input.0 % 32), input.1);
    let found = depth_exceeded_at(bytes, max_depth);
    assert_eq!(found, counted(bytes, max_depth));
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
        assert_eq!(found.is_some(), depth_of(&value) > max_depth);
    }
});

fn counted(bytes: &[u8], max_depth: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return Some(offset);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn depth_of(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}
