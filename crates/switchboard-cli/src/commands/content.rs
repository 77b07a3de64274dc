//! Shared by the resource and prompt commands: listing over all servers, suggestions for unknown names, failures.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use switchboard::catalog::{SetAside, SetAsideReason};
use switchboard::internal::catalog::{NOT_PINNED_HINT, PINS_UNREADABLE_HINT};
use switchboard::status::ServerStatus;
use switchboard::{ContentError, ListKind, Pages, RequestError, ServerName};
use switchboard_config::text::visible;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::session::CommandHost;

/// Names compared with an unknown one. A server may list any number of them.
const MAX_COMPARED: usize = 2_000;
/// Withheld items reported one by one.
const MAX_WITHHELD_LINES: usize = 10;
/// Maximum length of a compared name, in bytes.
const MAX_COMPARED_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct Listed {
    pub(super) server: ServerName,
    pages: Arc<Pages>,
    field: &'static str,
}

/// Lists the items of every connected server. If a server cannot list, warns, or fails if that server was named.
pub(super) async fn list_all(
    session: &CommandHost<'_>,
    kind: ListKind,
    wanted: Option<&str>,
) -> Result<Vec<Listed>, Failure> {
    let connected = session.host.statuses().into_iter();
    let connected = connected.filter(|status| status.state.is_connected());
    let listing = connected.map(async |status| {
        let pages = session.host.list(&status.name, kind).await;
        (status.name, pages)
    });
    let mut lists = Vec::new();
    for (server, pages) in join_all(listing).await {
        match pages {
            Ok(pages) => {
                if let Some(cut) = &pages.cut {
                    let name = visible(server.as_str());
                    let message = format!("the list of {name} is incomplete: {}", visible(cut));
                    session.context.printer.warning(message, None);
                }
                warn_of_withheld(&server, &pages, kind, session.context);
                lists.push(Listed {
                    server,
                    pages,
                    field: field(kind),
                });
            }
            Err(error) if wanted.is_some() => return Err(failure(&error, session)),
            Err(error) => {
                let failure = failure(&error, session);
                session.context.printer.warning(failure.message, None);
            }
        }
    }
    Ok(lists)
}

/// Reports the withheld prompts or templates of a server, with the reason.
pub(super) fn warn_of_withheld(
    server: &ServerName,
    pages: &Pages,
    kind: ListKind,
    context: &Context,
) {
    let what = match kind {
        ListKind::Prompts => "prompt",
        _ => "template",
    };
    for aside in pages.withheld.iter().take(MAX_WITHHELD_LINES) {
        let server = visible(server.as_str());
        let message = format!("{server}: {what} {aside}; set aside");
        context.printer.warning(message, hint(aside).as_deref());
    }
    if let Some(more) = pages
        .withheld
        .len()
        .checked_sub(MAX_WITHHELD_LINES)
        .filter(|more| *more > 0)
    {
        let server = visible(server.as_str());
        context
            .printer
            .warning(format!("{server}: {more} more set aside"), None);
    }
}

/// The remedy for a withheld item.
fn hint(aside: &SetAside) -> Option<String> {
    match &aside.reason {
        SetAsideReason::ContentChanged { target, .. } => {
            let target = visible(target);
            Some(format!(
                "`switchboard pins diff {target}` shows what changed, `switchboard pins approve {target}` accepts it"
            ))
        }
        SetAsideReason::PinsUnreadable { .. } => Some(PINS_UNREADABLE_HINT.to_owned()),
        SetAsideReason::NotPinned { .. } => Some(NOT_PINNED_HINT.to_owned()),
        _ => None,
    }
}

/// The name of a withheld item; `None` if another item of that name is offered instead.
pub(super) fn withheld_name(aside: &SetAside) -> Option<&str> {
    let name = aside.name.as_deref()?;
    (aside.reason != SetAsideReason::Duplicate).then_some(name)
}

/// The failure of using a withheld item.
pub(super) fn set_aside(server: &ServerName, aside: &SetAside) -> Failure {
    let server = visible(server.as_str());
    let failure = Failure::new(
        Exit::Denied,
        format!("set aside by `{server}`'s pins: {aside}"),
    );
    match hint(aside) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl Listed {
    /// The failure of using this item, if it is withheld.
    pub(super) fn withheld(&self, name: &str) -> Option<Failure> {
        let mut aside = self.pages.withheld.iter();
        aside
            .find(|aside| withheld_name(aside) == Some(name))
            .map(|aside| set_aside(&self.server, aside))
    }

    pub(super) fn new(server: ServerName, pages: Arc<Pages>, kind: ListKind) -> Self {
        Self {
            server,
            pages,
            field: field(kind),
        }
    }

    /// The items, as sent by the server.
    pub(super) fn items(&self) -> Vec<&RawValue> {
        let pages = self.pages.pages.iter();
        pages
            .flat_map(|page| {
                let members: HashMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(page.as_str()).unwrap_or_default();
                let list = members.get(self.field).copied();
                list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok())
                    .unwrap_or_default()
            })
            .collect()
    }

    /// The items as JSON: as sent by the server, with the server's name added to each.
    pub(super) fn to_json(&self) -> impl Iterator<Item = String> {
        let server = serde_json::Value::from(self.server.as_str()).to_string();
        self.items().into_iter().filter_map(move |item| {
            let members = item.get().trim_start().strip_prefix('{')?;
            let comma = if members.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            Some(format!("{{\"server\":{server}{comma}{members}"))
        })
    }
}

pub(super) fn json_list(lists: &[Listed]) -> String {
    let items: Vec<String> = lists.iter().flat_map(Listed::to_json).collect();
    format!("[{}]", items.join(","))
}

/// The failure of a list or read request.
pub(super) fn failure(error: &ContentError, session: &CommandHost<'_>) -> Failure {
    match error {
        ContentError::Request { server, error, .. } => {
            let name = visible(server.as_str());
            let exit = match error {
                RequestError::Refused(refusal) => match refusal.status {
                    401 => Exit::NeedsLogin,
                    403 => Exit::Denied,
                    _ => Exit::Unreachable,
                },
                RequestError::NotSent(_) | RequestError::Lost(_) => Exit::Unreachable,
                RequestError::Idle(_) | RequestError::Expired(_) => Exit::TimedOut,
                _ => Exit::Failed,
            };
            Failure::new(exit, format!("server `{name}` did not return it"))
                .because(visible(&error.to_string()))
        }
        ContentError::SetAside { server, aside } => set_aside(server, aside),
        other => {
            let servers = session.host.statuses();
            let is_asked = |status: &&ServerStatus| {
                !status.state.is_not_started() && !status.state.is_withheld()
            };
            let unusable = servers
                .iter()
                .filter(is_asked)
                .find_map(|status| session.need(status.name.as_str()).err());
            unusable.unwrap_or_else(|| {
                Failure::new(Exit::Unreachable, visible(&other.to_string()).into_owned())
            })
        }
    }
}

/// The failure for an unknown item, with a suggestion.
pub(super) fn unknown<'n>(
    what: &str,
    server: &str,
    typed: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    list_command: &str,
) -> Failure {
    let server = visible(server);
    let message = format!("server `{server}` has no {what} `{}`", visible(typed));
    let failure = Failure::failed(message);
    match nearest(typed, known) {
        Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
        None => failure.hint(format!(
            "`switchboard {list_command} --server {server}` lists them"
        )),
    }
}

/// The most likely name: one that ends with `typed`, else the closest by edit distance.
fn nearest<'n>(typed: &str, known: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    if typed.is_empty() || typed.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let known = known
        .filter(|name| name.len() <= MAX_COMPARED_BYTES)
        .take(MAX_COMPARED);
    let is_end = |name: &&str| {
        let before = name.strip_suffix(typed);
        before.is_some_and(|before| before.ends_with('/'))
    };
    if let Some(full) = known.clone().find(is_end) {
        return Some(full);
    }
    let scored = known.map(|name| (strsim::damerau_levenshtein(typed, name), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + name.len() / 4).then_some(name)
}

fn field(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::Templates => "resourceTemplates",
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggestions_are_suffixes_or_close_names() {
        let known = ["file:///a/README.md", "file:///a/src/lib.rs", "summary"];
        for (typed, expected) in [
            ("README.md", Some("file:///a/README.md")),
            ("file:///a/README.mb", Some("file:///a/README.md")),
            ("sumary", Some("summary")),
            ("nothing like it", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known.into_iter()), expected, "{typed}");
        }
    }
}
