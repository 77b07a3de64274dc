//! Server prompts as chat commands: `/mcp__server__prompt argument…`.

use std::borrow::Cow;

use futures_util::future::join_all;
use switchboard::catalog::SetAside;
use switchboard::internal::catalog::exposed::{PREFIX, exposed_name};
use switchboard::{ListKind, ServerName};
use switchboard_agent::Prompt as Said;
use switchboard_agent::message::{Image, Part};
use switchboard_config::text::visible;
use switchboard_config::words;
use switchboard_protocol::types::completion::{
    CompleteRequestParams, CompleteResult, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference,
};
use switchboard_protocol::types::content::ContentBlock;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};
use switchboard_protocol::types::resource::ResourceContents;
use switchboard_protocol::types::wire::IntoOwned as _;

use crate::commands::call::result::block_text;
use crate::commands::content;
use crate::error::Failure;
use crate::session::CommandHost;

/// A prompt as a command.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// The command's name, without the slash.
    pub(super) name: String,
    pub(super) server: ServerName,
    prompt: Prompt<'static>,
}

/// A prompt set aside because of its server's pins.
#[derive(Debug, Clone)]
pub(super) struct Withheld {
    /// The command's name, without the slash.
    pub(super) name: String,
    server: ServerName,
    aside: SetAside,
}

/// The prompts of all connected servers, sorted by name.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    pub(super) commands: Vec<Command>,
    pub(super) withheld: Vec<Withheld>,
}

impl Prompts {
    /// All command names, including those set aside.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let commands = self.commands.iter().map(|command| command.name.as_str());
        commands.chain(self.withheld.iter().map(|withheld| withheld.name.as_str()))
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns the prompt of this name, or the reason and remedy if it is set aside.
    pub(super) fn get(&self, name: &str) -> Result<Option<&Command>, Failure> {
        if let Some(command) = self.commands.iter().find(|command| command.name == name) {
            return Ok(Some(command));
        }
        match self.withheld.iter().find(|withheld| withheld.name == name) {
            Some(withheld) => Err(content::set_aside(&withheld.server, &withheld.aside)),
            None => Ok(None),
        }
    }
}

impl Withheld {
    /// Why it is set aside, on one sanitized line.
    pub(super) fn about(&self) -> String {
        format!("set aside: {}", self.aside.reason)
    }
}

/// Lists the prompts of all connected servers.
pub(super) async fn all(session: &CommandHost<'_>) -> Prompts {
    let connected = session.host.statuses().into_iter();
    let connected = connected.filter(|status| status.state.is_connected());
    let listing = connected.map(async |status| {
        let pages = session.host.list(&status.name, ListKind::Prompts).await;
        pages.ok().map(|pages| (status.name, pages))
    });
    let mut prompts = Prompts::default();
    for (server, pages) in join_all(listing).await.into_iter().flatten() {
        for aside in &pages.withheld {
            if let Some(name) = content::withheld_name(aside) {
                prompts.withheld.push(Withheld {
                    name: exposed_name(server.as_str(), name).as_str().to_owned(),
                    server: server.clone(),
                    aside: aside.clone(),
                });
            }
        }
        let listed = content::Listed::new(server.clone(), pages, ListKind::Prompts);
        for item in listed.items() {
            let Ok(prompt) = decode::<Prompt<'_>>(item) else {
                continue;
            };
            let name = exposed_name(server.as_str(), &prompt.name)
                .as_str()
                .to_owned();
            prompts.commands.push(Command {
                name,
                server: server.clone(),
                prompt: prompt.into_owned(),
            });
        }
    }
    prompts
        .commands
        .sort_by(|one, other| one.name.cmp(&other.name));
    prompts
        .withheld
        .sort_by(|one, other| one.name.cmp(&other.name));
    prompts
}

/// Lists the prompts that a line may refer to. A line that names a prompt of an unconnected server
/// connects that server first, or all of them if the server is ambiguous.
pub(super) async fn for_line(line: &str, session: &CommandHost<'_>) -> Prompts {
    let known = all(session).await;
    let name = line.trim_start().strip_prefix('/').unwrap_or_default();
    let name = name.split_whitespace().next().unwrap_or_default();
    let is_prompt = name.starts_with(PREFIX);
    if !is_prompt || known.has(name) {
        return known;
    }
    session
        .start_some(|server| name.starts_with(&prefix_of(server)))
        .await;
    let known = all(session).await;
    if known.has(name) {
        return known;
    }
    session.start_some(|_| true).await;
    all(session).await
}

/// The prefix of a server's prompt names. Long names may be shortened and lack it.
fn prefix_of(server: &ServerName) -> String {
    let name = exposed_name(server.as_str(), "x");
    name.as_str()
        .strip_suffix('x')
        .unwrap_or_default()
        .to_owned()
}

impl Command {
    /// The description, on one sanitized line.
    pub(super) fn about(&self) -> String {
        let about = self
            .prompt
            .description
            .as_deref()
            .or(self.prompt.title.as_deref());
        let line = about.unwrap_or_default().lines().next().unwrap_or_default();
        visible(line).into_owned()
    }

    /// The argument syntax, for help texts.
    pub(super) fn usage(&self) -> String {
        let arguments = self.prompt.arguments.items.iter();
        let shown = arguments.map(|argument| {
            let name = visible(&argument.name);
            if argument.required == Some(true) {
                format!("{name}=…")
            } else {
                format!("[{name}=…]")
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Fetches the prompt with the typed arguments.
    pub(super) async fn fill_in(
        &self,
        typed: &str,
        session: &CommandHost<'_>,
    ) -> Result<Said, Failure> {
        let pairs = self.arguments(typed)?;
        let mut params = GetPromptRequestParams::new(self.prompt.name.clone());
        for (name, value) in pairs {
            params.arguments.push(name, value.into());
        }
        let result = session.host.get_prompt(&self.server, &params).await;
        let result = result.map_err(|error| content::failure(&error, session))?;
        let got: GetPromptResult<'_> = decode(result.raw())
            .map_err(|error| Failure::failed("cannot decode the prompt").because(error))?;
        let mut filled = Said::default();
        for message in &got.messages.items {
            filled.parts.push(part(&message.content));
        }
        if filled.parts.is_empty() {
            return Err(Failure::failed("the prompt is empty, so nothing was sent"));
        }
        Ok(filled)
    }

    /// Parses arguments: pairs, or values in the declared order. The last one takes the rest of the line.
    fn arguments(&self, typed: &str) -> Result<Vec<(String, String)>, Failure> {
        let known: Vec<&str> = self
            .prompt
            .arguments
            .items
            .iter()
            .map(|each| &*each.name)
            .collect();
        let wrong = |message: String| {
            Failure::usage(message).hint(format!("/{} {}", self.name, self.usage()))
        };
        let words = words::split(typed).ok_or_else(|| wrong("unclosed quote".to_owned()))?;
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut loose = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((name, value)) if known.contains(&name) => {
                    pairs.push((name.to_owned(), value.to_owned()));
                }
                _ => loose.push(word),
            }
        }
        let is_given =
            |name: &str, pairs: &[(String, String)]| pairs.iter().any(|(given, _)| given == name);
        let free: Vec<&str> = known
            .iter()
            .copied()
            .filter(|name| !is_given(name, &pairs))
            .collect();
        let mut loose = loose.into_iter();
        for (index, name) in free.iter().enumerate() {
            let is_last = index + 1 == free.len();
            let value = if is_last {
                loose.by_ref().collect::<Vec<_>>().join(" ")
            } else {
                loose.next().unwrap_or_default()
            };
            if !value.is_empty() {
                pairs.push(((*name).to_owned(), value));
            }
        }
        if let Some(extra) = loose.next() {
            return Err(wrong(format!("unexpected argument `{}`", visible(&extra))));
        }
        let arguments = self.prompt.arguments.items.iter();
        let mut required = arguments.filter(|argument| argument.required == Some(true));
        match required.find(|argument| !is_given(&argument.name, &pairs)) {
            Some(missing) => Err(wrong(format!(
                "the prompt requires the argument `{}`",
                visible(&missing.name)
            ))),
            None => Ok(pairs),
        }
    }

    /// Completes the last word typed after the prompt's name. Each candidate is a complete word.
    pub(super) async fn complete(&self, typed: &str, session: &CommandHost<'_>) -> Vec<String> {
        let (before, last) = match typed.rsplit_once(char::is_whitespace) {
            Some((before, last)) => (before, last),
            None => ("", typed),
        };
        let names = self.prompt.arguments.items.iter().map(|each| &*each.name);
        let Some((name, value)) = last.split_once('=') else {
            let is_free = |name: &&str| {
                !before.split_whitespace().any(|word| {
                    word.strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with('='))
                })
            };
            return names
                .filter(|name| name.starts_with(last))
                .filter(is_free)
                .map(|name| format!("{name}="))
                .collect();
        };
        let mut params = CompleteRequestParams::new(
            CompletionReference::Prompt(PromptReference::new(self.prompt.name.clone())),
            CompletionArgument::new(name.into(), value.into()),
        );
        let mut known = CompletionContext::default();
        for (name, value) in before
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
        {
            known.arguments.push(name, Cow::from(value));
        }
        if !known.arguments.is_empty() {
            params.context = Some(known);
        }
        let Ok(result) = session.host.complete(&self.server, &params).await else {
            return Vec::new();
        };
        let Ok(completed) = decode::<CompleteResult<'_>>(result.raw()) else {
            return Vec::new();
        };
        let values = completed.completion.values.items.iter();
        values
            .map(|value| format!("{name}={}", quoted(value)))
            .collect()
    }
}

/// Quotes a value that contains spaces.
fn quoted(value: &str) -> String {
    if value.contains(char::is_whitespace) {
        format!("'{value}'")
    } else {
        value.to_owned()
    }
}

/// Converts one message of a prompt.
fn part(block: &ContentBlock<'_>) -> Part {
    match block {
        ContentBlock::Image(image) => Part::Image(Image {
            mime_type: image.mime_type.clone().into_owned(),
            data: image.data.decode().into_owned(),
        }),
        ContentBlock::Text(text) => Part::Text {
            text: text.text.decode().into_owned(),
        },
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::Text(text) => Part::Text {
                text: text.text.decode().into_owned(),
            },
            ResourceContents::Blob(_) => Part::Text {
                text: block_text(block),
            },
        },
        other => Part::Text {
            text: block_text(other),
        },
    }
}
