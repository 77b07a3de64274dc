//! Tests of a host built from the files of a folder, with a temporary home.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use switchboard::internal::hooks::{HookAnswer, HookInput, Registration};
use switchboard::{ErrorKind, Host, SharedJson};
use switchboard_config::policy::HookEvent;

fn environment(home: &Path) -> Arc<[(OsString, OsString)]> {
    let pair = |name: &str, value: OsString| (OsString::from(name), value);
    Arc::from([
        pair("HOME", home.into()),
        pair("PATH", std::env::var_os("PATH").unwrap_or_default()),
        // Ignore the machine's enterprise file, if any.
        pair("SWITCHBOARD_MANAGED_FILE", home.join("none.toml").into()),
    ])
}

#[tokio::test]
async fn a_host_has_the_servers_and_the_rules_of_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let (home, project) = (root.path().join("home"), root.path().join("project"));
    let config = home.join(".config/switchboard");
    for folder in [&config, &project.join("src")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let user = r#"
        [mcp_servers.workspace]
        transport = "sdk"

        [mcp_servers.off]
        command = "off"
        enabled = false

        [mcp_servers.wrong]
        command = "wrong"
        url = "https://example.org"

        [[permissions.rules]]
        tool = "mcp__workspace__grep"
        action = "deny"
    "#;
    std::fs::write(config.join("mcp.toml"), user).unwrap();
    let theirs = json!({"mcpServers": {"theirs": {"command": "theirs"}}});
    std::fs::write(project.join(".mcp.json"), theirs.to_string()).unwrap();
    std::fs::write(project.join("notes.txt"), "hello").unwrap();

    let host = Host::builder()
        .folder(project.join("src"))
        .environment(environment(&home))
        .build()
        .await
        .unwrap();
    let statuses = host.statuses();
    let seen: Vec<(&str, &str)> = statuses
        .iter()
        .map(|status| (status.name.as_str(), status.word()))
        .collect();
    let expected = [
        ("off", "disabled"),
        ("theirs", "untrusted"),
        ("workspace", "lazy"),
        ("wrong", "invalid"),
    ];
    assert_eq!(seen, expected);
    // The server of the user's file works in the project, by the user's rules.
    let found = host
        .call("workspace/glob", json!({"pattern": "*.txt"}))
        .await;
    assert!(found.unwrap().text().contains("notes.txt"));
    let denied = host
        .call("workspace/grep", json!({"pattern": "hello"}))
        .await;
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    // A server that is not approved does not start, not even for a call.
    let refused = host.call("theirs/tool", json!({})).await.unwrap_err();
    assert!(
        refused.to_string().contains("not approved yet"),
        "{refused}"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let error = Host::builder()
        .folder(home.path().join("gone"))
        .environment(environment(home.path()))
        .build()
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidConfiguration);
}

#[tokio::test]
async fn hooks_of_the_program_inspect_its_calls() {
    let home = tempfile::tempdir().unwrap();
    let builder = || {
        Host::builder()
            .environment(environment(home.path()))
            .servers(r#"{"workspace": {"type": "sdk"}}"#)
    };
    let hook =
        |event: HookEvent, tool: &str, hook: fn(&HookInput<'_>) -> HookAnswer| Registration {
            event,
            tool: tool.to_owned(),
            fail_open: false,
            hook: Arc::new(hook),
        };
    let host = builder()
        .hook(hook(HookEvent::PreToolUse, "mcp__workspace__grep", |_| {
            HookAnswer::block("not here")
        }))
        .hook(hook(HookEvent::PostToolUse, "*", |call| HookAnswer {
            result: call.result.map(|_| {
                SharedJson::from(&json!({"content": [{"type": "text", "text": "hidden"}]}))
            }),
            ..HookAnswer::default()
        }))
        .build()
        .await
        .unwrap();
    let found = host
        .call("workspace/glob", json!({"pattern": "*.toml"}))
        .await;
    assert_eq!(found.unwrap().text(), "hidden");
    let blocked = host
        .call("workspace/grep", json!({"pattern": "hello"}))
        .await
        .unwrap_err();
    assert_eq!(blocked.kind(), ErrorKind::Denied);
    assert!(blocked.to_string().contains("not here"), "{blocked}");
    host.shutdown().await;

    // A pattern that cannot be used is an error of the program.
    let invalid = hook(HookEvent::PreToolUse, "mcp__{a", |_| HookAnswer::default());
    let error = builder().hook(invalid).build().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    assert!(error.to_string().contains("mcp__{a"), "{error}");
}
