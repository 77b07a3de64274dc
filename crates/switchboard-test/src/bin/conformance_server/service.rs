//! Behaviour of the conformance server's tools, prompts and resources.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::service::{
    Changes, Failure, Features, Reply, RequestContext, Service, invalid_params, text_result,
    unknown_prompt, unknown_tool,
};
use switchboard_protocol::types;
use switchboard_protocol::types::completion::{CompleteRequestParams, Completion};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::logging::LoggingLevel;
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};
use switchboard_protocol::types::resource::{
    ListResourcesResult, ReadResourceRequestParams, ReadResourceResult, Resource, ResourceTemplate,
};
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::definitions::{
    self, form, form_of_choices, form_with_defaults, plain, text_form, to_the_model,
};
use crate::made::made;

/// Duration of a step of a tool.
const STEP: Duration = Duration::from_millis(50);

/// All features that the suite tests.
#[derive(Debug, Default)]
pub(crate) struct Everything {
    changes: Changes,
    waiting: Waiting,
}

/// Counts calls that wait to be cancelled.
#[derive(Debug)]
struct Waiting(watch::Sender<usize>);

impl Default for Waiting {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Waiting {
    /// Waits until the call is cancelled.
    async fn wait(&self, context: &RequestContext) -> CallToolResult<'static> {
        self.0.send_modify(|waiting| *waiting += 1);
        let _ended = Ended(self);
        context.progress(1.0, None, Some("waiting"));
        std::future::pending().await
    }

    /// Completes when no call waits.
    async fn all_ended(&self) -> CallToolResult<'static> {
        let mut waiting = self.0.subscribe();
        let ended = waiting.wait_for(|waiting| *waiting == 0).await.is_ok();
        text_result(if ended { "all ended" } else { "unknown" })
    }
}

/// Decrements the count on drop.
struct Ended<'w>(&'w Waiting);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|waiting| *waiting -= 1);
    }
}

impl Service for Everything {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new("conformance-server".into());
        identity.version = Some(env!("CARGO_PKG_VERSION").into());
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

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        definitions::tools().iter().map(made).collect()
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let name = call.name.as_ref();
            match plain(name) {
                Some(result) => Ok(made(&result)),
                None if name.starts_with("test_input_required_result_") => {
                    asks_first(&call, context).await
                }
                None => self.works(&call, context).await,
            }
        })
    }

    fn resources<'a>(
        &'a self,
        _cursor: Option<&'a str>,
        _context: &'a RequestContext,
    ) -> Reply<'a, ListResourcesResult<'static>> {
        Box::pin(async {
            let resources: Vec<Resource<'static>> =
                definitions::resources().iter().map(made).collect();
            Ok(ListResourcesResult::new(resources.into()))
        })
    }

    fn resource_templates(&self) -> Vec<ResourceTemplate<'static>> {
        definitions::templates().iter().map(made).collect()
    }

    fn read_resource<'a>(
        &'a self,
        read: ReadResourceRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, ReadResourceResult<'static>> {
        Box::pin(async move {
            let contents = definitions::contents(&read.uri);
            let contents = contents.ok_or_else(|| context.resource_not_found(&read.uri))?;
            Ok(made(&json!({"contents": [contents]})))
        })
    }

    fn prompts(&self) -> Vec<Prompt<'static>> {
        definitions::prompts().iter().map(made).collect()
    }

    fn get_prompt<'a>(
        &'a self,
        get: GetPromptRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, GetPromptResult<'static>> {
        Box::pin(async move {
            if get.name == "test_input_required_result_prompt" {
                let question = text_form("What context should the prompt use?", "context");
                let answer = context.elicit("user_context", made(&question)).await?;
                let reply = format!("Context: {}", json_of(&answer.content));
                let block = json!({"type": "text", "text": reply});
                return Ok(made(
                    &json!({"messages": [{"role": "user", "content": block}]}),
                ));
            }
            let argument = |name: &str| {
                let argument = get.arguments.get(name);
                argument.map(ToString::to_string).unwrap_or_default()
            };
            let prompt = definitions::prompt(&get.name, argument);
            let prompt = prompt.ok_or_else(|| unknown_prompt(&get.name))?;
            Ok(made(&prompt))
        })
    }

    fn complete<'a>(
        &'a self,
        typed: CompleteRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        Box::pin(async move {
            let values = ["paris", "park", "party", "rome"];
            let fitting = values
                .iter()
                .filter(|value| value.starts_with(&*typed.argument.value));
            Ok(Completion::new(
                fitting.map(|value| (*value).into()).collect(),
            ))
        })
    }
}

impl Everything {
    /// Tools that take a while, or send messages to the client.
    async fn works(
        &self,
        call: &CallToolRequestParams<'_>,
        context: &RequestContext,
    ) -> Result<CallToolResult<'static>, Failure> {
        let arguments = call.arguments.clone().unwrap_or_default();
        let arguments: Value = arguments.deserialize().unwrap_or_default();
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        match &*call.name {
            "test_tool_with_logging" => {
                for message in [
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed",
                ] {
                    context.log(LoggingLevel::Info, None, message);
                    sleep(STEP).await;
                }
                Ok(text_result("Logged three messages."))
            }
            "test_logging_tool" => {
                context.log(LoggingLevel::Info, None, "one message");
                Ok(text_result("Logged one message, if that was wanted."))
            }
            "test_tool_with_progress" => {
                for progress in [0.0, 50.0, 100.0] {
                    context.progress(progress, Some(100.0), None);
                    sleep(STEP).await;
                }
                Ok(text_result("Reported progress."))
            }
            "test_reconnection" => {
                sleep(Duration::from_millis(1500)).await;
                Ok(text_result("Resumed."))
            }
            "test_wait" => Ok(self.waiting.wait(context).await),
            "test_all_ended" => Ok(self.waiting.all_ended().await),
            "test_sampling" | "test_missing_capability" => {
                let question = to_the_model(&argument("prompt"));
                let answer = context.sample("model", made(&question)).await?;
                let reply = types::encode(&answer);
                Ok(text_result(format!("LLM response: {reply}")))
            }
            "test_elicitation" => {
                let fields = json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                });
                let question = form(&argument("message"), &fields, &["username", "email"]);
                elicit(context, &question).await
            }
            "test_elicitation_sep1034_defaults" => elicit(context, &form_with_defaults()).await,
            "test_elicitation_sep1330_enums" => elicit(context, &form_of_choices()).await,
            "test_streaming_elicitation" => {
                context.progress(1.0, None, None);
                sleep(STEP).await;
                elicit(context, &text_form("What is your name?", "name")).await
            }
            "test_trigger_tool_change" => {
                self.changes.tools();
                Ok(text_result("The tools have changed."))
            }
            "test_trigger_prompt_change" => {
                self.changes.prompts();
                Ok(text_result("The prompts have changed."))
            }
            "test_custom_headers" => Ok(text_result(argument("region"))),
            "json_schema_2020_12_tool" => Ok(text_result(arguments.to_string())),
            other => Err(unknown_tool(other)),
        }
    }
}

/// Asks the user and returns the answer as text.
async fn elicit(
    context: &RequestContext,
    question: &Value,
) -> Result<CallToolResult<'static>, Failure> {
    let answer = context.elicit("user", made(question)).await?;
    let (action, filled_in) = (answer.action.as_str(), json_of(&answer.content));
    Ok(text_result(format!(
        "User response: action={action}, content={filled_in}"
    )))
}

/// Tools of the stateless era, which ask for input first.
async fn asks_first(
    call: &CallToolRequestParams<'_>,
    context: &RequestContext,
) -> Result<CallToolResult<'static>, Failure> {
    let state = call
        .request_state
        .as_ref()
        .map(|state| state.decode().into_owned());
    let state = state.as_deref();
    let has = |key: &str| call.input_responses.get(key).is_some();
    let name = text_form("What is your name?", "name");
    let question = |method: &str, params: &Value| json!({"method": method, "params": params});
    let elicit = |params: &Value| question("elicitation/create", params);
    match &*call.name {
        "test_input_required_result_elicitation" => {
            let answer = context.elicit("user_name", made(&name)).await?;
            Ok(text_result(format!("Hello, {}!", json_of(&answer.content))))
        }
        "test_input_required_result_sampling" => {
            let question = to_the_model("What is the capital of France?");
            let answer = context.sample("capital_question", made(&question)).await?;
            let reply = types::encode(&answer);
            Ok(text_result(reply))
        }
        "test_input_required_result_list_roots" => {
            let answer = context.roots("client_roots").await?;
            Ok(text_result(types::encode(&answer)))
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            if has("confirm") {
                check_state(state, "asked")?;
                return Ok(text_result("state-ok"));
            }
            let confirm = form(
                "Please confirm",
                &json!({"ok": {"type": "boolean"}}),
                &["ok"],
            );
            Err(required(
                &json!({"confirm": elicit(&confirm)}),
                Some("asked"),
            ))
        }
        "test_input_required_result_multiple_inputs" => {
            if ["user_name", "greeting", "client_roots"]
                .into_iter()
                .all(has)
            {
                check_state(state, "asked")?;
                return Ok(text_result("All three questions are answered."));
            }
            let questions = json!({
                "user_name": elicit(&name),
                "greeting": question("sampling/createMessage", &to_the_model("Generate a greeting")),
                "client_roots": question("roots/list", &json!({})),
            });
            Err(required(&questions, Some("asked")))
        }
        "test_input_required_result_multi_round" => match state {
            Some("second") if has("step2") => Ok(text_result("Both questions are answered.")),
            Some("first") if has("step1") => {
                let color = text_form("Step 2: What is your favorite color?", "color");
                Err(required(&json!({"step2": elicit(&color)}), Some("second")))
            }
            _ => {
                let name = text_form("Step 1: What is your name?", "name");
                Err(required(&json!({"step1": elicit(&name)}), Some("first")))
            }
        },
        "test_input_required_result_capabilities" => {
            if context.client_capabilities().offers_sampling() {
                let question = to_the_model("Anything");
                context.sample("model", made(&question)).await?;
            }
            if context.client_capabilities().offers_elicitation() {
                context.elicit("user_name", made(&name)).await?;
            }
            Ok(text_result("No further questions."))
        }
        other => Err(unknown_tool(other)),
    }
}

/// The result that asks the client for input.
fn required(questions: &Value, state: Option<&str>) -> Failure {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Failure::InputRequired(Box::new(made(&result)))
}

/// Rejects a state that this server did not issue.
fn check_state(state: Option<&str>, expected: &str) -> Result<(), Failure> {
    if state == Some(expected) {
        return Ok(());
    }
    Err(invalid_params("unknown requestState"))
}

fn json_of<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
