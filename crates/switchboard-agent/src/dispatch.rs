//! From what a model wrote to a call of the host, and from its outcome to what the model gets.
//!
//! Owns reading the arguments and what can be told of a call before it is made. Everything else is the host's call
//! pipeline, the same for built-in tools and those of servers. Nothing that a model, a tool or a server does ends a turn:
//! every call has a result that the model can act on.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::internal::call::shape::{Block, Media, Shaped};
use switchboard::internal::call::spill::SpillFolder;
use switchboard::internal::catalog::text::{cut, neutralise};
use switchboard::{CallOutcome, CallRequest, LocalTool, ProgressSink, ToolRef};

use crate::context::AgentContext;
use crate::message::{Content, Image, ToolCall};
use crate::tools::agent;

/// The longest name of a tool that is shown.
const MAX_NAME: usize = 160;

/// How much of bad arguments is shown around the place where they are bad.
const EXCERPT: usize = 40;

/// A call, as far as it can be told before it is made.
pub(crate) struct Prepared {
    /// The name that the host knows the tool by.
    pub(crate) name: String,
    /// The tool on its server; `None` for a built-in one, and while its server is not connected.
    pub(crate) reference: Option<ToolRef>,
    pub(crate) is_built_in: bool,
    /// Whether it changes nothing, so that it may be made beside others.
    pub(crate) is_read_only: bool,
    /// The arguments, or why they cannot be read.
    pub(crate) arguments: Result<Box<RawValue>, String>,
}

/// What the model and the listeners of a turn get of a call.
pub(crate) struct Answered {
    pub(crate) content: Vec<Content>,
    pub(crate) is_error: bool,
    /// What a person is shown in place of the content.
    pub(crate) display: Option<String>,
    /// The outcome that it was made of.
    pub(crate) outcome: Option<CallOutcome>,
}

impl Answered {
    /// A failure that the model can act on.
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
    /// Finds the tool of a call and reads its arguments.
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
        let host = &self.options.host;
        let catalog = host.catalog();
        let found = catalog.find(&name).ok();
        let found = found.filter(|tool| self.calls.subset.has(tool.exposed().as_str()));
        if let Some(tool) = found {
            return Prepared {
                name: tool.exposed().as_str().to_owned(),
                reference: Some(tool.reference().clone()),
                is_built_in: false,
                is_read_only: arguments.is_err() || host.is_read_only(tool),
                arguments,
            };
        }
        // Its server may not be connected. The host waits for it, or says what is wrong.
        let is_agent = name == agent::NAME && self.definition(&name).is_some();
        // A call of what cannot be a tool's name changes nothing.
        let is_made = arguments.is_ok() && (is_agent || self.calls.may_reach(&name));
        Prepared {
            name,
            reference: None,
            is_built_in: is_agent,
            is_read_only: !is_made,
            arguments,
        }
    }

    /// Makes a call. `agent` is the tool `Agent`, where this call may be one of it.
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

/// What the model gets of a shaped result.
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

/// Sound goes to a file: no model here can hear.
fn audio_note(media: &Media, spill: Option<&SpillFolder>) -> String {
    use base64::Engine as _;
    let kind = neutralise(&media.mime_type).into_owned();
    let bytes = base64::engine::general_purpose::STANDARD.decode(&media.data);
    let place = match (bytes, spill) {
        (Ok(bytes), Some(folder)) => match folder.write("audio", "bin", &bytes) {
            Ok(spilled) => format!("saved to {}", spilled.path.display()),
            Err(error) => format!("not kept: {error}"),
        },
        (Err(_), _) => "not kept: its data is no base64".to_owned(),
        (_, None) => "not kept: there is no folder for it".to_owned(),
    };
    format!("[sound, {kind}, {place}]")
}

/// Reads the arguments that a model wrote: an object, though it may be none at all, or wrapped in a string.
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

/// The text around a place, which serde counts in bytes from 1.
fn excerpt(text: &str, line: usize, column: usize) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let at = column.saturating_sub(1).min(line.len());
    let start = floor(line, at.saturating_sub(EXCERPT));
    let end = floor(line, (at + EXCERPT).min(line.len()));
    line.get(start..end).unwrap_or_default().to_owned()
}

/// The last boundary of a character up to there.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}
