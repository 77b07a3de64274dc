//! `switchboard completions SHELL`: prints a shell completion script.

use clap_complete::Shell;
use serde_json::json;

use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::{cli, complete};

pub(crate) fn run(shell: Shell, printer: &Printer) -> Outcome {
    // A generated script completes commands and flags only.
    let generated = || {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::command(), "switchboard", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    let script = complete::script(shell).map_or_else(generated, str::to_owned);
    if printer.json {
        printer.json(&json!({"shell": shell.to_string(), "script": script}))?;
    } else {
        Printer::raw(script.as_bytes())?;
    }
    Ok(Exit::Done)
}
