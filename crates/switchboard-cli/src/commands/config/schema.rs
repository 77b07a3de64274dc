//! `switchboard config schema`: prints the JSON Schema of a configuration file.

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;

pub(crate) fn run(context: &Context) -> Outcome {
    context
        .printer
        .json(&switchboard_config::schema::schema())?;
    Ok(Exit::Done)
}
