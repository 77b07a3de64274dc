//! Candidates for the menu: commands, servers, prompts and their arguments, files, resources.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use switchboard::catalog::CatalogServer;
use switchboard::internal::files::{IgnoreRules, Walk};
use switchboard::service::Cancellation;
use switchboard::{ListKind, ServerName};
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::resource::Resource;

use super::mcp_command::SUBCOMMANDS;
use super::menu::Candidate;
use super::prompts;
use super::slash::{COMMANDS, Command};
use crate::commands::content::Listed;
use crate::session::CommandHost;

/// Files and resources offered.
const MAX_FILES: usize = 5_000;
const MAX_RESOURCES: usize = 1_000;
/// Timeout of a request to a server.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a menu is about. While it stays the same, the candidates do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// Commands and prompts.
    Commands,
    /// The arguments of a command, up to the last word.
    Arguments(String),
    /// Files and resources.
    Mentions,
}

/// The word at the end of `line` that a menu is about, with its byte offset; `None` for plain text.
pub(super) fn subject(line: &str) -> Option<(Subject, usize, &str)> {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| {
        at + line[at..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &line[start..];
    if line.starts_with('/') && !line.contains('\n') {
        if start == 0 {
            // A path is not a command.
            return (!word[1..].contains('/')).then_some((Subject::Commands, 0, word));
        }
        // The part of an argument after `=` is completed by the server, which gets all of it.
        let before = match word.split_once('=') {
            Some(_) => line,
            None => &line[..start],
        };
        return Some((Subject::Arguments(before.to_owned()), start, word));
    }
    word.starts_with('@')
        .then_some((Subject::Mentions, start, word))
}

/// Finds all candidates for a subject, unfiltered. Queries only connected servers.
pub(super) async fn candidates(subject: Subject, session: &CommandHost<'_>) -> Rc<[Candidate]> {
    let work = async {
        match subject {
            Subject::Commands => commands(session).await,
            Subject::Arguments(line) => arguments(&line, session).await,
            Subject::Mentions => {
                let (files, resources) = tokio::join!(files(session), resources(session));
                files.into_iter().chain(resources).collect()
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, work).await;
    // Drop candidates that would need sanitizing: they must be neither shown nor typed.
    let is_plain = |candidate: &Candidate| visible(&candidate.text) == *candidate.text;
    found
        .unwrap_or_default()
        .into_iter()
        .filter(is_plain)
        .collect()
}

/// The candidates that need no server.
pub(super) fn known(subject: &Subject) -> Vec<Candidate> {
    match subject {
        Subject::Commands => own_commands().collect(),
        Subject::Arguments(_) | Subject::Mentions => Vec::new(),
    }
}

fn own_commands() -> impl Iterator<Item = Candidate> {
    COMMANDS.iter().map(|entry| {
        let takes_more = !entry.arguments.is_empty() || entry.command == Command::Mcp;
        let gap = if takes_more { " " } else { "" };
        Candidate::new(format!("/{}{gap}", entry.name), entry.about)
    })
}

async fn commands(session: &CommandHost<'_>) -> Vec<Candidate> {
    let own = own_commands();
    let prompts = prompts::all(session).await.commands;
    let prompts = prompts.into_iter().map(|prompt| {
        let gap = if prompt.usage().is_empty() { "" } else { " " };
        Candidate::new(format!("/{}{gap}", prompt.name), prompt.about())
    });
    own.chain(prompts).collect()
}

async fn arguments(line: &str, session: &CommandHost<'_>) -> Vec<Candidate> {
    let Some((name, typed)) = line
        .strip_prefix('/')
        .and_then(|line| line.split_once(char::is_whitespace))
    else {
        return Vec::new();
    };
    if name == "mcp" {
        return match typed.split_once(char::is_whitespace) {
            None => SUBCOMMANDS
                .iter()
                .map(|word| Candidate::new(format!("{word} "), ""))
                .collect(),
            Some(("add", _)) => Vec::new(),
            Some(_) => session
                .names()
                .into_iter()
                .map(|name| Candidate::new(name, ""))
                .collect(),
        };
    }
    if name == "call" && !typed.contains(char::is_whitespace) {
        let catalog = session.host.catalog();
        let servers = catalog.servers().iter();
        let tools = servers.flat_map(CatalogServer::tools);
        return tools
            .map(|tool| Candidate::new(format!("{} ", tool.reference()), ""))
            .collect();
    }
    if name == "theme" {
        return crate::theme::NAMES
            .iter()
            .map(|(name, about)| Candidate::new(*name, *about))
            .collect();
    }
    let prompts = prompts::all(session).await.commands;
    match prompts.iter().find(|prompt| prompt.name == name) {
        Some(prompt) => {
            let found = prompt.complete(typed, session).await;
            found
                .into_iter()
                .map(|text| Candidate::new(text, ""))
                .collect()
        }
        None => Vec::new(),
    }
}

/// The files of the folder, without ignored and secret ones, newest first.
async fn files(session: &CommandHost<'_>) -> Vec<Candidate> {
    let root = session.context.cwd.clone();
    let secrets = session.gate.engine().secrets();
    let walk = tokio::task::spawn_blocking(move || {
        let walk = Walk {
            root: &root,
            under: None,
            rules: IgnoreRules::OfRepository,
            newest_first: true,
            max_files: MAX_FILES,
            secrets: &secrets,
        };
        let listing = walk.list(&Cancellation::default(), |_| true).ok()?;
        let paths = listing.paths.into_iter().filter_map(|path| {
            let inner = path.strip_prefix(&root).ok()?;
            Some(inner.to_str()?.replace('\\', "/"))
        });
        Some(paths.collect::<Vec<String>>())
    });
    let paths = walk.await.ok().flatten().unwrap_or_default();
    let is_word = |path: &String| !path.contains(char::is_whitespace);
    let paths = paths.into_iter().filter(is_word);
    paths
        .map(|path| Candidate::new(format!("@{path}"), ""))
        .collect()
}

/// The resources of all connected servers.
async fn resources(session: &CommandHost<'_>) -> Vec<Candidate> {
    let statuses = session.host.statuses().into_iter();
    let connected = statuses.filter(|status| status.state.is_connected());
    let listing = connected.map(async |status| of_server(status.name, session).await);
    let found = join_all(listing).await.into_iter().flatten();
    found.take(MAX_RESOURCES).collect()
}

async fn of_server(name: ServerName, session: &CommandHost<'_>) -> Vec<Candidate> {
    let Ok(pages) = session.host.list(&name, ListKind::Resources).await else {
        return Vec::new();
    };
    let listed = Listed::new(name.clone(), pages, ListKind::Resources);
    let items = listed.items().into_iter();
    let resources = items.filter_map(|item| decode::<Resource<'_>>(item).ok());
    resources
        .map(|resource| {
            let about = visible(&resource.name).into_owned();
            Candidate::new(format!("@{}:{}", name.as_str(), resource.uri), about)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides_the_menu() {
        for (line, expected) in [
            ("hello", None),
            ("/he", Some((Subject::Commands, 0, "/he"))),
            ("/etc/passwd", None),
            (
                "/mcp ",
                Some((Subject::Arguments("/mcp ".to_owned()), 5, "")),
            ),
            (
                "/p a=b c=d",
                Some((Subject::Arguments("/p a=b c=d".to_owned()), 7, "c=d")),
            ),
            ("see @src", Some((Subject::Mentions, 4, "@src"))),
            ("me@home", None),
            ("see @a then", None),
        ] {
            assert_eq!(subject(line), expected, "{line}");
        }
    }
}
