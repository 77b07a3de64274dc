//! Tests that local tools and servers' tools share one path: the same permissions, hooks, audit, deadlines and limits.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use switchboard::catalog::LookupError;
use switchboard::internal::audit::What;
use switchboard::internal::call::local::LocalTools;
use switchboard::internal::call::spill::SpillFolder;
use switchboard::internal::call::{CallContext, ToolSubset};
use switchboard::internal::permissions::NameGlob;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::permissions::Preview;
use switchboard::service::{Features, Reply, RequestContext, Service, text_result, unknown_tool};
use switchboard::{
    CallError, CallOutcome, CallRequest, Check, EndedCall, Event, Gate, Host, HostOptions,
    LocalContext, LocalOutput, LocalTool, PendingCall, Permit, RequestError, SharedJson, Sight,
    ToolDefinition, Verdict,
};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{Raw, RawObject};
use tokio::time::{Instant, sleep};

/// The sequence of events.
#[derive(Debug, Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A gate that records its calls, and answers as the arguments say.
struct Recorder(Trace);

impl Gate for Recorder {
    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
        assert!(call.session.is_none_or(|session| session == "someone"));
        self.0.add("permit");
        let arguments = call.arguments.map_or("", RawValue::get);
        Check::Later(Box::pin(async move {
            if let Some(previewer) = call.tool.previewer()
                && let Some(arguments) = call.arguments
                && let Some(preview) = previewer.preview(arguments).await
            {
                self.0.add(preview.title);
            }
            if arguments.contains("deny") {
                let reason = "as asked".to_owned();
                return Verdict::Deny { reason };
            }
            if arguments.contains("change") {
                let changed = to_raw_value(&json!({"text": "changed"})).unwrap();
                return Verdict::Change(changed, Permit::default());
            }
            Verdict::Pass(Permit::default())
        }))
    }

    fn after<'a>(&'a self, call: &'a PendingCall<'a>, result: &'a SharedJson) -> Check<'a, Sight> {
        let is_result =
            serde_json::from_str::<Value>(result.as_str()).unwrap()["content"].is_array();
        assert!(is_result, "{result:?}");
        self.0.add("inspect");
        let arguments = call.arguments.map_or("", RawValue::get);
        Check::Now(if arguments.contains("withhold") {
            let reason = "as asked".to_owned();
            Sight::Withhold { reason }
        } else if arguments.contains("replace") {
            let content = json!({"content": [{"type": "text", "text": "another\u{202e}"}]});
            Sight::Replace(SharedJson::from(&content))
        } else {
            Sight::Keep
        })
    }

    fn ended(&self, call: &EndedCall<'_>) {
        self.0.add(match call.outcome {
            None => "end: cancelled",
            Some(Ok(outcome)) if outcome.is_error => "end: tool error",
            Some(Ok(_)) => "end: done",
            Some(Err(_)) => "end: failed",
        });
    }

    fn note(&self, what: What) {
        let What::Call(note) = what else { return };
        self.0.add(format!("note: {} {:?}", note.tool, note.end));
    }
}

const SCHEMA: &str =
    r#"{"type":"object","properties":{"text":{"type":"string"},"more":{"type":"string"}}}"#;

/// The behaviour of both kinds of tools: record the run, and return the arguments.
async fn act(arguments: &str, trace: &Trace, step: impl Fn()) -> String {
    trace.add("run");
    assert!(!arguments.contains("panic"), "as asked");
    if arguments.contains("wait") {
        return pending().await;
    }
    while arguments.contains("work") {
        sleep(Duration::from_secs(1)).await;
        step();
    }
    if arguments.contains("long") {
        return "a line\n".repeat(1_000);
    }
    format!("got {arguments}")
}

struct Echo {
    name: &'static str,
    trace: Trace,
}

impl LocalTool for Echo {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.to_owned(),
            description: "Answers with its arguments".to_owned(),
            input_schema: RawValue::from_string(SCHEMA.to_owned()).unwrap(),
        }
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, Option<Preview>> {
        let shown = arguments.get().contains("show").then(|| Preview {
            title: format!("preview in {}", context.workspace.display()),
            text: String::new(),
            covers: &[],
        });
        async move { shown }.boxed()
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        async move {
            let step = || (context.progress)("a step".to_owned());
            let text = act(arguments.get(), &self.trace, step).await;
            LocalOutput {
                display: Some("for a person".to_owned()),
                ..LocalOutput::text(text)
            }
        }
        .boxed()
    }
}

/// The same tool on a server.
struct EchoServer(Trace);

impl Service for EchoServer {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("echo".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let schema = Raw::from_serialize(&schema).unwrap();
        let schema: Result<RawObject<'static>, _> = schema.try_into();
        let mut tool = Tool::new("echo".into());
        tool.input_schema = schema.ok();
        vec![tool]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            if call.name != "echo" {
                return Err(unknown_tool(&call.name));
            }
            let arguments = call.arguments.unwrap_or_default().get().to_owned();
            let steps = AtomicU32::new(0);
            let step = || {
                let steps = steps.fetch_add(1, Ordering::Relaxed);
                context.progress(f64::from(steps), None, Some("a step"));
            };
            Ok(text_result(act(&arguments, &self.0, step).await))
        })
    }
}

const LOCAL: &str = "Echo";
const SERVER: &str = "mcp__lab__echo";

struct Lab {
    host: Host,
    trace: Trace,
    context: Arc<CallContext>,
    _folder: tempfile::TempDir,
}

impl Lab {
    async fn new() -> Self {
        let trace = Trace::default();
        let host = Host::with_options(HostOptions {
            gate: Arc::new(Recorder(trace.clone())),
            ..HostOptions::default()
        });
        let connector = InProcessConnector::new(Arc::new(EchoServer(trace.clone())));
        let key = ConnectionKey::of(&[b"lab"]);
        let spec = ServerSpec::new("lab", Arc::new(connector), key);
        host.add_server(spec).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let context = CallContext {
            session: "someone".to_owned(),
            tools: tools(&[LOCAL], &trace),
            subset: ToolSubset::default(),
            workspace: "/project".into(),
            max_output_tokens: 200,
            spill: Some(SpillFolder::new(folder.path())),
        };
        Self {
            host,
            trace,
            context: Arc::new(context),
            _folder: folder,
        }
    }

    fn request(&self, tool: &str, arguments: &Value) -> CallRequest {
        CallRequest {
            tool: tool.to_owned(),
            arguments: Some(to_raw_value(arguments).unwrap()),
            context: Some(Arc::clone(&self.context)),
            ..CallRequest::default()
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<CallOutcome, CallError> {
        self.host.request(self.request(tool, &arguments)).await
    }
}

fn tools(names: &[&'static str], trace: &Trace) -> LocalTools {
    LocalTools::new(names.iter().map(|name| {
        let trace = trace.clone();
        Arc::new(Echo { name, trace }) as Arc<dyn LocalTool>
    }))
}

#[tokio::test]
async fn every_call_takes_the_same_path() {
    let lab = Lab::new().await;
    let check = async |text: &str, expected: Result<&str, &str>, path: &[&str]| {
        for (tool, shown) in [(LOCAL, "Echo"), (SERVER, "lab/echo")] {
            let outcome = lab.call(tool, json!({ "text": text })).await;
            match (&outcome, expected) {
                (Ok(outcome), Ok(expected)) => {
                    assert_eq!(outcome.tool.to_string(), shown);
                    assert_eq!(outcome.text(), expected, "{tool}");
                }
                (Err(error), Err(expected)) => {
                    let expected = expected.replace("{tool}", shown);
                    assert_eq!(error.for_model(), expected, "{tool}");
                }
                _ => panic!("{tool}, {text}: {outcome:?}"),
            }
            assert_eq!(lab.trace.take(), path, "{tool}, {text}");
        }
    };
    let whole = ["permit", "run", "inspect", "end: done"];
    check("hi", Ok(r#"got {"text":"hi"}"#), &whole).await;
    check("change", Ok(r#"got {"text":"changed"}"#), &whole).await;
    check("replace", Ok("another\u{202e}"), &whole).await;
    check(
        "deny",
        Err("permission denied for tool {tool}: as asked. Hint: do not try to achieve the same by other means; ask the user."),
        &["permit"],
    )
    .await;
    check(
        "withhold",
        Err("permission denied for tool {tool}: as asked. Hint: do not try to achieve the same by other means; ask the user."),
        &["permit", "run", "inspect", "end: failed"],
    )
    .await;
}

#[tokio::test]
async fn arguments_are_checked_alike() {
    let lab = Lab::new().await;
    for (tool, name) in [(LOCAL, "Echo"), (SERVER, "echo")] {
        // `null` counts as absent.
        let outcome = lab.call(tool, json!({"text": "hi", "more": null})).await;
        assert_eq!(outcome.unwrap().text(), r#"got {"text":"hi"}"#);
        assert_eq!(lab.trace.take(), ["permit", "run", "inspect", "end: done"]);
        let error = lab.call(tool, json!({"text": 5})).await.unwrap_err();
        assert!(matches!(error, CallError::Arguments { .. }), "{error}");
        let note = format!("note: {name} Failed(\"bad-arguments\")");
        assert_eq!(lab.trace.take(), [note]);
        lab.host.note_unreadable(tool, "{\"text\": ");
        let note = format!("note: {tool} Failed(\"bad-arguments\")");
        assert_eq!(lab.trace.take(), [note]);
        // Absent arguments are an empty object.
        let request = CallRequest {
            arguments: None,
            ..lab.request(tool, &json!({}))
        };
        assert!(lab.host.request(request).await.is_ok());
        lab.trace.take();
    }
}

#[tokio::test]
async fn a_local_tool_shows_what_it_will_do_and_answers_for_people() {
    let lab = Lab::new().await;
    let outcome = lab.call(LOCAL, json!({"text": "show"})).await.unwrap();
    assert_eq!(outcome.display.as_deref(), Some("for a person"));
    let path = [
        "permit",
        "preview in /project",
        "run",
        "inspect",
        "end: done",
    ];
    assert_eq!(lab.trace.take(), path);
    // A replaced result no longer matches the tool's display.
    let outcome = lab.call(LOCAL, json!({"text": "replace"})).await.unwrap();
    assert_eq!(outcome.display, None);
}

#[tokio::test]
async fn a_local_tool_that_panics_has_a_result() {
    let lab = Lab::new().await;
    let outcome = lab.call(LOCAL, json!({"text": "panic"})).await.unwrap();
    assert!(outcome.is_error);
    let text = outcome.text();
    assert!(text.starts_with("Echo crashed"), "{text}");
    let path = ["permit", "run", "inspect", "end: tool error"];
    assert_eq!(lab.trace.take(), path);
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_as_cancelled() {
    let lab = Lab::new().await;
    let mut events = lab.host.events();
    for tool in [LOCAL, SERVER] {
        let running = || lab.trace.0.lock().unwrap().len() == 2;
        {
            let calling = lab.call(tool, json!({"text": "wait"}));
            let mut calling = std::pin::pin!(calling);
            while !running() {
                tokio::select! {
                    biased;
                    outcome = &mut calling => panic!("{outcome:?}"),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        assert_eq!(
            lab.trace.take(),
            ["permit", "run", "end: cancelled"],
            "{tool}"
        );
    }
    let mut ends = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::CallEnd { server, error, .. } = event {
            ends.push((server.map(|server| server.to_string()), error));
        }
    }
    let cancelled = Some("cancelled".to_owned());
    assert_eq!(
        ends,
        [
            (None, cancelled.clone()),
            (Some("lab".to_owned()), cancelled)
        ]
    );
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_unknown_at_once() {
    let lab = Lab::new().await;
    let error = lab.call("Ech", json!({})).await.unwrap_err();
    let told = error.for_model();
    assert_eq!(
        told,
        r#"no tool named "Ech". Did you mean Echo, mcp__lab__echo?"#
    );
    assert_eq!(lab.trace.take(), [r#"note: Ech Failed("unknown-tool")"#]);
    let error = lab.call("Teleport", json!({})).await.unwrap_err();
    let told = error.for_model();
    assert_eq!(
        told,
        r#"no tool named "Teleport". Use one of the listed tools."#
    );
}

#[tokio::test]
async fn only_the_request_that_carries_a_tool_reaches_it() {
    let lab = Lab::new().await;
    let others = CallContext {
        tools: tools(&["Other"], &lab.trace),
        ..CallContext::clone(&lab.context)
    };
    for context in [None, Some(Arc::new(others))] {
        let request = CallRequest {
            context,
            ..lab.request(LOCAL, &json!({}))
        };
        let error = lab.host.request(request).await.unwrap_err();
        assert!(
            matches!(error, CallError::Lookup(LookupError::Unknown { .. })),
            "{error}"
        );
        assert_eq!(lab.trace.take(), [r#"note: Echo Failed("unknown-tool")"#]);
    }
}

#[tokio::test]
async fn a_local_tool_never_stands_for_a_server() {
    let lab = Lab::new().await;
    let names = [SERVER, "lab/echo", "lab.echo", ""];
    let tools = tools(&names, &lab.trace);
    assert_eq!(tools.definitions().count(), 0);
    let context = Arc::new(CallContext {
        tools: tools.with(Arc::new(Echo {
            name: LOCAL,
            trace: lab.trace.clone(),
        })),
        ..CallContext::clone(&lab.context)
    });
    for (name, server) in [(SERVER, true), ("lab/echo", true), (LOCAL, false)] {
        let request = CallRequest {
            context: Some(Arc::clone(&context)),
            ..lab.request(name, &json!({}))
        };
        let outcome = lab.host.request(request).await.unwrap();
        assert_eq!(outcome.tool.server.is_some(), server, "{name}");
    }
}

#[tokio::test]
async fn a_session_reaches_only_its_subset_of_the_servers_tools() {
    let lab = Lab::new().await;
    let check = async |pattern: &str, tool: &str, is_reached: bool| {
        let patterns = vec![NameGlob::new(pattern).unwrap()];
        let context = CallContext {
            subset: ToolSubset::default().narrowed(patterns),
            ..CallContext::clone(&lab.context)
        };
        let request = CallRequest {
            context: Some(Arc::new(context)),
            ..lab.request(tool, &json!({}))
        };
        let outcome = lab.host.request(request).await;
        assert_eq!(
            outcome.is_ok(),
            is_reached,
            "{pattern}, {tool}: {outcome:?}"
        );
        if let Err(error) = outcome {
            assert!(matches!(error, CallError::Lookup(_)), "{error}");
            assert!(!error.for_model().contains("Did you mean"), "{error}");
        }
    };
    check("mcp__lab__*", SERVER, true).await;
    check("mcp__lab__*", "lab/echo", true).await;
    check("mcp__other__*", SERVER, false).await;
    check("mcp__other__*", "lab/echo", false).await;
    check("mcp__other__*", "mcp__lab__ecoh", false).await;
    // The tool set decides which local tools a session has.
    check("mcp__other__*", LOCAL, true).await;
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_silent_calls_and_those_that_go_on_for_too_long() {
    let lab = Lab::new().await;
    let seconds = Duration::from_secs;
    for tool in [LOCAL, SERVER] {
        let check = async |text: &str, idle: Option<u64>, total: Option<u64>, expected: u64| {
            let started = Instant::now();
            let request = CallRequest {
                timeout: idle.map(seconds),
                total_timeout: total.map(seconds),
                ..lab.request(tool, &json!({ "text": text }))
            };
            let error = lab.host.request(request).await.unwrap_err();
            assert_eq!(started.elapsed().as_secs(), expected, "{tool}, {text}");
            let path = ["permit", "run", "end: failed"];
            assert_eq!(lab.trace.take(), path, "{tool}, {text}");
            match error {
                CallError::Request { error, .. } => error,
                error => panic!("{tool}, {text}: {error}"),
            }
        };
        let limit = seconds(20);
        // Progress resets the idle deadline, but not the total one.
        let error = check("work", Some(5), Some(20), 20).await;
        assert!(
            matches!(error, RequestError::Expired(total) if total == limit),
            "{error}"
        );
        let error = check("work", None, Some(20), 20).await;
        assert!(
            matches!(error, RequestError::Expired(total) if total == limit),
            "{error}"
        );
        let error = check("wait", Some(5), Some(20), 5).await;
        assert!(
            matches!(error, RequestError::Idle(idle) if idle == seconds(5)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn one_function_shapes_what_the_model_gets() {
    let lab = Lab::new().await;
    for (tool, label) in [(LOCAL, "built-in-Echo"), (SERVER, "lab-echo")] {
        let outcome = lab.call(tool, json!({"text": "long"})).await;
        let shaped = lab.context.shape(&outcome);
        assert!(shaped.is_cut && !shaped.is_error, "{shaped:?}");
        assert!(shaped.text().chars().count() <= 500, "{shaped:?}");
        let file = &shaped.files[0].path;
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "a line\n".repeat(1_000)
        );
        let name = file.file_name().unwrap().to_string_lossy();
        assert!(name.contains(label), "{name}");
        // An error has the same limits.
        let outcome = lab.call(tool, json!({"text": "deny"})).await;
        let shaped = lab.context.shape(&outcome);
        assert!(
            shaped.is_error && shaped.text().contains("permission denied for tool"),
            "{shaped:?}"
        );
    }
    // A local tool sanitizes its text itself, so that it can show a file verbatim. Text of a server or a hook is not
    // trusted.
    let check = async |tool: &str, text: &str, expected: &str| {
        let outcome = lab.call(tool, json!({ "text": text })).await;
        assert_eq!(lab.context.shape(&outcome).text(), expected, "{tool}");
    };
    check(LOCAL, "a\u{202e}b", "got {\"text\":\"a\u{202e}b\"}").await;
    check(SERVER, "a\u{202e}b", r#"got {"text":"a\u{202e}b"}"#).await;
    check(LOCAL, "replace", r"another\u{202e}").await;
    check(SERVER, "replace", r"another\u{202e}").await;
}
