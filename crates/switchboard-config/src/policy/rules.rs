//! Permission rules (`[[permissions.rules]]`).

use super::{claude, glob, one_or_many};
use crate::entry::keys::{Key, PERMISSIONS, Shape};
use crate::entry::{Permission, Reader};
use crate::shell;
use crate::source::Origin;
use crate::tree::{Member, Node};

/// One `[[permissions.rules]]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleEntry {
    /// Glob over the model-visible tool name.
    pub tool: String,
    /// Permission of matching calls.
    pub action: Permission,
    /// Conditions on arguments; all must hold.
    pub arguments: Vec<ArgumentCondition>,
    /// JSON object that the arguments must equal.
    pub exact_arguments: Option<String>,
    /// Position of the table.
    pub origin: Origin,
}

/// Condition on one argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentCondition {
    /// Name of the argument; dots separate keys of nested objects.
    pub argument: String,
    /// Comparison with `value`.
    pub test: ArgumentTest,
    /// Text, regular expression, folder, glob or command, depending on `test`.
    pub value: String,
}

/// Comparison of an [`ArgumentCondition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentTest {
    /// The argument equals the value.
    Equals,
    /// The argument matches this regular expression.
    Matches,
    /// The argument is a path in this folder.
    Under,
    /// The argument is a URL whose host matches this glob.
    Host,
    /// The argument is a single command that starts with these words.
    Command,
}

impl ArgumentTest {
    pub(crate) const NAMES: [(&'static str, ArgumentTest); 5] = [
        ("equals", ArgumentTest::Equals),
        ("matches", ArgumentTest::Matches),
        ("under", ArgumentTest::Under),
        ("host", ArgumentTest::Host),
        ("command", ArgumentTest::Command),
    ];

    /// Name in files.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, test)| *test == self)
            .map_or("", |(name, _)| name)
    }
}

pub(crate) fn rules(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<RuleEntry> {
    let mut rules = Vec::new();
    for member in reader.table("permissions", node).unwrap_or_default() {
        if member.key != "rules" {
            reader.unknown_key(member, ["rules"]);
            continue;
        }
        for node in one_or_many(&member.value) {
            rules.extend(rule(node, reader));
        }
    }
    rules
}

/// Parses one rule; a rule in Claude Code's notation may yield several.
fn rule(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<RuleEntry> {
    let (mut tool, mut action, mut arguments) = (None, None, Vec::new());
    let (mut tool_span, mut exact_arguments) = (node.span, None);
    let mut complete = true;
    for member in reader.table("permissions.rules", node).unwrap_or_default() {
        let value = &member.value;
        // An invalid condition must not make the rule broader.
        match member.key.as_ref() {
            "tool" => (tool, tool_span) = (reader.text("tool", value), value.span),
            "action" => action = reader.word("action", value, PERMISSIONS, Permission::from_name),
            "arguments" => match conditions(value, reader) {
                Some(conditions) => arguments.extend(conditions),
                None => complete = false,
            },
            "command" => match command(value, reader) {
                Some(condition) => arguments.push(condition),
                None => complete = false,
            },
            "exact_arguments" => match exact(value, reader) {
                Some(object) => exact_arguments = Some(object),
                None => complete = false,
            },
            _ => reader.unknown_key(member, RULE_KEYS.iter().map(|key| key.name)),
        }
    }
    let stated = |key: &str| node.get(key).is_some();
    if !stated("tool") {
        reader.error(
            "missing-key",
            node.span,
            "a permission rule needs `tool`",
            "add tool = \"mcp__server__*\"",
        );
    }
    if !stated("action") {
        reader.error(
            "missing-key",
            node.span,
            "a permission rule needs `action`",
            "add action = \"allow\", \"ask\" or \"deny\"",
        );
    }
    let (Some(tool), Some(action)) = (tool, action) else {
        return Vec::new();
    };
    let origin = reader.origin(node.span);
    let entry = |tool: &str, more: Vec<ArgumentCondition>| RuleEntry {
        tool: tool.to_owned(),
        action,
        arguments: arguments.iter().cloned().chain(more).collect(),
        exact_arguments: exact_arguments.clone(),
        origin: origin.clone(),
    };
    if let Some((name, what)) = claude::split(&tool) {
        return match claude::translate(name, what, action) {
            Ok(rules) if complete => rules
                .into_iter()
                .map(|rule| entry(rule.tool, rule.conditions))
                .collect(),
            Ok(_) => Vec::new(),
            Err(error) => {
                reader.error("bad-pattern", tool_span, error.message, error.hint);
                // Until it is fixed, it asks or denies wherever it may apply.
                let tool = error
                    .tool
                    .filter(|_| action != Permission::Allow && complete);
                tool.map(|tool| entry(tool, Vec::new()))
                    .into_iter()
                    .collect()
            }
        };
    }
    if glob(&tool).is_none() || tool.is_empty() {
        reader.error(
            "bad-pattern",
            node.span,
            format!("a permission rule has the invalid pattern \"{tool}\""),
            "write a glob such as \"mcp__github__*\"",
        );
        return Vec::new();
    }
    complete
        .then(|| entry(&tool, Vec::new()))
        .into_iter()
        .collect()
}

/// `command = "git status"`: short form of a condition on the argument `command`.
fn command(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<ArgumentCondition> {
    let value = reader.text("command", node)?;
    checked_command(&value, node, reader)?;
    Some(ArgumentCondition {
        argument: "command".to_owned(),
        test: ArgumentTest::Command,
        value,
    })
}

/// Reports a text that is not the start of a single command.
fn checked_command(text: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<()> {
    if shell::literal_words(text).is_some() {
        return Some(());
    }
    reader.error(
        "bad-value",
        node.span,
        format!("`command` cannot be \"{text}\": it is not one command made of plain words"),
        "write the program and the words that must follow it, such as \"git status\"; write one rule for each command",
    );
    None
}

/// `exact_arguments = '{"repo": "x"}'`: all arguments, as the text of a JSON object.
fn exact(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<String> {
    let text = reader.text("exact_arguments", node)?;
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text);
    if let Err(error) = object {
        reader.error(
            "bad-value",
            node.span,
            format!("`exact_arguments` is not the text of a JSON object: {error}"),
            "write all arguments of the call, such as '{\"repo\": \"switchboard\"}'",
        );
        return None;
    }
    Some(text)
}

fn conditions(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<Vec<ArgumentCondition>> {
    let mut conditions = Vec::new();
    for argument in reader.table("arguments", node)? {
        let tests = match argument.value.as_str() {
            Some(text) => vec![(ArgumentTest::Equals, text.to_owned())],
            None => tests(argument, reader)?,
        };
        let condition = |(test, value)| ArgumentCondition {
            argument: argument.key.to_string(),
            test,
            value,
        };
        conditions.extend(tests.into_iter().map(condition));
    }
    Some(conditions)
}

fn tests(
    argument: &Member<'_>,
    reader: &mut Reader<'_, '_>,
) -> Option<Vec<(ArgumentTest, String)>> {
    let mut tests = Vec::new();
    for member in reader.table(&format!("arguments.{}", argument.key), &argument.value)? {
        let Some((name, test)) = ArgumentTest::NAMES
            .into_iter()
            .find(|(name, _)| *name == member.key)
        else {
            let names: Vec<&str> = ArgumentTest::NAMES.iter().map(|(name, _)| *name).collect();
            let hint = format!("use one of {}", names.join(", "));
            reader.error(
                "bad-value",
                member.key_span,
                format!("unknown condition `{}`", member.key),
                hint,
            );
            return None;
        };
        let value = reader.text(name, &member.value)?;
        if test == ArgumentTest::Command {
            checked_command(&value, &member.value, reader)?;
        }
        tests.push((test, value));
    }
    Some(tests)
}

pub(crate) const RULE_KEYS: &[Key] = &[
    Key {
        name: "tool",
        shape: Shape::Text,
        about: "A glob over the name that the model sees.",
    },
    Key {
        name: "action",
        shape: Shape::OneOf(PERMISSIONS),
        about: "What matching calls need.",
    },
    Key {
        name: "arguments",
        shape: Shape::Conditions,
        about: "Conditions on arguments; all must hold.",
    },
    Key {
        name: "command",
        shape: Shape::Text,
        about: "The words that the argument `command` begins with, as one command: `git status` also means `git status -s`, and never `git status; ls`.",
    },
    Key {
        name: "exact_arguments",
        shape: Shape::Text,
        about: "The text of a JSON object that the arguments must equal.",
    },
];
