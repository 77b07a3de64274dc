//! One way for every call, whoever's the tool is: prepare, permit, run, look at, shape.
//!
//! Owns the way from what a model wrote to what it gets back. Tools of servers go through [`Host::call`], which passes
//! the gate by itself; built-in tools pass the same gate here. Nothing that a model, a tool or a server does ends a
//! turn: every call has a result that the model can act on.
//!
//! [`Host::call`]: switchboard::Host::call

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use switchboard::audit::{CallNote, Digest, End, What};
use switchboard::call::arguments::{ArgumentCheck, ArgumentsError, without_nulls};
use switchboard::call::gate::{Gate as _, Permit, Sight, Verdict};
use switchboard::call::shape::{Block, Media, ShapeOptions, Shaped, shape};
use switchboard::call::spill::SpillFolder;
use switchboard::call::{CallOutcome, CallRequest};
use switchboard::catalog::text::{cut, neutralise};
use switchboard::catalog::{CatalogTool, LiveAnnotations, LookupError, Tokens, exposed};
use switchboard::json::SharedJson;
use switchboard::names::{CallId, ExposedName, ToolRef};
use switchboard::peer::ProgressSink;
use switchboard::permissions::{Preview, Previewer, Subject, Wanted};
use switchboard::status::State;
use tokio::time::Instant;

use crate::context::AgentContext;
use crate::message::{Content, Image, ToolCall, ToolDefinition};
use crate::tools::{Output, Tool, ToolContext};

/// How alike the name of a built-in tool must be to be offered.
const ALIKE: f64 = 0.6;

/// The longest name that is compared with others, or shown.
const MAX_NAME: usize = 160;

/// How much of bad arguments is shown around the place where they are bad.
const EXCERPT: usize = 40;

/// A built-in tool of a session.
pub(crate) struct BuiltIn {
    pub(crate) definition: ToolDefinition,
    pub(crate) kind: BuiltInKind,
    check: OnceLock<ArgumentCheck>,
}

/// What runs a built-in tool.
pub(crate) enum BuiltInKind {
    /// The tool itself.
    Tool(Arc<dyn Tool>),
    /// The turn: the tool is a sub-agent.
    Agent,
}

/// In the audit log, a call of what there is not, and one whose arguments do not fit.
const UNKNOWN: &str = "unknown-tool";
pub(crate) const UNFIT: &str = "bad-arguments";

/// A call, as far as it can be told before it is made.
pub(crate) enum Prepared<'a> {
    /// Of a built-in tool.
    BuiltIn {
        tool: &'a BuiltIn,
        arguments: Box<RawValue>,
    },
    /// Of a server's tool.
    Server {
        /// The name that the host knows it by.
        name: String,
        /// The tool on its server; `None` while that is not connected.
        reference: Option<ToolRef>,
        arguments: Box<RawValue>,
        is_read_only: bool,
    },
    /// It cannot be made, and this is why: for the model, and in a word for the audit log.
    Hopeless(Output, &'static str),
}

impl BuiltIn {
    pub(crate) fn new(definition: ToolDefinition, kind: BuiltInKind) -> Self {
        Self {
            definition,
            kind,
            check: OnceLock::new(),
        }
    }

    fn is_read_only(&self) -> bool {
        match &self.kind {
            BuiltInKind::Tool(tool) => tool.is_read_only(),
            BuiltInKind::Agent => false,
        }
    }

    /// The arguments, if they fit. Models write `null` for what they leave out; where that is all that is wrong, it is
    /// left out.
    fn checked(&self, arguments: Box<RawValue>) -> Result<Box<RawValue>, ArgumentsError> {
        let check = self
            .check
            .get_or_init(|| ArgumentCheck::compile(&self.definition.input_schema));
        let Err(error) = check.check(Some(&arguments)) else {
            return Ok(arguments);
        };
        match without_nulls(&arguments) {
            Some(stated) if check.check(Some(&stated)).is_ok() => Ok(stated),
            _ => Err(error),
        }
    }
}

impl Prepared<'_> {
    /// Whether it changes nothing, so that it may be made beside others.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::BuiltIn { tool, .. } => tool.is_read_only(),
            Self::Server { is_read_only, .. } => *is_read_only,
            Self::Hopeless(..) => true,
        }
    }

    /// The tool on its server, where it is one of a server that is known.
    pub(crate) fn reference(&self) -> Option<&ToolRef> {
        match self {
            Self::Server { reference, .. } => reference.as_ref(),
            _ => None,
        }
    }

    /// The arguments, where they could be read.
    pub(crate) fn arguments(&self) -> Option<&RawValue> {
        match self {
            Self::BuiltIn { arguments, .. } | Self::Server { arguments, .. } => Some(arguments),
            Self::Hopeless(..) => None,
        }
    }
}

impl AgentContext {
    /// Finds the tool of a call and reads its arguments.
    pub(crate) fn prepare(&self, call: &ToolCall) -> Prepared<'_> {
        let arguments = match read_arguments(call) {
            Ok(arguments) => arguments,
            Err(problem) => return Prepared::Hopeless(Output::error(problem), UNFIT),
        };
        if let Some(tool) = self.built_in(&call.name) {
            return match tool.checked(arguments) {
                Ok(arguments) => Prepared::BuiltIn { tool, arguments },
                Err(error) => Prepared::Hopeless(misfit(&call.name, &error), UNFIT),
            };
        }
        let catalog = self.options.host.catalog();
        match catalog.find(&call.name) {
            Ok(tool) if self.subset.has(tool.exposed().as_str()) => Prepared::Server {
                name: tool.exposed().as_str().to_owned(),
                reference: Some(tool.reference().clone()),
                is_read_only: self.is_read_only(tool),
                arguments,
            },
            // A server that is not there at this moment may have it; the host waits for it, or says what is wrong with it.
            Err(LookupError::Unknown { .. }) if self.may_come(&call.name) => Prepared::Server {
                name: call.name.clone(),
                reference: None,
                is_read_only: false,
                arguments,
            },
            Ok(_) => {
                let nearest = Vec::new();
                let error = LookupError::Unknown {
                    name: call.name.clone(),
                    nearest,
                };
                Prepared::Hopeless(self.unknown(error), UNKNOWN)
            }
            Err(error) => Prepared::Hopeless(self.unknown(error), UNKNOWN),
        }
    }

    /// Writes down a call that cannot be made.
    pub(crate) fn note_hopeless(&self, call: &ToolCall, why: &'static str) {
        self.options.gate.note(What::Call(CallNote {
            id: self.options.host.next_call(),
            server: None,
            tool: cut(call.name.as_str().into(), MAX_NAME).into_owned().into(),
            grounds: None,
            arguments: Some(Digest::of(&call.arguments)),
            elapsed: Duration::ZERO,
            end: End::Failed(why),
        }));
    }

    /// Calls a server's tool. Tells besides what the server sent, where it sent something.
    pub(crate) async fn call_server(
        &self,
        name: String,
        arguments: Box<RawValue>,
        progress: ProgressSink,
    ) -> (Output, Option<CallOutcome>) {
        let request = CallRequest {
            tool: name,
            arguments: Some(arguments),
            timeout: None,
            progress: Some(progress),
        };
        match self.options.host.request(request).await {
            Ok(outcome) => (self.shaped(&outcome.tool, &outcome.result), Some(outcome)),
            Err(error) => {
                let error = Output::error(neutralise(&error.for_model()));
                (self.bounded(error), None)
            }
        }
    }

    /// Passes the gate with a call of a built-in tool, and runs it.
    pub(crate) async fn call_built_in<Run>(
        &self,
        tool: &BuiltIn,
        arguments: Box<RawValue>,
        run: impl FnOnce(Box<RawValue>) -> Run,
    ) -> Output
    where
        Run: Future<Output = Output>,
    {
        let name = tool.definition.name.as_str();
        let id = self.options.host.next_call();
        let previewer = BuiltInPreview {
            context: self,
            tool,
        };
        let wanted = Wanted {
            previewer: Some(&previewer),
            ..wanted(id, name, &arguments)
        };
        let (changed, permit) = match self.options.gate.permit(wanted).answer().await {
            Verdict::Pass(permit) => (None, permit),
            Verdict::Change(changed, permit) => (Some(changed), permit),
            Verdict::Deny { reason } => return denied(name, &reason),
        };
        let arguments = match changed.map(|changed| tool.checked(changed)) {
            None => arguments,
            Some(Ok(changed)) => changed,
            Some(Err(error)) => {
                let text = format!("a hook changed the arguments, and they no longer fit: {error}");
                return denied(name, &text);
            }
        };
        let witness = Witness::new(self, id, name, &arguments, permit);
        let output = unless_it_panics(name, run(arguments.clone())).await;
        let result = as_tool_result(&output);
        let wanted = self::wanted(id, name, &arguments);
        let sight = self.options.gate.inspect(wanted, &result).answer().await;
        let output = match sight {
            Sight::Keep => output,
            Sight::Replace(result) => self.shaped(&built_in_reference(name), &result),
            Sight::Withhold { reason } => denied(name, &reason),
        };
        let output = self.bounded(output);
        witness.end(End::Done {
            bytes: result.as_str().len() as u64,
            is_error: output.is_error,
        });
        output
    }

    /// The context of one call.
    pub(crate) fn context(&self, progress: Arc<dyn Fn(String) + Send + Sync>) -> ToolContext {
        ToolContext {
            workspace: self.workspace.clone(),
            max_output_tokens: self.options.max_output_tokens,
            spill: self.spill.clone(),
            secrets: self.options.gate.engine().secrets(),
            progress,
        }
    }

    fn shaped(&self, tool: &ToolRef, result: &SharedJson) -> Output {
        let options = ShapeOptions {
            max_tokens: Tokens(self.options.max_output_tokens),
            spill: self.spill.as_ref(),
        };
        match shape(tool, result, options) {
            Ok(shaped) => from_shaped(shaped, self.spill.as_ref()),
            Err(error) => Output::error(neutralise(&format!(
                "the result of {tool} cannot be read: {error}"
            ))),
        }
    }

    /// An output within the limit on text, whoever made it. What is too long is kept in a file.
    fn bounded(&self, output: Output) -> Output {
        let texts = output.content.iter().map(|content| match content {
            Content::Text { text } => text.len(),
            Content::Image(_) => 0,
        });
        // Bytes are at least as many as characters.
        if texts.sum::<usize>() <= Tokens(self.options.max_output_tokens).characters() {
            return output;
        }
        let shaped = self.shaped(&built_in_reference("output"), &as_tool_result(&output));
        Output {
            display: output.display,
            ..shaped
        }
    }

    /// Whether a server's tool changes nothing, by the word of a server that is believed.
    fn is_read_only(&self, tool: &CatalogTool) -> bool {
        let hints = tool.live_annotations();
        hints.is_some_and(LiveAnnotations::is_read_only)
            && self
                .options
                .gate
                .engine()
                .trusts(tool.reference().server.as_str())
    }

    /// Whether a tool of that name may belong to a server that is not connected now.
    fn may_come(&self, name: &str) -> bool {
        let mut statuses = self.options.host.statuses().into_iter();
        self.subset.has(name)
            && name.starts_with(exposed::PREFIX)
            && statuses.any(|status| match status.state {
                State::Connected => false,
                State::Pending => true,
                _ => exposed::is_like_tool_of(name, status.name.as_str()),
            })
    }

    /// What a model is told that calls what is not there.
    fn unknown(&self, error: LookupError) -> Output {
        let LookupError::Unknown { name, nearest } = error else {
            let hint = error
                .hint()
                .map_or_else(String::new, |hint| format!(" Hint: {hint}."));
            return Output::error(neutralise(&format!("{error}.{hint}")));
        };
        let mut candidates: Vec<&str> = self.similar_built_ins(&name);
        let allowed = nearest.iter().map(ExposedName::as_str);
        candidates.extend(allowed.filter(|name| self.subset.has(name)));
        let name = cut(neutralise(&name), MAX_NAME).into_owned();
        Output::error(if candidates.is_empty() {
            format!("there is no tool \"{name}\". Use one of the listed tools.")
        } else {
            let candidates = candidates.join(", ");
            format!("there is no tool \"{name}\". Did you mean {candidates}?")
        })
    }

    fn similar_built_ins(&self, name: &str) -> Vec<&str> {
        if name.len() > MAX_NAME {
            return Vec::new();
        }
        let name = name.to_lowercase();
        let likeness = |tool: &&str| strsim::normalized_levenshtein(&name, &tool.to_lowercase());
        let names = self
            .built_ins
            .iter()
            .map(|tool| tool.definition.name.as_str());
        names.filter(|tool| likeness(tool) >= ALIKE).collect()
    }
}

fn built_in_reference(name: &str) -> ToolRef {
    ToolRef {
        server: "built-in".into(),
        tool: name.into(),
    }
}

/// What the model gets of a shaped result.
pub(crate) fn from_shaped(shaped: Shaped, spill: Option<&SpillFolder>) -> Output {
    let content = shaped.blocks.into_iter().map(|block| match block {
        Block::Text(text) => Content::Text { text },
        Block::Image(Media { mime_type, data }) => Content::Image(Image { mime_type, data }),
        Block::Audio(media) => Content::Text {
            text: audio_note(&media, spill),
        },
    });
    Output {
        content: content.collect(),
        is_error: shaped.is_error,
        display: None,
    }
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

/// A built-in tool's output as hooks are shown results: like that of a server's tool.
fn as_tool_result(output: &Output) -> SharedJson {
    let content: Vec<serde_json::Value> = output
        .content
        .iter()
        .map(|content| match content {
            Content::Text { text } => serde_json::json!({"type": "text", "text": text}),
            Content::Image(image) => serde_json::json!({
                "type": "image", "mimeType": image.mime_type, "data": image.data
            }),
        })
        .collect();
    let result = serde_json::json!({"content": content, "isError": output.is_error});
    SharedJson::from(&result)
}

/// What a tool comes to, even if there is a mistake in it.
async fn unless_it_panics(name: &str, run: impl Future<Output = Output>) -> Output {
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!(tool = name, "a tool panicked");
            Output::error(format!(
                "{name} crashed (a bug in the tool). It may or may not have taken effect."
            ))
        })
}

fn misfit(name: &str, error: &ArgumentsError) -> Output {
    let text = format!("{name}: {error}. Correct the arguments and call again.");
    Output::error(neutralise(&text))
}

fn denied(name: &str, reason: &str) -> Output {
    let text = format!(
        "the call of {name} is not permitted: {reason}. Do not try to reach the same by other means; ask the user."
    );
    Output::error(neutralise(&text))
}

fn wanted<'a>(id: CallId, name: &'a str, arguments: &'a RawValue) -> Wanted<'a> {
    Wanted {
        id,
        subject: Subject::built_in(name),
        arguments: Some(arguments),
        tool: None,
        previewer: None,
    }
}

/// Shows what a built-in tool will do.
struct BuiltInPreview<'a> {
    context: &'a AgentContext,
    tool: &'a BuiltIn,
}

impl Previewer for BuiltInPreview<'_> {
    fn preview<'a>(&'a self, arguments: &'a RawValue) -> BoxFuture<'a, Option<Preview>> {
        async move {
            let BuiltInKind::Tool(tool) = &self.tool.kind else {
                return None;
            };
            let context = self.context.context(Arc::new(|_| {}));
            tool.preview(arguments, &context).await
        }
        .boxed()
    }
}

impl std::fmt::Debug for BuiltInPreview<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("BuiltInPreview")
            .field(&self.tool.definition.name)
            .finish()
    }
}

/// Tells the gate of the end of a call. Dropped before it, the call was called off.
struct Witness<'a> {
    context: &'a AgentContext,
    id: CallId,
    name: &'a str,
    arguments: &'a RawValue,
    permit: Permit,
    started: Instant,
    end: Option<End>,
}

impl<'a> Witness<'a> {
    fn new(
        context: &'a AgentContext,
        id: CallId,
        name: &'a str,
        arguments: &'a RawValue,
        permit: Permit,
    ) -> Self {
        Self {
            context,
            id,
            name,
            arguments,
            permit,
            started: Instant::now(),
            end: None,
        }
    }

    fn end(mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        let wanted = wanted(self.id, self.name, self.arguments);
        let end = self.end.unwrap_or(End::CalledOff);
        let elapsed = self.started.elapsed();
        let gate = &self.context.options.gate;
        gate.finish(&wanted, &self.permit, elapsed, end);
    }
}
