//! `switchboard clients …`: adds Switchboard to other MCP clients on this machine, and removes it again.

mod connect;
mod disconnect;
mod list;
mod moving;
mod preview;
mod program;

use std::path::Path;

use switchboard_config::clients::{
    Bridge, Client, ClientError, ClientFile, ClientStore, FileContent, Record, StoreError,
};
use switchboard_config::entry::ServerEntry;
use switchboard_config::files::Disk;
use switchboard_config::foreign::Tool;
use switchboard_config::text::visible;

use crate::cli::ClientsCommand;
use crate::commands::mcp::import;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::view;

use program::Program;

pub(crate) fn run(command: &ClientsCommand, context: &Context) -> Outcome {
    let machine = Machine {
        context,
        store: ClientStore::new(&context.environment.state),
        program: Program::find(&context.environment)?,
    };
    match command {
        ClientsCommand::List(names) => list::list(&names.clients, &machine),
        ClientsCommand::Status(names) => list::status(&names.clients, &machine),
        ClientsCommand::Connect(arguments) => connect::run(arguments, &machine),
        ClientsCommand::Disconnect(arguments) => disconnect::run(arguments, &machine),
    }
}

/// Names of the clients that were found and do not use Switchboard yet.
#[cfg(unix)]
pub(crate) fn unconnected(context: &Context) -> Vec<&'static str> {
    let Ok(program) = Program::find(&context.environment) else {
        return Vec::new();
    };
    let machine = Machine {
        context,
        store: ClientStore::new(&context.environment.state),
        program,
    };
    let clients = machine.clients(&[]).unwrap_or_default();
    let is_unconnected = |client: &&Client| {
        let read = machine.read(client);
        client.is_found && read.is_ok_and(|found| !list::is_connected(&found))
    };
    clients
        .iter()
        .filter(is_unconnected)
        .map(|client| client.tool.name())
        .collect()
}

/// What every subcommand needs.
struct Machine<'c> {
    context: &'c Context,
    store: ClientStore,
    program: Program,
}

/// A client's file as it is now.
struct Found {
    client: Client,
    /// `None` if the file does not exist.
    text: Option<String>,
    content: FileContent,
}

impl Machine<'_> {
    /// The named clients, in the order of the names; all if none is named.
    fn clients(&self, names: &[String]) -> Result<Vec<Client>, Failure> {
        let mut tools: Vec<Tool> = Vec::new();
        for name in names {
            let tool = import::tool_of_name(name)?;
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        if names.is_empty() {
            tools = Tool::ALL.to_vec();
        }
        Ok(import::with_places(self.context, |places| {
            let find = |tool| Client::find(tool, places, &Disk);
            tools.into_iter().map(find).collect()
        }))
    }

    /// Reads and parses a client's file.
    fn read(&self, client: &Client) -> Result<Found, Failure> {
        let text = self.store.read(&client.path);
        let text = text.map_err(|error| not_changed(client, &error))?;
        let file = file_of(client, text.as_deref().unwrap_or_default());
        let content = file
            .read(&self.program.path)
            .map_err(|error| self.refused(client, &error))?;
        Ok(Found {
            client: client.clone(),
            text,
            content,
        })
    }

    /// The record of a client. A damaged one counts as none, with a warning: the entry can be removed without it.
    fn record(&self, tool: Tool) -> Result<Option<Record>, Failure> {
        self.store.record(tool).or_else(|error| {
            let is_newer = matches!(
                &error,
                StoreError::Record {
                    source: switchboard_config::clients::RecordError::Newer,
                    ..
                }
            );
            if is_newer {
                let message = format!("{tool} was not changed");
                return Err(Failure::failed(message)
                    .because(visible(&error.to_string()))
                    .hint("update this program"));
            }
            let message = visible(&error.to_string()).into_owned();
            let hint =
                "only the entry itself is handled; backups of the files are in the state folder";
            self.context.printer.warning(message, Some(hint));
            Ok(None)
        })
    }

    /// The bridge that `connect` writes for a client. A profile that it has stays, unless another one is wanted.
    fn bridge(&self, wanted: Option<&str>, record: Option<&Record>, found: &Found) -> Bridge {
        let standing = found.content.bridge.as_ref().map(|server| &server.entry);
        let profile = match (record, standing) {
            (Some(record), Some(_)) => record.profile.clone(),
            (None, Some(entry)) => Bridge::profile_of(entry),
            (_, None) => None,
        };
        let profile = wanted.map(str::to_owned).or(profile);
        let command = |entry: &ServerEntry| entry.command.clone();
        let usable = standing
            .and_then(command)
            .filter(|command| self.program.is_started_by(command));
        Bridge {
            command: usable.unwrap_or_else(|| self.program.command.clone()),
            profile,
        }
    }

    /// A path for people.
    fn shown(&self, path: &Path) -> String {
        view::path(path, &self.context.environment.home)
    }

    fn refused(&self, client: &Client, error: &ClientError) -> Failure {
        // The position in a file that cannot be read names the file itself.
        let place = match error {
            ClientError::Unreadable(_) => String::new(),
            _ => format!(": {}", self.shown(&client.path)),
        };
        let message = format!("{} was not changed{place}", client.tool);
        Failure::new(Exit::Configuration, message)
            .because(visible(&error.to_string()))
            .hint(visible(&error.hint()))
    }
}

fn not_changed(client: &Client, error: &StoreError) -> Failure {
    let exit = match error {
        StoreError::Read { .. } | StoreError::NotText(_) => Exit::Configuration,
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("{} was not changed", client.tool))
        .because(visible(&error.to_string()))
        .hint(visible(&error.hint()))
}

fn file_of<'t>(client: &'t Client, text: &'t str) -> ClientFile<'t> {
    ClientFile {
        tool: client.tool,
        path: &client.path,
        format: client.format,
        text,
    }
}

/// The exit code of several failures: a configuration error is reported before any other.
fn worst(exit: Exit, failure: &Failure) -> Exit {
    match (exit, failure.exit) {
        (Exit::Configuration, _) | (_, Exit::Configuration) => Exit::Configuration,
        (Exit::Done, other) => other,
        (exit, _) => exit,
    }
}
