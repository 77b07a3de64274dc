//! `switchboard connect`: the bridge from an MCP client to the daemon.
//!
//! Opens standard input and output, and runs the bridge of the `daemon` module between them and the daemon.

use std::io::IsTerminal as _;

use switchboard_config::own_program;
use switchboard_server::local::Wants;

use crate::cli::BridgeArguments;
use crate::context::Context;
use crate::daemon::{DaemonFiles, bridge};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::{session, standard_streams};

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
MCP clients start this command. It connects them to the daemon of this user (`switchboard up`),
which it starts if none runs. All clients then share the same servers.

Examples:
  claude mcp add switchboard -- switchboard connect
  codex mcp add switchboard -- switchboard connect";

/// Printed if a user starts the bridge by hand.
const ON_A_TERMINAL: &str = "\
this is a bridge for MCP clients: it waits for their messages on standard input
  to use it, add it to a client, for example: claude mcp add switchboard -- switchboard connect";

pub(crate) fn run(arguments: &BridgeArguments, context: &Context) -> Outcome {
    own_program::check_depth(&context.environment.all)?;
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = session::runtime().map_err(startup_failure)?;
    let mut interrupts = Interrupts::listen().map_err(startup_failure)?;
    if std::io::stdin().is_terminal() {
        context.printer.note(ON_A_TERMINAL);
    }
    let outcome = runtime.block_on(async {
        tokio::select! {
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = connect(arguments, context) => outcome,
        }
    });
    // Reading standard input cannot be interrupted.
    runtime.shutdown_background();
    outcome
}

async fn connect(arguments: &BridgeArguments, context: &Context) -> Outcome {
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let files = DaemonFiles::of(&context.environment);
    let wants = Wants::Gateway {
        folder: context.cwd.clone(),
        profile: arguments.profile.clone(),
    };
    let input = standard_streams::input().map_err(startup_failure)?;
    let output = standard_streams::output();
    bridge::run(input, output, &wants, &files, context).await?;
    Ok(Exit::Done)
}
