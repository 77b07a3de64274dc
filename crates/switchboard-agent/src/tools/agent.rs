//! The `Agent` tool: definition and arguments. It gives a task to a sub-agent with its own conversation.
//!
//! Dispatch runs it, as it needs the turn that it is part of.

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::permissions::NameGlob;

use super::definition;
use crate::message::ToolDefinition;

pub(crate) const NAME: &str = "Agent";

#[derive(Debug, Deserialize)]
pub(crate) struct Task {
    /// The sub-agent sees nothing else of the conversation.
    pub(crate) prompt: String,
    /// Names or globs of allowed tools; `None`: all tools of the parent.
    tools: Option<Vec<String>>,
}

impl Task {
    pub(crate) fn read(arguments: &RawValue) -> Result<Self, String> {
        serde_json::from_str(arguments.get()).map_err(|error| format!("invalid arguments: {error}"))
    }

    /// The parsed globs; the error names an invalid one.
    pub(crate) fn patterns(&self) -> Result<Option<Vec<NameGlob>>, String> {
        let Some(tools) = &self.tools else {
            return Ok(None);
        };
        let patterns = tools.iter().map(|pattern| {
            NameGlob::new(pattern)
                .ok_or_else(|| format!("\"{pattern}\" is not a tool name or glob"))
        });
        patterns.collect::<Result<Vec<_>, _>>().map(Some)
    }
}

pub(crate) fn tool_definition() -> ToolDefinition {
    definition(
        NAME,
        "Gives a task to another agent, which works on it alone, with tools, and answers with its result. It knows \
         nothing of this conversation: the prompt must say everything that it needs to know, and what it is to answer \
         with. Good for searching and reading much of which only the outcome matters.",
        r#"{"type":"object","properties":{"prompt":{"type":"string","description":"The task, with all that has to be known for it"},"tools":{"type":"array","items":{"type":"string"},"description":"The tools it may use, by name or glob, such as Read or mcp__github__*; all of yours if not stated"}},"required":["prompt"]}"#,
    )
}
