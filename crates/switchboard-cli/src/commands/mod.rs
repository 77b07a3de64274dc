//! One module for each command, and the one place that starts them.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod mcp;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod version;

use std::ffi::OsString;

use clap::Parser as _;

use crate::cli::{Cli, Command, GlobalFlags};
use crate::context::{self, Context};
use crate::error::Outcome;
use crate::exit::Exit;

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
        Command::Config(command) => config::run(&command, &with(cli.global)?),
        Command::Tools(arguments) => tools::run(&arguments, &with(cli.global)?),
        Command::Call(arguments) => call::run(&arguments, &with(cli.global)?),
        Command::Status => status::run(&with(cli.global)?),
        Command::Completions { shell } => completions::run(shell, &context::printer(&cli.global)),
        Command::Version => version::run(&context::printer(&cli.global)),
    }
}
