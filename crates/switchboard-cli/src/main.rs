//! The program `switchboard`: the only crate that prints, exits, and reads arguments and the environment.
//!
//! `cli` defines the command line, `context` loads the configuration, `commands` has one file per command, and all
//! terminal output goes through `printer`.

mod adhoc;
mod agent;
mod argument_flags;
#[cfg(unix)]
mod attributes;
mod cli;
mod cloud;
mod commands;
mod complete;
mod consent;
mod context;
mod current;
#[cfg(unix)]
mod daemon;
mod diagnostics;
mod dialog;
mod editor;
mod environment;
mod error;
mod examples;
mod excerpt;
mod exit;
mod focus;
mod front_end;
mod input;
mod interrupt;
mod journal;
mod json_text;
mod live;
mod local_file;
mod lookup;
mod markdown;
mod pager;
mod picture;
mod printer;
mod process_tree;
mod questions;
mod rehearse;
mod report;
mod screen;
mod server_logs;
mod servers;
mod session;
mod signature;
mod sixel;
mod standard_streams;
mod startup;
mod state;
mod store;
mod table;
mod terminal;
mod theme;
mod time;
mod trust_items;
mod vault;
mod view;
mod warned;

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
