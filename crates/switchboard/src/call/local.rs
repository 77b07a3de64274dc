//! Local tools: tools that run in this process, for the session that calls them.
//!
//! Defines the trait, the set of tools in a request, and the execution of one tool with deadlines, progress and panic
//! handling. Argument validation, permission, hooks, audit and events are handled by the pipeline, as for server tools.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::arguments::ArgumentCheck;
use super::context::CallContext;
use super::shape::{Block, Media};
use super::spill::SpillFolder;
use crate::catalog::exposed::PREFIX;
use crate::host::Host;
use crate::json::SharedJson;
use crate::names::{CallId, WireName};
use crate::peer::{Progress, RequestError};
use crate::permissions::{Preview, Previewer, SecretPlaces};

/// Minimum similarity of two names for a suggestion.
const ALIKE: f64 = 0.6;

/// Maximum length of a name that is compared, in bytes.
const MAX_COMPARED: usize = 160;

/// A tool that runs in this process. It needs no permission checks: the pipeline has checked before it runs.
pub trait LocalTool: Send + Sync + 'static {
    /// Definition for the model. Must be constant.
    fn definition(&self) -> ToolDefinition;

    /// Whether the tool has no side effects, so that calls may run concurrently.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Preview of the call's effect for the permission prompt; `None` if the arguments say enough. The call must do
    /// exactly what the preview shows, or fail.
    fn preview<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, Option<Preview>> {
        let _ = (arguments, context);
        ready(None).boxed()
    }

    /// Runs the tool. The arguments are an object, validated against the schema. Failures are outputs that the model
    /// can act on. Dropping the future cancels the call and must stop everything it started.
    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput>;
}

/// Tool definition for the model.
#[derive(Debug, Clone, Serialize)]
pub struct ToolDefinition {
    /// Name that the model calls.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments; an object.
    pub input_schema: Box<RawValue>,
}

impl PartialEq for ToolDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.input_schema.get() == other.input_schema.get()
    }
}

/// Context of one call of a local tool. State of a session belongs in the tool itself: each session creates its own.
#[derive(Clone)]
pub struct LocalContext {
    /// Working directory of the session.
    pub workspace: PathBuf,
    /// Maximum number of text tokens in an output.
    pub max_output_tokens: u64,
    /// Folder for output over the limit.
    #[doc(hidden)]
    pub spill: Option<SpillFolder>,
    /// Paths with secrets, which searches skip.
    pub secrets: Arc<SecretPlaces>,
    /// Reports progress and resets the idle timeout. Does not block.
    pub progress: Arc<dyn Fn(String) + Send + Sync>,
}

/// Output of a local tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOutput {
    /// Content for the model, only truncated if too long: the tool itself sanitizes text that needs it.
    pub content: Vec<Block>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Text shown to the user instead, such as the diff of an edit.
    pub display: Option<String>,
}

impl LocalOutput {
    /// Successful output with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::Text(text.into())],
            is_error: false,
            display: None,
        }
    }

    /// Failed output with a text that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Converts the output to the form of a server's result, which hooks, listeners and callers expect.
    fn to_result(&self) -> SharedJson {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "lowercase")]
        enum Content<'a> {
            Text {
                text: &'a str,
            },
            #[serde(rename_all = "camelCase")]
            Image {
                mime_type: &'a str,
                data: &'a str,
            },
            #[serde(rename_all = "camelCase")]
            Audio {
                mime_type: &'a str,
                data: &'a str,
            },
        }

        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ToolResult<'a> {
            content: Vec<Content<'a>>,
            is_error: bool,
        }

        let content = self.content.iter().map(|block| match block {
            Block::Text(text) => Content::Text { text },
            Block::Image(Media { mime_type, data }) => Content::Image { mime_type, data },
            Block::Audio(Media { mime_type, data }) => Content::Audio { mime_type, data },
        });
        let result = ToolResult {
            content: content.collect(),
            is_error: self.is_error,
        };
        // Serializing strings cannot fail.
        SharedJson::from(to_raw_value(&result).unwrap_or_default())
    }
}

/// Local tools of a session. Cheap to clone.
#[derive(Clone, Default)]
pub struct LocalTools(Arc<[Arc<Registered>]>);

/// A tool with its cached definition and compiled schema.
struct Registered {
    name: WireName,
    definition: ToolDefinition,
    tool: Arc<dyn LocalTool>,
    check: OnceLock<ArgumentCheck>,
}

impl Registered {
    fn new(tool: Arc<dyn LocalTool>) -> Option<Arc<Self>> {
        let definition = tool.definition();
        if !is_bare(&definition.name) {
            tracing::error!(tool = definition.name, "invalid name of a local tool");
            return None;
        }
        Some(Arc::new(Self {
            name: WireName::from(definition.name.as_str()),
            definition,
            tool,
            check: OnceLock::new(),
        }))
    }
}

/// Whether a name is valid for a local tool. Server tools never have such names.
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(PREFIX) && !name.contains(['/', '.'])
}

impl LocalTools {
    /// Registers tools under the names in their definitions. On duplicates the first wins. A tool whose name starts
    /// with `mcp__` or contains `/` or `.`, as names of server tools do, is skipped.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn LocalTool>>) -> Self {
        Self(tools.into_iter().filter_map(Registered::new).collect())
    }

    /// Returns the set with one more tool, which takes precedence over one of the same name.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn LocalTool>) -> Self {
        let others = self.0.iter().cloned();
        Self(Registered::new(tool).into_iter().chain(others).collect())
    }

    /// Returns the tool with that name.
    pub fn get(&self, name: &str) -> Option<&dyn LocalTool> {
        self.find(name).map(|found| &*found.tool)
    }

    /// Definitions for the model, in registration order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.0.iter().map(|tool| &tool.definition)
    }

    fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.0.iter().find(|tool| tool.definition.name == name)
    }

    /// Returns names similar to an unknown name, as suggestions.
    pub(super) fn similar_to(&self, name: &str) -> impl Iterator<Item = &str> {
        let name = if name.len() > MAX_COMPARED { "" } else { name };
        let name = name.to_lowercase();
        let is_alike = move |other: &str| {
            strsim::normalized_levenshtein(&name, &other.to_lowercase()) >= ALIKE
        };
        let names = self.definitions().map(|tool| tool.name.as_str());
        names.filter(move |other| is_alike(other))
    }
}

impl fmt::Debug for LocalTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.definitions().map(|tool| &tool.name);
        formatter.debug_list().entries(names).finish()
    }
}

/// One call of a local tool.
pub struct LocalCall {
    registered: Arc<Registered>,
    context: LocalContext,
    /// Resets the idle deadline on progress.
    progressed: Arc<Notify>,
}

impl LocalCall {
    /// Creates the call; `None` if the session has no tool of that name.
    pub(super) fn of(host: &Host, id: CallId, name: &str, session: &CallContext) -> Option<Self> {
        let registered = Arc::clone(session.tools.find(name)?);
        let progressed = Arc::new(Notify::new());
        let progress = {
            let (route, progressed) = (host.under_way().route(id), Arc::clone(&progressed));
            let steps = AtomicU64::new(0);
            move |message: String| {
                progressed.notify_one();
                let step = steps.fetch_add(1, Ordering::Relaxed) + 1;
                route.tell(Progress {
                    progress: u32::try_from(step).map_or(f64::MAX, f64::from),
                    total: None,
                    message: Some(message),
                });
            }
        };
        let context = LocalContext {
            workspace: session.workspace.clone(),
            max_output_tokens: session.max_output_tokens,
            spill: session.spill.clone(),
            secrets: host.options().gate.secrets(),
            progress: Arc::new(progress),
        };
        Some(Self {
            registered,
            context,
            progressed,
        })
    }

    /// Name of the tool.
    pub fn name(&self) -> &str {
        self.registered.name.as_str()
    }

    pub(super) fn wire_name(&self) -> &WireName {
        &self.registered.name
    }

    /// Definition for the model.
    pub fn definition(&self) -> &ToolDefinition {
        &self.registered.definition
    }

    /// Whether the tool has no side effects.
    pub fn is_read_only(&self) -> bool {
        self.registered.tool.is_read_only()
    }

    /// Argument validator, compiled on first use.
    pub(crate) fn argument_check(&self) -> &ArgumentCheck {
        let registered = &self.registered;
        registered
            .check
            .get_or_init(|| ArgumentCheck::compile(&registered.definition.input_schema))
    }

    /// Runs the tool. A panic becomes an error output.
    pub(super) async fn run(
        &self,
        arguments: Option<&RawValue>,
        idle: Option<Duration>,
        total: Option<Duration>,
    ) -> Result<(SharedJson, LocalOutput), RequestError> {
        let arguments = match arguments {
            Some(arguments) => arguments,
            None => serde_json::from_str("{}").unwrap_or(RawValue::NULL),
        };
        // Inside a future, so that a panic before the tool returns its future is caught as well.
        let run = async { self.registered.tool.run(arguments, &self.context).await };
        let run = AssertUnwindSafe(run).catch_unwind();
        let output = self.within(run, idle, total).await?.unwrap_or_else(|_| {
            let name = self.name();
            tracing::error!(tool = name, "a tool panicked");
            LocalOutput::error(format!(
                "{name} crashed (a bug in the tool). It may or may not have taken effect."
            ))
        });
        Ok((output.to_result(), output))
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = T>,
        idle: Option<Duration>,
        total: Option<Duration>,
    ) -> Result<T, RequestError> {
        let mut work = pin!(work);
        let started = Instant::now();
        let mut progress_at = started;
        loop {
            let silent = deadline(progress_at, idle);
            let expired = deadline(started, total);
            tokio::select! {
                output = &mut work => return Ok(output),
                () = self.progressed.notified(), if idle.is_some() => progress_at = Instant::now(),
                limit = expired => return Err(RequestError::Expired(limit)),
                limit = silent => return Err(RequestError::Idle(limit)),
            }
        }
    }
}

/// Waits until the limit has passed and returns it; never returns without a limit.
async fn deadline(since: Instant, limit: Option<Duration>) -> Duration {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    match since.checked_add(limit) {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
    limit
}

impl Previewer for LocalCall {
    fn preview<'a>(&'a self, arguments: &'a RawValue) -> BoxFuture<'a, Option<Preview>> {
        self.registered.tool.preview(arguments, &self.context)
    }
}

impl fmt::Debug for LocalCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("LocalCall")
            .field(&self.name())
            .finish()
    }
}
