//! Tests of the agent as an MCP server: both transports, both eras, with a model that follows instructions.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod approvals;
mod conversations;
mod http;
mod inquirer;
mod model;
mod rmcp_client;
mod stdio;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{Host, HostOptions};
use switchboard_agent::{Agent, AgentOptions, Shell};
use switchboard_server::ServiceHandler;
use switchboard_server::agent::{AgentService, ClientQuestions};
use switchboard_store::MemoryStore;

use model::Obedient;

/// Everything behind the front ends, with a store that survives a restart.
struct World {
    folder: tempfile::TempDir,
    store: Arc<MemoryStore>,
    model: Arc<Obedient>,
    service: Arc<AgentService>,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let folder = tempfile::tempdir().unwrap();
        Self::on(folder, store)
    }

    /// Restarts on the same store.
    fn restarted(self) -> Self {
        let Self { folder, store, .. } = self;
        Self::on(folder, store)
    }

    fn on(folder: tempfile::TempDir, store: Arc<MemoryStore>) -> Self {
        let questions = ClientQuestions::new();
        let engine = Engine::without_rules(Policy::agent());
        let gate = Arc::new(PermissionGate::new(engine).asking(Arc::new(questions.clone())));
        let host = Host::with_options(HostOptions {
            gate,
            handler: Arc::new(questions.clone()),
            desired: vec![inquirer::spec()].into(),
            ..HostOptions::default()
        });
        let model = Arc::new(Obedient::default());
        let mut options = AgentOptions::new(host, model.clone());
        options.store = store.clone();
        options.shell = Shell::new(std::env::vars_os());
        let agent = Agent::new(options);
        let service = AgentService::new(agent, folder.path(), questions);
        Self {
            folder,
            store,
            model,
            service: Arc::new(service),
        }
    }

    fn handler(&self) -> ServiceHandler {
        ServiceHandler::new(self.service.clone())
    }
}

/// Fails the test if the future takes too long.
async fn soon<F: Future>(future: F) -> F::Output {
    let Ok(output) = tokio::time::timeout(Duration::from_secs(30), future).await else {
        panic!("timed out after 30 s");
    };
    output
}

/// The parameters of a call that starts a session.
fn start(prompt: &str) -> Value {
    json!({"name": "switchboard", "arguments": {"prompt": prompt}, "_meta": {"progressToken": "p"}})
}

/// The parameters of a call that continues a session.
fn reply(session_id: &str, message: &str) -> Value {
    json!({
        "name": "switchboard-reply",
        "arguments": {"session_id": session_id, "message": message},
        "_meta": {"progressToken": "p"},
    })
}

/// The session and the response of an answer, after checking that its text and structured content agree.
fn answered(answer: &Value) -> (String, String) {
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    let data = &result["structuredContent"];
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), data);
    let member = |name: &str| data[name].as_str().unwrap().to_owned();
    (member("session_id"), member("response"))
}

/// The error text of a failed call.
fn failed(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

fn progress(notifications: &[Value]) -> Vec<String> {
    let reports: Vec<&Value> = notifications
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"])
        .collect();
    let values: Vec<f64> = reports
        .iter()
        .map(|report| report["progress"].as_f64().unwrap())
        .collect();
    assert!(
        values.is_sorted_by(|left, right| left < right),
        "{values:?}"
    );
    assert!(reports.iter().all(|report| report["progressToken"] == "p"));
    let messages = reports
        .iter()
        .map(|report| report["message"].as_str().unwrap());
    messages.map(str::to_owned).collect()
}
