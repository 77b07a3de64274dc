//! `switchboard mcp add`: adds a server; accepts the lines of four other tools.

mod grammar;
mod options;
mod target;

use std::time::Duration;

use switchboard_config::entry::{OAuthEntry, ServerEntry, Transport};
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;

use self::grammar::Line;
use self::target::{Place, check_program, is_address};
use super::insert::{self, Existing};
use crate::cli::GlobalFlags;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::printer;

/// The variable that `--client-secret` refers to, as in `claude mcp add`.
pub(super) const CLIENT_SECRET: &str = "MCP_CLIENT_SECRET";

/// Text of `--help` for the words, which clap does not parse.
pub(crate) const HELP: &str = "\
Options of the server:
  -t, --transport <T>             stdio, http, sse or ws; inferred from the URL or command
  -s, --scope <SCOPE>             local (default), user or project
  -e, --env <KEY=VALUE>           A variable for the program; may be repeated
  -H, --header <'NAME: VALUE'>    An HTTP header; may be repeated
      --url <URL>                 The URL, in place of the second word
      --bearer-token-env-var <V>  The variable that holds a bearer token
      --client-id <ID>            An OAuth client registered beforehand
      --client-secret             Its secret is in the variable MCP_CLIENT_SECRET
      --oauth-client-secret <S>   Its secret itself; better is ${VAR}, in quotes
      --callback-port <PORT>      The port of the OAuth callback
      --oauth-resource <URI>      The OAuth resource indicator
      --timeout <MS>              Timeout of a call without progress, in milliseconds
      --include-tools <A,B>       The only tools that are offered
      --exclude-tools <A,B>       Tools that are not offered
      --cwd <DIR>                 Act as if started in this folder
      --force                     Replace an entry of the same name

Everything after `--` is the command. Without `--`, unknown options after the first
word of the command are passed to the command.

Examples:
  switchboard mcp add notion https://mcp.notion.com/mcp
  switchboard mcp add --scope user docs -- npx -y @upstash/context7-mcp
  switchboard mcp add github https://api.example.com/mcp -H 'Authorization: Bearer ${GITHUB_TOKEN}'";

pub(crate) fn run(words: Vec<String>, global: GlobalFlags) -> Outcome {
    // Detect `--json` even if the line fails to parse.
    let asked = words.iter().take_while(|word| *word != "--");
    if asked.into_iter().any(|word| word == "--json") {
        printer::want_json();
    }
    let mut line = Line::parse(words)?;
    let context = Context::new(std::mem::take(&mut line.flags).over(global))?;
    for note in &line.notes {
        context.printer.warning(note.text, Some(note.hint));
    }
    let existing = if line.force {
        Existing::Replace
    } else {
        Existing::Refuse
    };
    let (name, scope) = (line.name.clone(), line.scope);
    let is_stated = line.transport.is_some();
    let entry = entry(line)?;
    let place = Place {
        folder: &context.project,
        environment: &context.environment.variables,
    };
    let command = entry.command.as_deref();
    if let (false, Some(command)) = (is_stated, command) {
        check_program(&name, command, &entry.args, &place)?;
    }
    let exit = insert::run(&name, &entry, scope, existing, &context)?;
    if let Some(command) = command.filter(|command| !place.has_program(command)) {
        let name = visible(&name);
        context.printer.warning(
            format!("program `{}` is not installed yet", visible(command)),
            Some(&format!(
                "install it, or use its path; `switchboard doctor {name}` checks again"
            )),
        );
    }
    Ok(exit)
}

/// Builds the entry that a line describes.
fn entry(line: Line) -> Result<ServerEntry, Failure> {
    let secrets = |pairs: Vec<(String, String)>| {
        pairs
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect()
    };
    let mut words = line.target.into_iter();
    let (command, url) = match line.url {
        Some(url) => (None, Some(url)),
        None => match (words.next(), line.transport) {
            (Some(first), Some(transport)) if !transport.is_local() => (None, Some(first)),
            (Some(first), None) if is_address(&first) => (None, Some(first)),
            (first, _) => (first, None),
        },
    };
    let args: Vec<String> = words.collect();
    if let (Some(url), Some(extra)) = (&url, args.first()) {
        let message = format!(
            "unexpected words after the URL {}",
            switchboard_config::mask::url(url)
        );
        let extra = visible(extra).into_owned();
        return Err(Failure::usage(message)
            .because(format!(
                "a remote server takes no arguments, but got `{extra}`"
            ))
            .hint("put a command after `--`, and options before it"));
    }
    let oauth = OAuthEntry {
        client_id: line.client_id,
        client_secret: line.client_secret_value,
        client_secret_env_var: line.client_secret.then(|| CLIENT_SECRET.to_owned()),
        callback_port: line.callback_port,
        resource: line.oauth_resource,
        ..OAuthEntry::default()
    };
    // Omit the transport if the URL or command implies it.
    let implied = match (&command, &url) {
        (Some(_), _) => Some(Transport::Stdio),
        (None, Some(url)) => Some(Transport::of_url(url)),
        (None, None) => None,
    };
    Ok(ServerEntry {
        transport: line.transport.filter(|stated| Some(*stated) != implied),
        command,
        args,
        env: secrets(line.env),
        url,
        headers: secrets(line.headers),
        bearer_token_env_var: line.bearer_token_env_var,
        oauth: (oauth != OAuthEntry::default()).then_some(oauth),
        tool_timeout: line.timeout.map(Duration::from_millis),
        enabled_tools: line.include_tools,
        disabled_tools: line.exclude_tools,
        ..ServerEntry::default()
    })
}
