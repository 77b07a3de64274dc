//! Which calls need consent: `[[permissions.rules]]`.

use super::{glob, one_or_many};
use crate::entry::keys::{Key, PERMISSIONS, Shape};
use crate::entry::{Permission, Reader};
use crate::source::Origin;
use crate::tree::{Member, Node};

/// One `[[permissions.rules]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleEntry {
    /// A glob over the name that the model sees.
    pub tool: String,
    /// What matching calls need.
    pub action: Permission,
    /// Conditions on arguments; all must hold.
    pub arguments: Vec<ArgumentCondition>,
    /// Where it stands.
    pub origin: Origin,
}

/// A condition on one argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentCondition {
    /// The argument, with dots between the keys of nested objects.
    pub argument: String,
    /// What is tested.
    pub test: ArgumentTest,
    /// What it is tested against.
    pub value: String,
}

/// What a condition tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentTest {
    /// The argument is exactly this text.
    Equals,
    /// The argument matches this regular expression.
    Matches,
    /// The argument is a path below this folder.
    Under,
    /// The argument is a URL whose host matches this glob.
    Host,
}

impl ArgumentTest {
    const NAMES: [(&'static str, ArgumentTest); 4] = [
        ("equals", ArgumentTest::Equals),
        ("matches", ArgumentTest::Matches),
        ("under", ArgumentTest::Under),
        ("host", ArgumentTest::Host),
    ];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, test)| *test == self)
            .map_or("", |(name, _)| name)
    }
}

/// Reads a `[permissions]` table.
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

fn rule(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<RuleEntry> {
    let (mut tool, mut action, mut arguments) = (None, None, Vec::new());
    let mut complete = true;
    for member in reader.table("permissions.rules", node)? {
        let value = &member.value;
        match member.key.as_ref() {
            "tool" => tool = reader.text("tool", value),
            "action" => action = reader.word("action", value, PERMISSIONS, Permission::from_name),
            // A condition that is not understood must not make the rule broader.
            "arguments" => match conditions(value, reader) {
                Some(conditions) => arguments = conditions,
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
    let tool = tool?;
    if glob(&tool).is_none() || tool.is_empty() {
        reader.error(
            "bad-pattern",
            node.span,
            format!("a permission rule has the invalid pattern \"{tool}\""),
            "write a glob such as \"mcp__github__*\"",
        );
        return None;
    }
    complete.then_some(RuleEntry {
        tool,
        action: action?,
        arguments,
        origin: reader.origin(node.span),
    })
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
            let hint = "use equals, matches, under or host";
            reader.error(
                "bad-value",
                member.key_span,
                format!("unknown condition `{}`", member.key),
                hint,
            );
            return None;
        };
        tests.push((test, reader.text(name, &member.value)?));
    }
    Some(tests)
}

/// The keys of `[[permissions.rules]]`.
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
];
