//! Large inputs: a line of 100 MB, ten thousand tools, deep nesting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard::{CallError, Host, HostOptions, RequestError};
use switchboard_protocol::Limits;
use switchboard_test::hosted::{call, resident_bytes, spec};
use switchboard_test::scripted::{Fault, Over, Rule, Script, Tool, start};

use super::{alone, cells};

const PATIENCE: Duration = Duration::from_secs(30);
const MEBIBYTE: usize = 1024 * 1024;

/// Tracks the peak memory growth of this process.
struct Peak {
    start: usize,
    most: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    watching: std::thread::JoinHandle<()>,
}

impl Peak {
    fn begin() -> Self {
        let start = resident_bytes();
        let (most, over) = (
            Arc::new(AtomicUsize::new(start)),
            Arc::new(AtomicBool::new(false)),
        );
        let (seen, ended) = (Arc::clone(&most), Arc::clone(&over));
        let watching = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                seen.fetch_max(resident_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self {
            start,
            most,
            over,
            watching,
        }
    }

    fn growth(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        self.watching.join().unwrap();
        self.most.load(Ordering::Relaxed).saturating_sub(self.start)
    }
}

#[test]
fn a_line_of_100_mb_costs_no_more_than_the_limit() {
    alone(check_large_line());
}

async fn check_large_line() {
    let limit = Limits::DEFAULT.max_bytes;
    // The server is a separate process, so that only the host is measured.
    let script = Script::new("large")
        .tool(Tool::new("large"))
        .tool(Tool::new("small"))
        .rule(Rule::on_tool(
            "large",
            Fault::Oversized { bytes: 100_000_000 },
        ));
    let server = start(script, Over::Stdio).await.unwrap();
    let host = Host::with_options(HostOptions::default());
    host.add_server(spec("large", &server, Over::Stdio, limit))
        .await
        .unwrap();
    let peak = Peak::begin();
    let error = call(&host, "large/large", json!({}), PATIENCE)
        .await
        .unwrap_err();
    let growth = peak.growth();
    assert!(
        matches!(&error, CallError::Request { error: RequestError::TooLarge(max), .. } if *max == limit),
        "{error}"
    );
    call(&host, "large/small", json!({}), PATIENCE)
        .await
        .unwrap();
    let allowed = limit + limit / 10;
    assert!(
        growth <= allowed,
        "{} MiB of {} MiB",
        growth / MEBIBYTE,
        allowed / MEBIBYTE
    );
    host.shutdown().await;
}

#[test]
fn a_tool_that_is_nested_too_deep_costs_that_tool_alone() {
    alone(check_deep_tool());
}

async fn check_deep_tool() {
    let mut schema = json!({"type": "object"});
    for _ in 0..150 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    assert!(schema.to_string().len() < 10_000);
    // The script of a process is parsed from JSON with its own depth limit; another test covers stdio.
    for (over, era) in cells().filter(|(over, _)| *over != Over::Stdio) {
        for event_streams in [false, true] {
            let deep = json!({"name": "deep", "inputSchema": schema});
            let mut script = Script::new("nested")
                .era(era)
                .tool(Tool::new("before"))
                .tool(Tool::listed(deep))
                .tool(Tool::new("after"));
            script.http.event_streams = event_streams;
            let server = start(script, over).await.unwrap();
            let host = Host::with_options(HostOptions::default());
            let spec = spec("nested", &server, over, MEBIBYTE);
            let cell = format!("{over:?}, {era:?}, event streams: {event_streams}");
            assert_eq!(host.add_server(spec).await.unwrap(), 2, "{cell}");
            for tool in ["nested/before", "nested/after"] {
                call(&host, tool, json!({}), PATIENCE).await.unwrap();
            }
            let refused = call(&host, "nested/deep", json!({}), PATIENCE).await;
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("nested too deep"), "{cell}: {refused}");
            let catalog = host.catalog();
            let listed = catalog.server("nested").unwrap();
            let aside: Vec<String> = listed.aside().map(ToString::to_string).collect();
            let reason = "deep: its definition is nested too deeply to be parsed; the server's maintainer has to flatten it";
            assert_eq!(aside, [reason], "{cell}");
            host.shutdown().await;
        }
    }
}

#[test]
fn ten_thousand_tools_are_offered_over_every_transport() {
    alone(check_many_tools());
}

async fn check_many_tools() {
    for (over, era) in cells() {
        let mut script = Script::new("many").era(era).generated_tools(10_000, 100);
        script.page_size = Some(2_500);
        let server = start(script, over).await.unwrap();
        let host = Host::with_options(HostOptions::default());
        let added = host
            .add_server(spec("many", &server, over, 16 * MEBIBYTE))
            .await;
        assert_eq!(added.unwrap(), 10_000, "{over:?}, {era:?}");
        let outcome = call(&host, "many/tool_9999", json!({"a": 1}), PATIENCE)
            .await
            .unwrap();
        assert!(
            outcome.result.as_str().contains(r#"{\"a\":1}"#),
            "{over:?}, {era:?}"
        );
        let lists = server.control.methods();
        let lists = lists
            .iter()
            .filter(|method| *method == "tools/list")
            .count();
        assert_eq!(lists, 4, "{over:?}, {era:?}");
        host.shutdown().await;
    }
}
