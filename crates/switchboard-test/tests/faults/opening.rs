//! Faults before the first call: while connecting, negotiating, and listing tools.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::stdio::StdioConnector;
use switchboard::{Host, HostOptions, HostSettings, OpenOptions};
use switchboard_protocol::Era::{self, Stateful, Stateless};
use switchboard_test::hosted::{Held, SeenEvents, spec};
use switchboard_test::scripted::{Fault, IdFault, Moment, On, Over, Rule, Script, Tool, start};

use super::{TRANSPORTS, alone, cells};

/// A fault during startup. The outcome is the state, followed by the revision, or by the failed step and the cause.
struct Row {
    name: &'static str,
    on: On,
    fault: Fault,
    /// The expected outcome; `None` if the fault does not apply.
    expected: fn(Over, Era) -> Option<&'static str>,
}

/// Startup timeout where it will elapse.
const SHORT: Duration = Duration::from_millis(1_500);
/// Time for the answer to the probe where there will be none.
const PATIENCE: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

fn on(method: &str) -> On {
    On::Request {
        method: method.to_owned(),
        name: None,
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // Stateful servers reject the unknown probe in different ways.
    for (name, fault) in [
        ("method not found", Fault::error(-32601, "method not found")),
        (
            "an invalid request",
            Fault::error(-32600, "initialize first"),
        ),
        ("a custom error", Fault::error(-1, "what?")),
        ("an error that is text", Fault::Error(json!("what?"))),
        ("an error that is null", Fault::Error(Value::Null)),
        ("an empty result", Fault::Result(json!({}))),
        ("a result that is null", Fault::Result(Value::Null)),
        ("a result nested too deep", Fault::Deep { levels: 10_000 }),
        ("silence", Fault::Silent),
        ("garbage", Fault::Text("what?".to_owned())),
        ("an answer to another request", Fault::Id(IdFault::Unknown)),
    ] {
        rows.push(Row {
            name,
            on: on("server/discover"),
            fault,
            expected: |over, era| {
                (era == Stateful && over != Over::Sse).then_some("connected 2025-11-25")
            },
        });
    }
    for (name, fault) in [
        (
            "exits",
            Fault::Exit {
                code: 3,
                at: Moment::Before,
            },
        ),
        ("disconnects", Fault::Abort { at: Moment::Before }),
    ] {
        rows.push(Row {
            name,
            on: on("server/discover"),
            fault,
            expected: |over, era| match over {
                Over::Stdio if era == Stateful => Some("connected 2025-11-25"),
                _ => None,
            },
        });
    }
    for status in [400, 404, 405, 406, 415] {
        rows.push(Row {
            name: "a status that leads to the handshake",
            on: on("server/discover"),
            fault: Fault::status(status),
            expected: |over, era| {
                (over == Over::Http && era == Stateful).then_some("connected 2025-11-25")
            },
        });
    }
    let http = |name, method: &str, status, expected| Row {
        name,
        on: on(method),
        fault: Fault::status(status),
        expected,
    };
    rows.extend([
        http("401", "server/discover", 401, |over, era| {
            is(over, era, Stateless).then_some("needs-auth, server/discover: Unauthorized")
        }),
        http("429", "server/discover", 429, |over, era| {
            is(over, era, Stateless).then_some("failed, server/discover: Unavailable")
        }),
        http("503", "server/discover", 503, |over, era| {
            is(over, era, Stateless).then_some("failed, server/discover: Unavailable")
        }),
        http("401 for the handshake", "initialize", 401, |over, era| {
            is(over, era, Stateful).then_some("needs-auth, initialize: Unauthorized")
        }),
        http("503 for the handshake", "initialize", 503, |over, era| {
            is(over, era, Stateful).then_some("failed, initialize: Unavailable")
        }),
        http("401 for the list", "tools/list", 401, |over, _| {
            (over == Over::Http).then_some("needs-auth, tools/list: Unauthorized")
        }),
    ]);
    let row = |name, method: &str, fault, expected| Row {
        name,
        on: on(method),
        fault,
        expected,
    };
    let exit = Fault::Exit {
        code: 3,
        at: Moment::Before,
    };
    rows.extend([
        row("no handshake", "initialize", Fault::Silent, |_, era| {
            (era == Stateful).then_some("failed, initialize: Timeout")
        }),
        row(
            "a handshake refused",
            "initialize",
            Fault::error(-32000, "no"),
            |_, era| (era == Stateful).then_some("failed, initialize: Protocol"),
        ),
        row(
            "exits at the handshake",
            "initialize",
            exit.clone(),
            |over, era| {
                (era == Stateful && over == Over::Stdio).then_some("failed, initialize: Exited")
            },
        ),
        row("no list", "tools/list", Fault::Silent, |_, _| {
            Some("failed, tools/list: Timeout")
        }),
        row(
            "a list refused",
            "tools/list",
            Fault::error(-32603, "no"),
            |_, _| Some("failed, tools/list: Rejected"),
        ),
        row("exits at the list", "tools/list", exit, |over, _| {
            (over == Over::Stdio).then_some("failed, tools/list: Lost")
        }),
        row(
            "no list at all",
            "tools/list",
            Fault::error(-32601, "method not found"),
            |_, era| Some(connected(era)),
        ),
        row(
            "the same cursor again",
            "tools/list",
            Fault::EndlessCursor("again".to_owned()),
            |_, era| Some(connected(era)),
        ),
        Row {
            name: "a half-open socket",
            on: On::Connect,
            fault: Fault::Silent,
            expected: |over, era| match (over, era) {
                (Over::Stdio, _) => None,
                (Over::WebSocket | Over::Sse, _) => Some("failed, connecting: Timeout"),
                (Over::Http, _) => Some("failed, initialize: Timeout"),
            },
        },
    ]);
    rows
}

fn is(over: Over, era: Era, wanted: Era) -> bool {
    over == Over::Http && era == wanted
}

fn connected(era: Era) -> &'static str {
    match era {
        Stateful => "connected 2025-11-25",
        Stateless => "connected 2026-07-28",
    }
}

#[test]
fn a_startup_fault_is_recovered_or_reported_with_its_step() {
    alone(check_every_opening());
}

async fn check_every_opening() {
    let rows = rows();
    // Resources that are opened once per process are opened before the first count.
    for over in TRANSPORTS {
        open(&rows[0], over, Stateful).await;
    }
    let before = Held::now();
    let cells = rows
        .iter()
        .flat_map(|row| cells().map(move |cell| (row, cell)));
    let wrong: Vec<String> = stream::iter(cells)
        .map(|(row, (over, era))| async move {
            let expected = (row.expected)(over, era)?;
            let seen = open(row, over, era).await;
            let name = row.name;
            (seen != expected).then(|| format!("{name}, {over:?}, {era:?}: {seen}, not {expected}"))
        })
        .buffer_unordered(16)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(before.again().await, Ok(()));
}

/// A host that waits this long for the answer to the probe.
fn host_that_waits(discover_patience: Duration) -> Host {
    Host::with_options(HostOptions {
        settings: HostSettings {
            open: OpenOptions {
                discover_patience,
                ..OpenOptions::default()
            },
            ..HostSettings::default()
        },
        ..HostOptions::default()
    })
}

/// Starts a server with this fault and returns the outcome.
async fn open(row: &Row, over: Over, era: Era) -> String {
    let script = Script::new("faulty")
        .era(era)
        .tool(Tool::new("echo"))
        .rule(Rule::at(row.on.clone(), row.fault.clone()));
    let server = start(script, over).await.unwrap();
    // Short where it will elapse; otherwise a loaded machine may need more time.
    let is_silent = matches!(row.fault, Fault::Silent | Fault::Text(_) | Fault::Id(_));
    let host = host_that_waits(if is_silent { PATIENCE } else { LONG });
    let mut events = SeenEvents::of(&host);
    let mut wanted = spec("faulty", &server, over, 1024 * 1024);
    if (row.expected)(over, era).is_some_and(|expected| expected.ends_with("Timeout")) {
        wanted.startup_timeout = SHORT;
    }
    host.apply(vec![wanted]).await;
    host.settled().await;
    let seen_states = events.states("faulty", 1).await;
    let status = host.status(&"faulty".into()).unwrap();
    assert_eq!(seen_states, [status.word()], "{}", row.name);
    let seen = match (status.state.failure(), status.revision) {
        (Some(failure), _) => {
            let step = failure.step.map_or("later", |step| step.name());
            format!("{}, {step}: {:?}", status.state.word(), failure.cause)
        }
        (None, Some(revision)) => format!("{} {revision}", status.state.word()),
        (None, None) => status.state.word().to_owned(),
    };
    host.shutdown().await;
    seen
}

#[test]
fn a_malformed_list_loses_only_its_invalid_items() {
    alone(check_sloppy_lists());
}

async fn check_sloppy_lists() {
    let good = |name: &str| Tool::new(name);
    let listed = |definition: Value| Tool::listed(definition);
    let cases: [(&str, Vec<Tool>, &[&str]); 5] = [
        (
            "invalid schemas",
            vec![
                good("good"),
                listed(json!({"name": "null", "inputSchema": null})),
                listed(json!({"name": "missing"})),
                listed(json!({"name": "text", "inputSchema": "object"})),
            ],
            &["good", "missing", "null", "text"],
        ),
        (
            "invalid items",
            vec![
                listed(json!(null)),
                listed(json!("tool")),
                listed(json!([])),
                listed(json!({})),
                listed(json!({"name": 7, "inputSchema": {"type": "object"}})),
                good("good"),
            ],
            &["good"],
        ),
        (
            "the same name twice",
            vec![good("good"), good("good")],
            &["good"],
        ),
        (
            "odd members",
            vec![listed(json!({
                "name": "good",
                "title": 5,
                "description": ["a", "b"],
                "annotations": "none",
                "inputSchema": {"type": "object"},
            }))],
            &["good"],
        ),
        ("nothing", vec![], &[]),
    ];
    for (name, tools, expected) in cases {
        for (over, era) in cells() {
            let script = tools
                .iter()
                .cloned()
                .fold(Script::new("sloppy").era(era), Script::tool);
            let server = start(script, over).await.unwrap();
            let host = Host::with_options(HostOptions::default());
            let count = host
                .add_server(spec("sloppy", &server, over, 1024 * 1024))
                .await;
            let catalog = host.catalog();
            let mut names: Vec<&str> = catalog
                .iter()
                .map(|tool| tool.reference().tool.as_str())
                .collect();
            names.sort_unstable();
            assert_eq!(names, expected, "{name}, {over:?}, {era:?}");
            assert_eq!(count.unwrap(), expected.len(), "{name}, {over:?}, {era:?}");
            assert_eq!(host.status(&"sloppy".into()).unwrap().word(), "connected");
            host.shutdown().await;
        }
    }
}

/// A slow server reads the probe after the handshake was sent behind it, and exits because of the probe.
#[test]
#[cfg(unix)]
fn a_slow_server_that_exits_at_the_probe_is_restarted_once() {
    alone(async {
        let folder = tempfile::tempdir().unwrap();
        let script = Script::new("slow").era(Stateful).tool(Tool::new("echo"));
        let script = serde_json::to_string(&script).unwrap();
        // The shell reads one line only, so the handshake stays in the pipe.
        let program = format!(
            "if [ -e started ]; then exec '{}' \"$0\"; fi; echo >> started; sleep 0.5; read -r probe; exit 3",
            env!("CARGO_BIN_EXE_scripted-server")
        );
        let mut connector = StdioConnector::new("/bin/sh");
        connector.args = ["-c".to_owned(), program, script].map(Into::into).into();
        connector.cwd = Some(folder.path().to_owned());
        connector.base_env = std::env::vars_os().collect();
        let host = host_that_waits(PATIENCE);
        let key = ConnectionKey::of(&[b"slow"]);
        let tools = host
            .add_server(ServerSpec::new("slow", Arc::new(connector), key))
            .await;
        assert_eq!(tools.unwrap(), 1);
        let starts = std::fs::read_to_string(folder.path().join("started")).unwrap();
        assert_eq!(
            starts.lines().count(),
            1,
            "it was not started exactly twice"
        );
        host.shutdown().await;
    });
}

/// A stateless server that starts slowly answers the probe only after it has rejected the handshake sent behind it.
#[test]
fn a_slow_stateless_server_is_found_after_it_has_rejected_the_handshake() {
    alone(async {
        for over in [Over::Stdio, Over::Http, Over::WebSocket] {
            let gate = Fault::Gate {
                gate: "probe".to_owned(),
            };
            let script = Script::new("slow")
                .era(Stateless)
                .tool(Tool::new("echo"))
                .rule(Rule::at(on("server/discover"), gate));
            let server = start(script, over).await.unwrap();
            let host = host_that_waits(Duration::from_millis(500));
            let mut events = SeenEvents::of(&host);
            host.apply(vec![spec("slow", &server, over, 1024 * 1024)])
                .await;
            // The rejection is on its way before the answer to the probe.
            server
                .control
                .wait_for_method("initialize", 1)
                .await
                .unwrap();
            server.control.release("probe");
            let seen = events.states("slow", 1).await;
            let status = host.status(&"slow".into()).unwrap();
            assert_eq!(seen, ["connected"], "{over:?}: {:?}", status.state);
            host.shutdown().await;
        }
    });
}
