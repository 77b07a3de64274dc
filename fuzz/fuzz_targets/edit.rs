//! Any text as a file to edit: an edit does exactly what was asked, or leaves the text alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_config::edit::{Edit, apply};
use switchboard_config::format::Format;
use switchboard_config::tree::Node;

const FORMATS: [Format; 3] = [Format::Toml, Format::Json, Format::Hcl];
const KEYS: [&str; 4] = ["mcp_servers", "a", "b.c", "env"];

fuzz_target!(|data: &[u8]| {
    let [choice, keys, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let path: Vec<&str> = (0..=usize::from(keys & 1)).map(|at| KEYS[usize::from(keys >> (2 * at + 1)) % 4]).collect();
    let value = match choice >> 4 {
        0..5 => Node::detached("text with \"quotes\" and ${VAR}"),
        5..9 => Node::detached(7_i64),
        _ => Node::table([("command", Node::detached("npx")), ("env", Node::table([("K", Node::detached("v"))]))]),
    };
    if let Ok(changed) = apply(text, format, &Edit::Set { path: &path, value: value.clone() }) {
        // Once more changes nothing, and the key can be taken away again.
        assert_eq!(apply(&changed, format, &Edit::Set { path: &path, value }).as_deref(), Ok(changed.as_str()));
        assert!(apply(&changed, format, &Edit::Remove { path: &path }).is_ok(), "{changed}");
    }
});
