//! `switchboard config …`: shows and checks the configuration.

mod check;
mod path;
mod schema;
mod server;
mod show;

pub(crate) use server::server_text;

use crate::cli::ConfigCommand;
use crate::context::Context;
use crate::error::Outcome;

pub(crate) fn run(command: &ConfigCommand, context: &Context) -> Outcome {
    match command {
        ConfigCommand::Show => show::run(context),
        ConfigCommand::Check => check::run(context),
        ConfigCommand::Schema => schema::run(context),
        ConfigCommand::Path => path::run(context),
    }
}
