//! `switchboard prompt`: prints one prompt, filled in with arguments.

use std::fmt::Write as _;

use switchboard::{ListKind, ServerName};
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
    let pairs = pairs(&arguments.arguments)?;
    let servers = Servers::load(context, Some(&arguments.server))?;
    session::run(context, &servers, async |session| {
        session.start().await;
        session.need(&arguments.server)?;
        let lists = list_all(session, ListKind::Prompts, Some(&arguments.server)).await?;
        let items = lists.iter().flat_map(content::Listed::items);
        let prompts: Vec<Prompt<'_>> = items.filter_map(|item| decode(item).ok()).collect();
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == arguments.name) else {
            let known = prompts.iter().map(|prompt| &*prompt.name);
            let name = arguments.name.as_str();
            if let Some(failure) = lists.iter().find_map(|listed| listed.withheld(name)) {
                return Err(failure);
            }
            return Err(content::unknown(
                "prompt",
                &arguments.server,
                name,
                known,
                "prompts",
            ));
        };
        check(prompt, &pairs)?;
        let mut params = GetPromptRequestParams::new(arguments.name.as_str().into());
        for (key, value) in &pairs {
            params.arguments.push(*key, (*value).into());
        }
        let server = ServerName::from(arguments.server.as_str());
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

fn pairs(words: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let pair = |word: &'_ String| {
        let found = word.split_once('=').filter(|(key, _)| !key.is_empty());
        found.is_some()
    };
    if let Some(word) = words.iter().find(|word| !pair(word)) {
        let message = format!("`{}` is not an argument", visible(word));
        return Err(Failure::usage(message).hint("use key=value"));
    }
    Ok(words
        .iter()
        .filter_map(|word| word.split_once('='))
        .collect())
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
        return Err(Failure::usage(message).hint(wants()));
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
