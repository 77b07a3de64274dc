//! A test service with one tool per behaviour.

use std::time::Duration;

use serde::Deserialize;
use switchboard::service::{
    Changes, Features, Reply, RequestContext, Service, text_result, unknown_tool,
};
use switchboard_protocol::types::elicitation::{ElicitRequestFormParams, ElicitRequestParams};
use switchboard_protocol::types::elicitation_schema::ElicitationSchema;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{Map, Raw};
use tokio::sync::{Notify, watch};

/// Timeout of every wait; only reached by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) changes: Changes,
    /// Releases one call of `wait`.
    pub(crate) go: Notify,
    /// The number of calls started.
    pub(crate) begun: Count,
    /// The number of calls ended, for any reason.
    pub(crate) ended: Count,
}

/// A counter that can be awaited.
pub(crate) struct Count(watch::Sender<usize>);

impl Default for Count {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Count {
    pub(crate) fn now(&self) -> usize {
        *self.0.borrow()
    }

    pub(crate) async fn reaches(&self, wanted: usize) {
        let mut count = self.0.subscribe();
        let reached = count.wait_for(|count| *count >= wanted);
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        assert!(reached.is_ok(), "{} of {wanted}", self.now());
    }

    fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

struct Ended<'a>(&'a Bench);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.ended.add();
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Arguments {
    bytes: usize,
    count: usize,
    text: String,
}

impl Service for Bench {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new("bench".into());
        identity.version = Some("1".into());
        identity
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            resources: true,
            ..Features::NONE
        }
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let mut region = Tool::new("region".into());
        let schema =
            r#"{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Region"}}}"#;
        region.input_schema = Raw::parse(schema).unwrap().try_into().ok();
        vec![Tool::new("echo".into()), region]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            self.begun.add();
            let _ended = Ended(self);
            let arguments = call.arguments.unwrap_or_default();
            let arguments: Arguments = arguments.deserialize().unwrap_or_default();
            match &*call.name {
                "echo" | "region" => Ok(text_result(arguments.text)),
                "big" => Ok(text_result("x".repeat(arguments.bytes))),
                "wait" => {
                    self.go.notified().await;
                    Ok(text_result("waited"))
                }
                // Reports progress, waits, then reports more.
                "report" => {
                    context.progress(1.0, None, None);
                    self.go.notified().await;
                    context.progress(2.0, None, None);
                    Ok(text_result("reported"))
                }
                // Sends many reports without waiting.
                "flood" => {
                    let message = "x".repeat(arguments.bytes);
                    for number in 0..arguments.count {
                        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                        context.progress(number as f64, None, Some(&message));
                        if number % 100 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    Ok(text_result("flooded"))
                }
                "ask" => {
                    let mut schema = ElicitationSchema::new(Map::new());
                    schema.kind = Some("object".into());
                    let form = ElicitRequestFormParams::new("Sure?".into(), schema);
                    let form = ElicitRequestParams::Form(form);
                    let answer = context.elicit("sure", form).await?;
                    Ok(text_result(answer.action.as_str()))
                }
                "panic" => panic!("as asked"),
                other => Err(unknown_tool(other)),
            }
        })
    }
}

/// The number of tasks of this runtime.
pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// Waits for a condition that no event announces, such as the end of a task.
pub(crate) async fn wait_until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "timed out");
}

/// Fails the test if the future takes too long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(late) => panic!("timed out: {late}"),
    }
}
