//! One more permission rule in a file that may have some already.
//!
//! Rules are a list, and an edit sets a value as a whole; but the rules that are there may have comments between them.
//! So where the format lets a list grow at the end of the file, that is where the rule goes.

use std::fmt::Write as _;

use super::{Edit, EditError, apply, check};

use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Node, Value};

const PATH: [&str; 2] = ["permissions", "rules"];

/// Adds a rule without conditions to the text of a file, and returns the new text.
pub fn add_rule(text: &str, format: Format, tool: &str, action: &str) -> Result<String, EditError> {
    let file = SourceFile::new("", Scope::Dynamic, text);
    let before = check::read(&file, format).map_err(|kind| EditError::new(&PATH, kind))?;
    let rule = || {
        Node::table([
            ("tool", Node::detached(tool)),
            ("action", Node::detached(action)),
        ])
    };
    let rules: Value<'_> = match before.at(&PATH) {
        None => std::iter::once(rule()).collect(),
        Some(stated) => {
            let stated = stated.as_array().unwrap_or(std::slice::from_ref(stated));
            stated.iter().cloned().chain([rule()]).collect()
        }
    };
    let rules = Node::detached(rules);
    if format == Format::Toml
        && let Some(grown) = grown(text, tool, action, &rules)
    {
        return Ok(grown);
    }
    let edit = Edit::Set {
        path: &PATH,
        value: rules,
    };
    apply(text, format, &edit)
}

/// The text with one more table at its end, if that is what TOML makes of it.
fn grown(text: &str, tool: &str, action: &str, rules: &Node<'_>) -> Option<String> {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut grown = text.to_owned();
    if !grown.is_empty() {
        if !grown.ends_with('\n') {
            grown.push_str(line_end);
        }
        grown.push_str(line_end);
    }
    for line in [
        "[[permissions.rules]]".to_owned(),
        format!("tool = {}", quoted(tool)),
        format!("action = {}", quoted(action)),
    ] {
        grown.push_str(&line);
        grown.push_str(line_end);
    }
    let file = SourceFile::new("", Scope::Dynamic, &grown);
    let after = check::read(&file, Format::Toml).ok()?;
    let is_meant = after
        .at(&PATH)
        .is_some_and(|found| check::same(found, rules));
    is_meant.then_some(grown)
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::EditErrorKind;

    #[track_caller]
    fn check(format: Format, before: &str, after: &str) {
        let found = add_rule(before, format, "mcp__a__b", "allow").unwrap();
        assert_eq!(found, after);
    }

    #[test]
    fn a_rule_goes_to_the_end_and_comments_stay() {
        let rule = "[[permissions.rules]]\ntool = \"mcp__a__b\"\naction = \"allow\"\n";
        check(Format::Toml, "", rule);
        let before = "# mine\n[[permissions.rules]] # first\ntool = \"x\" # x\naction = \"deny\"\n\n# servers\n[mcp_servers.a]\ncommand = \"y\"";
        check(Format::Toml, before, &format!("{before}\n\n{rule}"));
        check(
            Format::Toml,
            "[permissions]\nrules = [{ tool = \"x\", action = \"ask\" }]\n",
            "[permissions]\nrules = [{ tool = \"x\", action = \"ask\" }, { tool = \"mcp__a__b\", action = \"allow\" }]\n",
        );
        check(
            Format::Json,
            "{\n  // mine\n  \"mcpServers\": {}\n}\n",
            "{\n  // mine\n  \"mcpServers\": {},\n  \"permissions\": {\n    \"rules\": [\n      {\n        \"tool\": \"mcp__a__b\",\n        \"action\": \"allow\"\n      }\n    ]\n  }\n}\n",
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let error = add_rule("a = [", Format::Toml, "t", "allow").unwrap_err();
        assert!(
            matches!(error.kind, EditErrorKind::Syntax { .. }),
            "{error}"
        );
    }
}
