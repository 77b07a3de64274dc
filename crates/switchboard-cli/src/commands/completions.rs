//! `switchboard completions SHELL`: prints a shell completion script.

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use crate::cli::Cli;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn run(shell: Shell, printer: &Printer) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "switchboard", &mut script);
    if printer.json {
        let script = String::from_utf8_lossy(&script);
        printer.json(&json!({"shell": shell.to_string(), "script": script}))?;
    } else {
        Printer::raw(&script)?;
    }
    Ok(Exit::Done)
}
