//! `switchboard preflight`: whether tools can be called now, for scripts.
//!
//! Asks the running daemon for the states of its servers, and starts nothing then. Without a daemon, the servers are
//! started, and what has not connected in time is starting.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::catalog::{Catalog, CatalogTool, LookupError};
use switchboard::permissions::{Engine, Policy, Subject};
use switchboard::status::ServerStatus;
use switchboard_config::entry::Permission;
use switchboard_config::text::visible;
use tokio::time::timeout;

use super::tools::remembered;
use crate::cli::PreflightArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::servers::Servers;
use crate::{lookup, session};

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
Exit code: 0 all are ready, 75 a server is starting, 5 a tool is blocked, 1 a tool is unknown.

Examples:
  switchboard preflight github/create_issue
  switchboard preflight files/read_file files/write_file --json";

/// Whether a tool can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Readiness {
    Ready,
    Starting,
    Blocked,
    Unknown,
}

struct Report<'t> {
    tool: &'t str,
    server: Option<String>,
    readiness: Readiness,
    reason: Option<String>,
}

/// The state of a server: its word, and the reason for it.
struct State {
    word: String,
    reason: Option<String>,
}

type States = BTreeMap<String, State>;

pub(crate) fn run(arguments: &PreflightArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let engine = session::engine(&servers, context, Policy::typed());
    if let Some(states) = daemon_states(context)? {
        let catalog = remembered(&servers, context);
        return show(&arguments.tools, &catalog, &states, &engine, context);
    }
    let patience = Duration::from_secs(arguments.timeout);
    session::run_listing(context, &servers, async |session| {
        // What is not connected by then is starting.
        let _ = timeout(patience, session.start_quietly()).await;
        let states = states(&session.host.statuses());
        let catalog = session.host.catalog();
        show(&arguments.tools, &catalog, &states, &engine, context)
    })
}

/// The states of the project's servers in the daemon; `None` if no daemon has them.
#[cfg(unix)]
fn daemon_states(context: &Context) -> Result<Option<States>, Failure> {
    use switchboard_server::local::Wants;

    let files = crate::daemon::DaemonFiles::of(&context.environment);
    let runtime =
        session::runtime().map_err(|error| Failure::failed("could not start").because(error))?;
    let dialed = runtime.block_on(files.dial(Wants::Status))?;
    let Some(dialed) = dialed else {
        return Ok(None);
    };
    let own = context.project.display().to_string();
    let projects = dialed.welcome.status["projects"].as_array().cloned();
    let project = projects
        .unwrap_or_default()
        .into_iter()
        .find(|project| project["project"] == own.as_str());
    Ok(project.map(|project| states_of(&project["servers"])))
}

#[cfg(not(unix))]
fn daemon_states(_context: &Context) -> Result<Option<States>, Failure> {
    Ok(None)
}

fn states_of(servers: &Value) -> States {
    let servers = servers.as_array().map(Vec::as_slice).unwrap_or_default();
    let state = |server: &Value| {
        let text = |key: &str| server[key].as_str().map(str::to_owned);
        let state = State {
            word: text("state")?,
            reason: text("error"),
        };
        Some((text("name")?, state))
    };
    servers.iter().filter_map(state).collect()
}

fn states(statuses: &[ServerStatus]) -> States {
    let state = |status: &ServerStatus| {
        let state = State {
            word: status.word().to_owned(),
            reason: status.reason(),
        };
        (status.name.as_str().to_owned(), state)
    };
    statuses.iter().map(state).collect()
}

fn show(
    tools: &[String],
    catalog: &Catalog,
    states: &States,
    engine: &Engine,
    context: &Context,
) -> Outcome {
    let reports: Vec<Report<'_>> = tools
        .iter()
        .map(|tool| judge(tool, catalog, states, engine))
        .collect();
    let printer = &context.printer;
    if printer.json {
        printer.json(&reports.iter().map(Report::to_json).collect())?;
    } else {
        let mut table = Table::new(&[Column::key(""), Column::new(""), Column::text("")]);
        for report in &reports {
            table.row([
                (style::NAME, report.tool),
                (report.readiness.style(), report.readiness.word()),
                (style::QUIET, report.reason.as_deref().unwrap_or_default()),
            ]);
        }
        printer.table(&table)?;
    }
    let worst = reports.iter().map(|report| report.readiness).max();
    Ok(worst.map_or(Exit::Done, Readiness::exit))
}

fn judge<'t>(name: &'t str, catalog: &Catalog, states: &States, engine: &Engine) -> Report<'t> {
    let report = |server: Option<&str>, readiness, reason: Option<String>| Report {
        tool: name,
        server: server.map(str::to_owned),
        readiness,
        reason: reason.map(|reason| visible(&reason).into_owned()),
    };
    match lookup::tool(catalog, name) {
        Ok(tool) => {
            let server = tool.reference().server.as_str();
            let (readiness, reason) = match states.get(server) {
                Some(state) => match state.readiness() {
                    Readiness::Ready => match refusal(tool, engine) {
                        Some(reason) => (Readiness::Blocked, Some(reason)),
                        None => (Readiness::Ready, None),
                    },
                    readiness => (readiness, Some(state.reason(server))),
                },
                None => (Readiness::Unknown, None),
            };
            report(Some(server), readiness, reason)
        }
        Err(error @ LookupError::SetAside { .. }) => {
            report(None, Readiness::Blocked, Some(error.to_string()))
        }
        Err(error) => {
            // The server that the name begins with may not have listed its tools yet.
            let meant = states.iter().find(|(server, _)| begins_with(name, server));
            if let Some((server, state)) = meant
                && state.readiness() != Readiness::Ready
            {
                return report(Some(server), state.readiness(), Some(state.reason(server)));
            }
            let hint = error.hint().map(|hint| format!("; {hint}"));
            let reason = format!("{error}{}", hint.unwrap_or_default());
            let server = meant.map(|(server, _)| server.as_str());
            report(server, Readiness::Unknown, Some(reason))
        }
    }
}

/// Why a call of the tool from a script would not be permitted, with any arguments.
fn refusal(tool: &CatalogTool, engine: &Engine) -> Option<String> {
    let decision = engine.decide(&Subject::from(tool), None);
    let because = &decision.grounds.because;
    match decision.permission {
        Permission::Allow => None,
        Permission::Ask => Some(format!("it needs approval: {because}")),
        Permission::Deny => Some(format!("denied: {because}")),
    }
}

fn begins_with(name: &str, server: &str) -> bool {
    let follows = |rest: Option<&str>, separators: &[&str]| {
        rest.is_some_and(|rest| separators.iter().any(|each| rest.starts_with(each)))
    };
    follows(name.strip_prefix(server), &["/", "."])
        || follows(
            name.strip_prefix("mcp__")
                .and_then(|rest| rest.strip_prefix(server)),
            &["__"],
        )
}

impl State {
    fn readiness(&self) -> Readiness {
        match self.word.as_str() {
            "connected" | "idle" => Readiness::Ready,
            "pending" | "lazy" | "ready" => Readiness::Starting,
            _ => Readiness::Blocked,
        }
    }

    fn reason(&self, server: &str) -> String {
        let reason = self.reason.clone();
        reason.unwrap_or_else(|| format!("server {server} is {}", self.word))
    }
}

impl Readiness {
    fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Starting => "starting",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }

    fn style(self) -> anstyle::Style {
        match self {
            Self::Ready => style::GOOD,
            Self::Starting => style::WARNING,
            Self::Blocked | Self::Unknown => style::ERROR,
        }
    }

    fn exit(self) -> Exit {
        match self {
            Self::Ready => Exit::Done,
            Self::Starting => Exit::Starting,
            Self::Blocked => Exit::Denied,
            Self::Unknown => Exit::Failed,
        }
    }
}

impl Report<'_> {
    fn to_json(&self) -> Value {
        json!({
            "tool": self.tool,
            "server": self.server,
            "state": self.readiness.word(),
            "reason": self.reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_listed_is_judged_by_its_server() {
        let state = |word: &str| State {
            word: word.to_owned(),
            reason: None,
        };
        let states: States = [("a", "pending"), ("b", "failed"), ("c", "connected")]
            .into_iter()
            .map(|(name, word)| (name.to_owned(), state(word)))
            .collect();
        let engine = Engine::without_rules(Policy::typed());
        let check = |tool: &str, expected: Readiness| {
            let report = judge(tool, &Catalog::default(), &states, &engine);
            assert_eq!(report.readiness, expected, "{tool}");
        };
        check("a/x", Readiness::Starting);
        check("mcp__a__x", Readiness::Starting);
        check("b.x", Readiness::Blocked);
        check("c/x", Readiness::Unknown);
        check("d/x", Readiness::Unknown);
    }
}
