//! Third-party servers through the host: all their features are listed, and the safe ones are used.
//!
//! `cargo xtask test` installs them. If one is missing, its test fails; none is skipped.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use switchboard::internal::roots::Roots;
use switchboard::internal::spec::ServerSpec;
use switchboard::{
    CallRequest, ClientHandler, ContentError, Event, Host, HostOptions, HostSettings, ListKind,
    LogSource, OpenOptions, ServerName, SharedJson,
};
use switchboard_config::entry::{RootsEntry, ServerEntry};
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::wire::{self, IntoOwned as _};
use switchboard_protocol::{Era, ErrorObject, Revision};
use switchboard_test::hosted::{SeenEvents, call, spec_of_command, spec_of_url};
use switchboard_test::interop::{self, Launch};
use switchboard_test::scripted::Over;

/// Timeout for Node and Python on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A client with a user, a model and roots that always answer.
#[derive(Default)]
struct Obliging {
    asked: Mutex<Vec<&'static str>>,
    has_no_roots: bool,
}

impl Obliging {
    fn note(&self, question: &'static str) {
        self.asked.lock().unwrap().push(question);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl ClientHandler for Obliging {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let mut json = json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}});
        if !self.has_no_roots {
            json["roots"] = json!({});
        }
        let raw = to_raw_value(&json).unwrap();
        wire::decode::<ClientCapabilities<'_>>(&raw)
            .unwrap()
            .into_owned()
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        _params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        self.note("user");
        let json = json!({"action": "accept", "content": {"name": "Ada", "value": "Ada"}});
        let raw = to_raw_value(&json).unwrap();
        ready(Ok(wire::decode::<ElicitResult<'_>>(&raw)
            .unwrap()
            .into_owned()))
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        _server: &'a ServerName,
        _params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        self.note("model");
        let json = json!({
            "role": "assistant",
            "content": {"type": "text", "text": "Forty-two"},
            "model": "scripted",
            "stopReason": "endTurn",
        });
        let raw = to_raw_value(&json).unwrap();
        ready(Ok(wire::decode::<CreateMessageResult<'_>>(&raw)
            .unwrap()
            .into_owned()))
        .boxed()
    }

    fn list_roots<'a>(
        &'a self,
        _server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        // Not recorded: servers request roots at any time, and their answers show what they got.
        let json = json!({"roots": [{"uri": "file:///work", "name": "work"}]});
        let raw = to_raw_value(&json).unwrap();
        ready(Ok(wire::decode::<ListRootsResult<'_>>(&raw)
            .unwrap()
            .into_owned()))
        .boxed()
    }
}

/// One real server in its own host.
struct Bench {
    host: Host,
    handler: Arc<Obliging>,
    events: SeenEvents,
    server: ServerName,
    label: String,
}

impl Bench {
    async fn start(label: &str, spec: ServerSpec) -> Self {
        Self::with(label, spec, HostSettings::default()).await
    }

    async fn without_roots(label: &str, spec: ServerSpec) -> Self {
        let handler = Obliging {
            has_no_roots: true,
            ..Obliging::default()
        };
        Self::of(label, spec, HostSettings::default(), handler).await
    }

    async fn with(label: &str, spec: ServerSpec, settings: HostSettings) -> Self {
        Self::of(label, spec, settings, Obliging::default()).await
    }

    async fn of(label: &str, spec: ServerSpec, settings: HostSettings, handler: Obliging) -> Self {
        let handler = Arc::new(handler);
        let host = Host::with_options(HostOptions {
            settings,
            handler: handler.clone(),
            ..HostOptions::default()
        });
        let events = SeenEvents::of(&host);
        let server = spec.name.clone();
        host.add_server(spec)
            .await
            .unwrap_or_else(|error| panic!("{label}: {error}"));
        Self {
            host,
            handler,
            events,
            server,
            label: label.to_owned(),
        }
    }

    /// Calls a tool and asserts that its result contains this text.
    async fn calls(&self, tool: &str, arguments: Value, expected: &str) {
        let tool = format!("{}/{tool}", self.server);
        let outcome = call(&self.host, &tool, arguments, PATIENCE).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("{}, {tool}: {error}", self.label));
        let result = outcome.result.as_str();
        assert!(
            result.contains(expected),
            "{}, {tool}: {result}",
            self.label
        );
    }

    /// Asserts which of these folders the server ends up serving.
    async fn serves_only(&self, served: &Path, all: &[&PathBuf]) {
        let tool = format!("{}/list_allowed_directories", self.server);
        let allowed = async || {
            let outcome = call(&self.host, &tool, json!({}), PATIENCE).await;
            outcome.unwrap().result.as_str().to_owned()
        };
        // It requests roots at some time after the handshake and applies them when it has them.
        while !allowed().await.contains(&*served.to_string_lossy()) {}
        for _ in 0..5 {
            let allowed = allowed().await;
            for folder in all {
                let is_served = allowed.contains(&*folder.to_string_lossy());
                assert_eq!(is_served, folder.as_path() == served, "{allowed}");
            }
        }
    }

    /// The names of all tools, once there are `count`.
    async fn tools(&mut self, count: usize) -> Vec<String> {
        let names = |host: &Host| -> Vec<String> {
            let catalog = host.catalog();
            catalog
                .iter()
                .map(|tool| tool.reference().tool.to_string())
                .collect()
        };
        let host = self.host.clone();
        self.events
            .until(|_| (names(&host).len() >= count).then_some(()))
            .await;
        names(&self.host)
    }

    /// One field of every item of a list.
    async fn listed(&self, kind: ListKind, list: &str, field: &str) -> Vec<String> {
        let pages = self.host.list(&self.server, kind).await.unwrap();
        let pages = pages
            .pages
            .iter()
            .map(|page| serde_json::from_str(page.as_str()).unwrap());
        pages
            .flat_map(|page: Value| page[list].as_array().cloned().unwrap_or_default())
            .map(|item| item[field].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Asserts that the content contains this text.
    #[track_caller]
    fn holds(&self, got: Result<SharedJson, ContentError>, expected: &str) {
        let got = got.unwrap_or_else(|error| panic!("{}: {error}", self.label));
        let text = got.as_str();
        assert!(text.contains(expected), "{}: {text}", self.label);
    }

    async fn reads(&self, uri: &str, expected: &str) {
        let read = self.host.read_resource(&self.server, uri).await;
        self.holds(read, expected);
    }

    async fn prompts(&self, params: Value, expected: &str) {
        let raw = to_raw_value(&params).unwrap();
        let got = self
            .host
            .get_prompt(&self.server, &wire::decode(&raw).unwrap())
            .await;
        self.holds(got, expected);
    }

    async fn completes(&self, params: Value, expected: &str) {
        let raw = to_raw_value(&params).unwrap();
        let got = self
            .host
            .complete(&self.server, &wire::decode(&raw).unwrap())
            .await;
        self.holds(got, expected);
    }

    /// Calls a tool and asserts the number of progress notifications.
    async fn progresses(&self, tool: &str, arguments: Value, expected: usize) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let outcome = self
            .host
            .request(CallRequest {
                tool: format!("{}/{tool}", self.server),
                arguments: to_raw_value(&arguments).ok(),
                timeout: Some(PATIENCE),
                progress: Some(Arc::new(move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                })),
                ..CallRequest::default()
            })
            .await;
        assert!(outcome.is_ok(), "{}: {outcome:?}", self.label);
        assert_eq!(
            count.load(Ordering::Relaxed),
            expected,
            "{}: {tool}",
            self.label
        );
    }

    async fn logs(&mut self, expected: &str) {
        self.events
            .until(|events| {
                let is_logged = |event: &Event| match event {
                    Event::Log { line, .. } => {
                        matches!(line.source, LogSource::Message { .. })
                            && line.text.contains(expected)
                    }
                    _ => false,
                };
                events.iter().any(is_logged).then_some(())
            })
            .await;
    }

    fn asked(&self, expected: &[&str]) {
        assert_eq!(self.handler.take(), expected, "{}", self.label);
    }

    /// Shuts down and asserts that the server was connected once and stayed so.
    async fn end(mut self) {
        let server = self.server.to_string();
        assert_eq!(
            self.events.states_so_far(&server),
            ["connected"],
            "{}",
            self.label
        );
        self.host.shutdown().await;
    }
}

fn launched(name: &str, launch: Launch) -> ServerSpec {
    spec_of_command(name, launch.program, &launch.arguments, MAX_MESSAGE_BYTES)
}

fn of_era(era: Era) -> HostSettings {
    let of_era = Revision::ALL
        .into_iter()
        .filter(|revision| revision.era() == era);
    HostSettings {
        open: OpenOptions {
            supported: of_era.collect(),
            ..OpenOptions::default()
        },
        ..HostSettings::default()
    }
}

async fn use_everything(label: &str, spec: ServerSpec) {
    let mut bench = Bench::start(label, spec).await;
    // Some tools are added only after the server knows the client's capabilities.
    let tools = bench.tools(17).await;
    for tool in [
        "echo",
        "trigger-elicitation-request",
        "trigger-sampling-request",
        "get-roots-list",
    ] {
        assert!(tools.iter().any(|name| name == tool), "{label}: {tools:?}");
    }
    bench
        .calls("echo", json!({"message": "hello"}), "Echo: hello")
        .await;
    bench.calls("get-sum", json!({"a": 2, "b": 40}), "42").await;
    bench.calls("get-tiny-image", json!({}), "image/png").await;
    bench
        .calls(
            "get-annotated-message",
            json!({"messageType": "error"}),
            "annotations",
        )
        .await;
    bench
        .calls(
            "get-structured-content",
            json!({"location": "Chicago"}),
            "structuredContent",
        )
        .await;
    bench
        .calls("get-resource-links", json!({"count": 2}), "resource_link")
        .await;
    bench
        .calls(
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
            "\"resource\"",
        )
        .await;
    bench
        .progresses(
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 4}),
            4,
        )
        .await;
    bench
        .calls("trigger-elicitation-request", json!({}), "Ada")
        .await;
    bench
        .calls(
            "trigger-sampling-request",
            json!({"prompt": "Why?"}),
            "Forty-two",
        )
        .await;
    bench.asked(&["user", "model"]);
    bench
        .calls("get-roots-list", json!({}), "file:///work")
        .await;
    let resources = bench.listed(ListKind::Resources, "resources", "uri").await;
    bench.reads(&resources[0], "contents").await;
    assert!(
        !bench
            .listed(ListKind::Templates, "resourceTemplates", "uriTemplate")
            .await
            .is_empty()
    );
    let prompts = bench.listed(ListKind::Prompts, "prompts", "name").await;
    assert!(
        prompts.iter().any(|name| name == "args-prompt"),
        "{label}: {prompts:?}"
    );
    bench
        .prompts(
            json!({"name": "args-prompt", "arguments": {"city": "Paris"}}),
            "Paris",
        )
        .await;
    let completion = json!({
        "ref": {"type": "ref/prompt", "name": "completable-prompt"},
        "argument": {"name": "department", "value": "E"},
    });
    bench.completes(completion, "Engineering").await;
    bench
        .calls("toggle-simulated-logging", json!({}), "text")
        .await;
    bench.logs("message").await;
    // Cancelled after its first progress; the connection survives.
    let host = bench.host.clone();
    let (first, mut heard) = tokio::sync::mpsc::channel(1);
    let long = host.request(CallRequest {
        tool: format!("{}/trigger-long-running-operation", bench.server),
        arguments: to_raw_value(&json!({"duration": 600, "steps": 60_000})).ok(),
        timeout: Some(PATIENCE),
        progress: Some(Arc::new(move |_| {
            let _ = first.try_send(());
        })),
        ..CallRequest::default()
    });
    tokio::select! {
        outcome = long => panic!("{label}: {outcome:?}"),
        _ = heard.recv() => {}
    }
    bench
        .calls("echo", json!({"message": "still here"}), "Echo: still here")
        .await;
    bench.end().await;
}

#[tokio::test]
async fn server_everything_over_stdio() {
    use_everything(
        "stdio",
        launched("everything", interop::everything().unwrap()),
    )
    .await;
}

#[tokio::test]
async fn server_everything_over_streamable_http() {
    let server = interop::everything_http().await.unwrap();
    let spec = spec_of_url("everything", &server.url, Over::Http, MAX_MESSAGE_BYTES);
    use_everything("http", spec).await;
}

#[tokio::test]
async fn server_everything_over_sse() {
    let server = interop::everything_sse().await.unwrap();
    let spec = spec_of_url("everything", &server.url, Over::Sse, MAX_MESSAGE_BYTES);
    use_everything("sse", spec).await;
}

#[tokio::test]
async fn server_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), "hello from a file").unwrap();
    let launch = interop::filesystem(&root).unwrap();
    // The client's roots would replace its folders, so this client has none.
    let mut bench = Bench::without_roots("filesystem", launched("files", launch)).await;
    assert!(
        bench
            .tools(10)
            .await
            .iter()
            .any(|name| name == "read_text_file")
    );
    let path = |name: &str| root.join(name).to_string_lossy().into_owned();
    let folder_name = root.to_string_lossy().into_owned();
    bench
        .calls("list_allowed_directories", json!({}), &folder_name)
        .await;
    bench
        .calls(
            "read_text_file",
            json!({"path": path("note.txt")}),
            "hello from a file",
        )
        .await;
    let arguments = json!({"path": path("new.txt"), "content": "written"});
    bench.calls("write_file", arguments, "new.txt").await;
    assert_eq!(
        std::fs::read_to_string(root.join("new.txt")).unwrap(),
        "written"
    );
    let outside = call(
        &bench.host,
        "files/read_text_file",
        json!({"path": "/etc/hosts"}),
        PATIENCE,
    );
    assert!(outside.await.unwrap().is_error);
    let error = call(
        &bench.host,
        "files/read_text_file",
        json!({"path": 7}),
        PATIENCE,
    )
    .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("path"), "{error}");
    bench.end().await;
}

/// The server serves the folder of its arguments, independent of the workspace.
#[tokio::test]
async fn server_filesystem_serves_the_folder_of_its_arguments() {
    let (given, workspace, other) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let path = |folder: &tempfile::TempDir| folder.path().canonicalize().unwrap();
    let (given, workspace, other) = (path(&given), path(&workspace), path(&other));
    let launch = interop::filesystem(&given).unwrap();
    // (the entry's `roots`, the folder served)
    for (roots, served) in [
        (None, &given),
        (Some(RootsEntry::None), &given),
        (Some(RootsEntry::Workspace), &workspace),
        (
            Some(RootsEntry::Folders(vec![other.display().to_string()])),
            &other,
        ),
    ] {
        // The server requests roots at any time, so a wrong answer shows only sometimes.
        for _ in 0..3 {
            let entry = ServerEntry {
                command: Some(launch.program.display().to_string()),
                args: launch.arguments.clone(),
                roots: roots.clone(),
                ..ServerEntry::default()
            };
            let mut spec = launched("files", launch.clone());
            spec.roots = Roots::of(&entry, &workspace, &workspace);
            let bench = Bench::start("filesystem", spec).await;
            let all = [&given, &workspace, &other];
            bench.serves_only(served, &all).await;
            bench.end().await;
        }
    }
}

#[tokio::test]
async fn server_time() {
    let mut bench = Bench::start("time", launched("time", interop::time().unwrap())).await;
    assert_eq!(bench.tools(2).await, ["convert_time", "get_current_time"]);
    bench
        .calls("get_current_time", json!({"timezone": "UTC"}), "UTC")
        .await;
    let arguments =
        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    bench.calls("convert_time", arguments, "21:00").await;
    bench.end().await;
}

#[tokio::test]
async fn server_git() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .current_dir(folder.path())
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(folder.path().join("note.txt"), "hello").unwrap();
    git(&["add", "note.txt"]);
    git(&["commit", "-qm", "The first note"]);
    let launch = interop::git(folder.path()).unwrap();
    let mut bench = Bench::start("git", launched("git", launch)).await;
    assert!(bench.tools(10).await.iter().any(|name| name == "git_log"));
    let repository = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = json!({"repo_path": repository(folder.path())});
    bench
        .calls("git_log", arguments.clone(), "The first note")
        .await;
    bench.calls("git_status", arguments, "").await;
    bench.end().await;
}

async fn use_fastmcp(over: &str, spec: ServerSpec) {
    for era in [Era::Stateful, Era::Stateless] {
        let label = format!("{over}, {era:?}");
        let mut bench = Bench::with(&label, spec.clone(), of_era(era)).await;
        let tools = bench.tools(4).await;
        assert_eq!(tools, ["add", "ask", "count", "fail"], "{label}");
        bench.calls("add", json!({"a": 2, "b": 40}), "42").await;
        bench.progresses("count", json!({"to": 5}), 5).await;
        bench.logs("counted").await;
        if era == Era::Stateful {
            // In the other era this release of fastmcp does not ask.
            bench.calls("ask", json!({}), "accept: Ada").await;
            bench.asked(&["user"]);
        }
        let failed = call(&bench.host, "fast/fail", json!({}), PATIENCE).await;
        assert!(failed.unwrap().is_error, "{label}");
        let resources = bench.listed(ListKind::Resources, "resources", "uri").await;
        assert_eq!(resources, ["fastmcp://greeting"], "{label}");
        bench.reads("fastmcp://greeting", "Hello").await;
        bench.reads("fastmcp://greeting/Ada", "Hello, Ada").await;
        let prompt = json!({"name": "greet", "arguments": {"name": "Ada"}});
        bench.prompts(prompt, "Greet Ada").await;
        bench.end().await;
    }
}

#[tokio::test]
async fn a_fastmcp_server_over_stdio() {
    use_fastmcp("stdio", launched("fast", interop::fastmcp().unwrap())).await;
}

#[tokio::test]
async fn a_fastmcp_server_over_http() {
    let server = interop::fastmcp_http().await.unwrap();
    let spec = spec_of_url("fast", &server.url, Over::Http, MAX_MESSAGE_BYTES);
    use_fastmcp("http", spec).await;
}

#[tokio::test]
async fn a_server_on_the_python_sdk() {
    let launch = interop::python_sdk().unwrap();
    let mut bench = Bench::start("python sdk", launched("sdk", launch)).await;
    assert_eq!(bench.tools(1).await, ["add"]);
    bench.calls("add", json!({"a": 2, "b": 40}), "42").await;
    assert_eq!(
        bench.listed(ListKind::Resources, "resources", "uri").await,
        ["sdk://greeting"]
    );
    bench.reads("sdk://greeting", "Hello").await;
    bench
        .prompts(
            json!({"name": "greet", "arguments": {"name": "Ada"}}),
            "Greet Ada",
        )
        .await;
    bench.end().await;
}

#[tokio::test]
async fn an_rmcp_server_in_both_eras() {
    let listening = interop::rmcp_http().await.unwrap();
    for era in [Era::Stateful, Era::Stateless] {
        for over in [Over::Stdio, Over::Http] {
            let label = format!("{over:?}, {era:?}");
            let spec = match over {
                Over::Http => spec_of_url("rmcp", &listening.url, over, MAX_MESSAGE_BYTES),
                _ => launched("rmcp", interop::rmcp().unwrap()),
            };
            let mut bench = Bench::with(&label, spec, of_era(era)).await;
            let revision = bench.host.status(&"rmcp".into()).unwrap().revision.unwrap();
            assert_eq!(revision.era(), era, "{label}");
            assert_eq!(
                bench.tools(4).await,
                ["ask", "count", "echo", "think"],
                "{label}"
            );
            bench.calls("echo", json!({"text": "hello"}), "hello").await;
            bench.progresses("count", json!({"to": 5}), 5).await;
            bench.calls("ask", json!({}), "Ada").await;
            bench
                .calls("think", json!({"question": "Why?"}), "Forty-two")
                .await;
            bench.asked(&["user", "model"]);
            bench.reads("rmcp://greeting", "Hello").await;
            bench
                .prompts(
                    json!({"name": "greet", "arguments": {"name": "Ada"}}),
                    "Greet Ada",
                )
                .await;
            bench.end().await;
        }
    }
}
