//! `switchboard mcp add-json`: adds a server from the JSON that other tools use.

use std::io::Read as _;

use serde_json::{Value, json};
use switchboard_config::entry::OAuthEntry;
use switchboard_config::files::LARGEST_FILE;
use switchboard_config::text::visible;

use super::add::CLIENT_SECRET;
use super::insert::{self, Existing};
use crate::cli::AddJsonArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};

pub(crate) fn run(arguments: &AddJsonArguments, context: &Context) -> Outcome {
    let name = &arguments.name;
    let text = if arguments.entry == "-" {
        read_stdin()?
    } else {
        arguments.entry.clone()
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::usage("the entry is not JSON").because(error).hint(
            "write it in single quotes: '{\"command\": \"npx\", \"args\": [\"-y\", \"server\"]}'",
        )
    })?;
    if !value.is_object() {
        return Err(Failure::usage("the entry must be a JSON object")
            .hint("write '{\"url\": \"https://…\"}' or '{\"command\": \"…\"}'"));
    }
    let value = unwrapped(value, name, context)?;
    let (entry, findings) = insert::read_json(&json!({"mcpServers": {name: value}}).to_string());
    if let Some(finding) = findings.iter().find(|finding| insert::matters(finding)) {
        let message = format!(
            "`{}` was not added: {}",
            visible(name),
            visible(&finding.message)
        );
        let mut failure = Failure::usage(message);
        // A mistyped key often explains a missing one, so its hint comes first.
        let unknown = findings
            .iter()
            .filter(|finding| finding.code == "unknown-key");
        for finding in unknown.clone() {
            failure = failure.because(visible(&finding.message));
        }
        let hints = unknown
            .chain([finding])
            .filter_map(|each| each.hint.as_deref());
        return Err(hints.fold(failure, |failure, hint| failure.hint(visible(hint))));
    }
    for finding in findings
        .iter()
        .filter(|finding| finding.code != "missing-variable")
    {
        let hint = finding.hint.as_deref().map(visible);
        context
            .printer
            .warning(visible(&finding.message), hint.as_deref());
    }
    let Some(mut entry) = entry else {
        return Err(Failure::usage("the entry is empty").hint("state `command` or `url`"));
    };
    if arguments.client_secret {
        let oauth = entry.oauth.get_or_insert_with(OAuthEntry::default);
        oauth.client_secret_env_var = Some(CLIENT_SECRET.to_owned());
    }
    let existing = if arguments.force {
        Existing::Replace
    } else {
        Existing::Refuse
    };
    insert::run(name, &entry, arguments.scope, existing, context)
}

/// Extracts the entry if a whole file was pasted: `{"mcpServers": {"NAME": {…}}}`, or `{"NAME": {…}}`.
fn unwrapped(value: Value, name: &str, context: &Context) -> Result<Value, Failure> {
    const WRAPPERS: [&str; 5] = [
        "mcpServers",
        "mcp_servers",
        "servers",
        "context_servers",
        "mcp",
    ];
    let is_entry = |value: &Value| {
        let keys = [
            "command",
            "program",
            "url",
            "transport",
            "type",
            "httpUrl",
            "serverUrl",
        ];
        value.is_object() && keys.iter().any(|key| value.get(key).is_some())
    };
    if is_entry(&value) {
        return Ok(value);
    }
    let wrapped = WRAPPERS
        .iter()
        .find_map(|wrapper| value.get(wrapper).filter(|servers| servers.is_object()));
    let servers = wrapped.unwrap_or(&value).as_object();
    let servers = servers.filter(|servers| {
        wrapped.is_some() || (!servers.is_empty() && servers.values().all(is_entry))
    });
    let Some(servers) = servers else {
        return Ok(value);
    };
    if let Some(entry) = servers.get(name) {
        return Ok(entry.clone());
    }
    let names: Vec<_> = servers.keys().map(|name| visible(name)).collect();
    let mut entries = servers.values();
    match (entries.next(), entries.next()) {
        (Some(entry), None) => {
            let note = format!("the JSON names the server `{}`", names.join(""));
            context.printer.note(note);
            Ok(entry.clone())
        }
        (None, _) => Err(Failure::usage("the JSON contains no server")
            .hint("write '{\"url\": \"https://…\"}' or '{\"command\": \"…\"}'")),
        _ => Err(Failure::usage(format!(
            "the JSON contains {} servers, none named `{}`",
            names.len(),
            visible(name)
        ))
        .hint(format!("add them one by one by name: {}", names.join(", ")))),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LARGEST_FILE)
        .read_to_string(&mut text)
        .map_err(|error| Failure::failed("could not read standard input").because(error))?;
    Ok(text)
}
