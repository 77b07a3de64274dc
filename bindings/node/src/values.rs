//! Results, tools and failures, as JavaScript sees them.

use napi::Env;
use napi::bindgen_prelude::ObjectFinalize;
use napi_derive::napi;
use switchboard::{CallOutcome, Progress};
use switchboard_bindings::{Failure, Format, Tool};

/// A large result of a call. It stays in Rust until it is looked at.
#[napi(custom_finalize)]
pub struct ResultHandle(CallOutcome);

impl ResultHandle {
    /// Tells the garbage collector how much memory a result holds, which it cannot see.
    pub(crate) fn account(&self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(self.size()).map(|_| ())
    }

    fn size(&self) -> i64 {
        i64::try_from(self.0.result.size()).unwrap_or(i64::MAX)
    }
}

impl ObjectFinalize for ResultHandle {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.size()).map(|_| ())
    }
}

impl From<CallOutcome> for ResultHandle {
    fn from(outcome: CallOutcome) -> Self {
        Self(outcome)
    }
}

#[napi]
impl ResultHandle {
    /// All text.
    #[napi]
    pub fn text(&self) -> String {
        self.0.text()
    }

    /// The JSON that the server sent.
    #[napi]
    pub fn raw(&self) -> &str {
        self.0.raw()
    }

    /// Whether the tool reports a failure.
    #[napi]
    pub fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// The server of the tool.
    #[napi]
    pub fn server(&self) -> Option<&str> {
        Some(self.0.tool.server.as_ref()?.as_str())
    }

    /// The name of the tool on its server.
    #[napi]
    pub fn tool(&self) -> &str {
        self.0.tool.tool.as_str()
    }

    /// The duration in milliseconds.
    #[napi]
    pub fn elapsed(&self) -> f64 {
        elapsed(&self.0)
    }
}

/// The duration of a call, in milliseconds.
pub(crate) fn elapsed(outcome: &CallOutcome) -> f64 {
    outcome.elapsed.as_secs_f64() * 1_000.0
}

/// A list of tools, each read when it is looked at.
#[napi]
pub struct ToolList {
    tools: Vec<Tool>,
    scores: Vec<f32>,
}

impl From<Vec<Tool>> for ToolList {
    fn from(tools: Vec<Tool>) -> Self {
        let scores = Vec::new();
        Self { tools, scores }
    }
}

impl From<Vec<(Tool, f32)>> for ToolList {
    fn from(hits: Vec<(Tool, f32)>) -> Self {
        let (tools, scores) = hits.into_iter().unzip();
        Self { tools, scores }
    }
}

#[napi]
impl ToolList {
    /// The number of tools.
    #[napi]
    pub fn count(&self) -> u32 {
        u32::try_from(self.tools.len()).unwrap_or(u32::MAX)
    }

    /// The name that a model calls.
    #[napi]
    pub fn name(&self, index: u32) -> Option<&str> {
        Some(self.get(index)?.name())
    }

    /// The name of the server.
    #[napi]
    pub fn server(&self, index: u32) -> Option<&str> {
        Some(self.get(index)?.server())
    }

    /// The name on the server.
    #[napi]
    pub fn tool(&self, index: u32) -> Option<&str> {
        Some(self.get(index)?.tool())
    }

    /// The title.
    #[napi]
    pub fn title(&self, index: u32) -> Option<String> {
        self.get(index)?.title()
    }

    /// The description as a model sees it.
    #[napi]
    pub fn description(&self, index: u32) -> Option<String> {
        Some(self.get(index)?.description())
    }

    /// The JSON Schema of the arguments.
    #[napi]
    pub fn input_schema(&self, index: u32) -> Option<&str> {
        Some(self.get(index)?.input_schema())
    }

    /// The JSON Schema of structured results.
    #[napi]
    pub fn output_schema(&self, index: u32) -> Option<&str> {
        self.get(index)?.output_schema()
    }

    /// The definition as the server wrote it.
    #[napi]
    pub fn definition(&self, index: u32) -> Option<&str> {
        Some(self.get(index)?.definition())
    }

    /// How well the tool matches the query.
    #[napi]
    pub fn score(&self, index: u32) -> Option<f64> {
        let index = usize::try_from(index).ok()?;
        self.scores.get(index).copied().map(f64::from)
    }

    /// All definitions as a provider takes them, as a JSON array.
    #[napi]
    pub fn formatted(&self, format: String) -> Option<String> {
        let format = Format::parse(&format)?;
        let tools = self.tools.iter().map(|tool| tool.formatted(format));
        Some(format!("[{}]", tools.collect::<Vec<_>>().join(",")))
    }

    fn get(&self, index: u32) -> Option<&Tool> {
        self.tools.get(usize::try_from(index).ok()?)
    }
}

/// A failure, for a `SwitchboardError`.
#[napi(object)]
pub struct Failed {
    /// The kind of failure.
    pub code: String,
    /// What happened.
    pub message: String,
    /// The server concerned.
    pub server: Option<String>,
    /// The step of connecting that failed.
    pub step: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The errors behind it, the nearest first.
    pub causes: Vec<String>,
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code.to_owned(),
            message: failure.message.clone(),
            server: failure.server.clone(),
            step: failure.step.map(str::to_owned),
            hint: failure.hint.clone(),
            causes: failure.causes.clone(),
        }
    }
}

/// Progress of a call.
#[napi(object)]
pub struct Progressed {
    /// Amount done.
    pub progress: f64,
    /// Amount at completion.
    pub total: Option<f64>,
    /// Description of the current work.
    pub message: Option<String>,
}

impl From<Progress> for Progressed {
    fn from(progress: Progress) -> Self {
        let Progress {
            progress,
            total,
            message,
        } = progress;
        Self {
            progress,
            total,
            message,
        }
    }
}

/// A question to a function of the program.
#[napi(object)]
pub struct Asked {
    /// The functions of a host.
    pub table: u32,
    /// Whether a tool is called; otherwise the name is that of a callback.
    pub is_tool: bool,
    /// Which function.
    pub name: String,
    /// The parameters as JSON.
    pub payload: String,
}
