//! Runs the program: parses the command line and dispatches to one module per command.

pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod clients;
pub(crate) mod completions;
pub(crate) mod config;
#[cfg(unix)]
mod connect;
mod content;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod help;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod permissions;
pub(crate) mod pins;
pub(crate) mod preflight;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod resources;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod tokens;
mod tool;
pub(crate) mod tools;
pub(crate) mod trust;
#[cfg(unix)]
mod up;
pub(crate) mod version;

use std::ffi::OsString;

use clap::FromArgMatches as _;
use switchboard_config::text::visible;

use crate::cli::{self, Cli, Command, GlobalFlags};
use crate::context::{self, Context};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::{argument_flags, complete, diagnostics, environment, printer};

pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = argument_flags::moved(arguments.into_iter().collect());
    if let [_, first, rest @ ..] = arguments.as_slice()
        && first == complete::ARGUMENT
    {
        return complete::run(rest);
    }
    let matches = cli::command().try_get_matches_from(&arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            if argument_flags::wants_json(&arguments) {
                usage_json(&error);
            }
            let _ = error.print();
            return Exit::Usage;
        }
        Err(error) => {
            let _ = error.print();
            return Exit::Done;
        }
    };
    let printer = context::printer(&cli.global);
    if let Some(directives) = environment::log() {
        for word in diagnostics::init(&directives) {
            let message = format!(
                "ignoring unknown directive `{}` in SWITCHBOARD_LOG",
                visible(&word)
            );
            printer.warning(message, Some(diagnostics::WORDS));
        }
    }
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

/// Prints a command-line error as JSON, for scripts.
fn usage_json(error: &clap::Error) {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim);
    let message = lines.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let mut failure = Failure::usage(visible(message));
    for line in lines {
        if let Some(tip) = line.strip_prefix("tip: ") {
            failure = failure.hint(visible(tip));
        } else if line.starts_with('[') || line.starts_with('-') || line.starts_with('<') {
            failure = failure.because(visible(line));
        }
    }
    let flags = GlobalFlags {
        json: true,
        ..GlobalFlags::default()
    };
    let _ = context::printer(&flags).json(&failure.to_json());
}

/// Names of MCP clients on this machine that do not use Switchboard yet.
#[cfg(unix)]
pub(crate) fn unconnected_clients(context: &Context) -> Vec<&'static str> {
    clients::unconnected(context)
}

/// The text after the flags of `connect --help`.
pub(crate) fn connect_help() -> &'static str {
    #[cfg(unix)]
    return connect::HELP;
    #[cfg(not(unix))]
    return "This system has no daemon; use `switchboard gateway`.";
}

fn dispatch(mut cli: Cli) -> Outcome {
    if cli.global.json {
        printer::want_json();
    }
    if let Command::Gateway(arguments) = &mut cli.command {
        let (http, token_files) = environment::listening();
        arguments.listen.or(http, token_files.as_deref());
    }
    let listen = match &cli.command {
        Command::Serve(arguments) => Some(&arguments.listen),
        Command::Gateway(arguments) => Some(&arguments.listen),
        _ => None,
    };
    let is_bridge = matches!(cli.command, Command::Connect(_));
    if is_bridge || listen.is_some_and(|listen| listen.http.is_none()) {
        // Standard output is reserved for the protocol.
        printer::never_json();
    }
    let with = |global: GlobalFlags| Context::new(global);
    let through = |global: GlobalFlags| Context::new(global).map(Context::through_daemon);
    match cli.command {
        Command::Mcp(command) => mcp::run(command, cli.global),
        Command::Trust(command) => trust::run(command, &with(cli.global)?),
        Command::Pins(command) => pins::run(&command, &with(cli.global)?),
        Command::Config(command) => config::run(&command, &with(cli.global)?.repeating_warnings()),
        Command::Tools(arguments) => tools::run(&arguments, &through(cli.global)?),
        Command::Preflight(arguments) => preflight::run(&arguments, &with(cli.global)?),
        Command::Search(arguments) => search::run(&arguments, &through(cli.global)?),
        Command::Call(arguments) => call::run(&arguments, &through(cli.global)?),
        Command::Status(arguments) => status::run(&arguments, &with(cli.global)?),
        Command::Resources(from) => resources::run(&from, &through(cli.global)?),
        Command::Read(arguments) => read::run(&arguments, &through(cli.global)?),
        Command::Prompts(from) => prompts::run(&from, &through(cli.global)?),
        Command::Prompt(arguments) => prompt::run(&arguments, &through(cli.global)?),
        Command::Logs(arguments) => logs::run(&arguments, &with(cli.global)?),
        Command::Doctor { server, repair } => doctor::run(
            server.as_deref(),
            repair,
            &with(cli.global)?.repeating_warnings(),
        ),
        Command::Permissions(command) => permissions::run(&command, &with(cli.global)?),
        Command::Audit(arguments) => audit::run(&arguments, &with(cli.global)?),
        Command::Chat(arguments) => chat::run(&arguments, &through(cli.global)?),
        Command::Serve(arguments) => serve::run(&arguments, &with(cli.global)?),
        Command::Gateway(arguments) => gateway::run(&arguments, &with(cli.global)?),
        #[cfg(unix)]
        Command::Up(arguments) => up::run(&arguments, &with(cli.global)?),
        #[cfg(unix)]
        Command::Down => up::down(&with(cli.global)?),
        #[cfg(unix)]
        Command::Connect(arguments) => connect::run(&arguments, &with(cli.global)?),
        #[cfg(not(unix))]
        Command::Up(_) | Command::Down | Command::Connect(_) => Err(Failure::failed(
            "the daemon needs unix-domain sockets, which this system does not have",
        )
        .hint("use `switchboard gateway` instead")),
        Command::Clients(command) => clients::run(&command, &with(cli.global)?),
        Command::Tokens(command) => tokens::run(&command, &with(cli.global)?),
        Command::Completions { shell } => completions::run(shell, &context::printer(&cli.global)),
        Command::Help(arguments) => help::run(&arguments, &context::printer(&cli.global)),
        Command::Version => version::run(&context::printer(&cli.global)),
    }
}
