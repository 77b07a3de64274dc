//! Adds a permission rule to a file.
//!
//! An ordinary edit would rewrite the whole list and lose comments between existing rules. So TOML gets a new table at
//! the end of the file if that is valid.

use std::fmt::Write as _;

use super::{Edit, EditError, EditErrorKind, apply, check};

use crate::entry::Permission;
use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Node, Value};

const PATH: [&str; 2] = ["permissions", "rules"];

/// A permission rule to append to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Name or glob of the tools.
    pub tool: String,
    /// `allow`, `ask` or `deny`.
    pub action: &'static str,
    /// Restricts the rule to some calls; `None`: all.
    pub condition: Option<NewCondition>,
}

/// Condition of a [`NewRule`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewCondition {
    /// `command = "git status"`.
    Command(String),
    /// `arguments = { NAME = "value" }`.
    Equals {
        /// Argument name.
        argument: String,
        /// Value that the argument must equal.
        value: String,
    },
    /// `arguments = { NAME = { under = "folder" } }`.
    Under {
        /// Argument name.
        argument: String,
        /// A folder, or a single file.
        folder: String,
    },
    /// `exact_arguments = '{…}'`, with the text of a JSON object.
    ExactArguments(String),
}

impl NewRule {
    /// Creates a rule for all calls of the tools.
    pub fn new(tool: impl Into<String>, action: Permission) -> Self {
        Self {
            tool: tool.into(),
            action: action.name(),
            condition: None,
        }
    }

    /// Creates a rule with the action `allow`.
    pub fn allow(tool: impl Into<String>, condition: Option<NewCondition>) -> Self {
        Self {
            tool: tool.into(),
            action: "allow",
            condition,
        }
    }

    fn node(&self) -> Node<'_> {
        let text = |text: &'_ str| Node::detached(text.to_owned());
        let mut members = vec![("tool", text(&self.tool)), ("action", text(self.action))];
        members.extend(self.condition.as_ref().map(|condition| match condition {
            NewCondition::Command(command) => ("command", text(command)),
            NewCondition::Equals { argument, value } => {
                ("arguments", Node::table([(argument.as_str(), text(value))]))
            }
            NewCondition::Under { argument, folder } => {
                let under = Node::table([("under", text(folder))]);
                ("arguments", Node::table([(argument.as_str(), under)]))
            }
            NewCondition::ExactArguments(object) => ("exact_arguments", text(object)),
        }));
        Node::table(members)
    }

    /// TOML lines of the rule.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("tool = {}", quoted(&self.tool)),
            format!("action = {}", quoted(self.action)),
        ];
        lines.extend(self.condition.as_ref().map(|condition| match condition {
            NewCondition::Command(command) => format!("command = {}", quoted(command)),
            NewCondition::Equals { argument, value } => {
                format!("arguments = {{ {} = {} }}", key(argument), quoted(value))
            }
            NewCondition::Under { argument, folder } => {
                let folder = quoted(folder);
                format!(
                    "arguments = {{ {} = {{ under = {folder} }} }}",
                    key(argument)
                )
            }
            NewCondition::ExactArguments(object) => format!("exact_arguments = {}", quoted(object)),
        }));
        lines
    }
}

/// Adds a rule and returns the new text.
pub fn add_rule(text: &str, format: Format, rule: &NewRule) -> Result<String, EditError> {
    let file = SourceFile::new("", Scope::Dynamic, text);
    let before = check::read(&file, format).map_err(|kind| EditError::new(&PATH, kind))?;
    let rules: Value<'_> = match before.at(&PATH) {
        None => std::iter::once(rule.node()).collect(),
        Some(stated) => {
            let stated = stated.as_array().unwrap_or(std::slice::from_ref(stated));
            stated.iter().cloned().chain([rule.node()]).collect()
        }
    };
    let rules = Node::detached(rules);
    if format == Format::Toml
        && let Some(grown) = grown(text, rule, &rules)
    {
        return Ok(grown);
    }
    let edit = Edit::Set {
        path: &PATH,
        value: rules,
    };
    apply(text, format, &edit)
}

/// Removes every rule with exactly this tool pattern, with the comments above it, and returns the new text.
pub fn remove_rule(text: &str, format: Format, tool: &str) -> Result<String, EditError> {
    let mut changed = remove_first(text, format, tool)?;
    while let Ok(less) = remove_first(&changed, format, tool) {
        changed = less;
    }
    Ok(changed)
}

fn remove_first(text: &str, format: Format, tool: &str) -> Result<String, EditError> {
    let failed = |kind| EditError::new(&PATH, kind);
    let file = SourceFile::new("", Scope::Dynamic, text);
    let before = check::read(&file, format).map_err(failed)?;
    let stated = before.at(&PATH);
    let stated = stated.ok_or_else(|| failed(EditErrorKind::NotFound))?;
    let stated = stated.as_array().unwrap_or(std::slice::from_ref(stated));
    let is_meant = |rule: &Node<'_>| rule.get("tool").and_then(Node::as_str) == Some(tool);
    let index = stated.iter().position(is_meant);
    let (index, start) = index
        .and_then(|index| Some((index, stated.get(index)?.extent().start as usize)))
        .ok_or_else(|| failed(EditErrorKind::NotFound))?;
    let rest: Vec<Node<'_>> = stated
        .iter()
        .enumerate()
        .filter(|(each, _)| *each != index)
        .map(|(_, rule)| rule.clone())
        .collect();
    if rest.is_empty() {
        return apply(text, format, &Edit::Remove { path: &PATH });
    }
    let rest: Value<'_> = rest.into_iter().collect();
    let rest = Node::detached(rest);
    if format == Format::Toml
        && let Some(shrunk) = shrunk(text, start, &rest)
    {
        return Ok(shrunk);
    }
    let edit = Edit::Set {
        path: &PATH,
        value: rest,
    };
    apply(text, format, &edit)
}

/// Removes the lines of a `[[permissions.rules]]` table; `None` if the result does not parse as expected.
fn shrunk(text: &str, start: usize, rules: &Node<'_>) -> Option<String> {
    let line_start = |at: usize| {
        let above = text.get(..at)?;
        Some(above.rfind('\n').map_or(0, |end| end + 1))
    };
    let mut from = line_start(start)?;
    while from > 0 {
        let above = line_start(from - 1)?;
        if !text.get(above..from)?.trim_start().starts_with('#') {
            break;
        }
        from = above;
    }
    let mut to = text.len();
    let mut comment = None;
    let mut at = text
        .get(start..)?
        .find('\n')
        .map_or(text.len(), |end| start + end + 1);
    for line in text.get(at..)?.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') {
            // Comments directly above the next table belong to it.
            to = comment.unwrap_or(at);
            break;
        }
        comment = trimmed.starts_with('#').then(|| comment.unwrap_or(at));
        at += line.len();
    }
    let shrunk = format!("{}{}", text.get(..from)?, text.get(to..)?);
    let file = SourceFile::new("", Scope::Dynamic, &shrunk);
    let after = check::read(&file, Format::Toml).ok()?;
    let is_meant = after
        .at(&PATH)
        .is_some_and(|found| check::same(found, rules));
    is_meant.then_some(shrunk)
}

/// Appends a table; `None` if the result does not parse as expected.
fn grown(text: &str, rule: &NewRule, rules: &Node<'_>) -> Option<String> {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut grown = text.to_owned();
    if !grown.is_empty() {
        if !grown.ends_with('\n') {
            grown.push_str(line_end);
        }
        grown.push_str(line_end);
    }
    let header = "[[permissions.rules]]".to_owned();
    for line in std::iter::once(header).chain(rule.lines()) {
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

fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare {
        name.to_owned()
    } else {
        quoted(name)
    }
}

pub(super) fn quoted(text: &str) -> String {
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

    #[track_caller]
    fn check(format: Format, before: &str, after: &str) {
        let found = add_rule(before, format, &NewRule::allow("mcp__a__b", None)).unwrap();
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
    fn conditions_are_written_as_they_are_read() {
        let check = |condition: NewCondition, toml: &str, json: &str| {
            let rule = NewRule::allow("Bash", Some(condition));
            let found = add_rule("", Format::Toml, &rule).unwrap();
            let head = "[[permissions.rules]]\ntool = \"Bash\"\naction = \"allow\"\n";
            assert_eq!(found, format!("{head}{toml}\n"));
            let found = add_rule("{}", Format::Json, &rule).unwrap();
            assert!(found.contains(json), "{found}");
            add_rule("", Format::Hcl, &rule).unwrap();
        };
        check(
            NewCondition::Command("git status".to_owned()),
            "command = \"git status\"",
            "\"command\": \"git status\"",
        );
        check(
            NewCondition::Equals {
                argument: "command".to_owned(),
                value: "echo \"a\\b\"\n\u{7f}".to_owned(),
            },
            "arguments = { command = \"echo \\\"a\\\\b\\\"\\u000A\\u007F\" }",
            "\"command\": \"echo",
        );
        check(
            NewCondition::Under {
                argument: "file.path".to_owned(),
                folder: "/a/b".to_owned(),
            },
            "arguments = { \"file.path\" = { under = \"/a/b\" } }",
            "\"under\": \"/a/b\"",
        );
        check(
            NewCondition::ExactArguments("{\"a\":1}".to_owned()),
            "exact_arguments = \"{\\\"a\\\":1}\"",
            "\"exact_arguments\"",
        );
    }

    #[test]
    fn a_rule_is_removed_with_its_comments() {
        let check = |tool: &str, before: &str, after: &str| {
            assert_eq!(remove_rule(before, Format::Toml, tool).unwrap(), after);
        };
        let first = "# one\n[[permissions.rules]]\ntool = \"a\"\naction = \"deny\"\n\n";
        let second =
            "# two\n# more\n[[permissions.rules]]\ntool = \"b\"\naction = \"ask\" # why\n\n";
        let rest = "# servers\n[mcp_servers.a]\ncommand = \"y\"\n";
        let whole = format!("{first}{second}{rest}");
        check("b", &whole, &format!("{first}{rest}"));
        check("a", &whole, &format!("{second}{rest}"));
        check("a", &format!("{first}{second}{first}"), second);
        check(
            "b",
            "[permissions]\nrules = [{ tool = \"a\", action = \"ask\" }, { tool = \"b\", action = \"ask\" }]\n",
            "[permissions]\nrules = [{ tool = \"a\", action = \"ask\" }]\n",
        );
        let left = remove_rule(first, Format::Toml, "a").unwrap();
        assert!(!left.contains("tool"), "{left}");
        let error = remove_rule(first, Format::Toml, "c").unwrap_err();
        assert_eq!(error.kind, EditErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let error = add_rule("a = [", Format::Toml, &NewRule::allow("t", None)).unwrap_err();
        assert!(
            matches!(error.kind, EditErrorKind::Syntax { .. }),
            "{error}"
        );
    }
}
