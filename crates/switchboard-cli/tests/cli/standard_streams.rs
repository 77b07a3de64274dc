//! Servers over pipes, sockets and files: all work, and a stream that other processes share stays as it was.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::{Value, json};

use crate::support::TestContext;

fn hello() -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    format!("{message}\n")
}

fn is_hello(line: &str) -> bool {
    let answer: Value = serde_json::from_str(line).unwrap();
    answer["result"]["serverInfo"]["name"] == "switchboard"
}

fn is_blocking(stream: &impl AsFd) -> bool {
    !fcntl_getfl(stream).unwrap().contains(OFlags::NONBLOCK)
}

/// Exchanges one message with a gateway over these streams, runs `check` while it runs, and waits for its end.
fn serve(
    (input, mut to_server): (impl Into<OwnedFd>, impl io::Write),
    (output, from_server): (impl Into<OwnedFd>, impl io::Read),
    check: impl FnOnce(u32),
) {
    let context = TestContext::new();
    let mut child = context
        .process()
        .arg("gateway")
        .stdin(Stdio::from(input.into()))
        .stdout(Stdio::from(output.into()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    to_server.write_all(hello().as_bytes()).unwrap();
    let mut line = String::new();
    let mut from_server = BufReader::new(from_server);
    from_server.read_line(&mut line).unwrap();
    assert!(is_hello(&line), "{line}");
    check(child.id());
    drop((to_server, from_server));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn pipes_keep_their_flags() {
    let (input, to_server) = io::pipe().unwrap();
    let (from_server, output) = io::pipe().unwrap();
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    serve((input, to_server), (output, from_server), |process| {
        assert!(is_blocking(&shared.0) && is_blocking(&shared.1));
        if cfg!(target_os = "linux") {
            let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
            let names: Vec<String> = threads
                .map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")).unwrap())
                .collect();
            let between = names.iter().any(|name| name.starts_with("standard-input"));
            assert!(!between, "{names:?}");
        }
    });
}

#[test]
fn sockets_get_their_flags_back() {
    let (input, to_server) = UnixStream::pair().unwrap();
    let (output, from_server) = UnixStream::pair().unwrap();
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    serve((input, to_server), (output, from_server), |_| {});
    assert!(is_blocking(&shared.0) && is_blocking(&shared.1));
}

#[test]
fn one_socket_can_be_both_streams() {
    let (server, client) = UnixStream::pair().unwrap();
    let output = server.try_clone().unwrap();
    let from_server = client.try_clone().unwrap();
    serve((server, Shutdown(client)), (output, from_server), |_| {});
}

/// Ends the input of the server when dropped, though its output is still read.
struct Shutdown(UnixStream);

impl io::Write for Shutdown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Shutdown {
    fn drop(&mut self) {
        self.0.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

#[test]
fn files_are_served_too() {
    let context = TestContext::new();
    context.write("requests.jsonl", hello());
    let answers = context.path("answers.jsonl");
    let status = context
        .process()
        .arg("gateway")
        .stdin(File::open(context.path("requests.jsonl")).unwrap())
        .stdout(File::create(&answers).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let text = fs::read_to_string(answers).unwrap();
    assert!(is_hello(text.lines().next().unwrap()), "{text}");
}
