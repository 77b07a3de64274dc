//! Server lifecycle: startup, states, health, deadlines and retries.
//!
//! Time is paused in tests without other processes, so that an hour takes no time.

mod idle;
mod lab;
mod lists;
mod roots;
#[cfg(unix)]
mod starts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use switchboard::internal::desired::{Desired, WithheldServer};
use switchboard::internal::remembered::{Outline, logged_in};
use switchboard::internal::spec::{ConnectionKey, ServerSpec, Start};
use switchboard::internal::watch::{FileSource, FileWatcher};
use switchboard::status::{Cause, Refusal, ServerState, ServerStatus};
use switchboard::transport::TransportErrorKind;
use switchboard::{
    CallError, CallRequest, CallResult, Event, Host, HostOptions, HostSettings, ListKind,
    OpenOptions, OpenStep, RequestError, ServerError,
};
use switchboard_config::entry::{ServerEntry, Transport};
use switchboard_protocol::{Era, Revision};
use switchboard_store::MemoryStore;
use switchboard_test::hosted::{Held, SeenEvents, call, spec, wait_until};
use switchboard_test::scripted::{self, Fault, On, Over, Rule, Script, start};
use tokio::time::{Instant, sleep, timeout};

use lab::{Lab, name};

const LONG: Duration = Duration::from_secs(100);

fn host(settings: HostSettings) -> Host {
    Host::with_options(HostOptions {
        settings,
        ..HostOptions::default()
    })
}

/// Settings restricted to revisions of this era.
fn of_era(era: Era) -> HostSettings {
    let of_era = Revision::ALL
        .into_iter()
        .filter(|revision| revision.era() == era);
    HostSettings {
        open: OpenOptions {
            supported: of_era.collect(),
            ..OpenOptions::default()
        },
        ..HostSettings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_retried_five_times_and_on_manual_restart() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    lab.refusing.store(true, Ordering::Relaxed);
    let lost = Instant::now();
    lab.cut();
    assert_eq!(
        events.states("lab", 3).await,
        ["connected", "pending", "failed"]
    );
    let started_at = lab.begun.lock().unwrap().clone();
    assert_eq!(started_at.len(), 6);
    let mut before = lost;
    for (at, full) in started_at[1..].iter().zip([100, 200, 400, 800, 1_600]) {
        let waited = at.duration_since(before).as_millis();
        // Timers have a resolution of a millisecond.
        assert!(
            (full / 2..=full + 2).contains(&waited),
            "{waited} of {full} ms"
        );
        before = *at;
    }
    let seen = host.status(&name()).unwrap();
    let failure = seen.state.failure().unwrap();
    assert_eq!(failure.cause, Cause::Transport(TransportErrorKind::Refused));
    let error = call(&host, "lab/wait", json!({}), LONG).await.unwrap_err();
    assert!(
        matches!(error, CallError::Server(ServerError::Failed { .. })),
        "{error}"
    );
    // No further retries, no matter how long it takes.
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(lab.connections(), 6);
    lab.refusing.store(false, Ordering::Relaxed);
    assert!(host.restart(&name()).await);
    let states = events.states("lab", 5).await;
    assert_eq!(
        states,
        ["connected", "pending", "failed", "pending", "connected"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stable_connection_resets_the_retry_count() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    let mut expected = vec!["connected"];
    for _ in 0..8 {
        sleep(Duration::from_secs(60)).await;
        lab.cut();
        expected.extend(["pending", "connected"]);
        assert_eq!(events.states("lab", expected.len()).await, expected);
    }
    // A connection that never becomes stable fails in the end.
    for _ in 0..5 {
        lab.cut();
        expected.extend(["pending", "connected"]);
        if events.states("lab", expected.len() - 1).await.last() == Some(&"failed") {
            return;
        }
        events.states("lab", expected.len()).await;
    }
    lab.cut();
    expected.push("failed");
    assert_eq!(events.states("lab", expected.len()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_probed_every_thirty_seconds_in_the_way_of_its_era() {
    for (era, probe) in [(Era::Stateful, "ping"), (Era::Stateless, "server/discover")] {
        let (lab, host) = (Lab::new(), host(of_era(era)));
        let mut events = SeenEvents::of(&host);
        host.add_server(lab.spec("lab")).await.unwrap();
        let before = lab.sent(probe);
        sleep(Duration::from_secs(301)).await;
        let probes = lab.sent(probe) - before;
        assert!(
            (9..=10).contains(&probes),
            "{era:?}: {probes} probes in 300 s"
        );
        // Half-open from here on: detected after five failed probes, half a minute apart.
        lab.silent.store(true, Ordering::Relaxed);
        lab.refusing.store(true, Ordering::Relaxed);
        let silent = Instant::now();
        sleep(Duration::from_secs(4 * 30)).await;
        assert_eq!(events.states("lab", 2).await, ["connected", "pending"]);
        let expected = Duration::from_secs(4 * 30 + 5)..=Duration::from_secs(5 * 30 + 6);
        assert!(
            expected.contains(&silent.elapsed()),
            "{:?}",
            silent.elapsed()
        );
        let status = host.status(&name()).unwrap();
        let reason = &status.state.failure().unwrap().message;
        assert!(reason.contains("5 probes in a row"), "{reason}");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_misses_some_probes_is_left_alone() {
    for era in [Era::Stateful, Era::Stateless] {
        let (lab, host) = (Lab::new(), host(of_era(era)));
        let mut events = SeenEvents::of(&host);
        host.add_server(lab.spec("lab")).await.unwrap();
        for _ in 0..5 {
            // Long enough for three or four failed probes, but not five.
            lab.silent.store(true, Ordering::Relaxed);
            sleep(Duration::from_secs(110)).await;
            lab.silent.store(false, Ordering::Relaxed);
            sleep(Duration::from_secs(60)).await;
        }
        assert_eq!(events.states_so_far("lab"), ["connected"], "{era:?}");
        assert_eq!(lab.connections(), 1, "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_calls_but_no_ping_is_never_restarted() {
    for (era, probe) in [(Era::Stateful, "ping"), (Era::Stateless, "server/discover")] {
        let (lab, host) = (Lab::new(), host(of_era(era)));
        let mut events = SeenEvents::of(&host);
        host.add_server(lab.spec("lab")).await.unwrap();
        let before = lab.sent(probe);
        *lab.unanswered.lock().unwrap() = Some(probe.to_owned());
        // Without any calls, for hours.
        sleep(Duration::from_secs(3 * 3_600)).await;
        assert!(lab.sent(probe) > before, "{era:?}");
        assert_eq!(events.states_so_far("lab"), ["connected"], "{era:?}");
        // Also after a failed call, or after the machine was asleep.
        host.probe_all().await;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(lab.connections(), 1, "{era:?}");
        lab.service.go_on.notify_one();
        assert!(call(&host, "lab/wait", json!({}), LONG).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_is_retried_after_a_transient_failure() {
    let (lab, host) = (Lab::over(Transport::Http), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    lab.refusing.store(true, Ordering::Relaxed);
    let started = Instant::now();
    host.apply(vec![lab.spec("lab")]).await;
    sleep(Duration::from_millis(500)).await;
    let status = host.status(&name()).unwrap();
    assert_eq!(status.word(), "pending");
    let ServerState::Pending {
        failure,
        failed_attempts,
        ..
    } = status.state
    else {
        panic!("{:?}", status.state);
    };
    assert!(failed_attempts > 0);
    assert!(failure.is_some(), "the reason is reported meanwhile");
    lab.refusing.store(false, Ordering::Relaxed);
    assert_eq!(events.states("lab", 1).await, ["connected"]);
    assert!(started.elapsed() < Duration::from_secs(4));

    // It fails after as many attempts as a lost connection.
    lab.refusing.store(true, Ordering::Relaxed);
    let before = lab.connections();
    assert!(host.restart(&name()).await);
    host.settled().await;
    assert_eq!(host.status(&name()).unwrap().word(), "failed");
    assert_eq!(lab.connections() - before, 6);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_retried() {
    // A program that does not start now will not start later.
    let (local, host) = (Lab::over(Transport::Stdio), host(HostSettings::default()));
    local.refusing.store(true, Ordering::Relaxed);
    host.apply(vec![local.spec("lab")]).await;
    host.settled().await;
    assert_eq!(host.status(&name()).unwrap().word(), "failed");
    assert_eq!(local.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_that_times_out_is_retried() {
    // Startup of several servers does not wait for retries.
    for transport in [Transport::Http, Transport::Stdio] {
        let host = host(HostSettings::default());
        let remote = Lab::over(transport);
        remote.stuck.store(true, Ordering::Relaxed);
        let started = Instant::now();
        host.apply(vec![remote.spec("remote")]).await;
        host.started().await;
        assert_eq!(started.elapsed().as_secs(), 60);
        assert_eq!(host.status(&"remote".into()).unwrap().word(), "pending");
        host.settled().await;
        assert_eq!(remote.connections(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn every_connection_is_probed_at_once_after_a_sleep() {
    let (lab, host) = (Lab::new(), host(of_era(Era::Stateful)));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    lab.silent.store(true, Ordering::Relaxed);
    lab.refusing.store(true, Ordering::Relaxed);
    let woken = Instant::now();
    host.probe_all().await;
    assert_eq!(events.states("lab", 2).await, ["connected", "pending"]);
    assert!(
        woken.elapsed() <= Duration::from_secs(6),
        "{:?}",
        woken.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_not_restarted_by_probes() {
    let (lab, host) = (Lab::new(), host(of_era(Era::Stateful)));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    let idle = Duration::from_secs(1_000);
    let working = async {
        lab.service.called.notified().await;
        // It works on its only thread, so it does not answer.
        lab.silent.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(600)).await;
        lab.silent.store(false, Ordering::Relaxed);
        lab.service.go_on.notify_one();
    };
    let (outcome, ()) = tokio::join!(call(&host, "lab/wait", json!({}), idle), working);
    assert!(outcome.unwrap().result.as_str().contains("done"));
    assert_eq!(events.states_so_far("lab"), ["connected"]);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_call_and_progress_keeps_it_alive_up_to_the_cap() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    let mut wanted = lab.spec("lab");
    wanted.tool_max = Duration::from_secs(1_000);
    host.add_server(wanted).await.unwrap();
    // The default idle timeout of 60 s.
    let started = Instant::now();
    let request = |tool: &str| CallRequest {
        tool: tool.to_owned(),
        ..CallRequest::default()
    };
    let error = host.request(request("lab/wait")).await.unwrap_err();
    let idle = Duration::from_secs(60);
    assert!(
        matches!(&error, CallError::Request { error: RequestError::Idle(limit), .. } if *limit == idle),
        "{error}"
    );
    assert_eq!(started.elapsed().as_secs(), 60);
    timeout(LONG, lab.service.cancelled.notified())
        .await
        .unwrap();
    // Progress every 50 s extends it up to the cap.
    let started = Instant::now();
    let error = host.request(request("lab/steps")).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Request { error: RequestError::Expired(limit), .. } if limit.as_secs() == 1_000),
        "{error}"
    );
    assert_eq!(started.elapsed().as_secs(), 1_000);
    // Progress is reported at least every thirty seconds.
    let mut last = BTreeMap::new();
    for event in events.so_far() {
        if let Event::CallProgress { call, elapsed, .. } = event {
            let before = last.insert(*call, *elapsed).unwrap_or_default();
            assert!(
                *elapsed <= before + Duration::from_secs(31),
                "{before:?} to {elapsed:?}"
            );
        }
    }
    let last: Vec<u64> = last.values().map(Duration::as_secs).collect();
    // Progress at the exact time of the cap may or may not be reported.
    assert!(matches!(last[..], [30 | 60, 990 | 1_000]), "{last:?}");
    assert_eq!(events.states_so_far("lab"), ["connected"]);
    assert_eq!(host.in_flight(&name()), Some(1), "the subscription alone");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_and_the_connection_survives() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    {
        let calling = call(&host, "lab/wait", json!({}), LONG);
        tokio::select! {
            outcome = calling => panic!("{outcome:?}"),
            () = lab.service.called.notified() => {}
        }
    }
    timeout(LONG, lab.service.cancelled.notified())
        .await
        .unwrap();
    lab.service.go_on.notify_one();
    assert!(call(&host, "lab/wait", json!({}), LONG).await.is_ok());
    let ends: Vec<(String, bool, bool, Option<String>)> = events
        .so_far()
        .iter()
        .filter_map(|event| match event {
            Event::CallEnd {
                server: Some(server),
                tool,
                is_error,
                result,
                error,
                ..
            } => {
                // Listeners get the result itself.
                let has_text = |result: &CallResult| result.0.as_str().contains("\"content\"");
                let has_result = result.as_ref().is_some_and(has_text);
                Some((
                    format!("{server}/{tool}"),
                    *is_error,
                    has_result,
                    error.clone(),
                ))
            }
            _ => None,
        })
        .collect();
    let tool = "lab/wait".to_owned();
    assert_eq!(
        ends,
        [
            (tool.clone(), true, false, Some("cancelled".to_owned())),
            (tool, false, true, None)
        ]
    );
    assert_eq!(events.states_so_far("lab"), ["connected"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_retried_only_if_it_had_no_effect() {
    // (tool, whether the server's hints are trusted, number of calls, whether there is a result)
    for (tool, trusted, calls, has_result) in [
        ("lab/wait", true, 1, false),
        ("lab/read", false, 1, false),
        ("lab/read", true, 2, true),
    ] {
        let (lab, host) = (Lab::new(), host(HostSettings::default()));
        let mut wanted = lab.spec("lab");
        if trusted {
            wanted.rules = wanted.rules.trusting_annotations();
        }
        host.add_server(wanted).await.unwrap();
        let cutting = async {
            lab.service.called.notified().await;
            lab.cut();
            if has_result {
                lab.service.called.notified().await;
                lab.service.go_on.notify_waiters();
            }
        };
        let (outcome, ()) = tokio::join!(call(&host, tool, json!({}), LONG), cutting);
        match outcome {
            Ok(_) => assert!(has_result, "{tool}"),
            Err(CallError::Request {
                error: RequestError::Lost(_),
                ..
            }) => {
                assert!(!has_result, "{tool}");
            }
            Err(error) => panic!("{tool}: {error}"),
        }
        assert_eq!(lab.service.calls.load(Ordering::Relaxed), calls, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_to_send_is_resent_on_the_same_connection() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    lab.hitch.store(true, Ordering::Relaxed);
    lab.service.go_on.notify_one();
    let started = Instant::now();
    assert!(call(&host, "lab/wait", json!({}), LONG).await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(lab.service.calls.load(Ordering::Relaxed), 1);
    assert_eq!(events.states_so_far("lab"), ["connected"]);
}

#[tokio::test(start_paused = true)]
async fn never_more_servers_start_at_once_than_the_pool_holds() {
    let settings = HostSettings {
        local_connections: 2,
        remote_connections: 3,
        ..HostSettings::default()
    };
    let host = host(settings);
    let stuck: Vec<_> = (0..2).map(|_| Lab::over(Transport::Sdk)).collect();
    let local: Vec<_> = (0..4).map(|_| Lab::over(Transport::Sdk)).collect();
    let remote: Vec<_> = (0..9).map(|_| Lab::over(Transport::Http)).collect();
    let mut specs = Vec::new();
    for (number, lab) in stuck.iter().enumerate() {
        lab.stuck.store(true, Ordering::Relaxed);
        specs.push(lab.spec(&format!("a-stuck-{number}")));
    }
    specs.extend(
        local
            .iter()
            .enumerate()
            .map(|(n, lab)| lab.spec(&format!("local-{n}"))),
    );
    specs.extend(
        remote
            .iter()
            .enumerate()
            .map(|(n, lab)| lab.spec(&format!("remote-{n}"))),
    );
    let started = Instant::now();
    let mut events = SeenEvents::of(&host);
    host.apply(specs).await;
    // Remote servers do not wait for local ones; local ones wait only for a slot in their pool.
    for number in 0..9 {
        events.states(&format!("remote-{number}"), 1).await;
    }
    assert!(started.elapsed() < Duration::from_secs(1));
    assert!(local.iter().all(|lab| lab.connections() == 0));
    assert!(stuck.iter().all(|lab| lab.connections() == 1));
    host.started().await;
    assert_eq!(started.elapsed().as_secs(), 60);
    let status = host.status(&"a-stuck-0".into()).unwrap();
    let failure = status.state.failure().unwrap();
    assert_eq!(
        (failure.step, failure.cause),
        (Some(OpenStep::Connect), Cause::Timeout)
    );
    assert_eq!(failure.message, "not ready within 60 s");
    assert_eq!(failure.stderr, ["loading the model"]);
    let connected = host
        .statuses()
        .iter()
        .filter(|status| status.word() == "connected")
        .count();
    assert_eq!(connected, 13);
    let complete = events
        .until(|events| {
            events.iter().find_map(|event| match event {
                Event::StartupComplete { ready, failed } => Some((ready.len(), failed.len())),
                _ => None,
            })
        })
        .await;
    assert_eq!(complete, (13, 2));
}

#[tokio::test(start_paused = true)]
async fn startup_waits_for_required_servers_only() {
    let (needed, optional) = (Lab::new(), Lab::new());
    optional.stuck.store(true, Ordering::Relaxed);
    let host = host(HostSettings::default());
    let mut required = needed.spec("needed");
    required.required = true;
    // A required server is connected at once, even if it is lazy.
    required.start = Start::Lazy;
    host.apply(vec![required.clone(), optional.spec("optional")])
        .await;
    let started = Instant::now();
    assert!(host.ready().await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(1));
    needed.refusing.store(true, Ordering::Relaxed);
    host.restart(&"needed".into()).await;
    let error = host.ready().await.unwrap_err();
    assert!(matches!(error, ServerError::Failed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_is_connected_on_first_use() {
    let (lab, other) = (Lab::new(), Lab::new());
    let host = host(HostSettings::default());
    let lazy = |lab: &Arc<Lab>, name| {
        let mut spec = lab.spec(name);
        spec.start = Start::Lazy;
        spec
    };
    other.stuck.store(true, Ordering::Relaxed);
    host.apply(vec![lazy(&lab, "lab"), lazy(&other, "other")])
        .await;
    host.settled().await;
    assert_eq!((lab.connections(), host.statuses()[0].word()), (0, "lazy"));
    let started = Instant::now();
    lab.service.go_on.notify_one();
    assert!(call(&host, "mcp__lab__wait", json!({}), LONG).await.is_ok());
    // The other one is not connected.
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!((lab.connections(), other.connections()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn applying_restarts_only_changed_servers() {
    let labs: Vec<_> = (0..3).map(|_| Lab::new()).collect();
    let host = host(HostSettings::default());
    let specs = || -> Vec<ServerSpec> {
        let named = ["a", "b", "c"].iter().zip(&labs);
        named.map(|(name, lab)| lab.spec(name)).collect()
    };
    host.apply(specs()).await;
    host.settled().await;
    let listed = |lab: &Arc<Lab>| lab.sent("tools/list");
    let counts = || -> Vec<(usize, usize)> {
        labs.iter()
            .map(|lab| (lab.connections(), listed(lab)))
            .collect()
    };
    // An unchanged configuration has no effect.
    host.apply(specs()).await;
    host.settled().await;
    assert_eq!(counts(), [(1, 1), (1, 1), (1, 1)]);
    // Other tools for one, another connector for another, and the third disabled at run time.
    assert!(host.set_enabled(&"c".into(), false).await);
    let mut events = SeenEvents::of(&host);
    let mut changed = specs();
    let only_read = ServerEntry {
        enabled_tools: vec!["read".to_owned()],
        ..ServerEntry::default()
    };
    changed[0].rules = switchboard::internal::catalog::ToolRules::of(&only_read);
    changed[1].key = ConnectionKey::of(&[b"another"]);
    host.apply(changed.clone()).await;
    events.until(|events| {
        let is_a = |event: &Event| matches!(event, Event::CatalogChanged { server, .. } if server.as_str() == "a");
        events.iter().any(is_a).then_some(())
    })
    .await;
    assert_eq!(events.states("b", 2).await, ["pending", "connected"]);
    assert_eq!(counts(), [(1, 1), (2, 2), (1, 1)]);
    let offered = host.catalog();
    let offered: Vec<&str> = offered.iter().map(|tool| tool.exposed().as_str()).collect();
    assert_eq!(
        offered,
        [
            "mcp__a__read",
            "mcp__b__read",
            "mcp__b__steps",
            "mcp__b__wait"
        ]
    );
    let states: Vec<&'static str> = host.statuses().iter().map(ServerStatus::word).collect();
    assert_eq!(states, ["connected", "connected", "disabled"]);
    // A disabled server stays disabled on restart; only its configuration changes that.
    assert!(host.restart(&"c".into()).await);
    assert_eq!(host.status(&"c".into()).unwrap().word(), "disabled");
    changed[2].enabled = false;
    host.apply(changed.clone()).await;
    changed[2].enabled = true;
    changed.remove(0);
    host.apply(changed).await;
    host.settled().await;
    let states: Vec<(String, &'static str)> = host
        .statuses()
        .iter()
        .map(|status| (status.name.to_string(), status.word()))
        .collect();
    assert_eq!(
        states,
        [("b".to_owned(), "connected"), ("c".to_owned(), "connected")]
    );
}

#[tokio::test(start_paused = true)]
async fn lists_are_fetched_again_when_they_are_old_and_once_for_many_changes() {
    let (lab, host) = (Lab::new(), host(of_era(Era::Stateful)));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    assert_eq!(lab.sent("tools/list"), 1);
    // Changes of other lists, and probes, do not delay it.
    for _ in 0..31 {
        sleep(Duration::from_secs(10)).await;
        lab.service.changes.prompts();
    }
    assert_eq!(lab.sent("tools/list"), 2, "after 310 s");
    for _ in 0..1_000 {
        lab.service.changes.tools();
    }
    sleep(Duration::from_secs(5)).await;
    let lists = lab.sent("tools/list");
    assert!((3..=5).contains(&lists), "{lists}");
    assert_eq!(events.states_so_far("lab"), ["connected"]);
}

#[tokio::test(start_paused = true)]
async fn a_short_list_lifetime_is_respected() {
    let settings = HostSettings {
        catalog_ttl: Duration::from_secs(3),
        ..of_era(Era::Stateful)
    };
    let (lab, host) = (Lab::new(), host(settings));
    host.add_server(lab.spec("lab")).await.unwrap();
    assert_eq!(lab.sent("tools/list"), 1);
    sleep(Duration::from_secs(31)).await;
    let lists = lab.sent("tools/list");
    assert!((10..=12).contains(&lists), "{lists} lists in 31 s");
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_drops_every_list() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(lab.spec("lab")).await.unwrap();
    let before = host.list(&name(), ListKind::Tools).await.unwrap();
    let again = host.list(&name(), ListKind::Tools).await.unwrap();
    assert!(Arc::ptr_eq(&before, &again));
    lab.cut();
    events.states("lab", 3).await;
    let after = host.list(&name(), ListKind::Tools).await.unwrap();
    assert!(!Arc::ptr_eq(&before, &after));
}

#[tokio::test]
async fn a_stale_list_never_overwrites_a_newer_one() {
    for over in [Over::Stdio, Over::WebSocket, Over::Http] {
        let script = |tool: &str| Script::new("lab").tool(scripted::Tool::new(tool));
        let mut slow = script("old");
        slow.resources.push(scripted::Resource {
            definition: json!({"uri": "test://old", "name": "old"}),
            contents: Vec::new(),
        });
        let gate = Fault::Gate {
            gate: "list".to_owned(),
        };
        let server = start(slow.rule(Rule::on("resources/list", gate).once()), over)
            .await
            .unwrap();
        let host = host(HostSettings::default());
        let mut events = SeenEvents::of(&host);
        host.add_server(spec("lab", &server, over, 1024 * 1024))
            .await
            .unwrap();
        // The list changes between the request and its answer.
        let changing = async {
            server.control.wait_for_gate("list", 1).await.unwrap();
            server
                .control
                .notify("notifications/resources/list_changed", json!({}));
            events
                .until(|events| {
                    let is_resources = |event: &Event| {
                        matches!(
                            event,
                            Event::CatalogChanged {
                                list: ListKind::Resources,
                                ..
                            }
                        )
                    };
                    events.iter().any(is_resources).then_some(())
                })
                .await;
            server.control.release("list");
        };
        let lab = name();
        let (stale, ()) = tokio::join!(host.list(&lab, ListKind::Resources), changing);
        let stale = stale.unwrap();
        let fresh = host.list(&lab, ListKind::Resources).await.unwrap();
        assert!(!Arc::ptr_eq(&stale, &fresh), "{over:?}");
        server
            .control
            .wait_for_method("resources/list", 2)
            .await
            .unwrap();
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_expired_session_is_reopened_with_new_lists() {
    let script = Script::new("lab")
        .era(Era::Stateful)
        .tool(scripted::Tool::new("echo"))
        .resource("test://a", "a");
    let server = start(script, Over::Http).await.unwrap();
    let host = host(HostSettings::default());
    let mut events = SeenEvents::of(&host);
    host.add_server(spec("lab", &server, Over::Http, 1024 * 1024))
        .await
        .unwrap();
    let before = host.list(&name(), ListKind::Resources).await.unwrap();
    server.control.tell(scripted::Command::ForgetSessions);
    let outcomes = join_all((0..5).map(|_| call(&host, "lab/echo", json!({}), LONG))).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(
        events.states("lab", 3).await,
        ["connected", "pending", "connected"]
    );
    assert_eq!(host.status(&name()).unwrap().restarts, 1);
    let after = host.list(&name(), ListKind::Resources).await.unwrap();
    assert!(!Arc::ptr_eq(&before, &after));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_login_in_another_process_brings_the_server_back() {
    let store = Arc::new(MemoryStore::new());
    let lab = Lab::new();
    lab.locked.store(true, Ordering::Relaxed);
    let host = Host::with_options(HostOptions {
        store: store.clone(),
        ..HostOptions::default()
    });
    let mut events = SeenEvents::of(&host);
    host.apply(vec![lab.spec("lab")]).await;
    assert_eq!(events.states("lab", 1).await, ["needs-auth"]);
    // While the login requirement is cached, the server is not contacted.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lab.connections(), 1);
    lab.locked.store(false, Ordering::Relaxed);
    logged_in(store, &Outline::from(&lab.spec("lab"))).await;
    let noticed = Instant::now();
    assert_eq!(
        events.states("lab", 3).await,
        ["needs-auth", "pending", "connected"]
    );
    let logins = |event: &Event| match event {
        Event::LoggedIn { server, tools } => Some((server.to_string(), *tools)),
        _ => None,
    };
    let logins: Vec<_> = events.so_far().iter().filter_map(logins).collect();
    let tools = host.status(&"lab".into()).unwrap().tools;
    assert_eq!(logins, [("lab".to_owned(), tools)]);
    assert!(noticed.elapsed() <= Duration::from_secs(5));
    host.shutdown().await;
}

#[tokio::test]
async fn a_login_requirement_is_cached_for_every_host() {
    let store = Arc::new(MemoryStore::new());
    let host = || {
        Host::with_options(HostOptions {
            store: store.clone(),
            ..HostOptions::default()
        })
    };
    let script = Script::new("lab").tool(scripted::Tool::new("echo"));
    let mut servers = Vec::new();
    for _ in 0..4 {
        let rule = Rule::at(On::AnyRequest, Fault::status(401));
        servers.push(start(script.clone().rule(rule), Over::Http).await.unwrap());
    }
    let specs: Vec<ServerSpec> = servers
        .iter()
        .enumerate()
        .map(|(number, server)| spec(&format!("lab-{number}"), server, Over::Http, 1024 * 1024))
        .collect();
    // Two hosts detect it at the same time, for different servers.
    let (first, second) = (host(), host());
    tokio::join!(
        first.apply(specs[..2].to_vec()),
        second.apply(specs[2..].to_vec())
    );
    tokio::join!(first.settled(), second.settled());
    first.shutdown().await;
    second.shutdown().await;
    let asked: Vec<usize> = servers
        .iter()
        .map(|server| server.control.records().len())
        .collect();
    let third = host();
    let mut events = SeenEvents::of(&third);
    third.apply(specs).await;
    third.settled().await;
    let states: Vec<&'static str> = third.statuses().iter().map(ServerStatus::word).collect();
    assert_eq!(states, ["needs-auth"; 4]);
    let asked_again: Vec<usize> = servers
        .iter()
        .map(|server| server.control.records().len())
        .collect();
    assert_eq!(asked, asked_again, "no server was asked again");
    let error = call(&third, "lab-0/echo", json!({}), LONG)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::Server(ServerError::NeedsAuth(_))),
        "{error}"
    );
    // A manual restart tries again, and success clears the cached requirement.
    servers[0].control.tell(scripted::Command::Disarm);
    third.restart(&"lab-0".into()).await;
    assert_eq!(
        events.states("lab-0", 3).await,
        ["needs-auth", "pending", "connected"]
    );
    third.shutdown().await;
    let fourth = host();
    fourth
        .add_server(spec("lab-0", &servers[0], Over::Http, 1024 * 1024))
        .await
        .unwrap();
    fourth.shutdown().await;
}

#[tokio::test]
async fn an_edited_file_restarts_exactly_the_server_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("servers.json");
    std::fs::write(&file, r#"{"a": "1", "b": "1"}"#).unwrap();
    let labs: BTreeMap<&str, Arc<Lab>> = ["a", "b", "c"]
        .into_iter()
        .map(|name| (name, Lab::new()))
        .collect();
    let labs = Arc::new(labs);
    let known = Arc::clone(&labs);
    let path = file.clone();
    let read = move || -> Option<Desired> {
        let text = std::fs::read_to_string(&path).ok()?;
        let servers: BTreeMap<String, String> = serde_json::from_str(&text).ok()?;
        let specs = servers.iter().map(|(name, version)| {
            let mut spec = known[name.as_str()].spec(name);
            spec.key = ConnectionKey::of(&[name.as_bytes(), version.as_bytes()]);
            spec
        });
        Some(specs.collect::<Vec<ServerSpec>>().into())
    };
    let host = host(HostSettings::default());
    host.reconcile(read().unwrap()).await;
    host.settled().await;
    let mut events = SeenEvents::of(&host);
    let watcher = FileWatcher::new(vec![file.clone()]).unwrap();
    let connections = || -> Vec<usize> { labs.values().map(|lab| lab.connections()).collect() };
    let editing = async {
        // Like editors: a new file replaces the old one.
        let other = folder.path().join("servers.json.new");
        std::fs::write(&other, r#"{"a": "1", "b": "2"}"#).unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert_eq!(events.states("b", 2).await, ["pending", "connected"]);
        assert_eq!(connections(), [1, 2, 0]);
        // An invalid file changes nothing; the next valid one does.
        std::fs::write(&file, r#"{"a": "1", "#).unwrap();
        std::fs::write(&file, r#"{"b": "2", "c": "1"}"#).unwrap();
        assert_eq!(events.states("c", 1).await, ["connected"]);
        assert_eq!(connections(), [1, 2, 1]);
        assert!(host.status(&"a".into()).is_none());
    };
    tokio::select! {
        () = host.follow(FileSource::new(watcher, read)) => panic!("the watcher has ended"),
        () = editing => {}
    }
}

#[tokio::test(start_paused = true)]
async fn servers_of_the_options_are_not_started_before_use() {
    let labs: Vec<_> = (0..3).map(|_| Lab::new()).collect();
    let names = ["a", "b", "c"].iter().zip(&labs);
    let specs: Vec<ServerSpec> = names.map(|(name, lab)| lab.spec(name)).collect();
    let host = Host::with_options(HostOptions {
        desired: specs.clone().into(),
        ..HostOptions::default()
    });
    let connections = || -> Vec<usize> { labs.iter().map(|lab| lab.connections()).collect() };
    let words = || -> Vec<&str> { host.statuses().iter().map(ServerStatus::word).collect() };
    assert_eq!(words(), ["lazy", "lazy", "lazy"]);
    host.settled().await;
    // An unqualified tool starts no server; a tool of a server starts that one.
    assert!(call(&host, "nothing", json!({}), LONG).await.is_err());
    assert_eq!(connections(), [0, 0, 0]);
    host.start(&["a".into()]).await;
    host.settled().await;
    labs[1].service.go_on.notify_one();
    let outcome = call(&host, "b/wait", json!({}), LONG).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(words(), ["connected", "connected", "lazy"]);
    // Running servers are left alone.
    host.start_all().await;
    host.settled().await;
    let changes = host.reconcile(specs.into()).await;
    assert!(changes.is_empty(), "{changes:?}");
    host.settled().await;
    assert_eq!((words(), connections()), (vec!["connected"; 3], vec![1; 3]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_removed_is_gone_and_calls_to_it_say_so() {
    let (stays, goes) = (Lab::new(), Lab::new());
    let host = host(HostSettings::default());
    host.apply(vec![stays.spec("stays"), goes.spec("goes")])
        .await;
    host.settled().await;
    let refused = |reason: &str| WithheldServer {
        name: "theirs".into(),
        transport: None,
        required: true,
        state: ServerState::Refused(Refusal::Blocked {
            reason: reason.to_owned(),
        }),
    };
    let desired = |reason: &str| Desired {
        servers: vec![stays.spec("stays")],
        withheld: vec![refused(reason)],
    };
    let mut events = SeenEvents::of(&host);
    let changes = host.reconcile(desired("a list denies it")).await;
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["goes is gone"]);
    assert_eq!(events.states_so_far("theirs"), ["blocked"]);
    let is_removed =
        |event: &Event| matches!(event, Event::Removed { server } if server.as_str() == "goes");
    assert!(events.so_far().iter().any(is_removed));
    let statuses = host.statuses();
    let seen: Vec<(&str, &str)> = statuses
        .iter()
        .map(|status| (status.name.as_str(), status.word()))
        .collect();
    assert_eq!(seen, [("stays", "connected"), ("theirs", "blocked")]);
    assert!(host.ready().await.is_ok());
    for (tool, expected) in [
        ("mcp__goes__wait", "the server \"goes\" was removed"),
        ("goes/wait", "the server \"goes\" was removed"),
        (
            "mcp__theirs__x",
            "the server \"theirs\" is blocked: a list denies it",
        ),
    ] {
        let error = call(&host, tool, json!({}), LONG).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{tool}");
    }
    // A server that can no longer start is reported with the reason; one that comes back is new.
    let mut swapped = desired("another list denies it");
    swapped.servers = vec![goes.spec("goes")];
    swapped.withheld[0].name = "stays".into();
    let changes = host.reconcile(swapped).await;
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let expected = ["stays is blocked: another list denies it", "goes is new"];
    assert_eq!(changes, expected);
    host.settled().await;
    goes.service.go_on.notify_one();
    assert!(call(&host, "goes/wait", json!({}), LONG).await.is_ok());
    assert_eq!(stays.connections(), 1);
}

#[tokio::test]
async fn calls_continue_while_a_source_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("servers.json");
    std::fs::write(&file, "1").unwrap();
    let lab = Lab::new();
    let host = host(HostSettings::default());
    host.apply(vec![lab.spec("lab")]).await;
    host.settled().await;
    let (reads, mut reading) = tokio::sync::mpsc::unbounded_channel();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let read = move || {
        let _ = reads.send(());
        // Blocks like a slow download, until released.
        held.lock().unwrap().recv().ok()?;
        Some(Desired::default())
    };
    let source = FileSource::new(FileWatcher::new(vec![file.clone()]).unwrap(), read);
    let calling = async {
        std::fs::write(&file, "2").unwrap();
        reading.recv().await.unwrap();
        lab.service.go_on.notify_one();
        let outcome = call(&host, "lab/wait", json!({}), LONG).await;
        assert!(outcome.is_ok(), "{outcome:?}");
        let_go.send(()).unwrap();
        timeout(LONG, wait_until(|| host.statuses().is_empty()))
            .await
            .unwrap();
    };
    tokio::select! {
        () = host.follow(source) => panic!("the source has ended"),
        () = calling => {}
    }
}

#[tokio::test]
async fn a_process_that_does_not_start_shows_what_it_wrote() {
    let lines = ["reading settings", "error: no API key"];
    let mut ending = Script::new("lab");
    ending.process.stderr = lines.map(str::to_owned).to_vec();
    let mut hanging = ending.clone();
    ending.process.exit_at_start = Some(3);
    hanging.process.start_gate = Some("never".to_owned());
    for (script, step, cause) in [
        (ending, None, Cause::Exited),
        (hanging, Some(OpenStep::Initialize), Cause::Timeout),
    ] {
        let server = start(script, Over::Stdio).await.unwrap();
        let mut settings = HostSettings::default();
        settings.open.discover_patience = Duration::from_millis(100);
        settings.reconnect_attempts = 0;
        let host = host(settings);
        let mut wanted = spec("lab", &server, Over::Stdio, 1024 * 1024);
        if cause == Cause::Timeout {
            wanted.startup_timeout = Duration::from_secs(3);
        }
        let error = host.add_server(wanted).await.unwrap_err();
        let ServerError::Failed { failure, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(failure.cause, cause, "{failure:?}");
        // A process that exits at the probe is started again for the handshake.
        assert!(
            failure.stderr.ends_with(&lines.map(str::to_owned)),
            "{failure:?}"
        );
        // A process may exit at any step before its first message.
        assert!(step.is_none() || failure.step == step, "{failure:?}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn dropping_the_last_handle_leaks_nothing() {
    let server = start(
        Script::new("lab").tool(scripted::Tool::new("echo")),
        Over::Stdio,
    )
    .await
    .unwrap();
    let before = Held::now();
    let host = host(HostSettings::default());
    host.add_server(spec("lab", &server, Over::Stdio, 1024 * 1024))
        .await
        .unwrap();
    let other = host.clone();
    drop(host);
    assert!(call(&other, "lab/echo", json!({}), LONG).await.is_ok());
    drop(other);
    // Descriptors and children are shared with concurrent tests; tasks are not.
    let tasks = Held {
        tasks: before.tasks + 1,
        descriptors: usize::MAX,
        children: usize::MAX,
    };
    assert_eq!(tasks.again().await, Ok(()));
}
