//! `switchboard mcp add-json`: a server in the JSON that other tools use.

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
    let (entry, findings) = insert::read_json(&json!({"mcpServers": {name: value}}).to_string());
    if let Some(finding) = findings.iter().find(|finding| insert::matters(finding)) {
        let message = format!(
            "`{}` was not added: {}",
            visible(name),
            visible(&finding.message)
        );
        let failure = Failure::usage(message);
        return Err(match &finding.hint {
            Some(hint) => failure.hint(visible(hint)),
            None => failure,
        });
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

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LARGEST_FILE)
        .read_to_string(&mut text)
        .map_err(|error| Failure::failed("could not read standard input").because(error))?;
    Ok(text)
}
