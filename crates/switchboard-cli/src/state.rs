//! Presents a server's state: one word, its style, the reason, the remedy, the exit code.
//!
//! Every command takes them from here, so that no two commands contradict each other.

use anstyle::Style;
use switchboard::status::{Cause, Refusal, Remedy, ServerState, ServerStatus};
use switchboard_config::resolve::Server;
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::exit::Exit;
use crate::printer::style;
use crate::terminal::{self, fitted};

/// The word for a server that can be started, in commands that start none.
pub(crate) const READY: &str = "ready";
/// Columns left for a reason on the narrowest terminal.
const MIN_REASON_WIDTH: usize = 30;

/// A state as displayed.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) word: &'static str,
    pub(crate) style: Style,
    /// The reason, for scripts. `None` if there is nothing to explain.
    pub(crate) reason: Option<String>,
    /// The reason, for people. `None` if the word is explanation enough.
    pub(crate) remark: Option<String>,
}

impl Shown {
    /// Also says that a connected server offers no tools: an empty list is often a mistake in its settings.
    pub(crate) fn of_status(status: &ServerStatus) -> Self {
        let mut shown = Self::of(&status.state);
        let is_empty = status.state.is_connected() && status.count.offered == 0;
        if is_empty && shown.remark.is_none() {
            shown.remark = Some("connected, but it offers no tools".to_owned());
        }
        shown
    }

    pub(crate) fn of(state: &ServerState) -> Self {
        let reason = state.reason();
        let is_clear = matches!(state, ServerState::Disabled { .. });
        Self {
            word: state.word(),
            style: style_of(state),
            remark: reason.clone().filter(|_| !is_clear),
            reason,
        }
    }

    /// Presents a state by its word, without a reason; `None` if the word is unknown.
    #[cfg(unix)]
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        let (word, style) = [
            ("connected", style::GOOD),
            (READY, style::GOOD),
            ("needs-auth", style::WARNING),
            ("untrusted", style::WARNING),
            ("failed", style::ERROR),
            ("blocked", style::ERROR),
            ("invalid", style::ERROR),
            ("refused", style::ERROR),
            ("pending", style::QUIET),
            ("lazy", style::QUIET),
            ("idle", style::QUIET),
            ("disabled", style::QUIET),
            ("shadowed", style::QUIET),
        ]
        .into_iter()
        .find(|(known, _)| *known == word)?;
        Some(Self {
            word,
            style,
            reason: None,
            remark: None,
        })
    }

    /// Presents a server by its entry alone, without a host.
    pub(crate) fn configured(server: &Server) -> Self {
        match ServerState::of_configured(server) {
            Some(state) => Self::of(&state),
            None => Self::ready(),
        }
    }

    /// A server that can be started.
    pub(crate) fn ready() -> Self {
        Self {
            word: READY,
            style: style::GOOD,
            reason: None,
            remark: None,
        }
    }
}

fn style_of(state: &ServerState) -> Style {
    match state {
        ServerState::Connected => style::GOOD,
        ServerState::NeedsAuth { .. } | ServerState::Refused(Refusal::Untrusted { .. }) => {
            style::WARNING
        }
        ServerState::Failed { .. } | ServerState::Refused(_) => style::ERROR,
        ServerState::Pending { .. }
        | ServerState::Lazy { .. }
        | ServerState::Idle
        | ServerState::Disabled { .. }
        | ServerState::Hidden { .. } => style::QUIET,
    }
}

/// The exit code of a command that needs a server in this state.
pub(crate) fn exit_of(state: &ServerState) -> Exit {
    match state {
        ServerState::Connected | ServerState::Idle => Exit::Done,
        ServerState::NeedsAuth { .. } => Exit::NeedsLogin,
        ServerState::Disabled { .. } | ServerState::Hidden { .. } => Exit::Failed,
        ServerState::Refused(Refusal::Untrusted { .. } | Refusal::Blocked { .. }) => Exit::Denied,
        ServerState::Refused(Refusal::Invalid(_) | Refusal::Unusable(_) | Refusal::Name { .. }) => {
            Exit::Configuration
        }
        ServerState::Lazy { .. } | ServerState::Pending { .. } | ServerState::Failed { .. } => {
            match state.failure().map(|failure| failure.cause) {
                Some(Cause::TokenRejected) => Exit::NeedsLogin,
                Some(Cause::Name) => Exit::Configuration,
                _ => Exit::Unreachable,
            }
        }
    }
}

/// The failure of a command that needs this server; `None` if the server can be used.
pub(crate) fn unusable(status: &ServerStatus) -> Option<Failure> {
    let name = visible(status.name.as_str());
    let state = &status.state;
    let message = match state {
        ServerState::Connected | ServerState::Idle => return None,
        ServerState::NeedsAuth { .. } => format!("the server `{name}` requires a login"),
        ServerState::Disabled { .. } | ServerState::Refused(_) | ServerState::Hidden { .. } => {
            format!("the server `{name}` cannot be used")
        }
        ServerState::Lazy { .. } | ServerState::Pending { .. } | ServerState::Failed { .. } => {
            format!("the server `{name}` is not connected")
        }
    };
    let mut failure = Failure::new(exit_of(state), message);
    let is_in_message = matches!(state, ServerState::NeedsAuth { .. });
    if let Some(reason) = state.reason().filter(|_| !is_in_message) {
        failure = failure.because(reason);
    }
    let remedy = status.remedy();
    let remedy = remedy.unwrap_or_else(|| Remedy::Diagnose(status.name.as_str().to_owned()));
    Some(failure.hint(remedy.to_string()))
}

/// A one-line warning about a server that was just started and is not connected.
pub(crate) fn warning(status: &ServerStatus) -> Option<String> {
    let name = visible(status.name.as_str());
    let reason = status.reason().unwrap_or_default();
    let remedy = status.remedy().map(|remedy| remedy.to_string());
    let remedy = remedy.unwrap_or_default();
    match &status.state {
        ServerState::Failed { .. } => {
            // Cut the reason rather than the hint, which leads to the complete reason.
            let reason = match terminal::error_size() {
                Some(size) => {
                    let taken = "warning:  failed: ; ".len() + name.len() + remedy.len();
                    let room = size.columns.saturating_sub(taken).max(MIN_REASON_WIDTH);
                    fitted(&reason, room)
                }
                None => reason.as_str().into(),
            };
            Some(format!("{name} failed: {reason}; {remedy}"))
        }
        ServerState::NeedsAuth { .. } => Some(format!("{name} requires a login; {remedy}")),
        ServerState::Pending { .. } | ServerState::Lazy { .. } => {
            Some(format!("{name} is not connected yet: {reason}"))
        }
        _ => None,
    }
}

/// Whether a diagnostic of the configuration already reports servers in this state.
pub(crate) fn is_in_findings(word: &str) -> bool {
    ["invalid", "refused"].contains(&word)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::SystemTime;

    use switchboard::catalog::ToolCount;
    use switchboard::internal::connectors::ConnectorError;
    use switchboard::status::{DisabledBy, Failure as Failed, StartsOn};
    use switchboard_agent::FailedServer;
    use switchboard_config::files::{Disk, Folders};
    use switchboard_config::resolve::{Config, Inputs};

    use super::*;
    use crate::commands::chat::mcp_command;
    use crate::commands::mcp::list;
    use crate::commands::status;

    /// The index of a variant. A new variant does not compile without a number here, and fails the test without a row
    /// below.
    fn number(state: &ServerState) -> usize {
        match state {
            ServerState::Disabled { .. } => 0,
            ServerState::Lazy { .. } => 1,
            ServerState::Pending { .. } => 2,
            ServerState::Connected => 3,
            ServerState::Idle => 4,
            ServerState::Failed { .. } => 5,
            ServerState::NeedsAuth { .. } => 6,
            ServerState::Hidden { .. } => 7,
            ServerState::Refused(Refusal::Invalid(_)) => 8,
            ServerState::Refused(Refusal::Unusable(_)) => 9,
            ServerState::Refused(Refusal::Untrusted { .. }) => 10,
            ServerState::Refused(Refusal::Blocked { .. }) => 11,
            ServerState::Refused(Refusal::Name { .. }) => 12,
        }
    }

    fn all_states() -> Vec<(ServerState, &'static str, Option<&'static str>)> {
        let failure = |message: &str| {
            Box::new(Failed {
                step: None,
                cause: Cause::Lost,
                message: message.to_owned(),
                stderr: Vec::new(),
            })
        };
        let lazy = |until| ServerState::Lazy { until };
        let disabled = |by| ServerState::Disabled { by };
        let pending = |failure, failed_attempts| ServerState::Pending {
            failure,
            failed_attempts,
            is_installing: false,
        };
        let refused = ServerState::Refused;
        let hidden = ServerState::Hidden {
            by: "other".to_owned(),
            place: "user scope, mcp.toml:3:1".to_owned(),
            is_editable: true,
        };
        let name = Refusal::Name {
            by: "other".to_owned(),
            place: "user scope, mcp.toml:3:1".to_owned(),
            instead: "mine".to_owned(),
            entry: "mcp.toml:9:1".to_owned(),
        };
        let untrusted = Refusal::Untrusted {
            reason: "not approved yet".to_owned(),
            subject: "it".to_owned(),
        };
        let blocked = Refusal::Blocked {
            reason: "denied by \"corp-*\"".to_owned(),
        };
        let unusable = Refusal::Unusable(ConnectorError::MissingVariable("TOKEN".to_owned()));
        vec![
            (
                disabled(DisabledBy::Entry),
                "disabled",
                Some("disabled in its entry"),
            ),
            (
                disabled(DisabledBy::Session),
                "disabled",
                Some("disabled for this session"),
            ),
            (
                lazy(StartsOn::FirstUse),
                "lazy",
                Some("connects on first use"),
            ),
            (
                lazy(StartsOn::Request),
                "lazy",
                Some("not started; connects on first use"),
            ),
            (pending(None, 0), "pending", Some("still starting")),
            (
                pending(Some(failure("connection reset")), 2),
                "pending",
                Some("reconnecting: connection reset"),
            ),
            (ServerState::Connected, "connected", None),
            (
                ServerState::Idle,
                "idle",
                Some("stopped while idle; connects on next use"),
            ),
            (
                ServerState::Failed {
                    failure: failure("connection refused"),
                },
                "failed",
                Some("connection refused"),
            ),
            (
                ServerState::NeedsAuth { failure: None },
                "needs-auth",
                Some("it requires a login"),
            ),
            (
                hidden,
                "shadowed",
                Some(
                    "shadowed by `other` (user scope, mcp.toml:3:1), which points to the same endpoint",
                ),
            ),
            (
                refused(Refusal::Invalid(vec![
                    "no command".to_owned(),
                    "no url".to_owned(),
                ])),
                "invalid",
                Some("no command; no url"),
            ),
            (
                refused(unusable),
                "failed",
                Some("the variable TOKEN is not set"),
            ),
            (refused(untrusted), "untrusted", Some("not approved yet")),
            (refused(blocked), "blocked", Some("denied by \"corp-*\"")),
            (
                refused(name),
                "refused",
                Some("its name can be mistaken for `other` (user scope, mcp.toml:3:1)"),
            ),
        ]
    }

    fn status_of(state: ServerState) -> ServerStatus {
        ServerStatus {
            name: "it".into(),
            transport: None,
            state,
            since: SystemTime::now(),
            required: false,
            revision: None,
            tools: 0,
            count: ToolCount::default(),
            restarts: 0,
            latency: None,
            startup: None,
            process: None,
        }
    }

    /// Loads a user file and a project file from a temporary folder.
    fn config(user: &str, project: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders {
            home: folder.path().join("home"),
            config: folder.path().join("config"),
            state: folder.path().join("state"),
            project: folder.path().join("project"),
            managed_file: None,
        };
        for folder in [&folders.home, &folders.config, &folders.project] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(folders.config.join("mcp.toml"), user).unwrap();
        std::fs::write(folders.project.join(".mcp.json"), project).unwrap();
        let inputs = Inputs {
            folders,
            ..Inputs::default()
        };
        Config::load(&inputs, &Disk)
    }

    #[test]
    fn every_view_shows_the_same_word_and_the_same_reason() {
        let config = config("[mcp_servers.it]\ncommand = \"it\"\n", "{}");
        let server = &config.servers[0];
        let mut covered = BTreeSet::new();
        for (state, word, reason) in all_states() {
            covered.insert(number(&state));
            let status = status_of(state.clone());
            let views = [
                ("status --json", status::Row::of(&status).to_json()),
                (
                    "mcp list --json",
                    list::Row::of(server, Some(status.clone())).to_json(),
                ),
            ];
            for (view, json) in views {
                assert_eq!(json["state"], word, "{view}");
                assert_eq!(json["error"].as_str(), reason, "{view}: {word}");
            }
            let rows = [list::Row::of(server, Some(status.clone()))];
            let home = std::path::Path::new("/home/user");
            let listed = list::table(&rows, list::Columns::Connected, home);
            // `disabled` needs no reason in a table; `/mcp` shows it.
            let is_clear = word == "disabled";
            let texts = [
                (
                    "status",
                    status::table(&[status::Row::of(&status)]).to_string(),
                    is_clear,
                ),
                ("mcp list", listed.to_string(), is_clear),
                (
                    "/mcp",
                    mcp_command::table(std::slice::from_ref(&status), |_| None, 200).to_string(),
                    false,
                ),
            ];
            for (view, text, is_clear) in texts {
                assert!(text.contains(word), "{view} lacks {word}:\n{text}");
                let shown = reason.filter(|_| !is_clear).unwrap_or_default();
                assert!(
                    text.contains(shown),
                    "{view} of {word} lacks {shown}:\n{text}"
                );
            }
            // Agent events and `tools --json` show the same for a missing server.
            if let Some(missing) = status.absence().map(FailedServer::from) {
                assert_eq!(
                    (missing.state.as_str(), Some(missing.reason.as_str())),
                    (word, reason)
                );
            }
            // So does the failure of a command that needs the server.
            let is_usable = ["connected", "idle"].contains(&word);
            let failure = unusable(&status);
            assert_eq!(failure.is_none(), is_usable, "{word}");
            if let (Some(failure), Some(reason), false) = (failure, reason, word == "needs-auth") {
                assert!(
                    failure.causes.iter().any(|cause| cause == reason),
                    "{word}: {failure:?}"
                );
            }
        }
        assert_eq!(covered, (0..13).collect(), "a variant has no row");
    }

    #[test]
    fn an_entry_that_cannot_start_has_the_word_that_the_configuration_gives_it() {
        let user = "
            [settings]
            [mcp_servers.off]
            command = \"off\"
            enabled = false
            [mcp_servers.wrong]
            command = \"wrong\"
            url = \"https://example.org\"
            [mcp_servers.same]
            url = \"https://example.org/mcp\"
            [mcp_servers.good]
            command = \"good\"
        ";
        let project = r#"{"mcpServers": {"theirs": {"command": "theirs"}}}"#;
        let config = config(user, project);
        let mut words = Vec::new();
        for server in &config.servers {
            let Some(state) = ServerState::of_configured(server) else {
                assert_eq!(Shown::configured(server).word, server.status.word());
                continue;
            };
            words.push(state.word());
            assert_eq!(state.word(), server.status.word(), "{}", server.name);
            assert_eq!(state.reason(), server.status.reason(), "{}", server.name);
        }
        assert_eq!(words, ["disabled", "untrusted", "invalid"]);
    }
}
