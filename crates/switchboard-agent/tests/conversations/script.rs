//! What a file says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use switchboard_test::model::Turn;
use switchboard_test::scripted::Script;

/// A conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conversation {
    /// What it shows.
    pub(crate) about: String,
    /// Whether tools of servers are shown as the model is told of them, and not only by a hash.
    #[serde(default)]
    pub(crate) shows_tools: bool,
    #[serde(default)]
    pub(crate) options: Options,
    /// Files in the folder that the session works in.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Servers: those of `servers.rs` by name, or whole scripts.
    #[serde(default)]
    pub(crate) servers: Vec<Server>,
    /// Permission rules, as a configuration file has them.
    #[serde(default)]
    pub(crate) rules: String,
    #[serde(default)]
    pub(crate) hooks: Vec<Hook>,
    /// What the person says, one turn after the other.
    pub(crate) prompts: Vec<Prompt>,
    /// What the model does.
    pub(crate) turn: Vec<Turn>,
    /// What happens meanwhile, one after the other.
    #[serde(default)]
    pub(crate) meanwhile: Vec<Meanwhile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// `on`, `off`, or automatic.
    pub(crate) search: Option<String>,
    pub(crate) max_requests: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    /// What the model's window is said to be.
    pub(crate) window: Option<u64>,
    pub(crate) instructions: Option<String>,
    pub(crate) is_blind: bool,
    pub(crate) has_no_tools: bool,
    pub(crate) max_output_tokens: Option<u64>,
    /// Whether everything is forbidden that no rule allows.
    pub(crate) denies: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Server {
    Known(String),
    Scripted(Box<Script>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hook {
    pub(crate) tool: String,
    /// Arguments to use instead.
    #[serde(default)]
    pub(crate) arguments: Option<Value>,
    /// A text to hand over instead of the result.
    #[serde(default)]
    pub(crate) result: Option<String>,
    /// A reason to block the call.
    #[serde(default)]
    pub(crate) block: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Prompt {
    Text(String),
    Whole(WholePrompt),
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WholePrompt {
    pub(crate) text: String,
    /// Whether a picture is attached.
    pub(crate) picture: bool,
    /// Whether the session is dropped and resumed first.
    pub(crate) resume: bool,
    /// Whether the model of the other wire format goes on with it.
    pub(crate) switch: bool,
    /// Whether the conversation is made shorter first.
    pub(crate) compact: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meanwhile {
    pub(crate) when: When,
    pub(crate) then: Vec<Then>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    /// The model has been asked so often.
    Asked(usize),
    /// A call of this server waits at its gate `wait`.
    Waiting(String),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Then {
    /// The server gets a tool of this name.
    AddTool { server: String, tool: String },
    /// The server loses the tool of this name.
    RemoveTool { server: String, tool: String },
    /// The server ends.
    End(String),
    /// Another server is added to the session.
    AddServer(String),
    /// One call that waits there goes on.
    Release(String),
    /// The model goes on that waits at this gate.
    GoOn(String),
    /// The turn is interrupted.
    Interrupt,
}

impl Prompt {
    pub(crate) fn whole(&self) -> WholePrompt {
        match self {
            Self::Text(text) => WholePrompt {
                text: text.clone(),
                ..WholePrompt::default()
            },
            Self::Whole(whole) => whole.clone(),
        }
    }
}
