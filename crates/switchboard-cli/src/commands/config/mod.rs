//! `switchboard config …`: shows, checks and changes the configuration.

mod check;
mod path;
mod schema;
mod server;
mod set;
pub(crate) mod show;

pub(crate) use server::server_text;

use crate::cli::ConfigCommand;
use crate::context::Context;
use crate::editor;
use crate::error::Outcome;
use crate::local_file::Target;

pub(crate) fn run(command: &ConfigCommand, context: &Context) -> Outcome {
    match command {
        ConfigCommand::Show => show::run(context),
        ConfigCommand::Check => check::run(context),
        ConfigCommand::Schema => schema::run(context),
        ConfigCommand::Path => path::run(context),
        ConfigCommand::Set { key, value, scope } => set::run(key, value, *scope, context),
        ConfigCommand::Edit { scope } => {
            let target = Target::of_scope(*scope, context);
            editor::edit(&target.path, None, context)
        }
    }
}
