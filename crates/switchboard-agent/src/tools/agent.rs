//! `Agent`: a task for another agent, with a conversation of its own.
//!
//! Owns what the model is told of it and what it may ask for. The dispatch runs it, as it needs the turn it is part of.

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::permissions::NameGlob;

use super::definition;
use crate::message::ToolDefinition;

/// What the tool is called.
pub(crate) const NAME: &str = "Agent";

/// What a model asks of a sub-agent.
#[derive(Debug, Deserialize)]
pub(crate) struct Task {
    /// All that it is told.
    pub(crate) prompt: String,
    /// The tools it may use, by name or glob; all of the parent's if not stated.
    tools: Option<Vec<String>>,
}

impl Task {
    /// Reads the arguments of a call.
    pub(crate) fn read(arguments: &RawValue) -> Result<Self, String> {
        serde_json::from_str(arguments.get())
            .map_err(|error| format!("the arguments cannot be read: {error}"))
    }

    /// The patterns of the tools it may use; an error names the one that is none.
    pub(crate) fn patterns(&self) -> Result<Option<Vec<NameGlob>>, String> {
        let Some(tools) = &self.tools else {
            return Ok(None);
        };
        let patterns = tools.iter().map(|pattern| {
            NameGlob::new(pattern)
                .ok_or_else(|| format!("\"{pattern}\" is no name or glob of tools"))
        });
        patterns.collect::<Result<Vec<_>, _>>().map(Some)
    }
}

/// What the model is told of it.
pub(crate) fn tool_definition() -> ToolDefinition {
    definition(
        NAME,
        "Gives a task to another agent, which works on it alone, with tools, and answers with its result. It knows \
         nothing of this conversation: the prompt must say everything that it needs to know, and what it is to answer \
         with. Good for searching and reading much of which only the outcome matters.",
        r#"{"type":"object","properties":{"prompt":{"type":"string","description":"The task, with all that has to be known for it"},"tools":{"type":"array","items":{"type":"string"},"description":"The tools it may use, by name or glob, such as Read or mcp__github__*; all of yours if not stated"}},"required":["prompt"]}"#,
    )
}
