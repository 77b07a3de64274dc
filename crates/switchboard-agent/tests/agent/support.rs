//! Test support: a scripted model, a server with changeable tools, and an agent that uses both.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};
use switchboard::ToolDefinition;
use switchboard::internal::desired::Desired;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::internal::transport::stdio::{Grace, StdioConnector, StdioLimits};
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::service::{
    Changes, Features, Reply as Answered, RequestContext, Service, error_result, text_result,
    unknown_tool,
};
use switchboard::{Host, HostOptions, Server};
use switchboard_agent::message::{Content, Message, Part, Role, ToolCall, ToolResult};
use switchboard_agent::provider::{
    Chunk, Model, ModelReply, Provider, ProviderError, ProviderErrorKind, Request, Stop, Usage,
};
use switchboard_agent::{Agent, AgentOptions, Session, SessionError, SessionEvent};
use switchboard_config::entry::Permission;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{
    CallToolRequestParams, CallToolResult, Tool, ToolAnnotations,
};
use switchboard_protocol::types::{IntoOwned as _, Raw, RawObject};
use tokio::sync::Semaphore;

/// First tools of every view.
pub(crate) const BUILT_INS: [&str; 9] = [
    "Bash",
    "Read",
    "Write",
    "Edit",
    "Glob",
    "Grep",
    "Agent",
    "ListMcpResources",
    "ReadMcpResource",
];

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) messages: Vec<Message>,
}

impl Asked {
    pub(crate) fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// All texts in the order in which a provider caches them.
    pub(crate) fn flattened(&self) -> Vec<String> {
        let mut flat = vec![self.system.clone()];
        flat.extend(self.tools.iter().map(|tool| format!("{tool:?}")));
        let parts = self.messages.iter().flat_map(|message| {
            let role = message.role;
            message
                .parts
                .iter()
                .map(move |part| format!("{role:?} {part:?}"))
        });
        flat.extend(parts);
        flat
    }

    /// Text and error flag of each result in the last message.
    pub(crate) fn results(&self) -> Vec<(String, bool)> {
        results_of(
            self.messages
                .last()
                .map_or(&[][..], |message| &message.parts),
        )
    }
}

pub(crate) fn results_of(parts: &[Part]) -> Vec<(String, bool)> {
    let results = parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some((text_of(result), result.is_error)),
        _ => None,
    });
    results.collect()
}

pub(crate) fn text_of(result: &ToolResult) -> String {
    let texts = result.content.iter().map(|content| match content {
        Content::Text { text } => text.clone(),
        Content::Image(image) => format!("<{}>", image.mime_type),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reaction of the model to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Answer(ModelReply),
    Fail(ProviderErrorKind),
    /// Streams this text, then hangs.
    Hang(String),
    /// The stream ends without a final chunk.
    Cut,
}

type Mind = Box<dyn Fn(&Asked, usize) -> Step + Send + Sync>;

pub(crate) struct Scripted {
    pub(crate) model: Model,
    mind: Mind,
    asked: Mutex<Vec<Asked>>,
}

impl Scripted {
    /// A model that computes its answers.
    pub(crate) fn thinking(
        model: Model,
        mind: impl Fn(&Asked, usize) -> Step + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            model,
            mind: Box::new(mind),
            asked: Mutex::default(),
        })
    }

    /// A model that plays back these steps.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        Self::of(model(), steps)
    }

    pub(crate) fn of(model: Model, steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let steps: Mutex<VecDeque<Step>> = Mutex::new(steps.into_iter().collect());
        Self::thinking(model, move |asked, _| {
            let step = steps.lock().expect("steps").pop_front();
            step.unwrap_or_else(|| panic!("nothing is scripted for {:#?}", asked.messages))
        })
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("asked").clone()
    }

    pub(crate) fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scripted")
    }
}

impl Provider for Scripted {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let asked = Asked {
            system: request.system.to_owned(),
            tools: request.tools.to_vec(),
            messages: request.messages.to_vec(),
        };
        let number = {
            let mut all = self.asked.lock().expect("asked");
            all.push(asked.clone());
            all.len() - 1
        };
        let chunks = match (self.mind)(&asked, number) {
            Step::Answer(answer) => {
                let text = answer.message.all_text();
                let mut chunks = Vec::new();
                if !text.is_empty() {
                    chunks.push(Ok(Chunk::Text(text)));
                }
                chunks.push(Ok(Chunk::End(answer)));
                return stream::iter(chunks).boxed();
            }
            Step::Fail(kind) => vec![Err(ProviderError::new("scripted", kind, "as scripted"))],
            Step::Cut => Vec::new(),
            Step::Hang(text) => {
                let said = stream::iter([Ok(Chunk::Text(text))]);
                return said.chain(stream::pending()).boxed();
            }
        };
        stream::iter(chunks).boxed()
    }
}

pub(crate) fn model() -> Model {
    Model {
        id: "scripted-1".to_owned(),
        provider: "scripted".to_owned(),
        window: 200_000,
        max_output: 8_000,
        vision: true,
        tools: true,
        price: None,
    }
}

pub(crate) fn answer(parts: Vec<Part>, stop: Stop) -> Step {
    Step::Answer(ModelReply {
        message: Message {
            role: Role::Assistant,
            parts,
        },
        stop,
        usage: Usage {
            input: 10,
            output: 1,
            ..Usage::default()
        },
    })
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

pub(crate) fn raw_call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "scripts read better so")]
pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Part {
    raw_call(id, name, &arguments.to_string())
}

pub(crate) fn says(words: &str) -> Step {
    answer(vec![text(words)], Stop::Done)
}

pub(crate) fn calls(parts: Vec<Part>) -> Step {
    answer(parts, Stop::Calls)
}

/// An answer without token counts.
pub(crate) fn uncounted(parts: Vec<Part>) -> Step {
    match answer(parts, Stop::Done) {
        Step::Answer(answer) => Step::Answer(ModelReply {
            usage: Usage::default(),
            ..answer
        }),
        other => other,
    }
}

/// A server whose tools can be changed.
#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) tools: Mutex<Vec<Tool<'static>>>,
    pub(crate) instructions: Option<String>,
    pub(crate) changes: Changes,
    /// Called tools, in order.
    pub(crate) called: Mutex<Vec<String>>,
    /// Number of running calls, and its maximum.
    pub(crate) running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    /// `look` waits until this many calls have started.
    pub(crate) together: Option<Arc<tokio::sync::Barrier>>,
    /// `wait` blocks on it; no permit is ever added.
    pub(crate) gate: Option<Arc<Semaphore>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            tools: Mutex::new(vec![
                tool("echo", false),
                tool("fail", false),
                tool("look", true),
                tool("picture", true),
                tool("wait", false),
            ]),
            ..Self::default()
        }
    }

    pub(crate) fn with(tools: Vec<Tool<'static>>) -> Self {
        Self {
            tools: Mutex::new(tools),
            ..Self::default()
        }
    }

    pub(crate) fn set_tools(&self, tools: Vec<Tool<'static>>) {
        *self.tools.lock().expect("tools") = tools;
        self.changes.tools();
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.called.lock().expect("called").clone()
    }
}

pub(crate) fn tool(name: &str, is_read_only: bool) -> Tool<'static> {
    described(name, &format!("Does {name}"), is_read_only)
}

pub(crate) fn described(name: &str, description: &str, is_read_only: bool) -> Tool<'static> {
    let mut tool = Tool::new(name.to_owned().into());
    tool.description = Some(description.to_owned().into());
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "number": {"type": "integer"}},
    });
    tool.input_schema = Some(raw(&schema));
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(is_read_only);
    tool.annotations = Some(Box::new(annotations));
    tool
}

fn raw(schema: &Value) -> RawObject<'static> {
    let raw = Raw::from_serialize(schema).expect("JSON");
    let object: Result<RawObject<'static>, _> = raw.try_into();
    object.unwrap_or_default()
}

struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Bench {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("bench".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn instructions(&self) -> Option<std::borrow::Cow<'static, str>> {
        self.instructions.clone().map(Into::into)
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        self.tools.lock().expect("tools").clone()
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Answered<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let arguments = call.arguments.unwrap_or_default().get().to_owned();
            self.called
                .lock()
                .expect("called")
                .push(format!("{} {arguments}", call.name));
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            let _counted = Counted(&self.running);
            self.most_running.fetch_max(running, Ordering::SeqCst);
            match &*call.name {
                "fail" => Ok(error_result("it failed, as asked")),
                "look" => {
                    if let Some(barrier) = &self.together {
                        barrier.wait().await;
                    }
                    Ok(text_result(format!("looked {arguments}")))
                }
                "picture" => {
                    let picture = json!({"content": [
                        {"type": "text", "text": "a dot"},
                        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
                    ]});
                    let picture = serde_json::value::to_raw_value(&picture).expect("JSON");
                    let decoded = switchboard_protocol::types::decode(&picture);
                    let decoded: CallToolResult<'_> = decoded.expect("a result");
                    Ok(decoded.into_owned())
                }
                "wait" => {
                    context.progress(0.5, Some(1.0), Some("half"));
                    if let Some(gate) = &self.gate {
                        let _permit = gate.acquire().await;
                    }
                    Ok(text_result("waited"))
                }
                other if self.tools().iter().any(|tool| tool.name == other) => {
                    Ok(text_result(format!("{other} {arguments}")))
                }
                other => Err(unknown_tool(other)),
            }
        })
    }
}

pub(crate) fn spec(name: &str, service: &Arc<Bench>) -> ServerSpec {
    let connector = InProcessConnector::new(Arc::clone(service) as Arc<dyn Service>);
    let mut spec = ServerSpec::new(
        name,
        Arc::new(connector),
        ConnectionKey::of(&[name.as_bytes()]),
    );
    spec.rules = spec.rules.trusting_annotations();
    spec
}

/// The same server, as a program describes it.
pub(crate) fn server(name: &str, service: &Arc<Bench>) -> Server {
    Server::over(
        name,
        InProcessConnector::new(Arc::clone(service) as Arc<dyn Service>),
    )
}

/// A host with a permission gate that allows everything.
pub(crate) fn supervised_host() -> Host {
    host_of(Desired::default())
}

/// The same host with these servers, not started.
pub(crate) fn host_of(desired: Desired) -> Host {
    let policy = Policy {
        default: Permission::Allow,
        annotations: true,
        unattended: Permission::Allow,
        typed: false,
    };
    let engine = Engine::without_rules(policy);
    host_with(engine, desired)
}

/// A host with these servers and a permission gate with these rules.
pub(crate) fn host_with(engine: Engine, desired: Desired) -> Host {
    Host::with_options(HostOptions {
        gate: Arc::new(PermissionGate::new(engine)),
        desired,
        ..HostOptions::default()
    })
}

pub(crate) fn options(provider: &Arc<Scripted>, servers: Vec<ServerSpec>) -> AgentOptions {
    options_with(provider, servers.into())
}

pub(crate) fn options_with(provider: &Arc<Scripted>, desired: Desired) -> AgentOptions {
    let provider = Arc::clone(provider) as Arc<dyn Provider>;
    AgentOptions::new(host_of(desired), provider)
}

/// A session with the server `bench`.
pub(crate) fn session_with(provider: &Arc<Scripted>, bench: &Arc<Bench>) -> Session {
    let options = options(provider, vec![spec("bench", bench)]);
    Agent::new(options).session(workspace())
}

pub(crate) fn session(provider: &Arc<Scripted>) -> Session {
    session_with(provider, &Arc::new(Bench::new()))
}

pub(crate) fn workspace() -> PathBuf {
    PathBuf::from("/workspace")
}

/// All events of a turn that succeeds.
pub(crate) async fn events(session: &Session, prompt: &str) -> Vec<SessionEvent> {
    let events: Vec<Result<SessionEvent, SessionError>> = session.stream(prompt).collect().await;
    let events = events.into_iter().map(|event| event.expect("no error"));
    events.collect()
}

/// Names of the events, in order.
pub(crate) fn kinds(events: &[SessionEvent]) -> Vec<String> {
    let kind = |event| {
        let value = serde_json::to_value(event).expect("JSON");
        value["type"].as_str().unwrap_or_default().to_owned()
    };
    events.iter().map(kind).collect()
}

/// A server that cannot be connected.
pub(crate) fn broken(name: &str) -> ServerSpec {
    let connector = StdioConnector {
        program: "/nonexistent/server".into(),
        args: Vec::new(),
        env: Vec::new(),
        env_vars: Vec::new(),
        inherit_env: false,
        base_env: Arc::default(),
        cwd: None,
        supervisor: None,
        sandbox: None,
        limits: StdioLimits::default(),
        grace: Grace::default(),
    };
    let key = ConnectionKey::of(&[name.as_bytes()]);
    ServerSpec::new(name, Arc::new(connector), key)
}
