//! Programs that fail to start at first, or at all: number of starts, and startup deadlines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use switchboard::internal::spec::ServerSpec;
use switchboard::internal::transport::stdio::StdioConnector;
use switchboard::status::{Cause, ServerState};
use switchboard::{Event, Host, HostOptions, HostSettings};
use switchboard_store::{MemoryStore, Store};
use switchboard_test::hosted::{SeenEvents, spec_of};
use tempfile::TempDir;

use super::name;

/// A shell script that answers the handshake with this request id and the first list, and nothing else.
fn serve(handshake: u32) -> String {
    let list = handshake + 1;
    format!(
        r#"
    printf '{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}\n'
    read initialized; read list
    printf '{{"jsonrpc":"2.0","id":{list},"result":{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}}}}]}}}}\n'
    exec cat >/dev/null"#
    )
}

/// A script in its own folder that records each start.
struct Program {
    folder: TempDir,
    file: &'static str,
}

impl Program {
    fn new(file: &'static str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        let here = folder.path().display();
        std::fs::write(
            &path,
            format!("#!/bin/sh\ncd '{here}'; echo start >> starts\n{script}\n"),
        )
        .unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self { folder, file }
    }

    fn spec(&self, startup_timeout: Duration) -> ServerSpec {
        let mut connector = StdioConnector::new(self.folder.path().join(self.file));
        connector.base_env = std::env::vars_os().collect();
        let mut spec = spec_of("lab", Arc::new(connector), self.file);
        spec.startup_timeout = startup_timeout;
        spec
    }

    fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.path("starts")).unwrap_or_default();
        starts.lines().count()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn host_with(store: &Arc<dyn Store>) -> Host {
    Host::with_options(HostOptions {
        store: Arc::clone(store),
        ..HostOptions::default()
    })
}

const MINUTE: Duration = Duration::from_secs(60);

/// Starts the program with a new host; returns the state and the number of starts.
async fn attempt(program: &Program, store: &Arc<dyn Store>) -> (&'static str, usize) {
    let before = program.starts();
    let host = host_with(store);
    host.apply(vec![program.spec(MINUTE)]).await;
    host.settled().await;
    let state = host.status(&name()).unwrap().word();
    host.shutdown().await;
    (state, program.starts() - before)
}

#[tokio::test]
async fn a_program_that_does_not_work_is_started_once() {
    for script in [
        "exit 1",
        "echo 'usage: server FILE' >&2; exit 2",
        "kill -9 $$",
    ] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let program = Program::new("server", script);
        for _ in 0..2 {
            assert_eq!(attempt(&program, &store).await, ("failed", 1), "{script}");
        }
    }
}

#[tokio::test]
async fn a_server_that_exits_at_the_probe_is_restarted_and_probed_only_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let serve = serve(1);
    let script = format!(r#"read line; case "$line" in *server/discover*) exit 3;; esac; {serve}"#);
    let program = Program::new("server", &script);
    assert_eq!(attempt(&program, &store).await, ("connected", 2));
    assert_eq!(attempt(&program, &store).await, ("connected", 1));
    // One that exits at every request is started twice the first time, since it is unknown which request it rejects.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let program = Program::new("server", "read line; exit 3");
    assert_eq!(attempt(&program, &store).await, ("failed", 2));
    assert_eq!(attempt(&program, &store).await, ("failed", 1));
}

#[tokio::test]
async fn a_package_runner_may_take_longer_while_it_makes_progress() {
    // By the time it is installed, the handshake was sent as well as the probe.
    let serve = serve(2);
    let install = format!(
        "while [ ! -e go ]; do echo 'fetching a part' >&2; sleep 0.1; done; read ask; read hello; {serve}"
    );
    let program = Program::new("npx", &install);
    let deadline = Duration::from_secs(1);
    let host = Host::with_options(HostOptions::default());
    let mut events = SeenEvents::of(&host);
    host.apply(vec![program.spec(deadline)]).await;
    // By then its deadline has long passed.
    let line = events
        .until(|events| {
            events.iter().find_map(|event| match event {
                Event::Installing { elapsed, line, .. } if *elapsed > 2 * deadline => {
                    Some(line.clone())
                }
                _ => None,
            })
        })
        .await;
    assert_eq!(line.as_deref(), Some("fetching a part"));
    let status = host.status(&name()).unwrap();
    assert!(
        matches!(
            status.state,
            ServerState::Pending {
                is_installing: true,
                ..
            }
        ),
        "{:?}",
        status.state
    );
    std::fs::write(program.path("go"), "").unwrap();
    assert_eq!(events.states("lab", 1).await, ["connected"]);
    assert_eq!(program.starts(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn without_progress_the_deadline_is_not_extended() {
    // The deadline of other programs is not extended, whatever they write.
    for (file, script) in [
        ("npx", "exec sleep 1000"),
        (
            "server",
            "while :; do echo 'almost there' >&2; sleep 0.1; done",
        ),
    ] {
        let program = Program::new(file, script);
        let host = Host::with_options(HostOptions {
            settings: HostSettings {
                reconnect_attempts: 1,
                ..HostSettings::default()
            },
            ..HostOptions::default()
        });
        let started = std::time::Instant::now();
        host.apply(vec![program.spec(Duration::from_millis(800))])
            .await;
        host.settled().await;
        let status = host.status(&name()).unwrap();
        let cause = status.state.failure().unwrap().cause;
        assert_eq!((status.word(), cause), ("failed", Cause::Timeout), "{file}");
        assert!(started.elapsed() < MINUTE, "{file}");
        // A start that timed out is retried like a lost connection, with one process per attempt.
        assert_eq!(program.starts(), 2, "{file}");
        host.shutdown().await;
    }
    // Even with progress there is a limit.
    let program = Program::new("npx", "while :; do echo part >&2; sleep 0.05; done");
    let host = Host::with_options(HostOptions {
        settings: HostSettings {
            install_timeout: Duration::from_millis(1_500),
            reconnect_attempts: 0,
            ..HostSettings::default()
        },
        ..HostOptions::default()
    });
    host.apply(vec![program.spec(Duration::from_millis(500))])
        .await;
    host.settled().await;
    assert_eq!(host.status(&name()).unwrap().word(), "failed");
    host.shutdown().await;
}
