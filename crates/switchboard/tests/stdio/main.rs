//! Tests of links to child processes without a supervisor, against servers written in a line of shell.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod recorder;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use recorder::{Event, Recorder};
use switchboard::internal::transport::stdio::{Grace, StdioConnector, StdioLimits};
use switchboard::transport::{
    Abandoned, Closed, Connector, Link, Outgoing, OutgoingKind, TransportErrorKind,
};
use switchboard_protocol::Era;

/// A server that is a shell script.
fn shell(script: &str) -> StdioConnector {
    let mut connector = StdioConnector::new("sh");
    connector.args = vec!["-c".into(), script.into()];
    connector.base_env = std::env::vars_os().collect();
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

fn request(id: u64, payload: impl Into<Vec<u8>>) -> Outgoing {
    Outgoing {
        payload: payload.into(),
        kind: OutgoingKind::Request(id),
        era: Era::Stateful,
        headers: Vec::new(),
    }
}

fn notification(payload: impl Into<Vec<u8>>) -> Outgoing {
    Outgoing {
        kind: OutgoingKind::Notification,
        ..request(0, payload)
    }
}

fn frame(text: &str) -> Event {
    Event::Frame(text.to_owned())
}

/// Runs a server that exits, and checks everything it delivered.
async fn check(script: &str, expected: &[Event]) {
    let (link, recorder) = connect(&shell(script)).await;
    let events = tokio::time::timeout(Duration::from_secs(20), recorder.all()).await;
    // Without a supervisor, a server that is still exiting would outlive this process.
    link.close().await;
    assert_eq!(events.unwrap(), expected, "{script}");
}

#[tokio::test]
async fn lines_are_frames_whatever_they_hold() {
    check(
        r#"printf '{"a":1}\nno json\r\n\n\r\n{"b":2}\nunfinished'"#,
        &[
            frame(r#"{"a":1}"#),
            frame("no json"),
            frame(r#"{"b":2}"#),
            Event::Closed(Closed::Exited(0)),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_end_says_how_the_process_ended() {
    check("exit 7", &[Event::Closed(Closed::Exited(7))]).await;
    check("kill -9 $$", &[Event::Closed(Closed::Signalled(9))]).await;
    check("kill -15 $$", &[Event::Closed(Closed::Signalled(15))]).await;
    // It closes its output but keeps running.
    check(
        "exec >&- 2>&-; sleep 1000",
        &[Event::Closed(Closed::ByServer)],
    )
    .await;
}

#[tokio::test]
async fn an_end_is_noticed_while_a_descendant_holds_the_output() {
    check(
        "echo up; sleep 1000 & exit 3",
        &[frame("up"), Event::Closed(Closed::Exited(3))],
    )
    .await;
}

#[tokio::test]
async fn standard_error_comes_in_lines_that_are_cut() {
    let cut = "x".repeat(8 * 1024);
    check(
        r"exec >&-
        { printf 'one\r\n\n'; printf 'b\377d\n'
          head -c 100000 /dev/zero | tr '\0' x; printf '\nlast words'; } >&2",
        &[
            Event::Diagnostic("one".into()),
            Event::Diagnostic("b\u{fffd}d".into()),
            Event::Diagnostic(cut),
            Event::Diagnostic("last words".into()),
            Event::Closed(Closed::Exited(0)),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_line_over_the_limit_costs_that_line_alone() {
    let mut connector = shell(
        r"echo before; head -c 5000000 /dev/zero | tr '\0' x; echo; echo after
          head -c 1048576 /dev/zero | tr '\0' y; echo",
    );
    connector.limits.max_message_bytes = 1024 * 1024;
    let (_link, recorder) = connect(&connector).await;
    assert_eq!(
        recorder.all().await,
        [
            frame("before"),
            Event::Oversized("xxxxxxxx".into(), 1024 * 1024),
            frame("after"),
            frame(&"y".repeat(1024 * 1024)),
            Event::Closed(Closed::Exited(0)),
        ]
    );
}

#[tokio::test]
async fn messages_of_any_size_come_back_as_they_went() {
    let (link, recorder) = connect(&shell("exec cat")).await;
    for length in [1, 100, 65_535, 65_536, 200_000, 16 * 1024 * 1024] {
        let message = "m".repeat(length);
        link.send(request(1, message.clone())).await.unwrap();
        assert!(recorder.next().await == frame(&message), "{length}");
    }
    let error = link
        .send(request(1, vec![b'm'; 16 * 1024 * 1024 + 1]))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            TransportErrorKind::Invalid,
            "the message has 16777217 bytes, more than the limit of 16777216"
        )
    );
    link.send(request(1, "still there")).await.unwrap();
    assert_eq!(recorder.next().await, frame("still there"));
}

#[tokio::test]
async fn order_is_the_order_of_calls_and_a_dropped_future_takes_nothing_back() {
    let (link, recorder) = connect(&shell("exec cat")).await;
    let mut waiting = Vec::new();
    for index in 0..2_000_u64 {
        let send = link.send(request(index, format!("{index} {}", "x".repeat(300))));
        if index % 3 == 0 {
            drop(send);
        } else {
            waiting.push(send);
        }
    }
    let checked = async {
        for index in 0..2_000 {
            let expected = frame(&format!("{index} {}", "x".repeat(300)));
            assert_eq!(recorder.next().await, expected);
        }
    };
    let (sent, ()) = tokio::join!(join_all(waiting), checked);
    assert!(sent.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_lose_nothing() {
    let (link, recorder) = connect(&shell("exec cat")).await;
    let callers = (0..64_u64).map(|caller| {
        let link = Arc::clone(&link);
        tokio::spawn(async move {
            for index in 0..100 {
                let payload = format!("{caller} {index} {}", "x".repeat(200));
                link.send(request(caller, payload)).await.unwrap();
            }
        })
    });
    let callers = join_all(callers.collect::<Vec<_>>());
    let checked = async {
        let mut next = vec![0; 64];
        for _ in 0..6_400 {
            let Event::Frame(text) = recorder.next().await else {
                panic!("the server has ended");
            };
            let mut words = text.split(' ');
            let caller: usize = words.next().unwrap().parse().unwrap();
            let index: usize = words.next().unwrap().parse().unwrap();
            assert_eq!(index, next[caller]);
            assert_eq!(words.next().map(str::len), Some(200));
            next[caller] += 1;
        }
    };
    let (sent, ()) = tokio::join!(callers, checked);
    assert!(sent.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_server_that_does_not_read_makes_senders_wait_and_then_fail() {
    // The server reads nothing until this test writes to a named pipe.
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    let mut connector = shell(&format!("read go < '{}'; exec cat", gate.display()));
    connector.limits = StdioLimits {
        max_message_bytes: 100_000,
        max_queued_bytes: 310_000,
    };
    let (link, recorder) = connect(&connector).await;

    let message = |letter: char| letter.to_string().repeat(100_000);
    // These futures are dropped, but their messages are not lost.
    drop(link.send(request(1, message('a'))));
    drop(link.send(request(2, message('b'))));
    let mut third = link.send(request(3, message('c')));
    assert!(futures_util::poll!(&mut third).is_pending());
    let error = link.send(request(4, message('d'))).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::Io);
    assert!(
        error
            .message
            .starts_with("the server does not read its input: "),
        "{error}"
    );

    tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n"))
        .await
        .unwrap()
        .unwrap();
    for letter in ['a', 'b', 'c'] {
        assert!(recorder.next().await == frame(&message(letter)), "{letter}");
    }
    third.await.unwrap();
    link.send(request(5, "on")).await.unwrap();
    assert_eq!(recorder.next().await, frame("on"));
}

#[tokio::test]
async fn a_server_that_closes_its_input_cannot_be_served() {
    let (link, recorder) = connect(&shell("exec <&-; echo closed; sleep 1000")).await;
    assert_eq!(recorder.next().await, frame("closed"));
    // The first send may learn of it only from the writer task.
    let _ = link.send(notification("anybody there")).await;
    assert_eq!(
        recorder.next().await,
        Event::Closed(Closed::Broken("the server has closed its input".into()))
    );
    let error = link.send(notification("hello")).await.unwrap_err();
    assert_eq!(error.kind, TransportErrorKind::Closed);
    link.close().await;
}

#[tokio::test]
async fn closing_ends_even_the_stubborn_and_says_so_once() {
    for script in [
        "exec cat",
        "echo up; exec sleep 1000",
        "trap '' TERM; echo up; while :; do sleep 1000; done",
        "echo up; sleep 1000 & sleep 1000 & wait",
    ] {
        let (link, recorder) = connect(&shell(script)).await;
        if script.contains("echo up") {
            assert_eq!(recorder.next().await, frame("up"));
        }
        let group = link.process().unwrap();
        assert!(exists(group), "{script}");
        tokio::join!(link.close(), link.close());
        link.close().await;
        assert_eq!(
            recorder.all().await,
            [Event::Closed(Closed::ByUs)],
            "{script}"
        );
        // They are dead; their new parent may take a moment to reap them.
        wait_until(|| !exists(group)).await;
        let error = link.send(notification("late")).await.unwrap_err();
        assert_eq!(error.kind, TransportErrorKind::Closed);
    }
}

#[tokio::test]
async fn the_last_messages_arrive_before_the_input_is_closed() {
    let (link, recorder) = connect(&shell("exec cat")).await;
    let message = "m".repeat(500_000);
    drop(link.send(notification(message.clone())));
    drop(link.send(notification("last")));
    link.close().await;
    assert!(recorder.next().await == frame(&message));
    assert_eq!(recorder.next().await, frame("last"));
    assert_eq!(recorder.next().await, Event::Closed(Closed::ByUs));
}

#[tokio::test]
async fn a_dropped_link_ends_its_server() {
    let (link, recorder) = connect(&shell(
        "trap '' TERM; echo up; while :; do sleep 1000; done",
    ))
    .await;
    assert_eq!(recorder.next().await, frame("up"));
    let group = link.process().unwrap();
    drop(link);
    wait_until(|| !exists(group)).await;
}

#[tokio::test]
async fn a_server_sees_only_what_it_should() {
    let mut connector = shell("");
    connector.program = "env".into();
    connector.args = Vec::new();
    connector.base_env = [("PATH", "/usr/bin:/bin"), ("SECRET", "s"), ("PASSED", "p")]
        .map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .collect();
    connector.env_vars = vec!["PASSED".into()];
    connector.env = vec![("SET".into(), "by the entry".into())];
    let (_link, recorder) = connect(&connector).await;
    assert_eq!(
        recorder.all().await,
        [
            frame("PASSED=p"),
            frame("PATH=/usr/bin:/bin"),
            frame("SET=by the entry"),
            // How deep Switchboard is nested in itself.
            frame("SWITCHBOARD_DEPTH=1"),
            Event::Closed(Closed::Exited(0)),
        ]
    );
}

#[tokio::test]
async fn arguments_and_folder_are_passed_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let mut connector = shell("pwd; printf '%s\\n' \"$@\"");
    connector.cwd = Some(real.clone());
    connector
        .args
        .extend(["sh", "two words", "$HOME", "*", "'quoted'", "--"].map(std::ffi::OsString::from));
    let (_link, recorder) = connect(&connector).await;
    let expected = [
        real.to_str().unwrap(),
        "two words",
        "$HOME",
        "*",
        "'quoted'",
        "--",
    ];
    let mut events: Vec<Event> = expected.into_iter().map(frame).collect();
    events.push(Event::Closed(Closed::Exited(0)));
    assert_eq!(recorder.all().await, events);
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_of_connecting() {
    use TransportErrorKind::{Invalid, NoSuchFolder, ProgramNotFound, Spawn};
    let check = async |change: fn(&mut StdioConnector), kind: TransportErrorKind, part: &str| {
        let mut connector = shell("exec cat");
        change(&mut connector);
        let error = connector.connect(Recorder::new()).await.err().unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(part), "{error}");
    };
    check(
        |it| it.program = "no-such-program".into(),
        ProgramNotFound,
        "`no-such-program`",
    )
    .await;
    check(
        |it| it.cwd = Some("/no/such/folder".into()),
        NoSuchFolder,
        "/no/such/folder",
    )
    .await;
    check(|it| it.args.push("a\0b".into()), Invalid, "argument 3").await;
    check(
        |it| it.args.push("x".repeat(1 << 20).into()),
        Spawn,
        "too long",
    )
    .await;
    check(|it| it.env.push(("A=B".into(), "c".into())), Invalid, "A=B").await;
    check(
        |it| it.env.push(("A".into(), "\0".into())),
        Invalid,
        "the variable A",
    )
    .await;
}

#[tokio::test]
async fn nothing_shows_what_may_be_secret() {
    let mut connector = shell("--token=s3cret");
    connector.env = vec![("TOKEN".into(), "s3cret".into())];
    connector.base_env = Arc::new([("OTHER".into(), "s3cret".into())]);
    assert!(!format!("{connector:?}").contains("s3cret"));
}

#[tokio::test]
async fn giving_up_a_request_has_to_be_told() {
    let (link, _recorder) = connect(&shell("exec cat")).await;
    assert_eq!(link.abandon(1), Abandoned::NotTold);
}

#[tokio::test]
async fn connecting_and_closing_leaves_nothing_behind() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for _ in 0..20 {
        let (link, recorder) = connect(&shell("echo up; exec cat")).await;
        assert_eq!(recorder.next().await, frame("up"));
        link.close().await;
        assert_eq!(recorder.next().await, Event::Closed(Closed::ByUs));
        drop(link);
        wait_until(|| tasks() == 0 && Arc::strong_count(&recorder) == 1).await;
    }
}

fn exists(process: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::test_kill_process_group(pid).is_ok()
}

/// Polls for a condition that no event announces.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
}
