//! Logins: token refresh shared by many processes, and logins started by a model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use switchboard::internal::audit::What;
use switchboard::internal::auth::interactive::Attempt;
use switchboard::internal::auth::interactive::callback::CallbackAddress;
use switchboard::internal::auth::interactive::logins::{BackgroundLogins, LoginTarget, Logins};
use switchboard::internal::auth::vault::sealed::SealedVault;
use switchboard::internal::auth::vault::{MemoryVault, Vault, VaultKey};
use switchboard::internal::auth::{AuthSettings, Fetcher, OAuth, ProtectedServer};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{
    HttpClient, HttpSettings, RemoteServer, StreamableConnector,
};
use switchboard::status::ServerState;
use switchboard::{CallRequest, Event, Gate, Host, HostOptions, ServerName};
use switchboard_config::settings::LoginStore;
use switchboard_test::authorization::{AuthorizationServer, Consent, Script, fetch};
use tokio::sync::broadcast;
use url::Url;

const PROCESSES: usize = 16;

/// A process and its output.
struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a process and waits until it is ready.
    fn start(folder: &Path, what: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rotating-login"))
            .arg(folder)
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, stdout }
    }

    fn go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

/// Requests the same credentials in many processes at once and returns what each got.
fn at_once(folder: &Path, url: &str) -> Vec<String> {
    let start = |_| Process::start(folder, url);
    let mut processes: Vec<Process> = (0..PROCESSES).map(start).collect();
    processes.iter_mut().for_each(Process::go);
    processes.into_iter().map(Process::rest).collect()
}

async fn log_in(server: &AuthorizationServer, vault: Arc<dyn Vault>) {
    let url = server.url().parse().unwrap();
    let protected = ProtectedServer::new(&url, AuthSettings::default()).unwrap();
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    let (fetcher, address) = (Fetcher::new(&client), CallbackAddress::default());
    let attempt = Attempt::begin(protected, fetcher, vault, address)
        .await
        .unwrap();
    let url = attempt.url().to_string();
    let browser = tokio::task::spawn_blocking(move || fetch(&url));
    let answer = attempt.answer().await;
    attempt.finish(answer).await.unwrap();
    assert!(browser.await.unwrap().contains("The response has arrived."));
}

async fn logged_in(script: Script) -> (AuthorizationServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = AuthorizationServer::start(script);
    let vault = SealedVault::new(folder.path().join("logins"), LoginStore::File);
    log_in(&server, Arc::new(vault)).await;
    assert_eq!(server.script().logins, 1);
    (server, folder)
}

#[tokio::test]
async fn sixteen_processes_refresh_an_expired_token_once() {
    let (server, folder) = logged_in(Script {
        renewed_lifetime: 3600,
        renewal_takes: Duration::from_millis(300),
        ..Script::default()
    })
    .await;
    let got = at_once(&folder.path().join("logins"), &server.url());
    let renewed = "authorization: Bearer canary-access-2\n";
    assert_eq!(got, [renewed; PROCESSES]);
    let script = server.script().clone();
    assert_eq!((script.renewals, script.reuses), (1, 0));
}

#[tokio::test]
async fn short_lived_tokens_are_refreshed_in_turn_and_the_login_stays() {
    let (server, folder) = logged_in(Script::default()).await;
    let logins = folder.path().join("logins");
    for got in at_once(&logins, &server.url()) {
        assert!(
            got.starts_with("authorization: Bearer canary-access-"),
            "{got}"
        );
    }
    // The login survives, no matter how many processes found a token of another still valid.
    let mut last = Process::start(&logins, &server.url());
    last.go();
    let got = last.rest();
    let script = server.script().clone();
    let newest = format!(
        "authorization: Bearer canary-access-{}\n",
        script.renewals + 1
    );
    assert_eq!(got, newest);
    assert!((1..=PROCESSES + 1).contains(&script.renewals));
    assert_eq!(script.reuses, 0);
}

fn target(script: Script) -> (AuthorizationServer, LoginTarget) {
    let server = AuthorizationServer::start(script);
    let url: Url = server.url().parse().unwrap();
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    let target = LoginTarget {
        server: ProtectedServer::new(&url, AuthSettings::default()).unwrap(),
        fetcher: Fetcher::new(&client),
        address: CallbackAddress::default(),
    };
    (server, target)
}

/// A host with one server that requires a login, not logged in.
async fn host(script: Script, patience: Option<Duration>) -> (AuthorizationServer, Host) {
    noted_host(script, patience, Arc::default()).await
}

/// Records audit notes.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Gate for Notes {
    fn note(&self, what: What) {
        if let What::Login {
            server,
            event,
            succeeded,
        } = what
        {
            let note = format!("{server} {event} {succeeded}");
            self.0.lock().unwrap().push(note);
        }
    }
}

/// Like [`host`], with audit notes.
async fn noted_host(
    script: Script,
    patience: Option<Duration>,
    notes: Arc<Notes>,
) -> (AuthorizationServer, Host) {
    let (server, target) = target(script);
    let vault: Arc<dyn Vault> = Arc::new(MemoryVault::default());
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    let oauth = OAuth::new(
        target.server.clone(),
        target.fetcher.clone(),
        Arc::clone(&vault),
    );
    let mut remote = RemoteServer::new(server.url());
    remote.authorizer = Some(Arc::new(oauth));
    let connector = Arc::new(StreamableConnector::new(&client, remote).unwrap());
    let logins = patience.map(|patience| -> Arc<dyn Logins> {
        let targets = HashMap::from([("guarded".into(), target)]);
        Arc::new(BackgroundLogins::new(targets, vault).waiting(patience))
    });
    let host = Host::with_options(HostOptions {
        logins,
        gate: notes,
        ..HostOptions::default()
    });
    let key = ConnectionKey::of(&[b"guarded"]);
    host.apply(vec![ServerSpec::new("guarded", connector, key)])
        .await;
    host.settled().await;
    let status = host.status(&"guarded".into()).unwrap();
    assert_eq!(status.word(), "needs-auth");
    (server, host)
}

/// Calls the tool; returns whether the result is an error, and its text.
async fn authenticate(host: &Host) -> (bool, String) {
    let tool = "mcp__guarded__authenticate".to_owned();
    let request = CallRequest {
        tool,
        ..CallRequest::default()
    };
    let outcome = host.request(request).await.unwrap();
    let result: Value = serde_json::from_str(outcome.result.raw().get()).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    (outcome.is_error, text.to_owned())
}

fn url_in(text: &str) -> String {
    let mut lines = text.lines();
    let url = lines.find(|line| line.starts_with("http://")).unwrap();
    url.to_owned()
}

fn tools(host: &Host) -> Vec<String> {
    let catalog = host.catalog();
    let tools = catalog.iter();
    tools.map(|tool| tool.reference().to_string()).collect()
}

/// Waits until the server is connected.
async fn connected(events: &mut broadcast::Receiver<Event>) {
    loop {
        if let Event::StateChanged {
            state: ServerState::Connected,
            ..
        } = events.recv().await.unwrap()
        {
            return;
        }
    }
}

const PATIENCE: Option<Duration> = Some(Duration::from_secs(600));

#[tokio::test]
async fn a_model_starts_a_login_and_the_tools_appear() {
    let notes = Arc::<Notes>::default();
    let (server, host) = noted_host(
        Script {
            login_lifetime: 3600,
            ..Script::default()
        },
        PATIENCE,
        Arc::clone(&notes),
    )
    .await;
    let mut events = host.events();
    assert_eq!(tools(&host), ["guarded/authenticate"]);
    let (is_error, text) = authenticate(&host).await;
    let url = url_in(&text);
    assert!(!is_error);
    assert_eq!(
        text,
        format!(
            "Ask the user to open this address in a browser and to log in:\n\n{url}\n\nIt is valid for 10 minutes. \
             The tools of the server guarded become available once the user has logged in."
        )
    );
    // Repeated calls return the same login.
    assert_eq!(authenticate(&host).await, (is_error, text));
    let browser = tokio::task::spawn_blocking(move || fetch(&url));
    connected(&mut events).await;
    assert!(browser.await.unwrap().contains("The response has arrived."));
    assert_eq!(tools(&host), ["guarded/one", "guarded/two"]);
    assert_eq!(server.script().logins, 1);
    assert_eq!(
        *notes.0.lock().unwrap(),
        [
            "guarded begin true",
            "guarded begin true",
            "guarded login true"
        ]
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_failed_login_can_be_restarted() {
    let (server, target) = target(Script {
        consent: Consent::Refused,
        ..Script::default()
    });
    let name = ServerName::from("guarded");
    let targets = HashMap::from([(name.clone(), target)]);
    let vault = Arc::new(MemoryVault::default());
    let logins = BackgroundLogins::new(targets.clone(), Arc::clone(&vault) as _);
    let refused = logins.begin(&name).await.unwrap().unwrap();
    let url = refused.url.to_string();
    let page = tokio::task::spawn_blocking(move || fetch(&url)).await;
    assert!(page.unwrap().contains("The login was refused."));
    assert!(refused.outcome.wait().await.is_err());
    let again = logins.begin(&name).await.unwrap().unwrap();
    assert_eq!(
        again.failed_before.as_deref(),
        Some("the login was refused: access_denied (The user said no)")
    );
    server.script().consent = Consent::Given;
    let url = again.url.to_string();
    let browser = tokio::task::spawn_blocking(move || fetch(&url));
    assert_eq!(again.outcome.wait().await, Ok(()));
    browser.await.unwrap();
    // The user never opens the page.
    let patience = Duration::from_millis(20);
    let logins = BackgroundLogins::new(targets, vault).waiting(patience);
    let late = logins.begin(&name).await.unwrap().unwrap();
    assert!(late.outcome.wait().await.is_err());
    let again = logins.begin(&name).await.unwrap().unwrap();
    assert_eq!(again.failed_before.as_deref(), Some("the login timed out"));
    assert!(logins.begin(&"other".into()).await.unwrap().is_none());
}

#[tokio::test]
async fn no_login_outlives_its_host() {
    let (server, host) = host(Script::default(), PATIENCE).await;
    let url = url_in(&authenticate(&host).await.1);
    host.shutdown().await;
    drop(host);
    // Lets the aborted task run.
    tokio::task::yield_now().await;
    let page = tokio::task::spawn_blocking(move || fetch(&url)).await;
    assert_eq!(page.unwrap(), "");
    assert_eq!(server.script().logins, 0);
}

#[tokio::test]
async fn a_host_that_cannot_log_in_refers_to_the_command() {
    let (_server, host) = host(Script::default(), None).await;
    let expected = "The server guarded requires a login. Ask the user to run `switchboard mcp login guarded`; its tools \
                    become available after that.";
    assert_eq!(authenticate(&host).await, (true, expected.to_owned()));
}

#[tokio::test]
async fn a_killed_process_releases_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let logins = folder.path().join("logins");
    let mut holder = Process::start(&logins, "hold");
    let key = VaultKey::of(&["held"]);
    let vault = SealedVault::new(&logins, LoginStore::File).waiting(Duration::from_millis(50));
    assert!(vault.lock(&key).await.is_err());
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    vault.lock(&key).await.unwrap();
}
