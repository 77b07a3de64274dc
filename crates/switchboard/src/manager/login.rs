//! Servers that require a login: the `authenticate` tool, and detecting a login, possibly by another process.
//!
//! The tool replaces the server's own tools in the catalogue, so that a model that searches for them learns that a
//! login is missing.

use std::time::Duration;

use serde_json::json;

use crate::audit::What;
use crate::catalog::text::neutralise;
use crate::catalog::{ListLimits, Provenance, Reach, ServerTools, ToolRules};
use crate::events::Event;
use crate::host::Host;
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::spec::ConnectionKey;
use crate::status::ServerState;

use super::{ConnectionState, Manager};

pub(crate) const AUTHENTICATE: &str = "authenticate";

/// The tools of a server that requires a login.
pub(super) fn tools(server: &ServerName) -> ServerTools {
    let page = json!({"tools": [{
        "name": AUTHENTICATE,
        "description": format!(
            "The server {server} requires a login before it offers its tools. Call this to begin the login: it answers \
             with the address that the user has to open."
        ),
        "inputSchema": {"type": "object", "additionalProperties": false},
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "openWorldHint": true},
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

/// The result of the tool, and whether it is an error. A started login continues in the background, and the server is
/// reconnected when it completes.
pub(crate) async fn answer(host: &Host, server: &ServerName) -> (SharedJson, bool) {
    let started = match &host.options().logins {
        Some(logins) => logins.begin(server).await,
        None => Ok(None),
    };
    let noted = |succeeded| What::Login {
        server: server.clone(),
        event: "begin",
        succeeded,
    };
    match &started {
        Ok(None) => {}
        started => host.options().gate.note(noted(started.is_ok())),
    }
    let (text, is_error) = match started {
        Ok(Some(started)) => {
            let minutes = started.patience.as_secs().div_ceil(60);
            let before = started.failed_before.map_or_else(String::new, |why| {
                format!("The login before this one failed: {}. ", neutralise(&why))
            });
            if started.is_new {
                host.restart_after(server, started.outcome);
            }
            let text = format!(
                "{before}Ask the user to open this address in a browser and to log in:\n\n{}\n\nIt is valid for \
                 {minutes} minutes. The tools of the server {server} become available once the user has logged in.",
                started.url
            );
            (text, false)
        }
        Ok(None) => {
            let text = format!(
                "The server {server} requires a login. Ask the user to run `switchboard mcp login {server}`; its tools \
                 become available after that."
            );
            (text, true)
        }
        Err(error) => {
            let hint = error.hint();
            let hint = hint.map_or_else(String::new, |hint| format!(" Hint: {hint}."));
            let error = error.to_string();
            let text = format!(
                "The login to the server {server} could not start: {}.{hint}",
                neutralise(&error)
            );
            (text, true)
        }
    };
    let content = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    (SharedJson::from(&content), is_error)
}

impl Manager {
    /// Records whether a login by any process will clear the stored `needs_auth` flag.
    pub(super) fn expect_login(&mut self, name: &ServerName, is_expected: bool) {
        if let Some(managed) = self.servers.get_mut(name) {
            managed.expects_login = is_expected;
        }
    }

    /// Sends an event for a login that led to a connection.
    pub(super) fn note_login(&mut self, name: &ServerName, now: &ServerState) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        match now {
            ServerState::NeedsAuth { .. } => managed.wants_login = true,
            ServerState::Connected if std::mem::take(&mut managed.wants_login) => {
                let tools = managed.status().tools;
                let server = name.clone();
                self.resources
                    .events
                    .send(Event::LoggedIn { server, tools });
            }
            _ => {}
        }
    }

    /// Reconnects servers whose stored `needs_auth` flag is gone: a user has logged in, perhaps in another process, or
    /// the flag has expired and a retry is due.
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
