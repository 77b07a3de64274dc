//! A server for the official conformance suite on rmcp, the official Rust SDK; run by `cargo xtask conformance gateway`.
//!
//! It listens on loopback, prints its URL as the first line, and exits when its standard input ends. It has the same
//! tools, prompts and resources as `conformance-server`. What the SDK does not support fails, with and without a
//! gateway in between.

#![expect(
    deprecated,
    reason = "sampling and logging are deprecated in the specification, and still there"
)]

#[path = "conformance_server/definitions.rs"]
mod definitions;

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use definitions::{form, form_of_choices, form_with_defaults, plain, text_form, to_the_model};

/// Key of a question and its answer.
const ANSWER: &str = "answer";
/// Duration of a step of a tool.
const STEP: Duration = Duration::from_millis(50);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let service = StreamableHttpService::new(
        || Ok(Everything),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    std::thread::spawn(|| {
        let mut nothing = [0; 64];
        while std::io::stdin()
            .read(&mut nothing)
            .is_ok_and(|read| read > 0)
        {}
        std::process::exit(0);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

#[derive(Clone)]
struct Everything;

type Context = RequestContext<RoleServer>;

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": ProtocolVersion::LATEST,
            "capabilities": {
                "tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}, "logging": {},
            },
            "serverInfo": {"name": "conformance-rmcp", "version": "1.0.0"},
        });
        typed(&info).unwrap_or_default()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        typed(&json!({"tools": definitions::tools()}))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        match plain(name) {
            Some(result) => response(&result),
            None if name.starts_with("test_input_required_result_") => asks_first(&request),
            None => works(&request, &context).await,
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        typed(&json!({"resources": definitions::resources()}))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        typed(&json!({"resourceTemplates": definitions::templates()}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let data = Some(json!({"uri": request.uri}));
        let contents = definitions::contents(&request.uri)
            .ok_or_else(|| ErrorData::resource_not_found("no such resource", data))?;
        let result: ReadResourceResult = typed(&json!({"contents": [contents]}))?;
        Ok(result.into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        typed(&json!({"prompts": definitions::prompts()}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            let Some(answers) = &request.input_responses else {
                let question = text_form("What context should the prompt use?", "context");
                let questions = json!({"user_context": elicitation(&question)});
                let wanted: InputRequiredResult = input_required(&questions, None)?;
                return Ok(wanted.into());
            };
            let text = format!("Context: {}", to_value(&answers.get("user_context"))?);
            let result: GetPromptResult = typed(&json!({"messages": [
                {"role": "user", "content": {"type": "text", "text": text}},
            ]}))?;
            return Ok(result.into());
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let prompt = definitions::prompt(&request.name, argument)
            .ok_or_else(|| ErrorData::invalid_params("unknown prompt", None))?;
        let result: GetPromptResult = typed(&prompt)?;
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["paris", "park", "party", "rome"];
        let fitting: Vec<&str> = values
            .into_iter()
            .filter(|value| value.starts_with(&request.argument.value))
            .collect();
        typed(&json!({"completion": {"values": fitting}}))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

/// Tools that take a while, or send messages to the client.
async fn works(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match request.name.as_ref() {
        "test_tool_with_logging" | "test_logging_tool" => {
            for message in [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ] {
                let params: LoggingMessageNotificationParam =
                    typed(&json!({"level": "info", "data": message}))?;
                // The client may have stopped reading.
                let _ = context.peer.notify_logging_message(params).await;
                sleep(STEP).await;
            }
            text("Logged three messages.")
        }
        "test_tool_with_progress" => {
            let token = context.meta.get_progress_token();
            for progress in [0, 50, 100] {
                if let Some(token) = &token {
                    let params: ProgressNotificationParam = typed(
                        &json!({"progressToken": token, "progress": progress, "total": 100}),
                    )?;
                    // The client may have stopped reading.
                    let _ = context.peer.notify_progress(params).await;
                }
                sleep(STEP).await;
            }
            text("Reported progress.")
        }
        "test_sampling" => {
            let question = to_the_model(&argument("prompt"));
            if is_stateless(context) {
                let question = json!({"method": "sampling/createMessage", "params": question});
                return match answered(request)? {
                    Some(answer) => text(&format!("LLM response: {answer}")),
                    None => ask(&json!({ANSWER: question}), None),
                };
            }
            let answer = context.peer.create_message(typed(&question)?).await;
            let answer = to_value(&answer.map_err(failed)?)?;
            text(&format!("LLM response: {answer}"))
        }
        "test_elicitation" => {
            let fields = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let question = form(&argument("message"), &fields, &["username", "email"]);
            elicit(request, context, &question).await
        }
        "test_elicitation_sep1034_defaults" => {
            elicit(request, context, &form_with_defaults()).await
        }
        "test_elicitation_sep1330_enums" => elicit(request, context, &form_of_choices()).await,
        "test_custom_headers" => text(&argument("region")),
        "json_schema_2020_12_tool" => text(&arguments.to_string()),
        other => Err(ErrorData::invalid_params(
            format!("unknown tool: {other}"),
            None,
        )),
    }
}

/// Asks the user in the way of the request's era, and returns the answer as text.
async fn elicit(
    request: &CallToolRequestParams,
    context: &Context,
    question: &Value,
) -> Result<CallToolResponse, ErrorData> {
    let answer = if is_stateless(context) {
        match answered(request)? {
            Some(answer) => answer,
            None => return ask(&json!({ANSWER: elicitation(question)}), None),
        }
    } else {
        let answer = context.peer.create_elicitation(typed(question)?).await;
        to_value(&answer.map_err(failed)?)?
    };
    let (action, filled_in) = (&answer["action"], &answer["content"]);
    let action = action.as_str().unwrap_or_default();
    text(&format!(
        "User response: action={action}, content={filled_in}"
    ))
}

fn is_stateless(context: &Context) -> bool {
    let version = context.meta.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The client's answer to the only question; `None` if it has not been asked.
fn answered(request: &CallToolRequestParams) -> Result<Option<Value>, ErrorData> {
    let answers = to_value(&request.input_responses)?;
    Ok(answers.get(ANSWER).cloned())
}

/// Ends the request with questions to the client.
fn ask(questions: &Value, state: Option<&str>) -> Result<CallToolResponse, ErrorData> {
    Ok(input_required(questions, state)?.into())
}

/// Tools of the stateless era, which ask for input first.
fn asks_first(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let answers = to_value(&request.input_responses)?;
    let state = to_value(&request.request_state)?;
    let has = |key: &str| answers.get(key).is_some();
    let name = elicitation(&text_form("What is your name?", "name"));
    let sampling =
        |text: &str| json!({"method": "sampling/createMessage", "params": to_the_model(text)});
    let roots = json!({"method": "roots/list", "params": {}});
    match request.name.as_ref() {
        "test_input_required_result_elicitation" if has("user_name") => {
            text(&format!("Hello, {}!", answers["user_name"]["content"]))
        }
        "test_input_required_result_elicitation" => ask(&json!({"user_name": name}), None),
        "test_input_required_result_sampling" if has("capital_question") => {
            text(&answers["capital_question"].to_string())
        }
        "test_input_required_result_sampling" => {
            let question = sampling("What is the capital of France?");
            ask(&json!({"capital_question": question}), None)
        }
        "test_input_required_result_list_roots" if has("client_roots") => {
            text(&answers["client_roots"].to_string())
        }
        "test_input_required_result_list_roots" => ask(&json!({"client_roots": roots}), None),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            if has("confirm") && state == "asked" {
                return text("state-ok");
            }
            if has("confirm") {
                return Err(ErrorData::invalid_params("unknown requestState", None));
            }
            let properties = json!({"ok": {"type": "boolean"}});
            let confirm = elicitation(&form("Please confirm", &properties, &["ok"]));
            ask(&json!({"confirm": confirm}), Some("asked"))
        }
        "test_input_required_result_multiple_inputs" => {
            if ["user_name", "greeting", "client_roots"]
                .into_iter()
                .all(has)
            {
                return text("All three questions are answered.");
            }
            let greeting = sampling("Generate a greeting");
            let questions = json!({"user_name": name, "greeting": greeting, "client_roots": roots});
            ask(&questions, Some("asked"))
        }
        "test_input_required_result_multi_round" => match state.as_str() {
            Some("second") if has("step2") => text("Both questions are answered."),
            Some("first") if has("step1") => {
                let color = text_form("Step 2: What is your favorite color?", "color");
                ask(&json!({"step2": elicitation(&color)}), Some("second"))
            }
            _ => {
                let name = text_form("Step 1: What is your name?", "name");
                ask(&json!({"step1": elicitation(&name)}), Some("first"))
            }
        },
        other => Err(ErrorData::invalid_params(
            format!("unknown tool: {other}"),
            None,
        )),
    }
}

fn elicitation(params: &Value) -> Value {
    json!({"method": "elicitation/create", "params": params})
}

/// The result that asks the client for input.
fn input_required(
    questions: &Value,
    state: Option<&str>,
) -> Result<InputRequiredResult, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    typed(&result)
}

fn text(text: &str) -> Result<CallToolResponse, ErrorData> {
    response(&json!({"content": [{"type": "text", "text": text}]}))
}

fn response(result: &Value) -> Result<CallToolResponse, ErrorData> {
    let result: rmcp::model::CallToolResult = typed(result)?;
    Ok(result.into())
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn failed(error: rmcp::ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Decodes one of the SDK's types from JSON.
fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, ErrorData> {
    T::deserialize(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, ErrorData> {
    serde_json::to_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
