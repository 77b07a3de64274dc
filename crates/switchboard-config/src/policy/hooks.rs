//! Hooks: programs that run before or after calls (`[[hooks]]`).

use std::time::Duration;

use super::one_or_many;
use crate::entry::Reader;
use crate::entry::keys::{Key, Shape};
use crate::source::Origin;
use crate::tree::Node;

/// One `[[hooks]]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEntry {
    /// When it runs.
    pub event: HookEvent,
    /// Glob over the model-visible tool name.
    pub tool: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// `None`: the default timeout.
    pub timeout: Option<Duration>,
    /// Whether a call proceeds if the hook fails; off by default.
    pub fail_open: bool,
    /// Position of the table.
    pub origin: Origin,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a call, which it can block or change.
    PreToolUse,
    /// After a call, whose result it can replace.
    PostToolUse,
}

impl HookEvent {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "PreToolUse" => Some(HookEvent::PreToolUse),
            "PostToolUse" => Some(HookEvent::PostToolUse),
            _ => None,
        }
    }
}

pub(crate) fn hooks(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<HookEntry> {
    one_or_many(node)
        .iter()
        .filter_map(|node| hook(node, reader))
        .collect()
}

fn hook(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<HookEntry> {
    let (mut event, mut tool, mut command) = (None, Some("*".to_owned()), None);
    let (mut timeout, mut fail_open) = (None, false);
    for member in reader.table("hooks", node)? {
        let value = &member.value;
        match Reader::normal(&member.key).as_ref() {
            "event" => event = reader.word("event", value, HOOK_EVENTS, HookEvent::from_name),
            "tool" | "matcher" => tool = reader.text("tool", value),
            "command" => {
                command = reader
                    .command("command", value)
                    .filter(|words| !words.is_empty());
            }
            "timeout_sec" => timeout = reader.seconds("timeout_sec", value),
            "fail_open" => fail_open = reader.boolean("fail_open", value).unwrap_or(false),
            _ => reader.unknown_key(member, HOOK_KEYS.iter().map(|key| key.name)),
        }
    }
    for (key, example) in [
        ("event", "event = \"PreToolUse\""),
        ("command", "command = [\"program\"]"),
    ] {
        if node.get(key).is_none() {
            reader.error(
                "missing-key",
                node.span,
                format!("a hook needs `{key}`"),
                format!("add {example}"),
            );
        }
    }
    Some(HookEntry {
        event: event?,
        tool: tool?,
        command: command?,
        timeout,
        fail_open,
        origin: reader.origin(node.span),
    })
}

const HOOK_EVENTS: &[&str] = &["PreToolUse", "PostToolUse"];

pub(crate) const HOOK_KEYS: &[Key] = &[
    Key {
        name: "event",
        shape: Shape::OneOf(HOOK_EVENTS),
        about: "When the hook runs.",
    },
    Key {
        name: "tool",
        shape: Shape::Text,
        about: "A glob over the name that the model sees; all tools when absent. `matcher` means the same.",
    },
    Key {
        name: "command",
        shape: Shape::Command,
        about: "The program, which gets JSON on stdin and answers with JSON on stdout.",
    },
    Key {
        name: "timeout_sec",
        shape: Shape::Seconds,
        about: "Timeout of the hook.",
    },
    Key {
        name: "fail_open",
        shape: Shape::Bool,
        about: "Whether a call proceeds if the hook fails. Off by default.",
    },
];
