//! Tab completion: commands, servers, prompts and their arguments, resources.

use futures_util::future::join_all;
use switchboard::{ListKind, ServerName};
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::resource::Resource;

use super::editor::Completions;
use super::mcp_command::SUBCOMMANDS;
use super::prompts;
use super::slash::{COMMANDS, Command};
use crate::commands::content::Listed;
use crate::session::CommandHost;

/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 200;

/// Returns the completions of a line.
pub(super) async fn complete(line: &str, session: &CommandHost<'_>) -> Completions {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = line.get(start..).unwrap_or_default();
    let candidates = if let Some(rest) = line.strip_prefix('/') {
        command(rest, session).await
    } else if let Some(mention) = word.strip_prefix('@') {
        resources(mention, session).await
    } else {
        Vec::new()
    };
    // Drop candidates that would need sanitizing: they must be neither shown nor typed.
    let is_plain = |candidate: &String| visible(candidate) == *candidate;
    let fitting = candidates.into_iter().filter(is_plain);
    let fitting = fitting.filter(|candidate| candidate.starts_with(word));
    Completions {
        start,
        candidates: fitting.take(MAX_CANDIDATES).collect(),
    }
}

async fn command(line: &str, session: &CommandHost<'_>) -> Vec<String> {
    let Some((name, typed)) = line.split_once(char::is_whitespace) else {
        let own = COMMANDS.iter().map(|entry| {
            let takes_more = !entry.arguments.is_empty() || entry.command == Command::Mcp;
            let gap = if takes_more { " " } else { "" };
            format!("/{}{gap}", entry.name)
        });
        let prompts = prompts::to_complete(session).await;
        let prompts = prompts
            .into_iter()
            .map(|prompt| format!("/{} ", prompt.name));
        return own.chain(prompts).collect();
    };
    if name == "mcp" {
        return match typed.split_once(char::is_whitespace) {
            None => SUBCOMMANDS.iter().map(|word| format!("{word} ")).collect(),
            Some(("add", _)) => Vec::new(),
            Some(_) => session.names(),
        };
    }
    let prompts = prompts::to_complete(session).await;
    match prompts.iter().find(|prompt| prompt.name == name) {
        Some(prompt) => prompt.complete(typed, session).await,
        None => Vec::new(),
    }
}

/// Completes servers, and after a server's name its resources. Queries only connected servers.
async fn resources(mention: &str, session: &CommandHost<'_>) -> Vec<String> {
    let Some((server, _)) = mention.split_once(':') else {
        let names = session.names().into_iter();
        return names.map(|name| format!("@{name}:")).collect();
    };
    let name = ServerName::from(server);
    let status = session.host.status(&name);
    if status.is_none_or(|status| !status.state.is_connected()) {
        return Vec::new();
    }
    let lists = join_all([session.host.list(&name, ListKind::Resources)]).await;
    let mut found = Vec::new();
    for pages in lists.into_iter().flatten() {
        let listed = Listed::new(name.clone(), pages, ListKind::Resources);
        let resources = listed
            .items()
            .into_iter()
            .filter_map(|item| decode::<Resource<'_>>(item).ok());
        found.extend(resources.map(|resource| format!("@{server}:{}", resource.uri)));
    }
    found
}
