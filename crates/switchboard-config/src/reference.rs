//! Generates the reference of all keys as Markdown, from the key tables used for decoding.

use std::fmt::Write as _;

use crate::document::ROOT_KEYS;
use crate::entry::keys::{KEYS, Key, LIMIT_KEYS, OAUTH_KEYS, SANDBOX_KEYS, Shape, TOOL_KEYS};
use crate::policy::{HOOK_KEYS, PROFILE_KEYS, RULE_KEYS};
use crate::settings::{Setting, Settings};

/// The contents of `docs/reference.md`.
pub fn reference() -> String {
    let mut text = "# Configuration reference\n\n\
        Every key that Switchboard reads, with its type and default. This page is generated from the program; \
        [configuration.md](configuration.md) explains where files are and which one wins. \
        `switchboard config schema` prints the same as JSON Schema for editors.\n"
        .to_owned();
    section(&mut text, "Top level", "", ROOT_KEYS);
    for key in ROOT_KEYS {
        if let Shape::Table(keys) = key.shape {
            section(&mut text, &format!("`[{}]`", key.name), key.about, keys);
        }
    }
    let server: Vec<Key> = KEYS.iter().map(|(_, key)| *key).collect();
    section(
        &mut text,
        "Servers: `[mcp_servers.NAME]`",
        "A server needs `command` or `url`.",
        &server,
    );
    section(&mut text, "`[mcp_servers.NAME.oauth]`", "", OAUTH_KEYS);
    section(&mut text, "`[mcp_servers.NAME.sandbox]`", "", SANDBOX_KEYS);
    section(&mut text, "`[mcp_servers.NAME.limits]`", "", LIMIT_KEYS);
    section(&mut text, "`[mcp_servers.NAME.tools.TOOL]`", "", TOOL_KEYS);
    settings(&mut text);
    section(
        &mut text,
        "Permission rules: `[[permissions.rules]]`",
        "See [permissions.md](permissions.md) for how rules are matched.",
        RULE_KEYS,
    );
    section(&mut text, "Hooks: `[[hooks]]`", "", HOOK_KEYS);
    section(
        &mut text,
        "Profiles: `[profiles.NAME]`",
        "See [gateway.md](gateway.md#profiles) for an example.",
        PROFILE_KEYS,
    );
    text
}

fn section(text: &mut String, title: &str, about: &str, keys: &[Key]) {
    heading(text, title, about, "| key | type | |\n|---|---|---|\n");
    for key in keys {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            key.name,
            kind(key.shape),
            key.about
        );
    }
}

fn settings(text: &mut String) {
    let table = "| key | type | default | |\n|---|---|---|---|\n";
    heading(text, "Settings: `[settings]`", "", table);
    let defaults = Settings::default();
    for setting in Setting::all() {
        let Key { name, shape, about } = setting.key();
        let value = &defaults.get(setting).value;
        let _ = writeln!(text, "| `{name}` | {} | {value} | {about} |", kind(*shape));
    }
}

fn heading(text: &mut String, title: &str, about: &str, table: &str) {
    let _ = write!(text, "\n## {title}\n\n");
    if !about.is_empty() {
        let _ = write!(text, "{about}\n\n");
    }
    text.push_str(table);
}

/// Short description of a type. Choices are separated by commas, as a bar would end the table cell.
fn kind(shape: Shape) -> String {
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::TextList => "list of texts".to_owned(),
        Shape::TextMap => "table of texts".to_owned(),
        Shape::Bool => "`true`, `false`".to_owned(),
        Shape::Seconds => "seconds".to_owned(),
        Shape::Count => "number".to_owned(),
        Shape::Factor => "number from 1 to 1000".to_owned(),
        Shape::Window => "`auto`, or a number of tokens".to_owned(),
        Shape::Port => "port".to_owned(),
        Shape::ToolSearch => "`auto`, `auto:N` (percent), `on`, `off`".to_owned(),
        Shape::OneOf(known) => words(known),
        Shape::Command => "text, or a list of program and arguments".to_owned(),
        Shape::Servers => "servers by name, see below".to_owned(),
        Shape::Settings | Shape::Rules | Shape::Hooks => "see below".to_owned(),
        Shape::Table(_) | Shape::MapOf(_) => "table".to_owned(),
        Shape::PatternList => "list of patterns".to_owned(),
        Shape::Conditions => "table of conditions".to_owned(),
        Shape::WordOrTable(known, _) => format!("{}, or a table", words(known)),
        Shape::WordOrList(known) => format!("{}, or a list of texts", words(known)),
    }
}
