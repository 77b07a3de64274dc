//! The one tool of a server that wants a login (CON-1): it says how to log in.
//!
//! It stands in the catalogue in place of the server's own tools, so that a model that looks for them finds out what
//! is missing instead of finding nothing.

use serde_json::json;

use crate::catalog::{ListLimits, Provenance, Reach, ServerTools, ToolRules};
use crate::json::SharedJson;
use crate::names::ServerName;

/// The name of the tool.
pub(crate) const AUTHENTICATE: &str = "authenticate";

/// The tools of a server that wants a login.
pub(super) fn tools(server: &ServerName) -> ServerTools {
    let page = json!({"tools": [{
        "name": AUTHENTICATE,
        "description": format!(
            "The server {server} wants a login before it offers its tools. Call this to learn how to log in."
        ),
        "inputSchema": {"type": "object", "additionalProperties": false},
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    }]});
    ServerTools::from_pages(
        server,
        &[SharedJson::from(&page)],
        &ToolRules::default(),
        Reach::Other,
        Provenance::Live,
        ListLimits::default(),
    )
}

/// What the tool answers.
pub(crate) fn answer(server: &ServerName) -> SharedJson {
    let text = format!(
        "The server {server} wants a login. Ask the user to run `switchboard mcp login {server}`; its tools are there \
         as soon as that is done."
    );
    SharedJson::from(&json!({"content": [{"type": "text", "text": text}], "isError": true}))
}
