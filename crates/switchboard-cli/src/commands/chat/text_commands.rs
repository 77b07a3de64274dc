//! The slash commands that print text and take no further input.

use switchboard_agent::Session as Conversation;
use switchboard_agent::provider::{Provider, Usage};
use switchboard_config::text::visible;
use switchboard_config::words;

use super::slash::Command;
use super::{changes_command, cost, export, permissions_command, status_command};
use crate::cli::CallArguments;
use crate::commands::{call, config};
use crate::current::Current;
use crate::error::Failure;
use crate::session::CommandHost;
use crate::{pager, terminal};

/// Assumed width of a terminal that does not report one.
const COLUMNS: usize = 80;

/// What the commands report about.
pub(super) struct Subject<'s> {
    pub(super) conversation: &'s Conversation,
    pub(super) provider: &'s dyn Provider,
    pub(super) current: &'s Current,
    pub(super) session: &'s CommandHost<'s>,
    /// Usage of the session at the end of its last turn.
    pub(super) spent: Usage,
}

/// Runs a command and prints its lines.
pub(super) async fn run(
    command: Command,
    typed: &str,
    subject: Subject<'_>,
) -> Result<(), Failure> {
    let Subject {
        conversation,
        provider,
        current,
        session,
        spent,
    } = subject;
    let context = session.context;
    let newest = current.newest();
    let configured = newest.as_deref().unwrap_or(session.servers);
    let columns = terminal::width().unwrap_or(COLUMNS);
    let model = provider.model();
    let lines = match command {
        Command::Cost => {
            return cost::print(spent, conversation, model, session).await;
        }
        Command::Call => {
            call::within(&call_arguments(typed)?, session).await?;
            return Ok(());
        }
        Command::Status => {
            status_command::status(conversation, (model, spent), configured, session, columns).await
        }
        Command::Context => status_command::window(&conversation.window().await, columns),
        Command::Agents => match conversation.sub_agents().as_slice() {
            [] => {
                context.printer.note("no sub-agents in this session");
                return Ok(());
            }
            agents => status_command::agents(agents, columns),
        },
        Command::Config => vec![config::show::changed_text(&configured.config, context)],
        Command::Permissions => permissions_command::run(typed, configured, session)?,
        Command::Diff => {
            let lines = changes_command::differences(&conversation.changes());
            let shown = pager::show("changes of this session", &lines, &context.printer).await;
            return shown
                .map_err(|error| Failure::failed("cannot show the changes").because(error));
        }
        Command::Undo => vec![changes_command::undo(typed, conversation).await?],
        Command::Export => vec![export::run(typed, conversation, model, context).await?],
        _ => return Ok(()),
    };
    context.printer.data(lines.join("\n"))
}

/// Arguments as `switchboard call` takes them; JSON needs no quotes around it.
fn call_arguments(typed: &str) -> Result<CallArguments, Failure> {
    let usage = |message: &str| {
        Failure::usage(message.to_owned())
            .hint("/call SERVER/TOOL key=value …, or /call SERVER/TOOL {\"key\": …}")
    };
    let typed = typed.trim();
    let (tool, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    let arguments = match rest {
        "-" => return Err(usage("a chat has no standard input to read arguments from")),
        json if json.starts_with('{') => vec![json.to_owned()],
        words => words::split(words).ok_or_else(|| usage("unclosed quote"))?,
    };
    match tool {
        "" => Err(usage("no tool to call")),
        tool if tool.starts_with('-') => Err(usage(&format!("`{}` is not a tool", visible(tool)))),
        tool => Ok(CallArguments {
            tool: tool.to_owned(),
            command: None,
            dry_run: false,
            arguments,
            timeout: None,
            output: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_call_are_typed_as_in_a_shell_or_as_json() {
        let check = |typed: &str, tool: &str, arguments: &[&str]| {
            let found = call_arguments(typed).unwrap();
            assert_eq!(found.tool, tool);
            assert_eq!(found.arguments, arguments, "{typed}");
        };
        check("time/now", "time/now", &[]);
        check(
            "time/now  zone='a b' n=1 ",
            "time/now",
            &["zone=a b", "n=1"],
        );
        check(r#"t {"a": "it's"}"#, "t", &[r#"{"a": "it's"}"#]);
        for wrong in ["", "  ", "t -", "t 'a", "--help"] {
            assert!(call_arguments(wrong).is_err(), "{wrong}");
        }
    }
}
