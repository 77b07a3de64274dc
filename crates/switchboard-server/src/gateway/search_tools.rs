//! Search mode: three tools in place of all definitions.
//!
//! The client's model finds tools with `search_tools`, reads a definition with `describe_tool`, and calls with
//! `call_tool`. Permissions, pins and limits apply to the tool that is called.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use switchboard::service::{Failure, invalid_params};
use switchboard_protocol::types::tool::CallToolRequestParams;

use super::offers::Offers;

const SEARCH: &str = "search_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";
/// Results of a search that does not ask for fewer.
const MAX_FOUND: usize = 10;
/// Longest description in a search result, in characters.
const MAX_SHOWN: usize = 300;
/// Tokens of definitions from which `auto` replaces them with search.
const MANY_TOKENS: u64 = 20_000;

/// When clients get search tools instead of all definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// Always.
    On,
    /// If the definitions have more than 20,000 tokens.
    #[default]
    Auto,
    /// Never.
    Off,
}

impl SearchMode {
    pub(super) fn is_on(self, offers: &Offers) -> bool {
        match self {
            Self::On => offers.transparent.is_none(),
            Self::Off => false,
            Self::Auto => {
                offers.transparent.is_none() && offers.host.catalog().tokens().0 > MANY_TOKENS
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
            let tool = catalog.find(&name).map_err(|error| {
                let hint = error
                    .hint()
                    .map(|hint| format!(" ({hint})"))
                    .unwrap_or_default();
                invalid_params(format!("{error}{hint}"))
            })?;
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
    for hit in offers.host.search(query, limit) {
        let Some(tool) = catalog.get(&hit.tool) else {
            continue;
        };
        let description = tool.model_description();
        let short: String = description.chars().take(MAX_SHOWN).collect();
        let cut = if short.len() < description.len() {
            "…"
        } else {
            ""
        };
        let line = short.replace('\n', " ");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {line}{cut}", hit.name);
    }
    if text.is_empty() {
        return format!("no matching tools for \"{query}\"; try other words");
    }
    text
}
