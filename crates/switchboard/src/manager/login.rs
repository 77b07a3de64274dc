//! Servers that want a login: the one tool they have meanwhile (CON-1), and how a login by whomever is noticed (CON-7).
//!
//! The tool stands in the catalogue in place of the server's own, so that a model that looks for them finds out what is
//! missing instead of finding nothing.

use std::time::Duration;

use serde_json::json;

use crate::catalog::{ListLimits, Provenance, Reach, ServerTools, ToolRules};
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::spec::ConnectionKey;

use super::{ConnectionState, Manager};

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

impl Manager {
    /// Notes whether a login, by whomever, will show in what is remembered.
    pub(super) fn expect_login(&mut self, name: &ServerName, is_expected: bool) {
        if let Some(managed) = self.servers.get_mut(name) {
            managed.expects_login = is_expected;
        }
    }

    /// Connects the servers again of which it is no longer remembered that they want a login: somebody has logged in,
    /// perhaps in another process, or so much time has passed that it is worth another try.
    pub(super) async fn look_for_logins(&mut self) {
        let waiting: Vec<(ServerName, ConnectionKey)> = self
            .servers
            .iter()
            .filter(|(_, managed)| {
                managed.expects_login && matches!(managed.state, ConnectionState::NeedsAuth(_))
            })
            .map(|(name, managed)| (name.clone(), managed.spec.key))
            .collect();
        for (name, key) in waiting {
            if self.resources.memory.needs_auth(key).await == Some(false) {
                self.connect(&name, 0, Duration::ZERO);
            }
        }
    }
}
