//! What fills the context window of a session.

use std::collections::BTreeMap;

use switchboard::catalog::Tokens;

use crate::context::AgentContext;
use crate::conversation::{part_tokens, tokens};
use crate::message::{Message, Part, Role};
use crate::turn::TurnState;
use crate::view::definition_tokens;

/// Use of the context window by the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowUse {
    /// Size of the window in tokens; 0 without a model.
    pub window: u64,
    /// Tokens of the next request: counted by the provider as far as possible, the rest estimated.
    pub used: u64,
    /// Estimated tokens of the system prompt.
    pub system: u64,
    /// Estimated tokens of tool definitions: by server, in alphabetical order, and built-in tools first.
    pub tools: Vec<ToolUse>,
    /// Estimated tokens of the user's messages.
    pub prompts: u64,
    /// Estimated tokens of the model's answers, with its reasoning and calls.
    pub answers: u64,
    /// Estimated tokens of tool results.
    pub results: u64,
}

/// Tools of one server in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// `None` for built-in tools.
    pub server: Option<String>,
    /// Number of listed tools.
    pub count: usize,
    /// Estimated tokens of their definitions.
    pub tokens: u64,
}

pub(crate) fn of(context: &AgentContext, state: &TurnState) -> WindowUse {
    let conversation = state.journal.conversation();
    let header = conversation.header();
    let system = header.map_or_else(Tokens::default, |header| Tokens::of(&header.system));
    let messages = conversation.messages();
    WindowUse {
        window: context.provider().model().window,
        used: conversation.tokens(system + state.view.tokens()),
        system: system.0,
        tools: tools(context, state),
        prompts: sum(messages, |role, part| {
            role == Role::User && !matches!(part, Part::ToolResult(_))
        }),
        answers: messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .map(|message| tokens(message).0)
            .sum(),
        results: sum(messages, |_, part| matches!(part, Part::ToolResult(_))),
    }
}

fn sum(messages: &[Message], counts: impl Fn(Role, &Part) -> bool) -> u64 {
    let parts = messages.iter().flat_map(|message| {
        let role = message.role;
        message.parts.iter().map(move |part| (role, part))
    });
    let counted = parts.filter(|(role, part)| counts(*role, part));
    counted.map(|(_, part)| part_tokens(part).0).sum()
}

fn tools(context: &AgentContext, state: &TurnState) -> Vec<ToolUse> {
    let catalog = context.options.host.catalog();
    let mut servers: BTreeMap<Option<String>, (usize, u64)> = BTreeMap::new();
    for definition in state.view.definitions() {
        let tool = catalog.find(&definition.name).ok();
        let is_built_in = context.definition(&definition.name).is_some();
        let server = tool.filter(|_| !is_built_in);
        let server = server.map(|tool| tool.reference().server.as_str().to_owned());
        let (count, tokens) = servers.entry(server).or_default();
        *count += 1;
        *tokens += definition_tokens(definition).0;
    }
    let uses = servers
        .into_iter()
        .map(|(server, (count, tokens))| ToolUse {
            server,
            count,
            tokens,
        });
    uses.collect()
}
