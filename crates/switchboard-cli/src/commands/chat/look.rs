//! Commands that only show something. They also run while a turn runs, without waiting for its end.

use std::cell::RefCell;

use anstyle::Style;
use switchboard_config::text::visible;

use super::results::Results;
use super::slash::{self, COMMANDS, Command, Meaning};
use super::text_commands::{self, Subject};
use super::ui::Entered;
use super::{mcp_command, mcp_view, prompts};
use crate::error::Failure;
use crate::live::Line;
use crate::printer::{Table, style};
use crate::session::CommandHost;
use crate::{pager, screen};

/// What can be typed besides commands, for `/help`.
const KEYS: [(&str, &str); 6] = [
    ("@PATH, @SERVER:URI", "attach a file or a resource"),
    ("Alt-Enter, \\ at the end", "continue on the next line"),
    ("Esc", "interrupt the answer, or close the menu"),
    ("Ctrl-O", "show the last result in full"),
    ("Ctrl-R", "search earlier input"),
    ("Ctrl-C twice, Ctrl-D", "leave"),
];

/// Something to show while a turn runs.
#[derive(Debug)]
pub(super) struct Wanted {
    command: Command,
    arguments: String,
    /// The line that was entered; `None` for a key.
    pub(super) line: Option<EnteredLine>,
}

#[derive(Debug)]
pub(super) struct EnteredLine {
    pub(super) text: String,
    /// The input as it was shown.
    pub(super) echo: Vec<Line>,
}

/// Reads what the user entered during a turn. Returns it if it has to wait for the end of the turn.
pub(super) fn read(entered: Entered) -> Result<Wanted, Entered> {
    let (text, echo) = match entered {
        Entered::Line { text, echo } => (text, echo),
        Entered::Expand => {
            return Ok(Wanted {
                command: Command::Show,
                arguments: String::new(),
                line: None,
            });
        }
        Entered::End => return Err(Entered::End),
    };
    match slash::read(&text, &[]) {
        Some(Meaning::Command(command, arguments)) if only_shows(command, arguments) => {
            Ok(Wanted {
                command,
                arguments: arguments.to_owned(),
                line: Some(EnteredLine { text, echo }),
            })
        }
        _ => Err(Entered::Line { text, echo }),
    }
}

/// Whether a command changes neither the conversation nor the configuration.
pub(super) fn only_shows(command: Command, arguments: &str) -> bool {
    match command {
        Command::Help
        | Command::Tools
        | Command::Cost
        | Command::Status
        | Command::Context
        | Command::Agents
        | Command::Config
        | Command::Diff
        | Command::Show => true,
        Command::Mcp => matches!(
            arguments.split_whitespace().next(),
            None | Some("list" | "tools")
        ),
        Command::Permissions => arguments.is_empty(),
        _ => false,
    }
}

impl Wanted {
    /// Shows it.
    pub(super) async fn run(
        self,
        subject: Subject<'_>,
        results: &RefCell<Results>,
    ) -> Result<(), Failure> {
        run(self.command, &self.arguments, subject, results).await
    }
}

/// Runs a command that only prints, or opens a view.
pub(super) async fn run(
    command: Command,
    arguments: &str,
    subject: Subject<'_>,
    results: &RefCell<Results>,
) -> Result<(), Failure> {
    let session = subject.session;
    match command {
        Command::Help => help(session).await,
        Command::Mcp if arguments.is_empty() && screen::is_active() => {
            mcp_view::run(subject.current, session).await
        }
        Command::Mcp => mcp_command::run(arguments, subject.current, session).await,
        Command::Tools => mcp_command::all_tools(session).await,
        Command::Show => show(arguments, results, session).await,
        other => text_commands::run(other, arguments, subject).await,
    }
}

async fn help(session: &CommandHost<'_>) -> Result<(), Failure> {
    let mut table = Table::default();
    for entry in COMMANDS {
        let name = format!("/{} {}", entry.name, entry.arguments);
        table.row([(style::NAME, name.trim_end()), (Style::new(), entry.about)]);
        if entry.command == Command::Mcp {
            for (name, about) in mcp_command::HELP {
                let name = format!("/mcp {name}");
                table.row([(style::NAME, &name), (Style::new(), about)]);
            }
        }
    }
    let prompts = prompts::all(session).await;
    for prompt in &prompts.commands {
        let name = format!("/{} {}", prompt.name, prompt.usage());
        table.row([
            (style::NAME, name.trim_end()),
            (Style::new(), &prompt.about()),
        ]);
    }
    for prompt in &prompts.withheld {
        let name = format!("/{}", prompt.name);
        table.row([(style::NAME, &name), (style::WARNING, &prompt.about())]);
    }
    for (keys, about) in KEYS {
        table.row([(style::NAME, keys), (Style::new(), about)]);
    }
    session.context.printer.table(&table)
}

/// Shows a result in full: the last one, or that with a number.
pub(super) async fn show(
    typed: &str,
    results: &RefCell<Results>,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let printer = &session.context.printer;
    let (title, lines) = {
        let results = results.borrow();
        let Some((first, last)) = results.range() else {
            printer.note("no results yet");
            return Ok(());
        };
        let result = match typed {
            "" => results.last(),
            number => number.parse().ok().and_then(|number| results.get(number)),
        };
        let Some(result) = result else {
            let message = format!("no result `{}`", visible(typed));
            return Err(Failure::usage(message)
                .hint(format!("/show takes a number from {first} to {last}")));
        };
        let title = format!("result {}: {}", result.number, result.title);
        // A turn that runs meanwhile may drop it.
        (title, result.lines.clone())
    };
    pager::show(&title, &lines, printer)
        .await
        .map_err(|error| Failure::failed("cannot show the result").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_change_nothing_run_during_a_turn() {
        let is_shown = |line: &str| {
            let (text, echo) = (line.to_owned(), Vec::new());
            read(Entered::Line { text, echo }).is_ok()
        };
        for line in [
            "/agents",
            "/status",
            "/context",
            "/cost",
            "/mcp",
            "/mcp list",
            "/mcp tools desk",
            "/permissions",
            "/show 2",
            " /help ",
        ] {
            assert!(is_shown(line), "{line}");
        }
        for line in [
            "hello",
            "/mcp reconnect desk",
            "/mcp add x",
            "/permissions revoke 1",
            "/new",
            "/model x",
            "/undo",
            "/call a/b",
            "/compact",
            "/resume",
            "/exit",
            "/unknown",
            "/agents/x is a path",
        ] {
            assert!(!is_shown(line), "{line}");
        }
        assert!(read(Entered::Expand).is_ok());
        assert!(matches!(read(Entered::End), Err(Entered::End)));
    }
}
