//! The program `switchboard`: the only crate that prints, exits, and reads arguments and the environment.
//!
//! `cli` defines the command line, `context` loads the configuration, `commands` has one file per command, and all
//! terminal output goes through `printer`.

mod agent;
mod cli;
mod cloud;
mod commands;
mod consent;
mod context;
mod current;
mod diagnostics;
mod environment;
mod error;
mod excerpt;
mod exit;
mod interrupt;
mod journal;
mod json_text;
mod live;
mod local_file;
mod markdown;
mod printer;
mod process_tree;
mod questions;
mod report;
mod servers;
mod session;
mod startup;
mod state;
mod store;
mod terminal;
mod time;
mod trust_items;
mod vault;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The host starts this program as a supervisor for local servers, so this check comes before everything else.
    #[cfg(unix)]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == switchboard::internal::supervisor::ARGUMENT)
    {
        return switchboard::internal::supervisor::run();
    }
    commands::run(std::env::args_os()).into()
}
