//! A server with everything that a gateway passes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use switchboard::SharedJson;
use switchboard::service::{
    Changes, Features, Reply, RequestContext, Service, text_result, tool_definition, unknown_tool,
};
use switchboard_protocol::types::capabilities::{ClientCapabilities, ServerCapabilities};
use switchboard_protocol::types::completion::{CompleteRequestParams, Completion};
use switchboard_protocol::types::elicitation::ElicitRequestParams;
use switchboard_protocol::types::lifecycle::{Implementation, InitializeRequestParams};
use switchboard_protocol::types::logging::LoggingLevel;
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};
use switchboard_protocol::types::resource::{
    ListResourcesResult, ReadResourceRequestParams, ReadResourceResult, Resource, ResourceTemplate,
};
use switchboard_protocol::types::sampling::CreateMessageRequestParams;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{IntoOwned as _, RawObject, decode};
use switchboard_protocol::{Era, Method};
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Upstream {
    pub(crate) changes: Changes,
    /// Notified when `wait` begins.
    pub(crate) waiting: Notify,
    /// Notified when `wait` is cancelled.
    pub(crate) cancelled: Notify,
    /// Calls of `ask` that got past their question.
    pub(crate) answered: AtomicUsize,
    /// Handshakes of clients, which are connections of the host.
    pub(crate) connections: AtomicUsize,
    /// Notified by a notification of an unknown method.
    pub(crate) notified: Notify,
}

const TOOLS: &[&str] = &[
    "echo", "ask", "visit", "sample", "roots", "slow", "wait", "log", "job",
];

/// The id of the only task.
pub(crate) const TASK: &str = "task-1";

impl Service for Upstream {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new("upstream".into());
        identity.version = Some("7".into());
        identity
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            prompts: true,
            resources: true,
            completions: true,
            logging: true,
        }
    }

    fn instructions(&self) -> Option<std::borrow::Cow<'static, str>> {
        Some("Be kind.".into())
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let schema = json!({"type": "object"});
        let tools = TOOLS.iter();
        tools
            .map(|name| tool_definition(*name, format!("The tool {name}."), &schema))
            .collect()
    }

    fn capabilities(&self, era: Era) -> Option<ServerCapabilities<'static>> {
        let mut declared = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "completions": {},
            "logging": {},
            "extensions": {"com.example/vendor": {"level": 7}},
        });
        match era {
            Era::Stateful => {
                declared["tasks"] =
                    json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            }
            Era::Stateless => {
                declared["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
            }
        }
        let raw = to_raw_value(&declared).unwrap();
        Some(decode::<ServerCapabilities<'_>>(&raw).unwrap().into_owned())
    }

    fn greet(
        &self,
        _: &ClientCapabilities<'_>,
        _: Option<&InitializeRequestParams<'_>>,
    ) -> Option<BoxFuture<'_, ()>> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Calls of `job` become tasks, if the client says that it can follow them.
    fn forward<'a>(
        &'a self,
        method: Method,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        let params: Value = serde_json::from_str(params?.get()).unwrap();
        if method != Method::ToolsCall || params["name"] != "job" {
            return None;
        }
        let task = json!({
            "taskId": TASK,
            "status": "working",
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z",
        });
        let result = match context.revision().era() {
            Era::Stateful if params.get("task").is_some() => json!({"task": task}),
            Era::Stateless
                if context
                    .client_capabilities()
                    .extensions
                    .get("io.modelcontextprotocol/tasks")
                    .is_some() =>
            {
                let mut result = task;
                result["resultType"] = "task".into();
                result["pollIntervalMs"] = 20.into();
                result
            }
            _ => finished(),
        };
        Some(Box::pin(async move { Ok(SharedJson::from(&result)) }))
    }

    fn forward_other<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        let params: Value = params.map_or(Value::Null, |params| {
            serde_json::from_str(params.get()).unwrap()
        });
        let mut task = json!({
            "taskId": params["taskId"],
            "status": "completed",
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z",
        });
        let is_stateless = context.revision().era() == Era::Stateless;
        let result = match method {
            "vendor/echo" => json!({"got": params, "resultType": "complete"}),
            _ if params["taskId"] != TASK => return None,
            "tasks/get" if is_stateless => {
                task["resultType"] = "complete".into();
                task["result"] = finished();
                task
            }
            "tasks/get" | "tasks/cancel" => task,
            "tasks/update" => json!({"resultType": "complete", "seen": params["inputResponses"]}),
            "tasks/result" => {
                let mut result = finished();
                result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": TASK}});
                result
            }
            _ => return None,
        };
        Some(Box::pin(async move { Ok(SharedJson::from(&result)) }))
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        assert_eq!(method, "notifications/vendor");
        assert_eq!(params.unwrap().get(), r#"{"z":1,"a":2}"#);
        self.notified.notify_one();
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let arguments = call
                .arguments
                .as_ref()
                .map_or("{}", RawObject::get)
                .to_owned();
            match &*call.name {
                "echo" => {
                    let meta = call.meta.as_ref().map_or("{}", RawObject::get).to_owned();
                    let mut result = text_result(arguments);
                    let meta: Value = serde_json::from_str(&meta).unwrap();
                    let seen = json!({
                        "trace": meta["traceparent"],
                        "capabilities": meta["io.modelcontextprotocol/clientCapabilities"],
                        "meta": call.meta.as_ref().map_or("{}", RawObject::get),
                    });
                    result.structured_content =
                        Some(switchboard_protocol::types::Raw::from_serialize(&seen).unwrap());
                    Ok(result)
                }
                "ask" => {
                    let form = json!({
                        "mode": "form",
                        "message": "How many?",
                        "requestedSchema": {"type": "object", "properties": {"count": {"type": "integer"}}},
                    });
                    let raw = to_raw_value(&form).unwrap();
                    let params = decode::<ElicitRequestParams<'_>>(&raw)
                        .unwrap()
                        .into_owned();
                    let answer = context.elicit("count", params).await?;
                    context.progress(1.0, None, Some("answered"));
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    let filled = answer.content.as_ref().map_or("nothing", RawObject::get);
                    Ok(text_result(format!("{:?} {filled}", answer.action)))
                }
                "visit" => {
                    let page = json!({
                        "mode": "url",
                        "message": "Log in",
                        "url": "https://example.org/login",
                        "elicitationId": "login-1",
                    });
                    let raw = to_raw_value(&page).unwrap();
                    let params = decode::<ElicitRequestParams<'_>>(&raw)
                        .unwrap()
                        .into_owned();
                    let answer = context.elicit("login", params).await?;
                    Ok(text_result(format!("{:?}", answer.action)))
                }
                "sample" => {
                    let request = json!({
                        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
                        "maxTokens": 10,
                    });
                    let raw = to_raw_value(&request).unwrap();
                    let params = decode::<CreateMessageRequestParams<'_>>(&raw)
                        .unwrap()
                        .into_owned();
                    let answer = context.sample("model", params).await?;
                    Ok(text_result(format!("the model {} answers", answer.model)))
                }
                "roots" => {
                    let answer = context.roots("roots").await?;
                    let uris: Vec<String> = answer
                        .roots
                        .iter()
                        .map(|root| root.uri.to_string())
                        .collect();
                    Ok(text_result(uris.join(" ")))
                }
                "slow" => {
                    context.progress(1.0, Some(2.0), Some("half"));
                    tokio::task::yield_now().await;
                    Ok(text_result("done"))
                }
                "wait" => {
                    let cancelled = CancelledOnDrop(&self.cancelled);
                    self.waiting.notify_one();
                    std::future::pending::<()>().await;
                    drop(cancelled);
                    Ok(text_result("never"))
                }
                "log" => {
                    context.log(LoggingLevel::Warning, Some("disk"), &json!({"full": true}));
                    Ok(text_result("logged"))
                }
                other => Err(unknown_tool(other)),
            }
        })
    }

    fn resources<'a>(
        &'a self,
        _cursor: Option<&'a str>,
        _context: &'a RequestContext,
    ) -> Reply<'a, ListResourcesResult<'static>> {
        Box::pin(async {
            let note = Resource::new("demo://note".into(), "note".into());
            Ok(ListResourcesResult::new(vec![note].into()))
        })
    }

    fn resource_templates(&self) -> Vec<ResourceTemplate<'static>> {
        vec![ResourceTemplate::new(
            "demo://page/{number}".into(),
            "page".into(),
        )]
    }

    fn read_resource<'a>(
        &'a self,
        read: ReadResourceRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, ReadResourceResult<'static>> {
        Box::pin(async move {
            if !read.uri.starts_with("demo://") {
                return Err(context.resource_not_found(&read.uri));
            }
            let text =
                json!({"contents": [{"uri": read.uri, "text": format!("text of {}", read.uri)}]});
            let raw = to_raw_value(&text).unwrap();
            Ok(decode::<ReadResourceResult<'_>>(&raw).unwrap().into_owned())
        })
    }

    fn prompts(&self) -> Vec<Prompt<'static>> {
        vec![Prompt::new("greet".into())]
    }

    fn get_prompt<'a>(
        &'a self,
        get: GetPromptRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, GetPromptResult<'static>> {
        Box::pin(async move {
            let text = json!({"messages": [{"role": "user", "content": {"type": "text", "text": format!("Greet by {}", get.name)}}]});
            let raw = to_raw_value(&text).unwrap();
            Ok(decode::<GetPromptResult<'_>>(&raw).unwrap().into_owned())
        })
    }

    fn complete<'a>(
        &'a self,
        typed: CompleteRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        Box::pin(async move {
            let value = format!("{}!", typed.argument.value);
            Ok(Completion::new(vec![value.into()].into()))
        })
    }
}

fn finished() -> Value {
    json!({"content": [{"type": "text", "text": "finished"}]})
}

struct CancelledOnDrop<'n>(&'n Notify);

impl Drop for CancelledOnDrop<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
