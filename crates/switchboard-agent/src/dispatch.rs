//! Turns a model's tool call into a host call, and the outcome into a tool result.
//!
//! Parses the arguments here; the rest is the host's call pipeline, the same for built-in and server tools. A failing
//! call never ends a turn: every call yields a result that the model can act on.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::internal::call::shape::{Block, Media, Shaped};
use switchboard::internal::call::spill::SpillFolder;
use switchboard::internal::catalog::text::{cut, neutralise};
use switchboard::{CallOutcome, CallRequest, LocalTool, ProgressSink, ToolRef};

use crate::context::AgentContext;
use crate::message::{Content, Image, ToolCall};
use crate::tools::agent;

/// Maximum length of a tool name in messages.
const MAX_NAME: usize = 160;

/// Bytes shown on each side of a JSON syntax error.
const EXCERPT: usize = 40;

/// A call whose tool is resolved and whose arguments are parsed.
pub(crate) struct Prepared {
    /// The name under which the host exposes the tool.
    pub(crate) name: String,
    /// `None` for a built-in tool, and while the server is not connected.
    pub(crate) reference: Option<ToolRef>,
    pub(crate) is_built_in: bool,
    /// Whether the call has no side effects and may run in parallel with others.
    pub(crate) is_read_only: bool,
    /// The error is a message for the model.
    pub(crate) arguments: Result<Box<RawValue>, String>,
}

/// Result of a call, for the model and for event listeners.
pub(crate) struct Answered {
    pub(crate) content: Vec<Content>,
    pub(crate) is_error: bool,
    /// Shown to the user in place of the content.
    pub(crate) display: Option<String>,
    /// `None` if the call failed before it had an outcome.
    pub(crate) outcome: Option<CallOutcome>,
}

impl Answered {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text { text: text.into() }],
            is_error: true,
            display: None,
            outcome: None,
        }
    }
}

impl AgentContext {
    /// Resolves the tool of a call and parses its arguments.
    pub(crate) fn prepare(&self, call: &ToolCall) -> Prepared {
        let arguments = read_arguments(call);
        let name = call.name.clone();
        if let Some(tool) = self.calls.tools.get(&name) {
            return Prepared {
                name,
                reference: None,
                is_built_in: true,
                is_read_only: arguments.is_err() || tool.is_read_only(),
                arguments,
            };
        }
        let catalog = self.options.host.catalog();
        let found = catalog.find(&name).ok();
        let found = found.filter(|tool| self.calls.subset.has(tool.exposed().as_str()));
        if let Some(tool) = found {
            return Prepared {
                name: tool.exposed().as_str().to_owned(),
                reference: Some(tool.reference().clone()),
                is_built_in: false,
                is_read_only: arguments.is_err() || tool.is_read_only(),
                arguments,
            };
        }
        // The server may not be connected yet. The host waits for it, or returns an error.
        let is_agent = name == agent::NAME && self.definition(&name).is_some();
        // A name that cannot belong to any tool has no side effects.
        let is_made = arguments.is_ok() && (is_agent || self.calls.may_reach(&name));
        Prepared {
            name,
            reference: None,
            is_built_in: is_agent,
            is_read_only: !is_made,
            arguments,
        }
    }

    /// Runs a call. `agent` is the `Agent` tool for this call.
    pub(crate) async fn call(
        &self,
        name: String,
        arguments: Box<RawValue>,
        progress: ProgressSink,
        agent: Arc<dyn LocalTool>,
    ) -> Answered {
        let mut calls = self.calls.clone();
        if self.definition(agent::NAME).is_some() {
            calls.tools = calls.tools.with(agent);
        }
        let request = CallRequest {
            tool: name,
            arguments: Some(arguments),
            progress: Some(progress),
            context: Some(Arc::new(calls)),
            ..CallRequest::default()
        };
        let outcome = self.options.host.request(request).await;
        let shaped = self.calls.shape(&outcome);
        let mut outcome = outcome.ok();
        Answered {
            is_error: shaped.is_error,
            content: contents(shaped, self.calls.spill.as_ref()),
            display: outcome.as_mut().and_then(|outcome| outcome.display.take()),
            outcome,
        }
    }
}

fn contents(shaped: Shaped, spill: Option<&SpillFolder>) -> Vec<Content> {
    let contents = shaped.blocks.into_iter().map(|block| match block {
        Block::Text(text) => Content::Text { text },
        Block::Image(Media { mime_type, data }) => Content::Image(Image { mime_type, data }),
        Block::Audio(media) => Content::Text {
            text: audio_note(&media, spill),
        },
    });
    contents.collect()
}

/// Saves audio to a file: no supported model accepts it.
fn audio_note(media: &Media, spill: Option<&SpillFolder>) -> String {
    use base64::Engine as _;
    let kind = neutralise(&media.mime_type).into_owned();
    let bytes = base64::engine::general_purpose::STANDARD.decode(&media.data);
    let place = match (bytes, spill) {
        (Ok(bytes), Some(folder)) => match folder.write("audio", "bin", &bytes) {
            Ok(spilled) => format!("saved to {}", spilled.path.display()),
            Err(error) => format!("not saved: {error}"),
        },
        (Err(_), _) => "not saved: the data is not valid base64".to_owned(),
        (_, None) => "not saved: no folder is configured for it".to_owned(),
    };
    format!("[sound, {kind}, {place}]")
}

/// Parses arguments: a JSON object, an empty text, or an object wrapped in a JSON string.
fn read_arguments(call: &ToolCall) -> Result<Box<RawValue>, String> {
    let text = call.arguments.trim();
    let text = if text.is_empty() { "{}" } else { text };
    if let Ok(inner) = serde_json::from_str::<String>(text)
        && inner.trim_start().starts_with('{')
        && let Ok(object) = RawValue::from_string(inner)
    {
        return Ok(object);
    }
    RawValue::from_string(text.to_owned()).map_err(|error| {
        let near = excerpt(text, error.line(), error.column());
        let name = cut(neutralise(&call.name), MAX_NAME).into_owned();
        let text = format!(
            "the arguments of {name} are not JSON: {error}, near `{near}`. Nothing was done. Write the call again with \
             a JSON object as its arguments."
        );
        neutralise(&text).into_owned()
    })
}

/// Text around a position; serde counts columns in bytes, from 1.
fn excerpt(text: &str, line: usize, column: usize) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let at = column.saturating_sub(1).min(line.len());
    let start = floor(line, at.saturating_sub(EXCERPT));
    let end = floor(line, (at + EXCERPT).min(line.len()));
    line.get(start..end).unwrap_or_default().to_owned()
}

/// Largest character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}
