//! `switchboard prompt`: prints one prompt, filled in with arguments.

use std::fmt::Write as _;

use switchboard::{ListKind, ServerName};
use switchboard_config::entry::keys::nearest;
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};

use super::call::result::block_text;
use super::content::{self, list_all};
use crate::cli::PromptArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::session;

pub(crate) fn run(arguments: &PromptArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let (server, name, words) = split(arguments, &servers)?;
    let pairs = pairs(words)?;
    let servers = servers.only(server);
    session::run(context, &servers, async |session| {
        session.start().await;
        session.need(server)?;
        let lists = list_all(session, ListKind::Prompts, Some(server)).await?;
        let items = lists.iter().flat_map(content::Listed::items);
        let prompts: Vec<Prompt<'_>> = items.filter_map(|item| decode(item).ok()).collect();
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
            let known = prompts.iter().map(|prompt| &*prompt.name);
            if let Some(failure) = lists.iter().find_map(|listed| listed.withheld(name)) {
                return Err(failure);
            }
            return Err(content::unknown("prompt", server, name, known, "prompts"));
        };
        check(prompt, &pairs)?;
        let mut params = GetPromptRequestParams::new(name.into());
        for (key, value) in &pairs {
            params.arguments.push(*key, (*value).into());
        }
        let server = ServerName::from(server);
        let result = session.host.get_prompt(&server, &params).await;
        let result = result.map_err(|error| content::failure(&error, session))?;
        if context.printer.json {
            context.printer.json_text(result.as_str())?;
            return Ok(Exit::Done);
        }
        let got: GetPromptResult<'_> = decode(result.raw())
            .map_err(|error| Failure::failed("cannot decode the prompt").because(error))?;
        context.printer.data(to_text(&got))?;
        Ok(Exit::Done)
    })
}

/// The server, the prompt and the argument words.
fn split<'a>(
    arguments: &'a PromptArguments,
    servers: &Servers,
) -> Result<(&'a str, &'a str, &'a [String]), Failure> {
    let first = arguments.prompt.as_str();
    if !servers.has(first) {
        // A server's name may contain a slash.
        let slashes = first.match_indices('/');
        let mut splits = slashes.map(|(at, _)| (first.get(..at), first.get(at + 1..)));
        let known = splits.find_map(|split| match split {
            (Some(server), Some(name)) if servers.has(server) => Some((server, name)),
            _ => None,
        });
        if let Some((server, name)) = known {
            return Ok((server, name, &arguments.arguments));
        }
    }
    match arguments.arguments.split_first() {
        _ if !servers.has(first) => Err(servers.unknown(first.split('/').next().unwrap_or(first))),
        Some((name, words)) => Ok((first, name, words)),
        None => Err(Failure::usage("no prompt is named").hint(format!(
            "`switchboard prompts --server {}` lists its prompts",
            visible(first)
        ))),
    }
}

/// The pairs of `key=value`, `--key=value` and `--key value` words.
fn pairs(words: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let mut pairs = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = word.strip_prefix("--");
        let pair = match (flag.unwrap_or(word).split_once('='), flag) {
            (Some((key, value)), _) => Some((key, value)),
            (None, Some(flag)) => words.next().map(|value| (flag, value.as_str())),
            (None, None) => word.split_once(':'),
        };
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            let message = format!("`{}` is not an argument", visible(word));
            return Err(Failure::usage(message).hint("use key=value"));
        };
        pairs.push((key, value));
    }
    Ok(pairs)
}

/// Rejects unknown and missing arguments before sending the request.
fn check(prompt: &Prompt<'_>, pairs: &[(&str, &str)]) -> Result<(), Failure> {
    let known: Vec<&str> = prompt
        .arguments
        .items
        .iter()
        .map(|argument| &*argument.name)
        .collect();
    let wants = || {
        let names: Vec<String> = known
            .iter()
            .map(|name| visible(name).into_owned())
            .collect();
        if names.is_empty() {
            "it takes no arguments".to_owned()
        } else {
            format!("its arguments are: {}", names.join(", "))
        }
    };
    let name = visible(&prompt.name);
    if let Some((key, _)) = pairs.iter().find(|(key, _)| !known.contains(key)) {
        let message = format!("prompt `{name}` has no argument `{}`", visible(key));
        let failure = Failure::usage(message);
        return Err(match nearest(key, known.iter().copied()) {
            Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
            None => failure.hint(wants()),
        });
    }
    let given = |name: &str| pairs.iter().any(|(key, _)| *key == name);
    let mut arguments = prompt.arguments.items.iter();
    let missing =
        arguments.find(|argument| argument.required == Some(true) && !given(&argument.name));
    match missing {
        Some(missing) => {
            let missing = visible(&missing.name);
            let message = format!("prompt `{name}` requires the argument `{missing}`");
            Err(Failure::usage(message).hint(format!("add {missing}=…")))
        }
        None => Ok(()),
    }
}

/// The messages, each under its role.
fn to_text(got: &GetPromptResult<'_>) -> String {
    let mut text = String::new();
    for message in &got.messages.items {
        if !text.is_empty() {
            text.push('\n');
        }
        let role = format!("{}:", message.role.as_str());
        let _ = writeln!(text, "{}", paint(style::NAME, visible(&role)));
        text.push_str(&block_text(&message.content));
    }
    text
}
