//! One module for each command, and the one place that starts them.

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
use crate::error::Outcome;
use crate::exit::Exit;
use crate::{diagnostics, environment};

/// Runs the program.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
        }
    };
    let printer = context::printer(&cli.global);
    if let Some(wanted) = environment::log() {
        for word in diagnostics::begin(&wanted) {
            let message = format!("SWITCHBOARD_LOG has no use for `{}`", visible(&word));
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

fn dispatch(cli: Cli) -> Outcome {
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
        Command::Doctor { server } => doctor::run(server.as_deref(), &with(cli.global)?),
        Command::Permissions(command) => permissions::run(&command, &with(cli.global)?),
        Command::Audit(arguments) => audit::run(&arguments, &with(cli.global)?),
        Command::Chat(arguments) => chat::run(&arguments, &with(cli.global)?),
        Command::Serve(arguments) => serve::run(&arguments, &with(cli.global)?),
        Command::Completions { shell } => completions::run(shell, &context::printer(&cli.global)),
        Command::Version => version::run(&context::printer(&cli.global)),
    }
}
