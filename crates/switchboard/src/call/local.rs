//! Tools that run in this process, for the session that calls them.
//!
//! Owns the trait, the set of such tools that a request carries, and running one of them: its deadlines, its progress,
//! and what becomes of a panic. Everything else (arguments, permission, hooks, audit, events) is the pipeline's, and the
//! same as for a server's tool.

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

/// How alike two names must be for one to be suggested in place of the other.
const ALIKE: f64 = 0.6;

/// The longest name that is compared with others.
const MAX_COMPARED: usize = 160;

/// A tool that runs in this process. It asks for no permission itself: the pipeline has done so before it runs.
pub trait LocalTool: Send + Sync + 'static {
    /// What a model is told of it. The same each time.
    fn definition(&self) -> ToolDefinition;

    /// Whether it changes nothing, so that it may run beside others.
    fn is_read_only(&self) -> bool {
        false
    }

    /// What a call will do, for a person who is asked about it. What is shown is what is done: where that is no longer
    /// possible when the call runs, it fails. `None` if the arguments say it all.
    fn preview<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, Option<Preview>> {
        let _ = (arguments, context);
        ready(None).boxed()
    }

    /// Runs it. The arguments are an object, checked against its schema. A failure is an output that the model can act
    /// on. Dropping the future cancels it, and must end whatever it has started.
    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput>;
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, Serialize)]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments, an object.
    pub input_schema: Box<RawValue>,
}

impl PartialEq for ToolDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.input_schema.get() == other.input_schema.get()
    }
}

/// Where one call of a local tool runs. What a tool must remember of a session is kept in the tool, which each session
/// makes anew.
#[derive(Clone)]
pub struct LocalContext {
    /// The folder the session works in.
    pub workspace: PathBuf,
    /// The most tokens of text that an output may have.
    pub max_output_tokens: u64,
    /// Where larger output goes.
    #[doc(hidden)]
    pub spill: Option<SpillFolder>,
    /// Places with secrets, which searches pass over.
    pub secrets: Arc<SecretPlaces>,
    /// Reports what a long call is doing, and keeps it from timing out as idle. It does not block.
    pub progress: Arc<dyn Fn(String) + Send + Sync>,
}

/// What a local tool returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOutput {
    /// What the model gets, as it is unless it is too long: the tool sanitizes text that needs it.
    pub content: Vec<Block>,
    /// Whether it failed.
    pub is_error: bool,
    /// What a person is shown in its place, such as the difference an edit made.
    pub display: Option<String>,
}

impl LocalOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::Text(text.into())],
            is_error: false,
            display: None,
        }
    }

    /// A failure that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// The output in the form of a server's result, as hooks, listeners and callers see every result.
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
        // Texts can always be written as JSON.
        SharedJson::from(to_raw_value(&result).unwrap_or_default())
    }
}

/// The local tools of a session. Cheap to clone.
#[derive(Clone, Default)]
pub struct LocalTools(Arc<[Arc<Registered>]>);

/// A tool with what was made of its definition.
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
            tracing::error!(tool = definition.name, "not a valid name of a local tool");
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

/// Whether a name can be a local tool's. No server's tool is ever called by such a name, and no local one by another.
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(PREFIX) && !name.contains(['/', '.'])
}

impl LocalTools {
    /// The tools, each under the name of its definition. Of two with one name the first counts. A tool whose name begins
    /// with `mcp__` or contains `/` or `.`, as the names of servers' tools do, is left out.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn LocalTool>>) -> Self {
        Self(tools.into_iter().filter_map(Registered::new).collect())
    }

    /// The same tools and one more, which counts before one of the same name.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn LocalTool>) -> Self {
        let others = self.0.iter().cloned();
        Self(Registered::new(tool).into_iter().chain(others).collect())
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&dyn LocalTool> {
        self.find(name).map(|found| &*found.tool)
    }

    /// What a model is told of them, in the order they were given in.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.0.iter().map(|tool| &tool.definition)
    }

    fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.0.iter().find(|tool| tool.definition.name == name)
    }

    /// The names of tools that an unknown name may stand for.
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

/// One call of a local tool, from its lookup to its end.
pub struct LocalCall {
    registered: Arc<Registered>,
    context: LocalContext,
    /// Wakes the deadline of a call that has reported progress.
    heard: Arc<Notify>,
}

impl LocalCall {
    /// The call of a tool that the session has; `None` if it has none of that name.
    pub(super) fn of(host: &Host, id: CallId, name: &str, session: &CallContext) -> Option<Self> {
        let registered = Arc::clone(session.tools.find(name)?);
        let heard = Arc::new(Notify::new());
        let progress = {
            let (route, heard) = (host.under_way().route(id), Arc::clone(&heard));
            let steps = AtomicU64::new(0);
            move |message: String| {
                heard.notify_one();
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
            heard,
        })
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        self.registered.name.as_str()
    }

    pub(super) fn wire_name(&self) -> &WireName {
        &self.registered.name
    }

    /// What a model is told of the tool.
    pub fn definition(&self) -> &ToolDefinition {
        &self.registered.definition
    }

    /// Whether the tool changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.registered.tool.is_read_only()
    }

    /// The check of its arguments, compiled on first use.
    pub(crate) fn argument_check(&self) -> &ArgumentCheck {
        let registered = &self.registered;
        registered
            .check
            .get_or_init(|| ArgumentCheck::compile(&registered.definition.input_schema))
    }

    /// Runs the tool. A panic is an output that says so.
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
        // Within a future, so that a panic before the tool's own future exists is caught, too.
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
        let mut heard_at = started;
        loop {
            let silent = deadline(heard_at, idle);
            let expired = deadline(started, total);
            tokio::select! {
                output = &mut work => return Ok(output),
                () = self.heard.notified(), if idle.is_some() => heard_at = Instant::now(),
                limit = expired => return Err(RequestError::Expired(limit)),
                limit = silent => return Err(RequestError::Idle(limit)),
            }
        }
    }
}

/// Waits until a limit is over, and tells it; for ever if there is none.
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
