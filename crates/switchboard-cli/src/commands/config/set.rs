//! `switchboard config set`: changes one setting, or one key of a server.

use serde_json::json;
use switchboard_config::edit::Edit;
use switchboard_config::entry::keys::nearest;
use switchboard_config::format::{self, Format};
use switchboard_config::resolve::Server;
use switchboard_config::scope::Scope;
use switchboard_config::settings::Setting;
use switchboard_config::source::SourceFile;
use switchboard_config::text::visible;
use switchboard_config::tree::Node;

use crate::cli::RuleScope;
use crate::commands::mcp::remove::read_only_failure;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, locate_entry};
use crate::printer::{paint, style};
use crate::{rehearse, store};

const SETTINGS: &str = "settings";

pub(super) fn run(key: &str, value: &str, scope: RuleScope, context: &Context) -> Outcome {
    let config = context.load_files(context.decisions());
    let plain = key.strip_prefix("settings.").unwrap_or(key);
    let is_setting = Setting::all().any(|setting| setting.key().name == plain);
    let target = if is_setting {
        let target = Target::of_scope(scope.into(), context);
        change(&target, value, context, |_| {
            Ok(vec![SETTINGS.to_owned(), plain.to_owned()])
        })?;
        target
    } else {
        let (server, rest) = server_key(key, &config.servers).ok_or_else(|| unknown(key))?;
        if let Some(failure) = read_only_failure(&server.origin) {
            return Err(failure);
        }
        let target = Target::of_path(server.origin.path().to_owned(), server.scope());
        change(&target, value, context, |text| {
            let mut path = locate_entry(text, &target, &server.name)?.path;
            path.extend(rest.split('.').map(str::to_owned));
            Ok(path)
        })?;
        target
    };
    let printer = &context.printer;
    printer.note(format!(
        "{} {} in {} scope: {}",
        paint(style::GOOD, "set"),
        paint(style::NAME, visible(key)),
        target.scope,
        target.shown()
    ));
    if target.scope == Scope::Project || (target.scope == Scope::Local && !is_setting) {
        let waits = context.load_files(context.decisions());
        if !waits.questions.is_empty() {
            printer.note("`switchboard trust list` shows what waits for your approval");
        }
    }
    if printer.json {
        printer.json(&json!({
            "key": key,
            "scope": target.scope.name(),
            "file": target.path.display().to_string(),
        }))?;
    }
    Ok(Exit::Done)
}

/// Writes the value: as TOML has it if the key accepts that, else as text.
fn change(
    target: &Target,
    value: &str,
    context: &Context,
    path: impl Fn(&str) -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    let literal = format!("value = {value}\n");
    let literal = SourceFile::new("", Scope::Dynamic, literal);
    let mut ignored = Vec::new();
    let parsed = format::parse(&literal, Format::Toml, &mut ignored);
    let parsed = parsed.filter(|_| ignored.is_empty());
    let typed = parsed.as_ref().and_then(|root| {
        let has_more = root.as_table().is_some_and(|members| members.len() > 1);
        root.get("value").filter(|_| !has_more)
    });
    let text = Node::detached(value.to_owned());
    store::edit(target, context, |before| {
        let path = path(before)?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let attempt = |value: &Node<'_>| {
            let value = value.clone();
            let changed = store::apply(before, target, &Edit::Set { path: &path, value })?;
            rehearse::check(target, &changed, context)?;
            Ok(changed)
        };
        match typed {
            Some(typed) => attempt(typed).or_else(|failure| attempt(&text).map_err(|_| failure)),
            None => attempt(&text),
        }
    })
}

/// The server and the rest of a key such as `mcp_servers.github.env.TOKEN` or `github.enabled`.
fn server_key<'k, 's>(key: &'k str, servers: &'s [Server]) -> Option<(&'s Server, &'k str)> {
    let key = key.strip_prefix("mcp_servers.").unwrap_or(key);
    let rest = |server: &Server| key.strip_prefix(server.name.as_str())?.strip_prefix('.');
    let named = servers.iter().filter(|server| rest(server).is_some());
    // One name can be the start of another.
    let server = named.max_by_key(|server| server.name.len())?;
    rest(server)
        .filter(|rest| !rest.is_empty())
        .map(|rest| (server, rest))
}

fn unknown(key: &str) -> Failure {
    let failure = Failure::usage(format!("no setting named `{}`", visible(key)));
    let known = Setting::all().map(|setting| setting.key().name);
    match nearest(key, known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint(
            "`switchboard config show` lists the settings; a server's key is SERVER.KEY, such as github.enabled",
        ),
    }
}
