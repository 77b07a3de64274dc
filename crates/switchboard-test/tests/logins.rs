//! One login, many processes (AUTH-4): renewed once, lost never.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use switchboard::auth::interactive::Attempt;
use switchboard::auth::interactive::callback::CallbackAddress;
use switchboard::auth::vault::sealed::SealedVault;
use switchboard::auth::vault::{Vault, VaultKey};
use switchboard::auth::{AuthSettings, Fetcher, ProtectedServer};
use switchboard::transport::http::{HttpClient, HttpSettings};
use switchboard_config::settings::LoginStore;
use switchboard_test::authorization::{AuthorizationServer, Script, fetch};

const PROCESSES: usize = 16;

/// A process, and what it says.
struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one, and waits until it is ready.
    fn start(folder: &Path, what: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rotating-login"))
            .arg(folder)
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, said }
    }

    fn go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

/// Many processes that ask for the same credentials at the same moment; what each of them got.
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
    assert!(browser.await.unwrap().contains("The answer has arrived."));
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
async fn sixteen_processes_renew_an_expired_token_once() {
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
async fn tokens_that_expire_at_once_are_renewed_in_turn_and_the_login_stays() {
    let (server, folder) = logged_in(Script::default()).await;
    let logins = folder.path().join("logins");
    for got in at_once(&logins, &server.url()) {
        assert!(
            got.starts_with("authorization: Bearer canary-access-"),
            "{got}"
        );
    }
    // However many of them found the token of another still fresh enough, the login goes on.
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

#[tokio::test]
async fn the_lock_of_a_process_that_is_killed_is_free() {
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
