//! Test with a real local model, which makes a call and uses its result. `cargo xtask model` installs it and runs this.

use std::sync::Arc;

use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{Host, HostOptions};
use switchboard_agent::provider::ProviderSettings;
use switchboard_agent::{Agent, AgentOptions, EndReason};
use switchboard_config::entry::Permission;
use switchboard_test::scripted::{self, Over, Script, Tool};
use switchboard_test::{hosted, interop};

#[tokio::test(flavor = "multi_thread")]
async fn a_model_makes_a_call_and_uses_its_result() {
    let model = interop::small_model().await.unwrap();
    let settings = ProviderSettings {
        openai_url: Some(model.url.clone()),
        ..ProviderSettings::default()
    };
    let provider = settings.provider().await.unwrap();
    // The server reports its model and the context window.
    let known = provider.model();
    assert_eq!((known.id.as_str(), known.window), ("smollm2", 8192));

    let word = Tool::new("word").replies("the secret word is heliotrope");
    let server = scripted::start(Script::new("vault").tool(word), Over::Http)
        .await
        .unwrap();
    let policy = Policy {
        default: Permission::Allow,
        annotations: false,
        unattended: Permission::Allow,
        typed: false,
    };
    let gate = Arc::new(PermissionGate::new(Engine::without_rules(policy)));
    let host = Host::with_options(HostOptions {
        gate,
        ..HostOptions::default()
    });
    let mut options = AgentOptions::new(host, provider);
    options.patience = std::time::Duration::from_secs(60);
    options.servers = vec![hosted::spec("vault", &server, Over::Http, 1 << 20)];
    let folder = tempfile::tempdir().unwrap();
    let session = Agent::new(options).session(folder.path());

    let asked = "Please use the function to tell me the secret word.";
    let reply = session.send(asked).await.unwrap();
    let told_of = session.tools().await;
    let is_told = told_of.iter().any(|tool| tool.name == "mcp__vault__word");
    assert!(is_told, "the server's tool is not there: {reply:?}");
    let calls: Vec<(&str, bool)> = reply
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), call.is_error))
        .collect();
    assert_eq!(calls, [("mcp__vault__word", false)], "{reply:?}");
    assert_eq!(reply.reason, EndReason::Done);
    assert!(reply.response.contains("heliotrope"), "{reply:?}");
    assert!(reply.usage.input > 0 && reply.usage.output > 0, "{reply:?}");
}
