//! A host as the packages use it: operations on its own thread, and tools of the program.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use switchboard_bindings::{
    CallOptions, Callbacks, Failure, Format, Host, HostConfig, Operation, Reply, Request,
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
    let config = HostConfig {
        servers: Some("{}".to_owned()),
        ..HostConfig::default()
    };
    wait(&Host::open(config, &Callbacks::default()))
        .unwrap_or_else(|failure| unreachable!("{failure}"))
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
