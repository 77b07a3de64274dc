//! Sets entries aside that start Switchboard itself: an import must not make a gateway one of its own servers.

use std::path::Path;

use super::import::{Imported, ImportedServer};
use crate::diagnostic::Diagnostic;
use crate::entry::ServerEntry;
use crate::own_program::{OwnCommand, own_command};
use crate::source::Origin;

impl Imported {
    /// Sets entries aside that start the program at this path, whatever its name.
    pub fn set_program_aside(&mut self, program: &Path) {
        let is_own = |server: &ImportedServer| own_of(&server.entry, Some(program)).is_some();
        let (own, servers) = std::mem::take(&mut self.servers)
            .into_iter()
            .partition(is_own);
        self.servers = servers;
        for server in own {
            self.notes
                .push(own_note(&server.name, server.origin.clone()));
            self.own.push(server);
        }
    }
}

/// The command of Switchboard that an entry starts.
pub(super) fn own_of(entry: &ServerEntry, program: Option<&Path>) -> Option<OwnCommand> {
    own_command(entry.command.as_deref()?, &entry.args, program)
}

pub(super) fn own_note(name: &str, origin: Origin) -> Diagnostic {
    let message = format!("{name} is Switchboard itself and is left out");
    let hint = "nothing to do: Switchboard must not be one of its own servers";
    Diagnostic::warning("own-program", origin, message)
        .about(name)
        .with_hint(hint)
}
