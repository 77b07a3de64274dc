//! Links to servers under a guard: what the guard must not change, and what it adds.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../../switchboard/tests/stdio/recorder.rs"]
mod recorder;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use recorder::{Event, Recorder};
use switchboard::transport::stdio::{Grace, GuardCommand, StdioConnector};
use switchboard::transport::{Closed, Connector, Link, Outgoing, OutgoingKind, TransportErrorKind};
use switchboard_test::hosted::wait_until;

fn shell(script: &str) -> StdioConnector {
    let mut connector = StdioConnector::new("sh");
    connector.args = vec!["-c".into(), script.into()];
    connector.base_env = std::env::vars_os().collect();
    connector.guard = Some(GuardCommand {
        program: env!("CARGO_BIN_EXE_guarded_host").into(),
        args: vec!["guard".into(), "guarded".into()],
    });
    connector.grace = Grace {
        after_close: Duration::from_millis(200),
        after_terminate: Duration::from_millis(200),
    };
    connector
}

async fn connect(connector: &StdioConnector) -> (Arc<dyn Link>, Arc<Recorder>) {
    let recorder = Recorder::new();
    let link = connector.connect(recorder.clone()).await.unwrap();
    (link, recorder)
}

fn message(text: &str) -> Outgoing {
    Outgoing {
        payload: text.into(),
        kind: OutgoingKind::Request(1),
        headers: Vec::new(),
    }
}

fn frame(text: &str) -> Event {
    Event::Frame(text.to_owned())
}

async fn check(script: &str, expected: &[Event]) {
    let (_link, recorder) = connect(&shell(script)).await;
    let events = tokio::time::timeout(Duration::from_secs(20), recorder.all()).await;
    assert_eq!(events.unwrap(), expected, "{script}");
}

#[tokio::test]
async fn output_status_and_signal_are_the_servers_own() {
    check(
        "echo one; printf 'tw'; printf 'o\\n'; exit 7",
        &[frame("one"), frame("two"), Event::Closed(Closed::Exited(7))],
    )
    .await;
    check(
        "exec >&-; echo 'it is broken' >&2; exit 1",
        &[
            Event::Diagnostic("it is broken".into()),
            Event::Closed(Closed::Exited(1)),
        ],
    )
    .await;
    check("kill -9 $$", &[Event::Closed(Closed::Signalled(9))]).await;
    check("kill -11 $$", &[Event::Closed(Closed::Signalled(11))]).await;
}

#[tokio::test]
async fn a_message_goes_through_and_the_process_is_the_server() {
    let (link, recorder) = connect(&shell("echo $$; exec cat")).await;
    let Event::Frame(process) = recorder.next().await else {
        panic!("no process id");
    };
    assert_eq!(link.process().map(|id| id.to_string()), Some(process));
    link.send(message("there and back")).await.unwrap();
    assert_eq!(recorder.next().await, frame("there and back"));
    link.close().await;
    assert_eq!(recorder.next().await, Event::Closed(Closed::ByUs));
}

#[tokio::test]
async fn the_end_of_the_main_process_ends_what_it_left() {
    let script =
        "setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 1000; done' & read go; exit 3";
    let (link, recorder) = connect(&shell(script)).await;
    assert_eq!(recorder.next().await, frame("up"));
    link.send(message("go")).await.unwrap();
    // What is left holds the output open, so this comes only when it is gone.
    assert_eq!(recorder.next().await, Event::Closed(Closed::Exited(3)));
}

#[tokio::test]
async fn what_the_system_refuses_is_an_error_of_connecting() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // Written by another process: a file that this one has open for writing, be it in a fork, cannot be run.
    let written = std::process::Command::new("sh")
        .arg("-c")
        .arg("printf '#!/no/such/interpreter\\n' > \"$0\" && chmod +x \"$0\"")
        .arg(&script)
        .status();
    assert!(written.unwrap().success());

    let check = async |connector: StdioConnector, kind, part: &str| {
        let error = connector.connect(Recorder::new()).await.err().unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(part), "{error}");
    };
    let mut no_interpreter = shell("");
    no_interpreter.program = script;
    check(
        no_interpreter,
        TransportErrorKind::ProgramNotExecutable,
        "the interpreter",
    )
    .await;
    let mut too_long = shell("");
    too_long.args.push("x".repeat(1 << 20).into());
    check(too_long, TransportErrorKind::Spawn, "too long").await;
    let mut no_program = shell("");
    no_program.program = "no-such-program".into();
    check(no_program, TransportErrorKind::ProgramNotFound, "PATH").await;
    for guard in ["/no/such/guard", "/bin/false"] {
        let mut no_guard = shell("");
        no_guard.guard = Some(GuardCommand {
            program: guard.into(),
            args: Vec::new(),
        });
        check(no_guard, TransportErrorKind::Spawn, guard).await;
    }
}

#[tokio::test]
async fn a_guard_started_by_hand_says_so() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_guarded_host"))
        .args(["guard", "by-hand"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("not by hand"), "{message}");
}

/// One test, because it counts what the whole process has: runtimes of other tests would be counted too.
#[test]
fn connecting_and_closing_leaves_nothing_behind() {
    // A process of its own, with nothing else going on in it.
    const INSIDE: &str = "GUARDED_TEST_COUNTS_ALONE";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "connecting_and_closing_leaves_nothing_behind"])
            .args(["--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let counts = || {
            let tasks = tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks();
            (tasks, children(), descriptors(), threads())
        };
        let before = counts();
        for round in 0..15 {
            for (script, guarded) in [
                ("echo up; exec cat", true),
                ("echo up; exec cat", false),
                (
                    "trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done",
                    true,
                ),
                ("trap '' TERM; echo up; while :; do sleep 1000; done", false),
            ] {
                let mut connector = shell(script);
                connector.grace.after_close = Duration::from_millis(1);
                connector.grace.after_terminate = Duration::from_millis(1);
                if !guarded {
                    connector.guard = None;
                }
                let (link, recorder) = connect(&connector).await;
                assert_eq!(recorder.next().await, frame("up"));
                if round % 2 == 0 {
                    link.close().await;
                }
                drop(link);
                // A start that is given up, most likely before there is a process.
                drop(connector.connect(Recorder::new()).now_or_never());
            }
            let waiting = wait_until(|| counts() == before);
            let settled = tokio::time::timeout(Duration::from_secs(20), waiting).await;
            assert!(
                settled.is_ok(),
                "round {round}: {before:?} became {:?}",
                counts()
            );
        }
    });
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn children() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .map(|list| list.split_whitespace().count())
        .sum()
}
