//! Connections to servers under a supervisor: the supervisor is transparent, and kills all processes.

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
use switchboard::internal::transport::stdio::{
    Grace, Program, ProgramEnd, StdioConnector, SupervisorCommand,
};
use switchboard::transport::{Closed, Connector, Link, Outgoing, OutgoingKind, TransportErrorKind};
use switchboard_protocol::Era;
use switchboard_test::hosted::wait_until;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// A server under the supervisor shared by all tests.
fn shell(script: &str) -> StdioConnector {
    shell_under("supervised", script)
}

/// A server under the supervisor with this name.
fn shell_under(supervisor: &str, script: &str) -> StdioConnector {
    let mut connector = StdioConnector::new("sh");
    connector.args = vec!["-c".into(), script.into()];
    connector.base_env = std::env::vars_os().collect();
    connector.supervisor = Some(SupervisorCommand {
        program: env!("CARGO_BIN_EXE_supervised_host").into(),
        args: vec!["supervisor".into(), supervisor.into()],
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
        era: Era::Stateful,
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
async fn the_end_of_the_main_process_ends_its_descendants() {
    let script =
        "setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 1000; done' & read go; exit 3";
    let (link, recorder) = connect(&shell(script)).await;
    assert_eq!(recorder.next().await, frame("up"));
    link.send(message("go")).await.unwrap();
    // The remaining process holds the output open, so this arrives only when it is gone.
    assert_eq!(recorder.next().await, Event::Closed(Closed::Exited(3)));
}

#[tokio::test]
async fn a_failed_spawn_is_a_connection_error() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // Written by another process: a file that is open for writing, even in a fork, cannot be executed.
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
    for supervisor in ["/no/such/supervisor", "/bin/false"] {
        let mut no_supervisor = shell("");
        no_supervisor.supervisor = Some(SupervisorCommand {
            program: supervisor.into(),
            args: Vec::new(),
        });
        check(no_supervisor, TransportErrorKind::Spawn, supervisor).await;
    }
}

#[tokio::test]
async fn a_supervisor_started_by_hand_reports_an_error() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_supervised_host"))
        .args(["supervisor", "by-hand"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("not by hand"), "{message}");
}

/// Daemons that a server may leave behind, each of which prints its process id first.
const DAEMONS: &[(&str, &str)] = &[
    (
        "forked twice, in its own session, ignoring signals",
        "(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' </dev/null 2>/dev/null &)",
    ),
    (
        "forked twice, with no environment",
        "(env -i sh -c 'echo $$; exec sleep 1000' </dev/null 2>/dev/null &)",
    ),
    (
        "in its own session, with no environment, and with its parent",
        "sh -c \"env -i setsid sh -c 'echo \\$\\$; exec sleep 1000' & wait\" </dev/null 2>/dev/null &",
    ),
    (
        "with a child that is not marked, in its own session",
        "(setsid sh -c 'env -i setsid sh -c \"echo \\$\\$; exec sleep 1000\"; :' </dev/null 2>/dev/null &)",
    ),
];

/// A daemon without any trace of its origin: no environment, its own session, no parent.
const UNMARKED: (&str, &str) = (
    "forked twice, in its own session, with no environment",
    "(env -i setsid sh -c 'echo $$; exec sleep 1000' </dev/null 2>/dev/null &)",
);

#[tokio::test]
async fn the_end_of_a_server_ends_only_its_own_processes() {
    for (name, daemon) in DAEMONS {
        for asked in [true, false] {
            // It exits when it reads a line; its neighbour echoes.
            let (link, recorder) = connect(&shell(&format!("{daemon}\nread line; exit 3"))).await;
            let (neighbour, neighbours) = connect(&shell(&format!("{daemon}\nexec cat"))).await;
            let own = process(recorder.next().await);
            let other = process(neighbours.next().await);
            assert!(exists(own) && exists(other), "{name}");
            if asked {
                link.close().await;
                assert_eq!(recorder.next().await, Event::Closed(Closed::ByUs), "{name}");
            } else {
                link.send(message("end")).await.unwrap();
                let closed = Event::Closed(Closed::Exited(3));
                assert_eq!(recorder.next().await, closed, "{name}");
                link.close().await;
            }
            assert!(!exists(own), "{name}");
            assert!(exists(other), "{name}");
            neighbour.send(message("still there")).await.unwrap();
            assert_eq!(neighbours.next().await, frame("still there"), "{name}");
            neighbour.close().await;
            assert!(!exists(other), "{name}");
        }
    }
}

#[tokio::test]
async fn a_server_that_kills_its_process_group_affects_no_other() {
    let (neighbour, neighbours) = connect(&shell("exec cat")).await;
    check("kill -9 0", &[Event::Closed(Closed::Signalled(9))]).await;
    neighbour.send(message("still there")).await.unwrap();
    assert_eq!(neighbours.next().await, frame("still there"));
}

#[tokio::test]
async fn all_servers_of_a_killed_supervisor_end_and_the_next_one_gets_another() {
    let signals = [Signal::KILL, Signal::TERM];
    let victims = [Victim::Watchdog, Victim::Supervisor];
    let cases = [UNMARKED, DAEMONS[0]]
        .into_iter()
        .flat_map(|(name, daemon)| {
            signals.map(|signal| victims.map(|victim| (name, daemon, signal, victim)))
        });
    for (name, daemon, signal, victim) in cases.flatten() {
        println!("{name}: {signal:?} to the {victim:?}");
        let server = shell_under("to-be-killed", &format!("{daemon}\nexec cat"));
        let (first, second) = tokio::join!(connect(&server), connect(&server));
        let watchdog = watchdog("to-be-killed");
        let mut left = vec![watchdog, supervisor(watchdog)];
        for (link, recorder) in [&first, &second] {
            left.push(process(recorder.next().await));
            left.push(pid(link.process().unwrap()));
        }
        kill_process(victim.of(watchdog), signal).unwrap();
        for (link, recorder) in [first, second] {
            let Event::Closed(closed) = recorder.next().await else {
                panic!("unexpected output");
            };
            assert_ne!(closed, Closed::ByUs);
            link.close().await;
        }
        for process in left {
            // They are dead; their new parent may take a moment to reap them.
            wait_until(|| !exists(process)).await;
        }
        let (link, recorder) = connect(&server).await;
        process(recorder.next().await);
        let next = self::watchdog("to-be-killed");
        assert_ne!(next, watchdog);
        link.send(message("there")).await.unwrap();
        assert_eq!(recorder.next().await, frame("there"));
        link.close().await;
        drop(link);
        // The supervisor exits shortly after its last server. The next round must not count it.
        wait_until(|| !exists(next)).await;
    }
}

#[tokio::test]
async fn a_supervisor_that_hangs_is_not_waited_for_forever() {
    for victim in [Victim::Watchdog, Victim::Supervisor] {
        let server = shell_under("to-be-stopped", &format!("{}\nexec cat", UNMARKED.1));
        let (link, recorder) = connect(&server).await;
        let watchdog = watchdog("to-be-stopped");
        let left = [
            process(recorder.next().await),
            pid(link.process().unwrap()),
            watchdog,
            supervisor(watchdog),
        ];
        kill_process(victim.of(watchdog), Signal::STOP).unwrap();
        let closing = tokio::time::timeout(Duration::from_secs(20), link.close());
        assert!(closing.await.is_ok(), "{victim:?}");
        drop(link);
        for process in left {
            wait_until(|| !exists(process)).await;
        }
        let (link, recorder) = connect(&server).await;
        process(recorder.next().await);
        let next = self::watchdog("to-be-stopped");
        link.close().await;
        drop(link);
        // The supervisor exits shortly after its last server. The next round must not count it.
        wait_until(|| !exists(next)).await;
    }
}

/// The process of a supervisor to signal.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Watchdog,
    Supervisor,
}

impl Victim {
    fn of(self, watchdog: Pid) -> Pid {
        match self {
            Self::Watchdog => watchdog,
            Self::Supervisor => supervisor(watchdog),
        }
    }
}

#[tokio::test]
async fn servers_started_at_once_share_one_supervisor_until_the_last_ends() {
    let server = shell_under("shared", "echo up; exec cat");
    let links = futures_util::future::join_all((0..10).map(|_| connect(&server))).await;
    let shared = watchdog("shared");
    for (link, recorder) in links {
        assert_eq!(recorder.next().await, frame("up"));
        assert_eq!(watchdog("shared"), shared);
        link.close().await;
    }
    wait_until(|| !exists(shared)).await;
}

/// The process id that a server printed.
fn process(event: Event) -> Pid {
    match event {
        Event::Frame(id) => pid(id.parse().unwrap()),
        other => panic!("no process id: {other:?}"),
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).unwrap()
}

fn exists(process: Pid) -> bool {
    test_kill_process(process).is_ok()
}

/// The watchdog of a supervisor: the one running child of this process with this argument.
fn watchdog(name: &str) -> Pid {
    let is_watchdog = |child: &Pid| {
        let arguments = std::fs::read(format!("/proc/{}/cmdline", child.as_raw_pid()));
        arguments.is_ok_and(|arguments| arguments.ends_with(format!("\0{name}\0").as_bytes()))
    };
    let watchdogs: Vec<Pid> = children().into_iter().filter(is_watchdog).collect();
    assert_eq!(watchdogs.len(), 1, "{name}");
    watchdogs[0]
}

/// The supervisor below this watchdog.
fn supervisor(watchdog: Pid) -> Pid {
    let watchdog = watchdog.as_raw_pid();
    let list = std::fs::read_to_string(format!("/proc/{watchdog}/task/{watchdog}/children"));
    let list = list.unwrap();
    let children: Vec<&str> = list.split_whitespace().collect();
    assert_eq!(children.len(), 1);
    pid(children[0].parse().unwrap())
}

/// One test, because it counts resources of the whole process, including runtimes of other tests.
#[test]
fn connecting_and_closing_leaks_nothing() {
    // Runs in a separate process without other tests.
    const INSIDE: &str = "GUARDED_TEST_COUNTS_ALONE";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "connecting_and_closing_leaks_nothing"])
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
            (tasks, children().len(), descriptors(), threads())
        };
        let before = counts();
        for round in 0..15 {
            for (script, supervised) in [
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
                if !supervised {
                    connector.supervisor = None;
                }
                let (link, recorder) = connect(&connector).await;
                assert_eq!(recorder.next().await, frame("up"));
                if round % 2 == 0 {
                    link.close().await;
                }
                drop(link);
                // A start that is cancelled, most likely before there is a process.
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

/// All lines that a program writes, and its exit.
async fn run_to_its_end(mut program: Program) -> (Vec<String>, ProgramEnd) {
    let mut output = Vec::new();
    while let Some(chunk) = program.read().await {
        output.extend_from_slice(chunk);
    }
    let text = String::from_utf8(output).unwrap();
    (
        text.lines().map(str::to_owned).collect(),
        program.gone().await,
    )
}

#[tokio::test]
async fn a_program_ends_with_its_descendants() {
    // One in the background, one in its own session that holds the output, one that ignores signals.
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; \
                  setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & \
                  read nothing || echo no input; sleep 0.2; exit 3";
    let program = shell(script).run().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), run_to_its_end(program)).await;
    let (lines, end) = ended.unwrap();
    assert_eq!(end, ProgramEnd::Exited(3));
    assert!(lines.contains(&"no input".to_owned()), "{lines:?}");
    let left: Vec<Pid> = lines
        .iter()
        .filter_map(|line| Some(pid(line.parse().ok()?)))
        .collect();
    assert_eq!(left.len(), 3, "{lines:?}");
    wait_until(|| !left.iter().any(|process| exists(*process))).await;
}

#[tokio::test]
async fn a_program_ends_when_dropped_or_ended() {
    let script = "setsid sleep 1000 & echo $!; exec sleep 1000";
    let mut dropped = shell(script).run().await.unwrap();
    let line = String::from_utf8(dropped.read().await.unwrap().to_vec()).unwrap();
    let left = pid(line.trim().parse().unwrap());
    drop(dropped);
    wait_until(|| !exists(left)).await;

    let program = shell("exec sleep 1000").run().await.unwrap();
    program.end();
    assert_eq!(
        run_to_its_end(program).await,
        (Vec::new(), ProgramEnd::Signalled(15))
    );
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn children() -> Vec<Pid> {
    let lists = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let children = list.split_whitespace();
            let children = children.map(|child| pid(child.parse().unwrap()));
            children.collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn an_installer_continues_when_its_server_is_no_longer_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let here = folder.path().display();
    // Like most programs, it dies from a pipe without a reader.
    let script = format!(
        "#!/bin/sh\ncd '{here}'\ntouch begun\nwhile [ ! -e go ]; do echo 'fetching a part' >&2; sleep 0.05; done\n\
         touch done\nread nothing\ntouch ended\n"
    );
    std::fs::write(path("npx"), script).unwrap();
    std::fs::set_permissions(
        path("npx"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut connector = shell("");
    connector.program = path("npx");
    connector.args = Vec::new();
    let (link, _recorder) = connect(&connector).await;
    wait_until(|| path("begun").exists()).await;
    let process = Pid::from_raw(link.process().unwrap().try_into().unwrap()).unwrap();
    drop(link);
    // Far longer than any other server would get.
    let patience = std::time::Instant::now() + 10 * connector.grace.after_close;
    wait_until(|| std::time::Instant::now() > patience).await;
    assert!(test_kill_process(process).is_ok(), "it was killed");
    std::fs::write(path("go"), "").unwrap();
    wait_until(|| path("done").exists() && path("ended").exists()).await;
    wait_until(|| test_kill_process(process).is_err()).await;
}

#[tokio::test]
async fn an_installer_that_has_answered_is_treated_like_a_server() {
    // It has answered, so it is no longer an installer.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("npx");
    std::fs::write(
        &program,
        "#!/bin/sh\necho up\ntrap '' TERM\nwhile :; do echo x >&2; sleep 0.05; done\n",
    )
    .unwrap();
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut connector = shell("");
    connector.program = program;
    connector.args = Vec::new();
    let (link, recorder) = connect(&connector).await;
    while recorder.next().await != frame("up") {}
    link.opened(switchboard_protocol::Revision::V2025_06_18);
    let process = Pid::from_raw(link.process().unwrap().try_into().unwrap()).unwrap();
    drop(link);
    wait_until(|| test_kill_process(process).is_err()).await;
}

#[tokio::test]
async fn an_abandoned_server_gets_its_grace_period_and_ends() {
    let script = "trap 'echo told >&2; exit 0' TERM; echo up; while :; do sleep 0.02; done";
    let (link, recorder) = connect(&shell(script)).await;
    assert_eq!(recorder.next().await, frame("up"));
    let process = Pid::from_raw(link.process().unwrap().try_into().unwrap()).unwrap();
    let started = std::time::Instant::now();
    link.leave().await;
    assert!(
        started.elapsed() < Duration::from_millis(200),
        "dropping the link must not block"
    );
    assert!(test_kill_process(process).is_ok());
    wait_until(|| test_kill_process(process).is_err()).await;
}
