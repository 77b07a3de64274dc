//! How the embedded server's tools are shown, until all servers' tools come from one catalogue.

use serde_json::{Value, json};
use switchboard_protocol::types::tool::Tool;

pub(crate) use switchboard::workspace::{NAME as SERVER, tools};

/// The name that a model sees.
pub(crate) fn exposed_name(tool: &Tool<'_>) -> String {
    format!("mcp__{SERVER}__{}", tool.name)
}

/// What the definition costs, estimated at four characters a token.
pub(crate) fn tokens(tool: &Tool<'_>) -> usize {
    let schema = tool.input_schema.as_ref();
    let characters = exposed_name(tool).chars().count()
        + tool
            .description
            .as_deref()
            .unwrap_or_default()
            .chars()
            .count()
        + schema.map_or(0, |schema| schema.get().chars().count());
    characters.div_ceil(4)
}

/// The tool as `--json` has it.
pub(crate) fn to_json(tool: &Tool<'_>) -> Value {
    json!({
        "name": exposed_name(tool),
        "server": SERVER,
        "tool": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations.as_deref(),
        "tokens": tokens(tool),
    })
}
