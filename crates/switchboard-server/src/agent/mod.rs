//! The agent as an MCP server, with one tool to start a session and one to continue it.
//!
//! Sessions are in the [`Agent`]'s store, so they can be continued after a restart. A session runs one turn at a time;
//! sessions do not wait for one another.
//!
//! | where | what |
//! |---|---|
//! | this file | the tools, and how a call becomes a turn |
//! | `conversations` | the open sessions, and which of them have a turn running |
//! | `turn` | a running turn, which may outlive the request that started it |
//! | `questions` | forwards questions of the agent and its servers to the client |
//! | `report` | events of a turn as progress notifications |
//!
//! Clients that support elicitation are asked for approvals. In the stateless era a server cannot send requests while
//! it answers: there the question is returned as the result, and the turn waits until the client repeats the call with
//! the user's answer.

mod conversations;
pub(crate) mod questions;
mod report;
mod turn;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard::service::{
    Failure, Features, Reply, RequestContext, Service, error_result, invalid_params, text_result,
    unknown_tool,
};
use switchboard_agent::{Agent, Session};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{
    CallToolRequestParams, CallToolResult, Tool, ToolAnnotations,
};
use switchboard_protocol::types::{Raw, RawObject};

use conversations::{Conversations, Unavailable};
use turn::{Parked, Turn, TurnEnd};

pub use questions::ClientQuestions;

/// Name of the tool that starts a session.
pub const START: &str = "switchboard";
/// Name of the tool that continues a session.
pub const REPLY: &str = "switchboard-reply";

const INSTRUCTIONS: &str = "An agent with its own tools. Start a session with switchboard, which returns a session_id; continue it with switchboard-reply.";

/// Serves an [`Agent`] over MCP.
pub struct AgentService {
    agent: Agent,
    workspace: PathBuf,
    conversations: Arc<Conversations>,
    questions: ClientQuestions,
    parked: Parked,
}

/// Arguments of [`START`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    prompt: String,
}

/// Arguments of [`REPLY`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoOn {
    session_id: String,
    message: String,
}

/// Structured result of both tools.
#[derive(Serialize)]
struct TurnReply<'a> {
    session_id: &'a str,
    response: &'a str,
}

impl AgentService {
    /// Serves sessions with this agent that work in `workspace`.
    ///
    /// For clients to be asked, `questions` must also be the approver of the agent's permission gate and the handler of
    /// its host.
    pub fn new(agent: Agent, workspace: impl Into<PathBuf>, questions: ClientQuestions) -> Self {
        Self {
            agent,
            workspace: workspace.into(),
            conversations: Arc::default(),
            questions,
            parked: Parked::default(),
        }
    }

    /// Starts the turn for a call, or resumes the parked turn whose question the call answers.
    async fn turn(
        &self,
        call: &CallToolRequestParams<'_>,
        context: &RequestContext,
    ) -> Result<Turn, NoTurn> {
        match self.parked.take(call) {
            Some(Ok(turn)) => return Ok(turn),
            Some(Err(session_id)) => {
                return Err(NoTurn::ForModel(format!(
                    "the turn no longer waits for this answer; continue with {REPLY} and session_id {session_id}"
                )));
            }
            None => {}
        }
        let (session, text) = match &*call.name {
            START => {
                let Start { prompt } = arguments(call)?;
                (Arc::new(self.agent.session(&self.workspace)), prompt)
            }
            REPLY => {
                let GoOn {
                    session_id,
                    message,
                } = arguments(call)?;
                let session = self.conversations.find(&session_id, &self.agent).await;
                (session.map_err(|error| unavailable(&error))?, message)
            }
            other => return Err(NoTurn::Refused(unknown_tool(other))),
        };
        if text.trim().is_empty() {
            let failure = invalid_params("the text is empty");
            return Err(NoTurn::Refused(failure));
        }
        self.begin(session, text, context)
    }

    fn begin(
        &self,
        session: Arc<Session>,
        text: String,
        context: &RequestContext,
    ) -> Result<Turn, NoTurn> {
        let busy = self.conversations.begin(&session);
        let busy = busy.map_err(|error| unavailable(&error))?;
        let line = self.questions.line(&context.client_capabilities());
        Ok(Turn::begin(session, text, line, busy))
    }
}

/// The reason a call does not start a turn.
enum NoTurn {
    /// An invalid request: a JSON-RPC error.
    Refused(Failure),
    /// A tool error, which the model can act on.
    ForModel(String),
}

impl Service for AgentService {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new("switchboard".into());
        identity.title = Some("Switchboard agent".into());
        identity.version = Some(env!("CARGO_PKG_VERSION").into());
        identity
    }

    fn features(&self) -> Features {
        // Some clients list resources and prompts regardless; they get empty lists.
        Features {
            tools: true,
            resources: true,
            prompts: true,
            ..Features::NONE
        }
    }

    fn instructions(&self) -> Option<Cow<'static, str>> {
        Some(INSTRUCTIONS.into())
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let text = |about: &str| json!({"type": "string", "minLength": 1, "description": about});
        vec![
            tool(
                START,
                "Start a session with the agent",
                "Give the agent a task. It works in its workspace with its own tools and answers when it is done.",
                &json!({"prompt": text("The task, with everything the agent needs to know")}),
                &["prompt"],
            ),
            tool(
                REPLY,
                "Continue a session",
                "Send another message to a session of the agent, even one from before a restart.",
                &json!({
                    "session_id": text("The session_id that switchboard returned"),
                    "message": text("The message to send"),
                }),
                &["session_id", "message"],
            ),
        ]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let mut turn = match self.turn(&call, context).await {
                Ok(turn) => turn,
                Err(NoTurn::Refused(failure)) => return Err(failure),
                Err(NoTurn::ForModel(reason)) => return Ok(error_result(reason)),
            };
            match turn.follow(context).await {
                TurnEnd::Done(reply) => Ok(answer(&reply.session_id, &reply.response)),
                TurnEnd::Failed(error) => Ok(failed(turn.session_id(), &error)),
                TurnEnd::Asks { key, failure } => {
                    let session_id = turn.session_id().to_owned();
                    if self.parked.park(key, turn) {
                        Err(failure)
                    } else {
                        let reason = "too many sessions are waiting for an answer";
                        Ok(failed(&session_id, reason))
                    }
                }
            }
        })
    }
}

fn arguments<'a, T: Deserialize<'a>>(call: &'a CallToolRequestParams<'_>) -> Result<T, NoTurn> {
    let raw = call.arguments.as_ref().map_or("{}", RawObject::get);
    serde_json::from_str(raw).map_err(|error| {
        let message = format!("invalid arguments for {}: {error}", call.name);
        NoTurn::Refused(invalid_params(message))
    })
}

fn unavailable(error: &Unavailable) -> NoTurn {
    NoTurn::ForModel(error.to_string())
}

fn answer(session_id: &str, response: &str) -> CallToolResult<'static> {
    let answer = TurnReply {
        session_id,
        response,
    };
    // Structured content for clients that read it, and the same as text for those that do not.
    let structured = Raw::from_serialize(&answer).ok();
    let text = structured.as_ref().map(|raw| raw.get().to_owned());
    let mut result = text_result(text.unwrap_or_else(|| response.to_owned()));
    result.structured_content = structured;
    result
}

/// A failed turn stays part of its session, which can be continued.
fn failed(session_id: &str, error: &str) -> CallToolResult<'static> {
    error_result(format!(
        "{error}\nThe session still exists: continue with {REPLY} and session_id {session_id}"
    ))
}

fn tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
) -> Tool<'static> {
    let object = |properties: &Value, required: &[&str]| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let answered = json!({
        "session_id": {"type": "string", "description": "Identifies the session"},
        "response": {"type": "string", "description": "The agent's answer"},
    });
    let mut tool = Tool::new(name.into());
    tool.title = Some(title.into());
    tool.description = Some(description.into());
    tool.input_schema = Some(raw(&object(properties, required)));
    tool.output_schema = Some(raw(&object(&answered, &["session_id", "response"])));
    // The agent can do anything that its tools can.
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(false);
    annotations.destructive_hint = Some(true);
    annotations.idempotent_hint = Some(false);
    annotations.open_world_hint = Some(true);
    tool.annotations = Some(Box::new(annotations));
    tool
}

fn raw(schema: &Value) -> RawObject<'static> {
    Raw::from_serialize(schema)
        .ok()
        .and_then(|raw| raw.try_into().ok())
        .unwrap_or_default()
}
