//! Runs the program: parses the command line and dispatches to one module per command.

pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
mod content;
pub(crate) mod doctor;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod permissions;
pub(crate) mod pins;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod resources;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod version;

use std::ffi::OsString;

use clap::Parser as _;
use switchboard_config::text::visible;

use crate::cli::{Cli, Command, GlobalFlags};
use crate::context::{self, Context};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::{diagnostics, environment, printer};

pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let mut words = arguments.iter().take_while(|word| *word != "--");
            if words.any(|word| word == "--json") {
                usage_json(&error);
            }
            let _ = error.print();
            return Exit::Usage;
        }
        Err(error) => {
            let _ = error.print();
            return Exit::Done;
        }
    };
    let printer = context::printer(&cli.global);
    if let Some(directives) = environment::log() {
        for word in diagnostics::init(&directives) {
            let message = format!(
                "ignoring unknown directive `{}` in SWITCHBOARD_LOG",
                visible(&word)
            );
            printer.warning(message, Some(diagnostics::WORDS));
        }
    }
    match dispatch(cli) {
        Ok(exit) => exit,
        Err(failure) => {
            if !failure.silent {
                printer.failure(&failure);
            }
            failure.exit
        }
    }
}

/// Prints a command-line error as JSON, for scripts.
fn usage_json(error: &clap::Error) {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim);
    let message = lines.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let mut failure = Failure::usage(visible(message));
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            failure = failure.hint(visible(tip));
        } else if line.starts_with('[') || line.starts_with('-') || line.starts_with('<') {
            failure = failure.because(visible(line));
        }
    }
    let flags = GlobalFlags {
        json: true,
        ..GlobalFlags::default()
    };
    let _ = context::printer(&flags).json(&failure.to_json());
}

fn dispatch(cli: Cli) -> Outcome {
    if cli.global.json {
        printer::want_json();
    }
    if matches!(&cli.command, Command::Serve(arguments) if arguments.http.is_none()) {
        // Standard output is reserved for the protocol.
        printer::never_json();
    }
    let with = |global: GlobalFlags| Context::new(global);
    match cli.command {
        Command::Mcp(command) => mcp::run(command, cli.global),
        Command::Trust(command) => trust::run(command, &with(cli.global)?),
        Command::Pins(command) => pins::run(&command, &with(cli.global)?),
        Command::Config(command) => config::run(&command, &with(cli.global)?),
        Command::Tools(arguments) => tools::run(&arguments, &with(cli.global)?),
        Command::Search(arguments) => search::run(&arguments, &with(cli.global)?),
        Command::Call(arguments) => call::run(&arguments, &with(cli.global)?),
        Command::Status => status::run(&with(cli.global)?),
        Command::Resources(from) => resources::run(&from, &with(cli.global)?),
        Command::Read(arguments) => read::run(&arguments, &with(cli.global)?),
        Command::Prompts(from) => prompts::run(&from, &with(cli.global)?),
        Command::Prompt(arguments) => prompt::run(&arguments, &with(cli.global)?),
        Command::Logs(arguments) => logs::run(&arguments, &with(cli.global)?),
        Command::Doctor { server, repair } => {
            doctor::run(server.as_deref(), repair, &with(cli.global)?)
        }
        Command::Permissions(command) => permissions::run(&command, &with(cli.global)?),
        Command::Audit(arguments) => audit::run(&arguments, &with(cli.global)?),
        Command::Chat(arguments) => chat::run(&arguments, &with(cli.global)?),
        Command::Serve(arguments) => serve::run(&arguments, &with(cli.global)?),
        Command::Completions { shell } => completions::run(shell, &context::printer(&cli.global)),
        Command::Version => version::run(&context::printer(&cli.global)),
    }
}
