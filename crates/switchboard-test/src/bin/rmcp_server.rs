//! A server on rmcp, the official Rust SDK, in both eras: `rmcp-server` over stdio, `rmcp-server --http ADDRESS` over
//! Streamable HTTP, where it prints its URL.
//!
//! It offers the tools `echo`, `count` (progress), `ask` (elicitation) and `think` (sampling), the resource
//! `rmcp://greeting` and the prompt `greet`. In the stateful era `ask` and `think` send requests to the client, in the
//! stateless one they answer `input_required`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, InputRequiredResult, ListPromptsResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match words.as_slice() {
            [] => serve_stdio().await,
            ["--http", address] => serve_http(address).await,
            _ => Err("usage: rmcp-server [--http ADDRESS]".into()),
        }
    })
}

async fn serve_stdio() -> Result<(), Box<dyn Error>> {
    let running = Greeter.serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}

async fn serve_http(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let service = StreamableHttpService::new(
        || Ok(Greeter),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let stream = hyper_util::rt::TokioIo::new(stream);
            // A broken connection does not affect the others.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(stream, service)
                .await;
        });
    }
}

#[derive(Clone)]
struct Greeter;

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": ProtocolVersion::LATEST,
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
            "serverInfo": {"name": "rmcp-server", "version": "1.0.0"},
            "instructions": "A server for tests.",
        });
        typed(&info).unwrap_or_default()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str, description: &str, properties: Value| {
            json!({
                "name": name,
                "description": description,
                "inputSchema": {"type": "object", "properties": properties},
            })
        };
        typed(&json!({"tools": [
            tool("echo", "Repeats the text", json!({"text": {"type": "string"}})),
            tool("count", "Counts and reports progress", json!({"to": {"type": "integer"}})),
            tool("ask", "Asks the user for a name", json!({})),
            tool("think", "Asks the model", json!({"question": {"type": "string"}})),
        ]}))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        match request.name.as_ref() {
            "echo" => Ok(text_response(
                arguments["text"].as_str().unwrap_or_default(),
            )),
            "count" => count(&arguments, &context).await,
            "ask" => {
                let params = json!({
                    "mode": "form",
                    "message": "Your name?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                });
                ask(&request, &context, "elicitation/create", params).await
            }
            "think" => {
                let question = arguments["question"].as_str().unwrap_or("Why?");
                let params = json!({
                    "messages": [{"role": "user", "content": {"type": "text", "text": question}}],
                    "maxTokens": 100,
                });
                ask(&request, &context, "sampling/createMessage", params).await
            }
            other => Err(ErrorData::invalid_params(
                format!("unknown tool: {other}"),
                None,
            )),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        typed(&json!({"resources": [
            {"uri": "rmcp://greeting", "name": "greeting", "mimeType": "text/plain"},
        ]}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != "rmcp://greeting" {
            return Err(ErrorData::resource_not_found("no such resource", None));
        }
        let result: rmcp::model::ReadResourceResult = typed(&json!({"contents": [
            {"uri": request.uri, "mimeType": "text/plain", "text": "Hello"},
        ]}))?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        typed(&json!({"prompts": [
            {"name": "greet", "arguments": [{"name": "name", "required": true}]},
        ]}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let name = arguments["name"].as_str().unwrap_or("you");
        let result: rmcp::model::GetPromptResult = typed(&json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": format!("Greet {name}")}},
        ]}))?;
        Ok(result.into())
    }
}

async fn count(
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let to = arguments["to"].as_u64().unwrap_or(3).min(1000);
    let token = context.meta.get_progress_token();
    for step in 1..=to {
        if let Some(token) = &token {
            let params: ProgressNotificationParam = typed(&json!({
                "progressToken": token,
                "progress": step,
                "total": to,
            }))?;
            // The client may have stopped reading; counting continues.
            let _ = context.peer.notify_progress(params).await;
        }
    }
    Ok(text_response(&format!("counted to {to}")))
}

/// Asks the client in the way of the request's era, and returns its answer.
#[expect(
    deprecated,
    reason = "sampling is deprecated in the specification, and still there"
)]
async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    method: &str,
    params: Value,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(responses) = &request.input_responses {
        let answer = to_value(&responses.get("answer"))?;
        return Ok(text_response(&answer.to_string()));
    }
    let version = context.meta.protocol_version();
    if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
        let question: InputRequiredResult = typed(&json!({
            "resultType": "input_required",
            "inputRequests": {"answer": {"method": method, "params": params}},
            "requestState": "asked",
        }))?;
        return Ok(question.into());
    }
    let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
    let answer = if method == "elicitation/create" {
        let answer = context.peer.create_elicitation(typed(&params)?).await;
        to_value(&answer.map_err(failed)?)?
    } else {
        let answer = context.peer.create_message(typed(&params)?).await;
        to_value(&answer.map_err(failed)?)?
    };
    Ok(text_response(&answer.to_string()))
}

fn text_response(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Decodes one of the SDK's types from JSON.
fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, ErrorData> {
    T::deserialize(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, ErrorData> {
    serde_json::to_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
