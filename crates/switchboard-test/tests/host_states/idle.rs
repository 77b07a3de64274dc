//! Idle servers are stopped, and restarted on next use.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use switchboard::catalog::LookupError;
use switchboard::internal::catalog::ToolRules;
use switchboard::internal::spec::ServerSpec;
use switchboard::{CallError, HostSettings, ServerError};
use switchboard_config::entry::ServerEntry;
use switchboard_protocol::Era;
use switchboard_test::hosted::{SeenEvents, call, spec, wait_until};
use switchboard_test::scripted::{Over, Script, Tool, start};
use tokio::time::{Instant, sleep, timeout};

use crate::lab::{Lab, name};
use crate::{LONG, host, of_era};

/// The servers' idle limit.
const LIMIT: Duration = Duration::from_secs(100);
/// Just below the limit, and the remaining time until they have certainly been stopped.
const ALMOST: Duration = Duration::from_secs(99);
const REST: Duration = Duration::from_secs(27);
/// The time by which they have certainly been stopped.
const OVER: Duration = Duration::from_secs(126);

fn resting(lab: &Arc<Lab>, name: &str) -> ServerSpec {
    ServerSpec {
        idle_shutdown: Some(LIMIT),
        ..lab.spec(name)
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_and_restarted_on_use() {
    for era in [Era::Stateful, Era::Stateless] {
        let (lab, host) = (Lab::new(), host(of_era(era)));
        let mut events = SeenEvents::of(&host);
        let required = ServerSpec {
            required: true,
            ..resting(&lab, "lab")
        };
        host.add_server(required).await.unwrap();
        let offered = host.catalog();
        // Probes and refreshes in the meantime do not count as use.
        sleep(OVER).await;
        assert_eq!(
            events.states_so_far("lab"),
            ["connected", "idle"],
            "{era:?}"
        );
        let status = host.status(&name()).unwrap();
        let seen = (status.word(), status.tools, status.restarts);
        assert_eq!(seen, ("idle", 3, 0));
        assert!(status.absence().is_none());
        // Its tools remain listed, and nothing waits for it.
        assert!(Arc::ptr_eq(&offered, &host.catalog()));
        host.settled().await;
        assert!(host.ready().await.is_ok());
        // Neither time nor calls to other servers wake it.
        sleep(Duration::from_secs(3_600)).await;
        assert!(call(&host, "mcp__other__x", json!({}), LONG).await.is_err());
        assert_eq!(lab.connections(), 1);

        lab.service.go_on.notify_one();
        let outcome = call(&host, "mcp__lab__wait", json!({}), LONG).await;
        assert!(outcome.is_ok(), "{era:?}: {outcome:?}");
        assert_eq!(lab.connections(), 2);
        assert_eq!(
            events.states_so_far("lab"),
            ["connected", "idle", "pending", "connected"]
        );
        sleep(OVER).await;
        assert_eq!(host.status(&name()).unwrap().word(), "idle");
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_in_use_is_not_stopped() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    host.add_server(resting(&lab, "lab")).await.unwrap();
    for _ in 0..20 {
        sleep(ALMOST).await;
        lab.service.go_on.notify_one();
        assert!(call(&host, "lab/wait", json!({}), LONG).await.is_ok());
    }
    // One call that takes ten times the idle limit.
    let long = {
        let host = host.clone();
        tokio::spawn(async move { call(&host, "lab/wait", json!({}), 20 * LIMIT).await })
    };
    sleep(10 * LIMIT).await;
    lab.service.go_on.notify_one();
    assert!(long.await.unwrap().is_ok());
    // The idle time counts from the end of the call.
    sleep(ALMOST).await;
    assert_eq!(
        (host.status(&name()).unwrap().word(), lab.connections()),
        ("connected", 1)
    );
    sleep(REST).await;
    assert_eq!(host.status(&name()).unwrap().word(), "idle");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_keeps_a_server_and_wakes_it() {
    for era in [Era::Stateful, Era::Stateless] {
        let (lab, host) = (Lab::new(), host(of_era(era)));
        host.add_server(resting(&lab, "lab")).await.unwrap();
        assert!(host.subscribe(&name(), "note://1").await);
        sleep(3 * OVER).await;
        assert_eq!(host.status(&name()).unwrap().word(), "connected");
        assert!(host.unsubscribe(&name(), "note://1").await);
        sleep(OVER).await;
        assert_eq!(host.status(&name()).unwrap().word(), "idle", "{era:?}");
        assert!(host.subscribe(&name(), "note://2").await);
        host.settled().await;
        assert_eq!(
            (host.status(&name()).unwrap().word(), lab.connections()),
            ("connected", 2)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_to_wake_is_retried_like_a_lost_one() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let mut events = SeenEvents::of(&host);
    host.add_server(resting(&lab, "lab")).await.unwrap();
    sleep(OVER).await;
    lab.refusing.store(true, Ordering::Relaxed);
    let woken = {
        let host = host.clone();
        tokio::spawn(async move { call(&host, "lab/wait", json!({}), LONG).await })
    };
    timeout(LONG, wait_until(|| lab.connections() == 3))
        .await
        .unwrap();
    // Its tools remain listed while it is retried.
    assert_eq!(host.catalog().len(), 3);
    let error = woken.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::Server(ServerError::Failed { .. })),
        "{error}"
    );
    assert_eq!(
        events.states_so_far("lab"),
        ["connected", "idle", "pending", "failed"]
    );
    assert_eq!((lab.connections(), host.catalog().len()), (6, 0));
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_an_idle_server_follow_its_configuration() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    host.apply(vec![resting(&lab, "lab")]).await;
    host.settled().await;
    sleep(OVER).await;
    // An unchanged configuration does not wake it; other rules do.
    host.apply(vec![resting(&lab, "lab")]).await;
    assert_eq!(host.status(&name()).unwrap().word(), "idle");
    let only_read = ServerEntry {
        enabled_tools: vec!["read".to_owned()],
        ..ServerEntry::default()
    };
    let fewer = ServerSpec {
        rules: ToolRules::of(&only_read),
        ..resting(&lab, "lab")
    };
    host.apply(vec![fewer.clone()]).await;
    host.settled().await;
    assert_eq!((host.catalog().len(), lab.connections()), (1, 2));
    // Removing the idle limit does not reconnect it.
    host.apply(vec![ServerSpec {
        idle_shutdown: None,
        ..fewer
    }])
    .await;
    sleep(10 * OVER).await;
    assert_eq!(
        (host.status(&name()).unwrap().word(), lab.connections()),
        ("connected", 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_while_its_server_was_idle_is_not_called() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    host.add_server(resting(&lab, "lab")).await.unwrap();
    sleep(OVER).await;
    lab.service.changed.store(true, Ordering::Relaxed);
    let error = call(&host, "lab/wait", json!({}), LONG).await.unwrap_err();
    assert!(
        matches!(error, CallError::Lookup(LookupError::SetAside { .. })),
        "{error}"
    );
    assert_eq!(lab.service.calls.load(Ordering::Relaxed), 0);
    // It stays connected, so that an approval is noticed.
    sleep(10 * OVER).await;
    assert_eq!(host.status(&name()).unwrap().word(), "connected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_during_an_idle_shutdown_succeeds() {
    let (lab, host) = (Lab::new(), host(HostSettings::default()));
    let short = ServerSpec {
        idle_shutdown: Some(Duration::from_millis(10)),
        ..lab.spec("lab")
    };
    host.add_server(short).await.unwrap();
    let started = Instant::now();
    let mut calls = 0;
    while lab.connections() < 60 && started.elapsed() < LONG {
        // Around the times at which the server may be stopped.
        sleep(Duration::from_micros(9_000 + 371 * (calls % 37))).await;
        lab.service.go_on.notify_one();
        let outcome = call(&host, "lab/wait", json!({}), LONG).await;
        assert!(outcome.is_ok(), "call {calls}: {outcome:?}");
        calls += 1;
    }
    assert_eq!(host.status(&name()).unwrap().restarts, 0);
}

#[tokio::test]
async fn the_process_of_an_unused_server_is_gone() {
    let script = Script::new("lab").tool(Tool::new("echo"));
    let server = start(script, Over::Stdio).await.unwrap();
    let host = host(HostSettings::default());
    let mut events = SeenEvents::of(&host);
    let unused = ServerSpec {
        idle_shutdown: Some(Duration::from_millis(200)),
        ..spec("lab", &server, Over::Stdio, 1 << 20)
    };
    host.add_server(unused).await.unwrap();
    let process = host.status(&name()).unwrap().process.unwrap();
    assert_eq!(events.states("lab", 2).await, ["connected", "idle"]);
    assert_eq!(host.status(&name()).unwrap().process, None);
    let gone = wait_until(|| !std::path::Path::new(&format!("/proc/{process}")).exists());
    timeout(LONG, gone).await.unwrap();
    let outcome = call(&host, "lab/echo", json!({"a": 1}), LONG).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    host.shutdown().await;
}
