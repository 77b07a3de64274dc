//! Faults during one call: its outcome, the states of its server, and that other servers are unaffected.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream;
use serde_json::{Value, json};
use switchboard::{
    CallError, CallOutcome, Host, HostOptions, HostSettings, RequestError, ServerError,
};
use switchboard_protocol::Era::{self, Stateful, Stateless};
use switchboard_test::hosted::{Held, SeenEvents, call, spec, wait_until};
use switchboard_test::scripted::{
    Fault, IdFault, Moment, Over, Rule, Running, Script, Tool, start,
};

use tokio::time::Instant;

use super::{alone, cells};

#[derive(Debug, Clone, PartialEq)]
enum End {
    /// A tool result that contains this text.
    Answer(&'static str),
    /// Timed out without progress.
    Idle,
    /// The connection was lost during the call.
    Lost,
    /// The answer could not be parsed.
    Malformed,
    /// The answer was over the size limit.
    TooLarge,
    /// A JSON-RPC error with this code.
    Rejected(i64),
    /// An HTTP error with this status.
    Refused(u16),
}

struct Row {
    name: &'static str,
    faults: Vec<Fault>,
    /// Number of calls to inject it into; `None`: all.
    times: Option<u32>,
    /// The expected outcome; `None` if the fault does not apply.
    expected: Expected,
}

type Expected = fn(Over, Era) -> Option<(End, &'static [&'static str])>;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);
/// The limit on messages in these tests.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

fn row(name: &'static str, fault: Fault, expected: Expected) -> Row {
    Row {
        name,
        faults: vec![fault],
        times: None,
        expected,
    }
}

impl Row {
    fn once(mut self) -> Self {
        self.times = Some(1);
        self
    }
}

const SLOWER: &str = "slower than the deadline";
/// The tools' answer.
const ECHO: &str = r#"{\"text\":\"hello\"}"#;

fn rows() -> Vec<Row> {
    let exit = |at| Fault::Exit { code: 3, at };
    let garbage = "this is not a message";
    vec![
        // A process is restarted; a listener that is gone is not.
        row(
            "killed before the answer",
            exit(Moment::Before),
            |over, _| Some((End::Lost, gone(over))),
        ),
        row("killed halfway", exit(Moment::Half), |over, _| {
            Some((End::Lost, gone(over)))
        }),
        row(
            "connection dropped",
            Fault::Abort { at: Moment::Before },
            |over, _| Some((End::Lost, dropped(over))),
        ),
        row(
            "connection dropped halfway",
            Fault::Abort { at: Moment::Half },
            |over, _| Some((End::Lost, dropped(over))),
        ),
        row("silent", Fault::Silent, |_, _| Some((End::Idle, &[]))),
        row(
            "garbage before",
            Fault::GarbageBefore {
                text: garbage.to_owned(),
            },
            |_, _| Some((End::Answer(ECHO), &[])),
        ),
        row(
            "garbage after",
            Fault::GarbageAfter {
                text: garbage.to_owned(),
            },
            |_, _| Some((End::Answer(ECHO), &[])),
        ),
        row(
            "an answer over the limit",
            Fault::Oversized {
                bytes: 4 * MAX_MESSAGE_BYTES,
            },
            |_, _| Some((End::TooLarge, &[])),
        ),
        row("10,000 levels", Fault::Deep { levels: 10_000 }, |_, _| {
            Some((End::Malformed, &[]))
        }),
        row("another call's id", Fault::Id(IdFault::Wrong), |over, _| {
            Some((strange_id(over), &[]))
        }),
        row("an unused id", Fault::Id(IdFault::Unknown), |over, _| {
            Some((strange_id(over), &[]))
        }),
        row("the id as a float", Fault::Id(IdFault::Float), |_, _| {
            Some((End::Answer(ECHO), &[]))
        }),
        row("the id as a string", Fault::Id(IdFault::Text), |_, _| {
            Some((End::Answer(ECHO), &[]))
        }),
        row("no id", Fault::Id(IdFault::Missing), |over, _| {
            Some((strange_id(over), &[]))
        }),
        row("null as id", Fault::Id(IdFault::Null), |over, _| {
            Some((strange_id(over), &[]))
        }),
        row("an object as id", Fault::Id(IdFault::Object), |over, _| {
            Some((strange_id(over), &[]))
        }),
        row("three answers", Fault::Repeat { times: 3 }, |_, _| {
            Some((End::Answer(ECHO), &[]))
        }),
        row("slow", Fault::Trickle { bytes: 16, ms: 2 }, |_, _| {
            Some((End::Answer(ECHO), &[]))
        }),
        row(SLOWER, Fault::Trickle { bytes: 1, ms: 10 }, |_, _| {
            Some((End::Idle, &[]))
        }),
        row("401", Fault::status(401), |over, _| {
            (over == Over::Http).then_some((End::Refused(401), &["needs-auth"]))
        }),
        row("403", Fault::status(403), |over, _| refused(over, 403)),
        row("404 in a session", Fault::ForgetSession, |over, era| {
            let expected: &[&'static str] = &["pending", "connected"];
            (over == Over::Http && era == Stateful).then_some((End::Answer(ECHO), expected))
        })
        .once(),
        row("404 without a session", Fault::status(404), |over, era| {
            (era == Stateless).then(|| refused(over, 404)).flatten()
        }),
        row("429", Fault::status(429), |over, _| refused(over, 429)),
        row("500", Fault::status(500), |over, _| refused(over, 500)),
        row("503", Fault::status(503), |over, _| refused(over, 503)),
        row(
            "a storm of changes",
            Fault::Storm {
                method: "notifications/tools/list_changed".to_owned(),
                count: 2_000,
            },
            |_, _| Some((End::Answer(ECHO), &[])),
        ),
        row("an error", Fault::error(-32000, "no"), |_, _| {
            Some((End::Rejected(-32000), &[]))
        }),
        row(
            "an error that is text",
            Fault::Error(json!("no")),
            |_, _| Some((End::Rejected(0), &[])),
        ),
        row(
            "an error that is null",
            Fault::Error(Value::Null),
            |_, _| Some((End::Malformed, &[])),
        ),
        row(
            "an error with a code that is text",
            Fault::Error(json!({"code": "E_NO", "message": "no"})),
            |_, _| Some((End::Rejected(0), &[])),
        ),
        // Empty, but valid.
        row(
            "a result that is null",
            Fault::Result(Value::Null),
            |_, _| Some((End::Answer("null"), &[])),
        ),
        row(
            "a result that is a list",
            Fault::Result(json!([1])),
            |_, _| Some((End::Malformed, &[])),
        ),
        row(
            "an unknown block",
            Fault::Result(json!({
                "content": [{"type": "hologram", "depth": 3}, {"type": "text", "text": "beside it"}]
            })),
            |_, _| Some((End::Answer("hologram"), &[])),
        ),
        row("not JSON", Fault::Text(garbage.to_owned()), |over, _| {
            Some((strange_id(over), &[]))
        }),
    ]
}

/// The states after the whole server is gone.
fn gone(over: Over) -> &'static [&'static str] {
    match over {
        Over::Stdio => &["pending", "connected"],
        _ => &["pending", "failed"],
    }
}

/// The states after only the connection is lost.
fn dropped(over: Over) -> &'static [&'static str] {
    match over {
        // HTTP is connectionless.
        Over::Http => &[],
        _ => &["pending", "connected"],
    }
}

/// An answer without a matching request is dropped; only HTTP knows its request.
fn strange_id(over: Over) -> End {
    match over {
        Over::Http => End::Malformed,
        _ => End::Idle,
    }
}

fn refused(over: Over, status: u16) -> Option<(End, &'static [&'static str])> {
    (over == Over::Http).then_some((End::Refused(status), &[]))
}

#[test]
fn a_fault_affects_only_its_call() {
    alone(check_every_fault());
}

async fn check_every_fault() {
    // Resources that are opened once per process are opened before the first count.
    let rows = rows();
    let healthy = start(Script::new("healthy").tool(Tool::new("echo")), Over::Http)
        .await
        .unwrap();
    assert_eq!(
        check(&rows[5], Over::Stdio, Stateful, &healthy).await,
        Ok(())
    );
    let before = Held::now();
    let cells = rows
        .iter()
        .flat_map(|row| cells().map(move |cell| (row, cell)));
    let outcomes: Vec<_> = stream::iter(cells)
        .filter(|(row, (over, era))| std::future::ready((row.expected)(*over, *era).is_some()))
        .map(|(row, (over, era))| {
            let outcome = check(row, over, era, &healthy);
            async move { (row.name, over, era, outcome.await) }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    let wrong: Vec<String> = outcomes
        .iter()
        .filter_map(|(name, over, era, outcome)| {
            let wrong = outcome.as_ref().err()?;
            Some(format!("{name}, {over:?}, {era:?}: {wrong}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(outcomes.len() > 200, "{} cells", outcomes.len());
    // Connections of the healthy server outlive the hosts in its task pool, so it ends first.
    drop(healthy);
    assert_eq!(before.again().await, Ok(()));
}

/// Checks one fault over one transport in one era.
async fn check(row: &Row, over: Over, era: Era, healthy: &Running) -> Result<(), String> {
    let Some((end, states)) = (row.expected)(over, era) else {
        return Ok(());
    };
    let mut rule = Rule::on_tool("struck", Fault::Silent);
    rule.faults.clone_from(&row.faults);
    rule.times = row.times;
    let script = Script::new("faulty")
        .era(era)
        .tool(Tool::new("struck"))
        .tool(Tool::new("other"))
        .rule(rule);
    let server = start(script, over)
        .await
        .map_err(|error| error.to_string())?;
    let host = Host::with_options(HostOptions {
        settings: HostSettings {
            reconnect_attempts: 2,
            ..HostSettings::default()
        },
        ..HostOptions::default()
    });
    let mut events = SeenEvents::of(&host);
    let started = Instant::now();
    for (name, server, over) in [("faulty", &server, over), ("healthy", healthy, Over::Http)] {
        let added = host
            .add_server(spec(name, server, over, MAX_MESSAGE_BYTES))
            .await;
        added.map_err(|error| format!("{name} did not start: {error}"))?;
    }
    let arguments = json!({"text": "hello"});
    // Short where it will elapse, long where a loaded machine may need it.
    let idle = if end == End::Idle { SHORT } else { LONG };
    let struck = call(&host, "faulty/struck", arguments.clone(), idle);
    let others = async {
        for _ in 0..3 {
            call(&host, "healthy/echo", json!({}), LONG)
                .await
                .map_err(|error| format!("the healthy server's call failed: {error}"))?;
        }
        Ok::<(), String>(())
    };
    let (struck, others) = join(struck, others).await;
    others?;
    let expected = format!("{end:?}");
    if !is_end(&struck, &end) {
        return Err(format!("expected {expected}, not {struck:?}"));
    }
    let mut sequence = vec!["connected"];
    sequence.extend(states);
    let seen = events.states("faulty", sequence.len()).await;
    if seen != sequence {
        return Err(format!("the states were {seen:?}, not {sequence:?}"));
    }
    // A message that is never completed leaves a stream that cannot be read any further.
    if row.name == SLOWER && over != Over::Http {
        host.shutdown().await;
        return Ok(());
    }
    // The remaining server works as before and has no pending requests.
    let other = call(&host, "faulty/other", arguments, LONG).await;
    match sequence.last().copied() {
        Some("connected") => {
            if !is_end(&other, &End::Answer(ECHO)) {
                return Err(format!("the next call: {other:?}"));
            }
            let subscriptions = usize::from(era == Stateless);
            // A changed list may still be in transit.
            let settled = wait_until(|| {
                let waiting = host.in_flight(&"faulty".into());
                waiting.is_some_and(|waiting| waiting <= subscriptions)
            });
            if tokio::time::timeout_at(started + 2 * LONG, settled)
                .await
                .is_err()
            {
                return Err("requests are still pending".to_owned());
            }
        }
        Some("failed") if matches!(other, Err(CallError::Server(ServerError::Failed { .. }))) => {}
        Some("needs-auth")
            if matches!(other, Err(CallError::Server(ServerError::NeedsAuth(_)))) => {}
        state => return Err(format!("{state:?}, and the next call: {other:?}")),
    }
    let listed = server.control.methods();
    let listed = listed
        .iter()
        .filter(|method| *method == "tools/list")
        .count();
    if listed > 20 {
        return Err(format!("the tools were listed {listed} times"));
    }
    let seen = events.states_so_far("faulty");
    if seen != sequence {
        return Err(format!("in the end the states were {seen:?}"));
    }
    let healthy = events.states_so_far("healthy");
    if healthy != ["connected"] {
        return Err(format!("the healthy server's states were {healthy:?}"));
    }
    host.shutdown().await;
    Ok(())
}

fn is_end(outcome: &Result<CallOutcome, CallError>, end: &End) -> bool {
    let error = match (outcome, end) {
        (Ok(outcome), End::Answer(text)) => return outcome.result.as_str().contains(text),
        (Err(CallError::Request { error, .. }), _) => error,
        _ => return false,
    };
    match (error, end) {
        (RequestError::Idle(_), End::Idle)
        | (RequestError::Lost(_), End::Lost)
        | (RequestError::Malformed(_) | RequestError::TooDeep { .. }, End::Malformed)
        | (RequestError::TooLarge(_), End::TooLarge) => true,
        (RequestError::Rejected(error), End::Rejected(code)) => error.code.0 == *code,
        (RequestError::Refused(refusal), End::Refused(status)) => refusal.status == *status,
        _ => false,
    }
}
