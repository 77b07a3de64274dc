//! `switchboard mcp remove`: removes a server's entry from a file.

use serde_json::json;
use switchboard_config::edit::Edit;
use switchboard_config::resolve::Config;
use switchboard_config::sort;
use switchboard_config::source::Origin;
use switchboard_config::text::visible;

use crate::cli::WritableScope;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, locate_entry};
use crate::printer::{paint, style};
use crate::servers::no_such_server;
use crate::{store, view};

pub(crate) fn run(name: &str, scope: Option<WritableScope>, context: &Context) -> Outcome {
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let config = context.load_files(decisions);
    let mut places = places(name, &config);
    if places.is_empty() {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    }
    if let Some(scope) = scope {
        places.retain(|origin| origin.scope() == scope.scope());
    } else {
        places.retain(|origin| read_only_failure(origin).is_none());
    }
    let shown = visible(name);
    let home = &context.environment.home;
    let origin = match places.as_slice() {
        [] => return Err(nothing_to_remove(name, scope, &config)),
        [origin] => *origin,
        // Files of one scope are alternatives, so the one with the highest precedence is edited first.
        [first, rest @ ..] if rest.iter().all(|origin| origin.scope() == first.scope()) => *first,
        several => {
            let scopes: Vec<String> = several
                .iter()
                .map(|origin| format!("{} ({})", origin.scope(), view::place(origin, home)))
                .collect();
            return Err(Failure::usage(format!("`{shown}` is in several scopes"))
                .because(format!("it is in {}", scopes.join(" and ")))
                .hint("choose one with --scope"));
        }
    };
    if let Some(owner) = read_only_failure(origin) {
        return Err(owner);
    }
    let target = Target::of_path(origin.path().to_owned(), origin.scope());
    store::edit(&target, context, |text| {
        let location = locate_entry(text, &target, name)?;
        let path: Vec<&str> = location.path.iter().map(String::as_str).collect();
        store::apply(text, &target, &Edit::Remove { path: &path })
    })?;
    // Revoke the approval, so that the entry does not start again if a repository restores it.
    if origin.scope() != switchboard_config::scope::Scope::User {
        store::change_decisions(context, |decisions, _| {
            decisions.revoke(&context.project, Some(name));
        })?;
    }
    let printer = &context.printer;
    printer.note(format!(
        "{} {} from {} scope: {}",
        paint(style::GOOD, "removed"),
        paint(style::NAME, &shown),
        origin.scope(),
        target.shown()
    ));
    let rest = context.load_files(context.decisions());
    if let Some(server) = rest.server(name) {
        let place = view::place(&server.origin, home);
        printer.note(format!(
            "{} scope still has a `{shown}`, at {place}",
            server.scope()
        ));
    }
    if printer.json {
        printer.json(&json!({"name": name, "removed": view::place_json(origin)}))?;
    }
    Ok(Exit::Done)
}

/// The origins of all entries of that name, highest precedence first.
fn places<'c>(name: &str, config: &'c Config) -> Vec<&'c Origin> {
    let standing = config.server(name).map(|server| &server.origin);
    let lost = config.shadowed.iter().filter(|lost| lost.name == name);
    let mut places: Vec<_> = standing
        .into_iter()
        .chain(lost.map(|lost| &lost.origin))
        .collect();
    sort::by_key(&mut places, |origin| {
        config
            .looked
            .iter()
            .position(|looked| looked.path == origin.path())
    });
    places
}

/// The failure for a file that commands do not edit, with an alternative.
pub(crate) fn read_only_failure(origin: &Origin) -> Option<Failure> {
    let path = visible(&origin.path().display().to_string()).into_owned();
    let foreign = origin.path().ends_with(".claude/settings.json");
    let reason = match view::why_read_only(origin.scope()) {
        Some(reason) => reason,
        None if foreign => "it belongs to Claude Code",
        None => return None,
    };
    let failure = Failure::failed(format!("{path} was not changed")).because(reason);
    Some(match origin.scope() {
        switchboard_config::scope::Scope::Enterprise => failure.hint("ask the machine's administrator"),
        _ => failure.hint(
            "override it: add a server of the same name in local scope, with enabled = false to switch it off",
        ),
    })
}

fn nothing_to_remove(name: &str, scope: Option<WritableScope>, config: &Config) -> Failure {
    let places = places(name, config);
    match (scope, places.first().copied()) {
        (None, Some(origin)) => read_only_failure(origin)
            .unwrap_or_else(|| Failure::failed(format!("no server named `{}`", visible(name)))),
        (Some(scope), Some(origin)) => {
            let message = format!(
                "no server named `{}` in {} scope",
                visible(name),
                scope.scope()
            );
            Failure::failed(message).hint(format!("it is in {} scope", origin.scope()))
        }
        (_, None) => no_such_server(name, []),
    }
}
