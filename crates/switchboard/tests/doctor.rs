//! Tests of the doctor against small real servers that fail, and some that work.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchboard::internal::doctor::{
    Diagnosis, DoctorOptions, Health, Outcome, Severity, Step, diagnose, diagnose_all,
};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{
    HttpClient, HttpSettings, RemoteServer, StreamableConnector,
};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::internal::transport::stdio::{Grace, StdioConnector};
use switchboard::transport::Connector;
use switchboard::{Host, HostOptions, Workspace};
use switchboard_config::secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn spec(connector: impl Connector) -> ServerSpec {
    let mut spec = ServerSpec::new("patient", Arc::new(connector), ConnectionKey::of(&[]));
    spec.startup_timeout = Duration::from_secs(20);
    spec
}

fn program(program: impl AsRef<Path>) -> StdioConnector {
    let mut connector = StdioConnector::new(program.as_ref());
    // Other variables of this machine would be reported as withheld.
    let is_needed = |name: &std::ffi::OsStr| name == "PATH" || name == "HOME";
    connector.base_env = std::env::vars_os()
        .filter(|(name, _)| is_needed(name))
        .collect();
    connector.grace = Grace {
        after_close: Duration::from_millis(500),
        after_terminate: Duration::from_millis(500),
    };
    connector
}

/// A server that is a shell script.
fn shell(script: &str) -> StdioConnector {
    let mut connector = program("sh");
    connector.args = vec!["-c".into(), script.into()];
    connector
}

fn remote(url: String) -> StreamableConnector {
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    StreamableConnector::new(&client, RemoteServer::new(url)).unwrap()
}

/// Answers every HTTP request with the same bytes; returns its URL.
async fn web(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                // The request fits one read, or the rest of it does not matter.
                let mut request = vec![0; 64 * 1024];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    address.to_string()
}

fn taken(diagnosis: &Diagnosis) -> Vec<(Step, bool)> {
    let steps = diagnosis.steps.iter();
    steps
        .map(|report| (report.step, !matches!(report.outcome, Outcome::Failed(_))))
        .collect()
}

/// Examines a server that fails, and checks the step, the finding and a word of its remedy.
async fn check(
    spec: ServerSpec,
    verdict: Health,
    step: Step,
    code: &str,
    remedy: &str,
) -> Diagnosis {
    let diagnosis = diagnose(&spec, &DoctorOptions::default()).await;
    let [finding] = &diagnosis.findings[..] else {
        panic!("{diagnosis:#?}");
    };
    let last = taken(&diagnosis).pop();
    assert_eq!(
        (diagnosis.verdict, last, finding.code, finding.severity),
        (verdict, Some((step, false)), code, Severity::Error),
        "{diagnosis:#?}"
    );
    assert!(finding.remedy.contains(remedy), "{finding:#?}");
    diagnosis
}

#[tokio::test]
async fn programs_that_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    std::fs::write(&script, "no first line").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o644)).unwrap();
    let unreachable = Health::Unreachable;
    check(
        spec(program("no-such-program-anywhere")),
        unreachable,
        Step::Spawn,
        "program-not-found",
        "which no-such-program-anywhere",
    )
    .await;
    check(
        spec(program("npx -y some-server")),
        unreachable,
        Step::Spawn,
        "command-with-arguments",
        r#"command = "npx""#,
    )
    .await;
    check(
        spec(program(&script)),
        unreachable,
        Step::Spawn,
        "program-not-executable",
        "chmod +x",
    )
    .await;
    let mut homeless = shell("exec cat");
    homeless.cwd = Some(folder.path().join("gone"));
    check(
        spec(homeless),
        unreachable,
        Step::Spawn,
        "no-such-folder",
        "`cwd`",
    )
    .await;
}

#[tokio::test]
async fn a_process_that_ends_is_explained_by_its_last_words() {
    let diagnosis = check(
        spec(shell(
            "echo 'Error: API_TOKEN environment variable is required' >&2; exit 1",
        )),
        Health::Unreachable,
        Step::Discover,
        "variable-missing",
        r#"env_vars = ["API_TOKEN"]"#,
    )
    .await;
    // It exited without reading the first request, so that was not the reason, and it is not respawned.
    assert_eq!(
        diagnosis.stderr,
        ["Error: API_TOKEN environment variable is required"]
    );
    let steps: Vec<Step> = diagnosis.steps.iter().map(|report| report.step).collect();
    assert_eq!(steps, [Step::Spawn, Step::Discover]);
}

#[tokio::test]
async fn a_process_that_says_nothing_and_ends() {
    check(
        spec(shell("read line; exit 3")),
        Health::Unreachable,
        Step::Initialize,
        "exited-early",
        "by hand",
    )
    .await;
}

#[tokio::test]
async fn a_program_that_prints_text_is_no_server() {
    let mut patient = spec(shell("echo 'Listening on port 3000'; exec sleep 1000"));
    patient.startup_timeout = Duration::from_secs(1);
    check(
        patient,
        Health::Unreachable,
        Step::Discover,
        "text-instead-of-messages",
        "`url`",
    )
    .await;
}

#[tokio::test]
async fn a_silent_server_times_out_at_a_step() {
    let mut patient = spec(shell("exec sleep 1000"));
    patient.startup_timeout = Duration::from_secs(1);
    check(
        patient,
        Health::Unreachable,
        Step::Discover,
        "timed-out",
        "startup_timeout_sec",
    )
    .await;
}

#[tokio::test]
async fn addresses_that_are_no_servers() {
    let unauthorized = web("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    check(
        spec(remote(format!("http://{unauthorized}/mcp"))),
        Health::NeedsLogin,
        Step::Discover,
        "login-needed",
        "switchboard mcp login patient",
    )
    .await;
    let mut server = RemoteServer::new(format!("http://{unauthorized}/mcp"));
    server.headers = vec![("Authorization".to_owned(), Secret::new("Bearer wrong"))];
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    let connector = StreamableConnector::new(&client, server).unwrap();
    let diagnosed = spec(connector);
    check(
        diagnosed.clone(),
        Health::TokenRejected,
        Step::Discover,
        "token-rejected",
        "get a new one",
    )
    .await;
    // A host reports the same, and offers no login that could not help.
    let host = Host::with_options(HostOptions::default());
    host.apply(vec![diagnosed]).await;
    host.settled().await;
    let status = host.status(&"patient".into()).unwrap();
    assert_eq!(status.word(), "failed");
    let reason = status.reason().unwrap();
    assert!(
        reason.ends_with("the server rejects the token of its entry"),
        "{reason}"
    );
    assert!(host.catalog().is_empty());
    host.shutdown().await;
    let missing =
        web("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    check(
        spec(remote(format!("http://{missing}/"))),
        Health::Unreachable,
        Step::ConnectLegacy,
        "wrong-path",
        "/mcp or /sse",
    )
    .await;
    let page = web("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<!doctype html>").await;
    check(
        spec(remote(format!("http://{page}/"))),
        Health::Unreachable,
        Step::Discover,
        "web-page",
        "/mcp",
    )
    .await;
    check(
        spec(remote(format!("https://{page}/mcp"))),
        Health::Unreachable,
        Step::Connect,
        "no-tls",
        "http://",
    )
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    check(
        spec(remote(format!("http://{closed}/mcp"))),
        Health::Unreachable,
        Step::Connect,
        "connection-refused",
        "start the server",
    )
    .await;
}

#[tokio::test]
async fn a_healthy_server_has_its_facts_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "hello").unwrap();
    let service = Arc::new(Workspace::new(folder.path()).unwrap());
    let spec = spec(InProcessConnector::new(service));
    let diagnosis = diagnose(&spec, &DoctorOptions::default()).await;
    assert_eq!(diagnosis.verdict, Health::Healthy, "{diagnosis:#?}");
    assert_eq!(diagnosis.findings, []);
    assert_eq!(
        taken(&diagnosis),
        [
            (Step::Connect, true),
            (Step::Discover, true),
            (Step::Tools, true),
            (Step::Prompts, true),
            (Step::Resources, true),
            (Step::Probe, true),
            (Step::Close, true),
        ]
    );
    let facts = diagnosis.facts.unwrap();
    assert_eq!(
        (facts.tools, facts.prompts, facts.resources),
        (3, Some(1), Some(1))
    );
    assert_eq!(facts.revision.as_str(), "2026-07-28");
    assert!(facts.tokens.0 > 0);
}

/// A server of the stateful era in a line of `sed`: it answers with the ID of the request.
const OLD_SERVER: &str = r#"
echo 'starting up'
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}\n' "$id" ;;
    *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":{"type":"array"}},{"name":"b","inputSchema":{"type":"object","properties":{"x":{"type":"array"}}}},{"name":"c","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *ping*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

#[tokio::test]
async fn a_sloppy_server_works_and_its_habits_are_told() {
    let diagnosis = diagnose(&spec(shell(OLD_SERVER)), &DoctorOptions::default()).await;
    let codes: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|finding| (finding.code, finding.severity))
        .collect();
    assert_eq!(
        codes,
        [
            ("noise", Severity::Warning),
            ("tools-set-aside", Severity::Warning),
            ("older-protocol", Severity::Note),
            ("schemas-repaired", Severity::Note),
        ],
        "{diagnosis:#?}"
    );
    assert_eq!(diagnosis.verdict, Health::Troubled);
    let facts = diagnosis.facts.unwrap();
    assert_eq!(
        (facts.name.as_deref(), facts.version.as_deref(), facts.tools),
        (Some("old"), Some("1"), 2)
    );
    assert_eq!(facts.set_aside.len(), 1);
    assert_eq!(facts.lints.len(), 1);
    assert_eq!(facts.lints[0].tool, "b");
}

#[tokio::test]
async fn many_servers_are_examined_side_by_side_and_told_in_order() {
    let mut first = spec(shell("exit 1"));
    first.name = "first".into();
    let mut second = spec(program("no-such-program-anywhere"));
    second.name = "second".into();
    let mut third = spec(shell(OLD_SERVER));
    third.name = "third".into();
    let diagnoses = diagnose_all(&[first, second, third], &DoctorOptions::default()).await;
    let verdicts: Vec<_> = diagnoses
        .iter()
        .map(|diagnosis| (diagnosis.server.as_str(), diagnosis.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("first", Health::Unreachable),
            ("second", Health::Unreachable),
            ("third", Health::Troubled),
        ]
    );
}
