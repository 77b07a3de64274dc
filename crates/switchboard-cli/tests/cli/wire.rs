//! Wire traffic in unusual cases, through the program: progress, results without content, cancellation.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_protocol::Era;
use switchboard_test::model::Turn;
use switchboard_test::scripted::{Endpoint, Over, Record, Script, Tool, start};
use tokio::runtime::Runtime;

use crate::chat::Machine;
use crate::pins::change;
use crate::servers::{configure, log, machine};
use crate::support::{Run, TestContext};

const ALLOWED: &str = "[[permissions.rules]]\ntool = \"mcp__shop\"\naction = \"allow\"\n";

/// A chat with a server whose calls are allowed, and these additional lines in its file.
fn shop(more: &str, turns: Vec<Turn>) -> Machine {
    let machine = Machine::new(turns);
    configure(&machine.context, &[("shop", ";tool_timeout_sec = 2")]);
    let file = machine.context.read("config/mcp.toml");
    let file = format!("{file}{ALLOWED}{more}");
    machine.context.write("config/mcp.toml", file);
    machine
}

#[test]
fn a_long_call_shows_that_it_is_alive_in_stream_json() {
    let waiting = Turn::new().call("call_1", "mcp__shop__wait", json!({}));
    let machine = shop(
        "[settings]\nprogress_interval_sec = 0.2\n",
        vec![waiting, Turn::text("It hangs.")],
    );
    let line = ["chat", "-p", "wait", "--output", "stream-json"];
    let run = Run::of(&machine.command().args(line).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let events = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<Value> = events.collect();
    let alive = events
        .iter()
        .filter(|event| event["type"] == "call_progress" && event["elapsed_ms"].is_u64());
    let alive: Vec<_> = alive.collect();
    assert!(alive.len() >= 2, "{}", run.stdout);
    assert!(
        alive.iter().all(|event| event["id"] == "call_1"),
        "{}",
        run.stdout
    );
    let elapsed: Vec<_> = alive
        .iter()
        .map(|event| event["elapsed_ms"].as_u64())
        .collect();
    assert!(
        elapsed.is_sorted() && elapsed[0] >= Some(200),
        "{elapsed:?}"
    );
}

#[test]
fn a_result_without_content_reaches_call_and_the_model_as_json() {
    let bare = json!({"tools": [{"name": "bare", "inputSchema": {"type": "object"}}]});
    let context = machine(&[("shop", "")]);
    change(&context, &bare);
    let called = context.line("call shop/bare");
    assert_eq!(called.code, 0, "{}", called.all());
    let shown: Value = serde_json::from_str(&called.stdout).unwrap();
    assert_eq!(shown, json!({"foo": "bar"}));
    assert_eq!(context.json("call shop/bare --json")["foo"], "bar");

    let call = Turn::new().call("call_1", "mcp__shop__bare", json!({}));
    let machine = shop("", vec![call, Turn::text("done")]);
    change(&machine.context, &bare);
    let run = Run::of(
        &machine
            .command()
            .args(["chat", "-p", "go"])
            .output()
            .unwrap(),
    );
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "done\n"),
        "{}",
        run.stderr
    );
    let result = machine.model.requests()[1].body["messages"][2].to_string();
    assert!(result.contains(r#"{\"foo\": \"bar\"}"#), "{result}");
}

/// A call over HTTP that exceeds its timeout.
fn check_cancelled(runtime: &Runtime, era: Era) {
    let script = Script::new("far")
        .era(era)
        .tool(Tool::new("slow").waits("never"));
    let server = runtime.block_on(start(script, Over::Http)).unwrap();
    let Endpoint::Url(url) = &server.endpoint else {
        unreachable!("HTTP has an address");
    };
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        format!("[mcp_servers.far]\nurl = {url:?}\n"),
    );
    let run = context.line("call far/slow --timeout 1");
    assert_eq!(run.code, 124, "{era:?}: {}", run.all());
    assert!(
        run.stderr.contains("cancelled on the server"),
        "{era:?}: {}",
        run.stderr
    );
    let call = server.control.received();
    let call = call
        .iter()
        .find(|message| message["method"] == "tools/call");
    let id = call.unwrap()["id"].clone();
    if era == Era::Stateful {
        let cancelled = server.control.wait_for_method("notifications/cancelled", 1);
        let cancelled = runtime.block_on(cancelled).unwrap();
        assert_eq!(cancelled["params"]["requestId"], id);
    } else {
        // Closing the response stream is the notification.
        let cancelled = server.control.wait(|records| {
            let gone = |record: &&Record| matches!(record, Record::Disconnected { .. });
            records.iter().find(gone).map(|_| ())
        });
        runtime.block_on(cancelled).unwrap();
        let methods = server.control.methods();
        assert!(
            !methods.contains(&"notifications/cancelled".to_owned()),
            "{methods:?}"
        );
    }
}

#[test]
fn a_call_over_http_that_takes_too_long_is_cancelled_at_the_server() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for era in [Era::Stateful, Era::Stateless] {
        check_cancelled(&runtime, era);
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
}

#[test]
fn a_tool_that_is_nested_too_deep_costs_that_tool_alone() {
    let context = machine(&[("shop", "")]);
    let (open, close) = (r#"{"properties":{"a":"#.repeat(150), "}}".repeat(150));
    let file = format!("{}.changes", log(&context, "shop").display());
    let deep = format!(r#"{{"tools":[{{"name":"deep","inputSchema":{open}{{}}{close}}}]}}"#);
    std::fs::write(file, deep).unwrap();
    let tools = context.json("tools --server shop --all --json");
    let tool = |name: &str| {
        let mut tools = tools.as_array().unwrap().iter();
        tools.find(|tool| tool["tool"] == name).unwrap().clone()
    };
    let reason = "its definition is nested too deeply to be parsed; the server's maintainer has to flatten it";
    assert_eq!(tool("deep")["aside"], reason);
    assert_eq!(tool("echo")["aside"], Value::Null);
    assert_eq!(context.line("call shop/echo text=hello").stdout, "hello\n");
    let refused = context.line("call shop/deep");
    assert!(refused.stderr.contains(reason), "{}", refused.all());
}
