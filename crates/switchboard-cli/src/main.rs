//! The program `switchboard`: the only crate that prints, exits, and reads arguments and the environment.
//!
//! `cli` says what can be typed, `context` turns flags and environment into a configuration, `commands` has
//! one file for each command, and everything that reaches a terminal goes through `printer`.

mod cli;
mod cloud;
mod commands;
mod context;
mod environment;
mod error;
mod excerpt;
mod exit;
mod guarded;
mod local_file;
mod printer;
mod report;
mod store;
mod terminal;
mod view;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os()).into()
}
