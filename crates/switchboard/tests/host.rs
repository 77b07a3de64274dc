//! Tests of the host as an embedder uses it, with in-process servers.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard::internal::connectors::Connectors;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::{
    CallError, CallRequest, Features, Host, HostOptions, Server, ServerName, Service, Workspace,
    tool_definition,
};
use switchboard_config::files::InMemory;
use switchboard_config::resolve::{Config, Inputs};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::Tool;
use tokio::time::Instant;

fn workspace(name: &str, folder: &std::path::Path) -> ServerSpec {
    let connector = InProcessConnector::new(Arc::new(Workspace::new(folder).unwrap()));
    ServerSpec::new(
        name,
        Arc::new(connector),
        ConnectionKey::of(&[name.as_bytes()]),
    )
}

fn call(tool: &str, arguments: &serde_json::Value) -> CallRequest {
    CallRequest {
        tool: tool.to_owned(),
        arguments: Some(serde_json::value::to_raw_value(arguments).unwrap()),
        timeout: Some(Duration::from_secs(5)),
        ..CallRequest::default()
    }
}

#[tokio::test]
async fn a_tool_is_called_by_its_exposed_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "hello").unwrap();
    let host = Host::with_options(HostOptions::default());
    let tools = host
        .add_server(workspace("files", folder.path()))
        .await
        .unwrap();
    assert_eq!(tools, 3);
    let outcome = host
        .request(call("mcp__files__read_file", &json!({"path": "note.txt"})))
        .await
        .unwrap();
    assert!(
        outcome.result.as_str().contains("hello"),
        "{:?}",
        outcome.result
    );
    assert!(!outcome.is_error);
    let error = host
        .request(call("mcp__files__read_fil", &json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Lookup(_)), "{error}");
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.starts_with("did you mean mcp__files__read_file"),
        "{hint}"
    );
    host.shutdown().await;
    assert_eq!(host.statuses().len(), 0);
}

#[tokio::test]
async fn a_server_is_switched_off_and_on() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::with_options(HostOptions::default());
    let name = ServerName::from("files");
    host.apply(vec![workspace("files", folder.path())]).await;
    host.settled().await;
    assert_eq!(host.status(&name).unwrap().word(), "connected");
    assert!(host.set_enabled(&name, false).await);
    assert_eq!(host.status(&name).unwrap().word(), "disabled");
    assert_eq!(host.catalog().len(), 0);
    assert!(host.set_enabled(&name, true).await);
    host.settled().await;
    assert_eq!(host.catalog().len(), 3);
    assert!(host.remove_server(&name).await);
    assert!(!host.remove_server(&name).await);
}

#[test]
fn an_entry_says_how_long_its_server_may_rest() {
    let check = |keys: &str, expected: Option<Duration>| {
        let text = format!("[mcp_servers.a]\ncommand = \"a\"\n{keys}");
        let files = InMemory::default().file("/extra/mcp.toml", text);
        let inputs = Inputs {
            extra_files: vec!["/extra/mcp.toml".into()],
            ..Inputs::default()
        };
        let config = Config::load(&inputs, &files);
        let connectors = Connectors::new(Vec::new().into(), "/project".into());
        let spec = connectors
            .spec(&config.servers[0], &config.settings)
            .unwrap();
        assert_eq!(spec.idle_shutdown, expected, "{keys}");
    };
    check("", None);
    check("idle_shutdown_sec = 600", Some(Duration::from_secs(600)));
    check("idle_shutdown_sec = 0.5", Some(Duration::from_millis(500)));
}

#[tokio::test]
async fn a_server_with_a_name_that_is_anothers_fails_with_that_reason() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::with_options(HostOptions::default());
    let check = |name: &str, state: &'static str, reason: Option<&str>| {
        let status = host.status(&name.into()).unwrap();
        assert_eq!(status.word(), state, "{name}: {:?}", status.reason());
        assert_eq!(status.reason().as_deref(), reason, "{name}");
    };
    let files = workspace("files", folder.path());
    let alike = workspace("Files", folder.path());
    let built_in = workspace("grep", folder.path());
    host.apply(vec![files.clone(), alike.clone(), built_in.clone()])
        .await;
    host.settled().await;
    let refused = "its name reads like that of the server files; rename the server";
    check("files", "connected", None);
    check("Files", "failed", Some(refused));
    let reserved = "its name \"grep\" reads like the built-in tool Grep; rename the server";
    check("grep", "failed", Some(reserved));
    assert_eq!(host.catalog().len(), 3);
    let error = host.request(call("mcp__Files__glob", &json!({}))).await;
    assert!(error.unwrap_err().to_string().contains(refused));
    // Neither a restart nor another order of the same servers changes that.
    host.restart(&"Files".into()).await;
    host.apply(vec![alike.clone(), built_in, files.clone()])
        .await;
    host.settled().await;
    check("files", "connected", None);
    check("Files", "failed", Some(refused));
    // It gets the name once the other server is removed or disabled.
    host.set_enabled(&"files".into(), false).await;
    host.settled().await;
    check("Files", "connected", None);
    host.set_enabled(&"files".into(), true).await;
    host.settled().await;
    let refused = "its name reads like that of the server Files; rename the server";
    check("files", "failed", Some(refused));
    host.remove_server(&"Files".into()).await;
    host.settled().await;
    check("files", "connected", None);
    host.shutdown().await;
}

/// A server whose number of tools its program sets.
#[derive(Clone, Default)]
struct Growing(Arc<AtomicUsize>);

impl Service for Growing {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("growing".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let count = self.0.load(Ordering::Acquire);
        let tool = |number| tool_definition(format!("tool-{number}"), "", &json!({}));
        (0..count).map(tool).collect()
    }
}

// In paused time, a wait for the rate limit would show as time that has passed.
#[tokio::test(start_paused = true)]
async fn a_program_that_changes_tools_does_not_wait_for_the_rate_limit() {
    let growing = Growing::default();
    let host = Host::new();
    let name = ServerName::from("growing");
    let server = Server::in_process("growing", growing.clone());
    assert_eq!(host.add(server).await.unwrap(), 0);
    let begun = Instant::now();
    for count in 1..=8 {
        growing.0.store(count, Ordering::Release);
        assert!(host.list_tools_again(&name).await);
        assert_eq!(host.catalog().iter().count(), count);
    }
    assert!(
        begun.elapsed() < Duration::from_millis(50),
        "{:?}",
        begun.elapsed()
    );
    // Callers at the same time share a listing that begins after both have asked.
    growing.0.store(9, Ordering::Release);
    let both = tokio::join!(host.list_tools_again(&name), host.list_tools_again(&name));
    assert_eq!((both, host.catalog().iter().count()), ((true, true), 9));
    host.set_enabled(&name, false).await;
    assert!(!host.list_tools_again(&name).await);
    assert!(!host.list_tools_again(&ServerName::from("missing")).await);
    host.shutdown().await;
    assert!(!host.list_tools_again(&name).await);
}
