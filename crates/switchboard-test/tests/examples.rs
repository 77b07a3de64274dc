//! Runs the host's examples and checks their output.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use switchboard_test::model::{ScriptedModel, Turn};
use switchboard_test::scripted::{Script, Tool};
use switchboard_test::skipped::skipped;

/// The example's executable, which Cargo builds with the tests of the workspace.
fn example(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap().join("examples");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        skipped(&format!(
            "the example {name} is not built (run the tests of the whole workspace)"
        ));
        return None;
    }
    Some(path)
}

fn check(name: &str, arguments: &[&str], expected: &str) {
    check_with(name, arguments, &[], expected);
}

fn check_with(name: &str, arguments: &[&str], variables: &[(&str, &str)], expected: &str) {
    let Some(program) = example(name) else { return };
    let mut command = Command::new(program);
    let output = command
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "{name}: {stderr}"
    );
}

#[test]
fn a_tool_is_called() {
    let script = Script::new("lab").tool(Tool::new("echo").replies("hello"));
    let script = serde_json::to_string(&script).unwrap();
    let server = env!("CARGO_BIN_EXE_scripted-server");
    check(
        "call_tool",
        &["lab/echo", r#"{"text":"hello"}"#, server, &script],
        "hello\n",
    );
}

#[test]
fn a_server_is_a_value() {
    check("own_server", &[], "Hello, Ada!\nInvalidArguments\n");
}

#[test]
fn a_callback_permits() {
    let expected = "files/glob {\"pattern\":\"src/lib.rs\"}\n\
        src/lib.rs\n\
        files/glob {\"pattern\":\"*.toml\"}\n\
        Denied: permission denied for tool files/glob: only src/ may be read\n";
    check("permission", &[], expected);
}

#[test]
fn events_are_printed() {
    check(
        "events",
        &[],
        "files is connected\nglob begins\nglob ends, succeeded\n",
    );
}

#[test]
#[cfg(unix)]
fn a_transport_is_a_value() {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;

    let script = Script::new("lab").tool(Tool::new("echo").replies("hello over TCP"));
    let script = serde_json::to_string(&script).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // A stdio server whose standard streams are the socket.
    let server = std::thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        let input = OwnedFd::from(connection.try_clone().unwrap());
        let mut server = Command::new(env!("CARGO_BIN_EXE_scripted-server"))
            .arg(script)
            .stdin(input)
            .stdout(OwnedFd::from(connection))
            .spawn()
            .unwrap();
        server.wait().unwrap()
    });
    check(
        "custom_transport",
        &[&address, "echo", "{}"],
        "hello over TCP\n",
    );
    assert!(server.join().unwrap().success());
}

#[test]
fn an_agent_answers() {
    let turns = vec![
        Turn::text("").call("call_1", "Glob", json!({ "pattern": "*.toml" })),
        Turn::text("").call("call_2", "Bash", json!({ "command": "rm Cargo.toml" })),
        Turn::text("It is a crate."),
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let model = runtime.block_on(ScriptedModel::start(turns)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Cargo.toml");
    std::fs::write(&file, "").unwrap();
    check_with(
        "agent",
        &[folder.path().to_str().unwrap(), "What is this?"],
        &[
            ("ANTHROPIC_API_KEY", "key"),
            ("ANTHROPIC_BASE_URL", &model.anthropic_url()),
        ],
        "calls Glob\ncalls Bash\nIt is a crate.\n",
    );
    // Without a user to ask, the modifying call was denied.
    assert!(file.exists());
}
