//! File format of scripted conversations.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use switchboard_test::model::Turn;
use switchboard_test::scripted::Script;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conversation {
    /// Purpose of the test.
    pub(crate) about: String,
    /// Whether to show definitions of server tools in full instead of hashes.
    #[serde(default)]
    pub(crate) shows_tools: bool,
    #[serde(default)]
    pub(crate) options: Options,
    /// Files in the workspace.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Names of servers in `servers.rs`, or complete scripts.
    #[serde(default)]
    pub(crate) servers: Vec<Server>,
    /// Permission rules, in the format of configuration files.
    #[serde(default)]
    pub(crate) rules: String,
    #[serde(default)]
    pub(crate) hooks: Vec<Hook>,
    /// Messages of the user, one per turn.
    pub(crate) prompts: Vec<Prompt>,
    /// Answers of the model.
    pub(crate) turn: Vec<Turn>,
    /// Concurrent events, in order.
    #[serde(default)]
    pub(crate) meanwhile: Vec<Meanwhile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// `on` or `off`; automatic if absent.
    pub(crate) search: Option<String>,
    pub(crate) max_requests: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    /// Context window reported for the model.
    pub(crate) window: Option<u64>,
    pub(crate) instructions: Option<String>,
    pub(crate) is_blind: bool,
    pub(crate) has_no_tools: bool,
    pub(crate) max_output_tokens: Option<u64>,
    /// Whether calls are denied unless a rule allows them.
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
    /// Replacement arguments.
    #[serde(default)]
    pub(crate) arguments: Option<Value>,
    /// Replacement for the result.
    #[serde(default)]
    pub(crate) result: Option<String>,
    /// Reason to block the call.
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
    /// Whether to attach an image.
    pub(crate) picture: bool,
    /// Whether to drop and resume the session first.
    pub(crate) resume: bool,
    /// Whether to switch to the model of the other wire format first.
    pub(crate) switch: bool,
    /// Whether to compact the conversation first.
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
    /// After this many requests to the model.
    Asked(usize),
    /// When a call of this server waits at its gate `wait`.
    Waiting(String),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Then {
    /// Adds a tool to a server.
    AddTool { server: String, tool: String },
    /// Removes a tool from a server.
    RemoveTool { server: String, tool: String },
    /// Stops a server.
    End(String),
    /// Adds a server to the session.
    AddServer(String),
    /// Releases one waiting call.
    Release(String),
    /// Releases the model at this gate.
    GoOn(String),
    /// Interrupts the turn.
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
