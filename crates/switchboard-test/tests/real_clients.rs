//! Third-party clients against our front ends: list, call, progress, elicitation, cancellation.
//!
//! `cargo xtask test` installs them. If one is missing, its test fails; none is skipped.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    ProgressNotificationParam,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RoleClient, RunningService,
    ServiceExt as _,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use switchboard_test::interop::{self, Launch};
use tokio::process::Command;
use tokio::sync::Notify;

/// Timeout for Node and Python on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "a-token-for-the-clients-of-others";

/// Runs a scripted client and compares its output.
async fn check(client: Launch, mode: &str, over: &str, version: &str) {
    let listening = interop::own_server_http(TOKEN).await.unwrap();
    let rest = if over == "http" {
        vec![listening.url.clone(), TOKEN.to_owned()]
    } else {
        let Launch { program, arguments } = interop::own_server().unwrap();
        let program = program.to_string_lossy().into_owned();
        [vec![program], arguments].concat()
    };
    let running = Command::new(&client.program)
        .args(&client.arguments)
        .args([mode, over])
        .args(&rest)
        .env("INTEROP_NODE_MODULES", interop::node_modules().unwrap())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, running).await;
    let output = output.unwrap_or_else(|_| panic!("{mode} over {over}: timed out"));
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut seen: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{mode} over {over}: {error}\n{text}\n{stderr}"));
    // Python may write integers as floats.
    let progress = seen["progress"].as_array().unwrap().iter();
    let progress: Vec<_> = progress.filter_map(Value::as_f64).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0], "{mode} over {over}");
    seen.as_object_mut().unwrap().remove("progress");
    let asked = seen["asked"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("User response: action=accept"), "{asked}");
    assert!(asked.contains(r#""email":"Who?""#), "{asked}");
    seen.as_object_mut().unwrap().remove("asked");
    let expected = json!({
        "version": version,
        "tools": 30,
        "text": "This is a simple text response for testing.",
        "resource": "This is the content of the static text resource.",
        "prompt": "This is a simple prompt for testing.",
        "cancelled": true,
        "ended": "all ended",
        "order": ["quick", "slow"],
    });
    assert_eq!(seen, expected, "{mode} over {over}");
}

#[tokio::test]
async fn the_typescript_client_over_http() {
    let client = || interop::typescript_client().unwrap();
    check(client(), "legacy", "http", "2025-11-25").await;
    check(client(), "auto", "http", "2026-07-28").await;
}

#[tokio::test]
async fn the_typescript_client_over_stdio() {
    let client = || interop::typescript_client().unwrap();
    check(client(), "legacy", "stdio", "2025-11-25").await;
    check(client(), "auto", "stdio", "2026-07-28").await;
}

#[tokio::test]
async fn the_python_client_over_http() {
    let client = || interop::python_client().unwrap();
    check(client(), "legacy", "http", "2025-11-25").await;
    check(client(), "auto", "http", "2026-07-28").await;
}

#[tokio::test]
async fn the_python_client_over_stdio() {
    let client = || interop::python_client().unwrap();
    check(client(), "legacy", "stdio", "2025-11-25").await;
    check(client(), "auto", "stdio", "2026-07-28").await;
}

/// An rmcp client that accepts everything.
#[derive(Default)]
struct Obliging {
    progress: Mutex<Vec<f64>>,
    progressed: Notify,
}

impl ClientHandler for Obliging {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let content = json!({"username": "ada", "email": "ada@example.org"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push(params.progress);
        self.progressed.notify_one();
    }
}

type Rmcp = RunningService<RoleClient, Obliging>;

async fn call(client: &Rmcp, tool: &'static str) -> CallToolResult {
    let called = client.call_tool(CallToolRequestParams::new(tool));
    tokio::time::timeout(PATIENCE, called)
        .await
        .unwrap()
        .unwrap()
}

fn text(result: &CallToolResult) -> String {
    let content = serde_json::to_value(&result.content).unwrap();
    content[0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Uses every supported feature of an rmcp client.
async fn check_rmcp(client: Rmcp) {
    assert_eq!(client.list_all_tools().await.unwrap().len(), 30);
    let simple = call(&client, "test_simple_text").await;
    assert_eq!(text(&simple), "This is a simple text response for testing.");
    call(&client, "test_tool_with_progress").await;
    assert_eq!(
        *client.service().progress.lock().unwrap(),
        [0.0, 50.0, 100.0]
    );
    let asked = call(&client, "test_elicitation").await;
    assert!(text(&asked).contains("ada@example.org"), "{asked:?}");
    // A permit may be left from the progress above.
    let _ = tokio::time::timeout(Duration::ZERO, client.service().progressed.notified()).await;
    let params = CallToolRequestParams::new("test_wait");
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let waiting = client
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap();
    let progressed = client.service().progressed.notified();
    tokio::time::timeout(PATIENCE, progressed).await.unwrap();
    waiting.cancel(None).await.unwrap();
    assert_eq!(text(&call(&client, "test_all_ended").await), "all ended");
    let (slow, quick) = tokio::join!(
        async {
            call(&client, "test_tool_with_progress").await;
            tokio::time::Instant::now()
        },
        async {
            call(&client, "test_simple_text").await;
            tokio::time::Instant::now()
        }
    );
    assert!(quick < slow);
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn the_client_of_rmcp_over_stdio() {
    let Launch { program, arguments } = interop::own_server().unwrap();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    check_rmcp(Obliging::default().serve(streams).await.unwrap()).await;
}

#[tokio::test]
async fn the_client_of_rmcp_over_http() {
    // Its HTTP client requires a crypto provider, even without TLS. Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listening = interop::own_server_http(TOKEN).await.unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(listening.url.clone());
    let transport = StreamableHttpClientTransport::from_config(config.auth_header(TOKEN));
    check_rmcp(Obliging::default().serve(transport).await.unwrap()).await;
    // A wrong token is rejected.
    let config = StreamableHttpClientTransportConfig::with_uri(listening.url.clone());
    let transport = StreamableHttpClientTransport::from_config(config.auth_header("another"));
    assert!(Obliging::default().serve(transport).await.is_err());
}
