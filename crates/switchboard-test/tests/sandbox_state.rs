//! Servers that support it are notified of their sandbox policy and of every change.

use serde_json::{Value, json};
use switchboard::internal::sandbox::{Policy, SandboxState};
use switchboard::{Host, HostOptions};
use switchboard_config::entry::{Sandbox, SandboxMode};
use switchboard_test::hosted::spec;
use switchboard_test::scripted::{Over, Script, Tool, start};

const UPDATE: &str = "codex/sandbox-state/update";

fn state(mode: SandboxMode, network: bool) -> SandboxState {
    let network = Some(network);
    SandboxState {
        policy: Policy::of(Some(Sandbox { mode, network }), "/work".into()),
        folder: "/work".into(),
    }
}

fn notification(policy: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": UPDATE,
        "params": {"sandboxPolicy": policy, "codexLinuxSandboxExe": null, "sandboxCwd": "/work"},
    })
}

#[tokio::test]
async fn a_server_is_notified_after_the_handshake_and_on_policy_changes() {
    for over in [Over::Stdio, Over::Http, Over::WebSocket] {
        let mut script = Script::new("shell").tool(Tool::new("run"));
        script.capabilities = Some(json!({
            "tools": {},
            "experimental": {"codex/sandbox-state": {"version": "1.0.0"}},
        }));
        let server = start(script, over).await.unwrap();
        let host = Host::with_options(HostOptions::default());
        let mut shell = spec("shell", &server, over, 1024 * 1024);
        shell.sandbox = state(SandboxMode::ReadOnly, true);
        host.add_server(shell.clone()).await.unwrap();
        server.control.wait_for_method(UPDATE, 1).await.unwrap();

        // An unchanged policy is not sent again.
        host.add_server(shell.clone()).await.unwrap();
        shell.sandbox = state(SandboxMode::Workspace, false);
        host.add_server(shell.clone()).await.unwrap();
        server.control.wait_for_method(UPDATE, 2).await.unwrap();
        shell.sandbox.policy = None;
        host.add_server(shell).await.unwrap();
        server.control.wait_for_method(UPDATE, 3).await.unwrap();

        let received = server.control.received().into_iter();
        let updates: Vec<Value> = received
            .filter(|message| message["method"] == UPDATE)
            .collect();
        let written = json!({
            "type": "workspace-write",
            "writable_roots": ["/work"],
            "network_access": false,
            "exclude_tmpdir_env_var": false,
            "exclude_slash_tmp": true,
        });
        assert_eq!(
            updates,
            [
                notification(&json!({"type": "read-only"})),
                notification(&written),
                notification(&json!({"type": "danger-full-access"})),
            ],
            "{over:?}"
        );
        host.shutdown().await;
    }
}

#[tokio::test]
async fn other_servers_are_not_notified() {
    let server = start(Script::new("shell").tool(Tool::new("run")), Over::Http)
        .await
        .unwrap();
    let host = Host::with_options(HostOptions::default());
    let mut shell = spec("shell", &server, Over::Http, 1024 * 1024);
    shell.sandbox = state(SandboxMode::ReadOnly, true);
    host.add_server(shell).await.unwrap();
    host.shutdown().await;
    assert!(!server.control.methods().contains(&UPDATE.to_owned()));
}
