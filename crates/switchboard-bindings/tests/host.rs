//! A host as the packages use it: operations on its own thread, and tools of the program.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use switchboard_bindings::{
    CallHook, CallOptions, Callbacks, Failure, Format, Host, HostConfig, Operation, Reply, Request,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn wait<T>(operation: &Operation<T>) -> Result<T, Failure> {
    assert!(operation.wait(PATIENCE), "it takes too long");
    operation
        .take()
        .unwrap_or_else(|| unreachable!("it was taken before"))
}

#[track_caller]
fn host() -> Host {
    host_with(&Callbacks::default())
}

#[track_caller]
fn host_with(callbacks: &Callbacks) -> Host {
    let config = HostConfig {
        servers: Some("{}".to_owned()),
        ..HostConfig::default()
    };
    wait(&Host::open(config, callbacks)).unwrap_or_else(|failure| unreachable!("{failure}"))
}

const ADD: &str = r#"{"name": "add", "description": "Adds.", "inputSchema": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"]}}"#;

#[test]
fn tools_of_the_program_are_listed_called_and_replaced() {
    let host = host();
    let answer = |_: Request, reply: Reply| reply.resolve("{\"sum\": 3}".to_owned());
    host.add_tool(ADD, Arc::new(answer)).unwrap();
    let tools = wait(&host.tools(None)).unwrap();
    let names: Vec<&str> = tools.iter().map(switchboard_bindings::Tool::name).collect();
    assert_eq!(names, ["mcp__local__add"]);
    assert!(
        tools[0]
            .formatted(Format::Anthropic)
            .contains("\"input_schema\"")
    );

    let arguments = Some("{\"a\": 1}".to_owned());
    let result = host.call("local/add".to_owned(), arguments, CallOptions::default());
    assert_eq!(wait(&result).unwrap().text(), "{\"sum\":3}");

    let wrong = Some("{\"a\": []}".to_owned());
    let result = host.call("local/add".to_owned(), wrong, CallOptions::default());
    assert_eq!(wait(&result).unwrap_err().code, "invalid_arguments");

    // A second tool, and another answer of the first.
    let other = |_: Request, reply: Reply| reply.resolve("\"other\"".to_owned());
    host.add_tool(ADD, Arc::new(other)).unwrap();
    host.add_tool(&ADD.replace("add", "more"), Arc::new(other))
        .unwrap();
    assert_eq!(
        wait(&host.tools(Some("local".to_owned()))).unwrap().len(),
        2
    );
    let arguments = Some("{\"a\": 1}".to_owned());
    let result = host.call("local/add".to_owned(), arguments, CallOptions::default());
    assert_eq!(wait(&result).unwrap().text(), "other");
    wait(&host.close()).unwrap();
}

#[test]
fn tools_added_one_after_another_are_listed_at_once() {
    let host = host();
    let answer = |_: Request, reply: Reply| reply.resolve("null".to_owned());
    let begun = Instant::now();
    for count in 1..=8 {
        let definition = ADD.replace("add", &format!("add-{count}"));
        host.add_tool(&definition, Arc::new(answer)).unwrap();
        assert_eq!(wait(&host.tools(None)).unwrap().len(), count);
    }
    // Change notifications would be rate limited: 100 ms, 200 ms, 400 ms, ...
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    wait(&host.close()).unwrap();
}

#[test]
fn a_tool_that_is_set_aside_does_not_delay_calls() {
    let host = host();
    let answer = |_: Request, reply: Reply| reply.resolve("null".to_owned());
    host.add_tool(ADD, Arc::new(answer)).unwrap();
    wait(&host.tools(None)).unwrap();
    // A schema that no argument matches: the tool is never listed.
    let broken = r#"{"name": "broken", "inputSchema": {"type": "string"}}"#;
    host.add_tool(broken, Arc::new(answer)).unwrap();
    let begun = Instant::now();
    assert_eq!(wait(&host.tools(None)).unwrap().len(), 1);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    wait(&host.close()).unwrap();
}

#[test]
fn a_cancelled_call_is_cancelled_in_the_program() {
    let host = host();
    let (begun, begins) = mpsc::channel();
    let (cancelled, cancels) = mpsc::channel();
    let held = std::sync::Mutex::new(Vec::new());
    let hang = move |_: Request, reply: Reply| {
        let cancelled = cancelled.clone();
        reply.on_cancel(move || cancelled.send(()).unwrap());
        held.lock().unwrap().push(reply);
        begun.send(()).unwrap();
    };
    host.add_tool(ADD, Arc::new(hang)).unwrap();
    let arguments = Some("{\"a\": 1}".to_owned());
    let call = host.call("local/add".to_owned(), arguments, CallOptions::default());
    begins.recv_timeout(PATIENCE).unwrap();
    call.cancel();
    cancels.recv_timeout(PATIENCE).unwrap();
    assert_eq!(wait(&call).unwrap_err().code, "cancelled");
    wait(&host.close()).unwrap();
}

#[test]
fn failures_name_the_server_the_step_and_the_remedy() {
    let host = host();
    let missing = host.add_server(
        "gone".to_owned(),
        r#"{"command": "no-such-program-here"}"#.to_owned(),
    );
    let failure = wait(&missing).unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert_eq!(failure.server.as_deref(), Some("gone"));
    assert_eq!(failure.step, Some("connecting"));
    assert!(!failure.causes.is_empty());

    let empty = host.add_server("empty".to_owned(), "{}".to_owned());
    assert_eq!(wait(&empty).unwrap_err().code, "invalid_configuration");

    let config = HostConfig {
        servers: Some(
            r#"{"mcpServers": {"both": {"command": "a", "url": "https://b.example"}}}"#.to_owned(),
        ),
        ..HostConfig::default()
    };
    let failure = wait(&Host::open(config, &Callbacks::default())).unwrap_err();
    assert_eq!(failure.code, "invalid_configuration");
    assert!(failure.message.contains("both"), "{failure}");

    // One server that fails does not affect the others.
    let tools = wait(&host.tools(None)).unwrap();
    assert!(tools.is_empty());
    let status = host.status().unwrap();
    assert!(status.contains("\"failed\""), "{status}");
    wait(&host.close()).unwrap();
    assert_eq!(wait(&host.tools(None)).unwrap_err().code, "closed");
    assert_eq!(host.status().unwrap_err().code, "closed");
    wait(&host.close()).unwrap();
}

#[test]
fn events_end_when_the_host_is_closed() {
    let host = host();
    let events = host.events().unwrap();
    let next = events.next();
    wait(&host.close()).unwrap();
    let mut event = wait(&next).unwrap();
    while event.is_some() {
        event = wait(&events.next()).unwrap();
    }
    assert_eq!(wait(&events.next()).unwrap(), None);
}

/// Calls a tool that returns its arguments, with one hook. Returns the result or the failure as text, and the requests
/// that the hook received.
#[expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]
fn hooked(event: &str, tool: &str, answer: Option<&'static str>) -> (String, Vec<Request>) {
    let (sender, requests) = mpsc::channel();
    let held = std::sync::Mutex::new(Vec::new());
    let callback = move |request: Request, reply: Reply| {
        sender.send(request).unwrap();
        match answer {
            Some(text) if text.starts_with("fail") => reply.reject(text.to_owned()),
            Some(text) => reply.resolve(text.to_owned()),
            None => held.lock().unwrap().push(reply),
        }
    };
    let host = host_with(&Callbacks {
        hooks: vec![CallHook {
            event: CallHook::event(event).unwrap(),
            tool: tool.to_owned(),
            callback: Arc::new(callback),
        }],
        hook_timeout: Some(Duration::from_millis(50)),
        ..Callbacks::default()
    });
    let echo = |request: Request, reply: Reply| reply.resolve(request.payload);
    host.add_tool(ADD, Arc::new(echo)).unwrap();
    let arguments = Some("{\"a\": 1}".to_owned());
    let call = host.call("local/add".to_owned(), arguments, CallOptions::default());
    let outcome = match wait(&call) {
        Ok(outcome) => outcome.text(),
        Err(failure) => format!("{}: {}", failure.code, failure.message),
    };
    wait(&host.close()).unwrap();
    (outcome, requests.try_iter().collect())
}

#[test]
fn functions_observe_change_and_block_calls() {
    let check = |event: &str, answer: Option<&'static str>, expected: &str| {
        let (outcome, requests) = hooked(event, "*", answer);
        assert!(outcome.contains(expected), "{event} {answer:?}: {outcome}");
        assert_eq!(requests.len(), 1, "{event} {answer:?}");
        assert_eq!(requests[0].name, "hook 0");
    };
    let before = |answer, expected| check("before_call", answer, expected);
    before(Some("null"), "{\"a\":1}");
    before(Some("{}"), "{\"a\":1}");
    before(Some("{\"arguments\": {\"a\": 2}}"), "{\"a\":2}");
    before(
        Some("{\"arguments\": {\"a\": []}}"),
        "a hook changed the arguments",
    );
    before(
        Some("{\"decision\": \"block\", \"reason\": \"not now\"}"),
        "not now",
    );
    before(Some("{\"decision\": \"ask\"}"), "denied: ");
    let after = |answer, expected| check("after_call", answer, expected);
    after(Some("null"), "{\"a\":1}");
    after(
        Some("{\"result\": {\"content\": [{\"type\": \"text\", \"text\": \"hidden\"}]}}"),
        "hidden",
    );
    after(
        Some("{\"decision\": \"block\", \"reason\": \"not this\"}"),
        "not this",
    );
    // A function that fails, times out or returns something else blocks.
    for event in ["before_call", "after_call"] {
        let hook = format!("the hook `{event}`");
        check(
            event,
            Some("fail: broken"),
            &format!("{hook} failed: fail: broken"),
        );
        check(event, None, &format!("{hook} timed out after 0.05 seconds"));
        for invalid in ["true", "\"block\"", "[]"] {
            let reason = format!("{hook} returned something other than a JSON object");
            check(event, Some(invalid), &reason);
        }
        let unknown = "{\"decision\": \"perhaps\"}";
        check(
            event,
            Some(unknown),
            &format!("{hook} returned an unknown decision"),
        );
    }
}

#[test]
fn functions_get_the_call_and_its_result() {
    let (_, requests) = hooked("after_call", "mcp__local__*", Some("null"));
    let payload: serde_json::Value = serde_json::from_str(&requests[0].payload).unwrap();
    assert_eq!(payload["event"], "after_call");
    assert_eq!(payload["name"], "mcp__local__add");
    assert_eq!(payload["server"], "local");
    assert_eq!(payload["tool"], "add");
    assert_eq!(payload["arguments"], serde_json::json!({"a": 1}));
    assert_eq!(payload["result"]["structuredContent"]["a"], 1);
    assert!(payload["call"].is_string() && payload["session"].is_string());
    // A tool that the pattern does not cover is not inspected.
    let (outcome, requests) = hooked("before_call", "mcp__other__*|Bash", Some("fail"));
    assert_eq!(
        (outcome.as_str(), requests.as_slice()),
        ("{\"a\":1}", [].as_slice())
    );
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused() {
    let callback = |_: Request, reply: Reply| reply.resolve("null".to_owned());
    let callbacks = Callbacks {
        hooks: vec![CallHook {
            event: CallHook::event("before_call").unwrap(),
            tool: "mcp__{a".to_owned(),
            callback: Arc::new(callback),
        }],
        ..Callbacks::default()
    };
    let failure = wait(&Host::open(HostConfig::default(), &callbacks)).unwrap_err();
    assert_eq!(failure.code, "invalid_configuration");
    assert!(CallHook::event("PreToolUse").is_none());
}
