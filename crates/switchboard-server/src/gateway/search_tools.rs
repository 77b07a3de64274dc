//! Search mode: three tools in place of all definitions.
//!
//! The client's model finds tools with `search_tools`, reads a definition with `describe_tool`, and calls with
//! `call_tool`. Permissions, pins and limits apply to the tool that is called.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use switchboard::service::{Failure, invalid_params};
use switchboard_config::policy::SearchWhen;
use switchboard_protocol::types::tool::CallToolRequestParams;

use super::budget::ClientBudget;
use super::offers::Offers;

const SEARCH: &str = "search_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";
/// Results of a search that does not ask for fewer.
const MAX_FOUND: usize = 10;
/// Longest description in a search result, in characters.
const MAX_SHOWN: usize = 300;

/// When clients get search tools instead of all definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// Always.
    On,
    /// If the definitions are large for the client: a tenth of its context window, or more tools than it can take.
    #[default]
    Auto,
    /// Never.
    Off,
}

impl From<SearchWhen> for SearchMode {
    fn from(when: SearchWhen) -> Self {
        match when {
            SearchWhen::On => Self::On,
            SearchWhen::Auto => Self::Auto,
            SearchWhen::Off => Self::Off,
        }
    }
}

impl SearchMode {
    /// Whether a client may have been offered the search tools. With `auto`, that changes with the servers.
    pub(super) fn may_be_on(self, offers: &Offers) -> bool {
        offers.transparent.is_none() && self.for_clients(offers) != Self::Off
    }

    /// The mode of the clients' profile, or this one.
    fn for_clients(self, offers: &Offers) -> Self {
        let own = offers.profile().and_then(|profile| profile.search);
        own.map_or(self, Self::from)
    }

    /// Whether a client gets the search tools. `budget` is that of the client.
    pub(super) fn is_on(self, offers: &Offers, budget: ClientBudget) -> bool {
        match self.for_clients(offers) {
            Self::On => offers.transparent.is_none(),
            Self::Off => false,
            Self::Auto => {
                let (tools, tokens) = offers.tool_cost();
                offers.transparent.is_none() && budget.is_exceeded(tools, tokens)
            }
        }
    }
}

/// The definitions, as a JSON array.
pub(super) fn definitions() -> String {
    let name =
        json!({"type": "string", "description": "Name of the tool, as search_tools returned it."});
    json!([
        {
            "name": SEARCH,
            "title": "Search tools",
            "description": "Find tools by what they do. Returns names with short descriptions, best match first. Use describe_tool for the parameters of a tool and call_tool to call it.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What the tool should do, in a few words."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Maximum number of results; 10 by default."},
                },
                "required": ["query"],
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        },
        {
            "name": DESCRIBE,
            "title": "Describe a tool",
            "description": "Get the complete definition of a tool: its description and the JSON Schema of its arguments.",
            "inputSchema": {"type": "object", "properties": {"name": name}, "required": ["name"]},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        },
        {
            "name": CALL,
            "title": "Call a tool",
            "description": "Call a tool that search_tools found.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": name,
                    "arguments": {"type": "object", "description": "Arguments of the tool, by its schema."},
                },
                "required": ["name"],
            },
        },
    ])
    .to_string()
}

/// What a call of one of the tools comes to.
pub(super) enum SearchCall {
    /// A text to return.
    Text(String),
    /// A call of this tool.
    Call {
        name: String,
        arguments: Option<Box<RawValue>>,
    },
}

#[derive(Deserialize)]
struct Search {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Inner {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// Handles a call of a search tool; `None` if it is a call of another tool.
pub(super) fn handle(
    call: &CallToolRequestParams<'_>,
    offers: &Offers,
) -> Result<Option<SearchCall>, Failure> {
    if !matches!(&*call.name, SEARCH | DESCRIBE | CALL) {
        return Ok(None);
    }
    let text = call.arguments.as_ref().map_or("{}", |object| object.get());
    let unfit = |error: serde_json::Error| invalid_params(format!("{}: {error}", call.name));
    Ok(Some(match &*call.name {
        SEARCH => {
            let Search { query, limit } = serde_json::from_str(text).map_err(unfit)?;
            SearchCall::Text(found(
                &query,
                limit.unwrap_or(MAX_FOUND).clamp(1, 50),
                offers,
            ))
        }
        DESCRIBE => {
            let Inner { name, .. } = serde_json::from_str(text).map_err(unfit)?;
            let catalog = offers.host.catalog();
            let tool = catalog.find(&offers.host_name(&name)).map_err(|error| {
                let hint = error
                    .hint()
                    .map(|hint| format!(" ({hint})"))
                    .unwrap_or_default();
                invalid_params(format!("{error}{hint}"))
            })?;
            if !offers.has_tool(tool) {
                return Err(invalid_params(format!("no tool is named \"{name}\" here")));
            }
            SearchCall::Text(offers.tool_text(tool).unwrap_or_default())
        }
        CALL => {
            let Inner { name, arguments } = serde_json::from_str(text).map_err(unfit)?;
            SearchCall::Call { name, arguments }
        }
        _ => return Ok(None),
    }))
}

fn found(query: &str, limit: usize, offers: &Offers) -> String {
    let catalog = offers.host.catalog();
    let mut text = String::new();
    // The index has the tools of all clients.
    let wide = if offers.profile().is_some() {
        catalog.len()
    } else {
        limit
    };
    let hits = offers.host.search(query, wide);
    let tools = hits.iter().filter_map(|hit| catalog.get(&hit.tool));
    for tool in tools.filter(|tool| offers.has_tool(tool)).take(limit) {
        let description = tool.model_description();
        let short: String = description.chars().take(MAX_SHOWN).collect();
        let cut = if short.len() < description.len() {
            "…"
        } else {
            ""
        };
        let line = short.replace('\n', " ");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {line}{cut}", offers.tool_name(tool));
    }
    if text.is_empty() {
        return format!("no matching tools for \"{query}\"; try other words");
    }
    text
}
