//! Moves servers between a client's file and Switchboard's user scope.

use std::path::Path;

use switchboard_config::clients::{MovedServer, digest_of_entry};
use switchboard_config::confusable;
use switchboard_config::document::EnterpriseMode;
use switchboard_config::edit::Edit;
use switchboard_config::entry::ServerEntry;
use switchboard_config::foreign::{ImportedServer, Tool};
use switchboard_config::resolve::{Config, same_endpoint};
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;

use super::{Found, Machine, file_of};
use crate::cli::WritableScope;
use crate::commands::mcp::insert::{self, Existing};
use crate::context::Context;
use crate::error::Failure;
use crate::local_file::{Target, locate_entry};
use crate::store;

/// What becomes of one of a client's own servers.
#[derive(Debug, Clone)]
pub(super) struct PlannedMove {
    pub(super) name: String,
    pub(super) entry: ServerEntry,
    pub(super) fate: Fate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Added to Switchboard and removed from the client.
    Moved,
    /// Switchboard has the same server under this name; removed from the client.
    Same(String),
    /// Stays in the client's file, for this reason.
    Stays(String),
}

impl PlannedMove {
    pub(super) fn leaves_client(&self) -> bool {
        !matches!(self.fate, Fate::Stays(_))
    }

    /// Word for tables and scripts.
    pub(super) fn word(&self) -> &'static str {
        match self.fate {
            Fate::Moved => "moved",
            Fate::Same(_) => "removed",
            Fate::Stays(_) => "stays",
        }
    }

    /// One line for people.
    pub(super) fn describe(&self, tool: Tool) -> String {
        let name = visible(&self.name);
        match &self.fate {
            Fate::Moved => format!("`{name}` moves to Switchboard"),
            Fate::Same(other) if *other == self.name => {
                format!("`{name}` is in Switchboard already and is removed from {tool}")
            }
            Fate::Same(other) => format!(
                "`{name}` is in Switchboard already, as `{}`, and is removed from {tool}",
                visible(other)
            ),
            Fate::Stays(reason) => format!("`{name}` stays in {tool}: {}", visible(reason)),
        }
    }
}

/// Plans the moves of several clients, so that two clients with the same server add it once.
pub(super) struct MovePlanner<'c> {
    context: &'c Context,
    target: Target,
    config: Config,
    planned: Vec<(String, ServerEntry)>,
}

impl<'c> MovePlanner<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        Self {
            context,
            target: Target::of_scope(WritableScope::User, context),
            config: context.load_files(context.decisions()),
            planned: Vec::new(),
        }
    }

    /// Decides about all servers of a client.
    pub(super) fn plan(&mut self, found: &Found) -> Result<Vec<PlannedMove>, Failure> {
        let mut moves = Vec::new();
        let file = file_of(&found.client, found.text.as_deref().unwrap_or_default());
        for server in &found.content.servers {
            // An entry that is defined twice, for example, cannot be taken out alone.
            let fate = match file.without(&[&server.name], false) {
                Ok(_) => self.fate(server)?,
                Err(error) => Fate::Stays(error.to_string()),
            };
            if fate == Fate::Moved {
                self.planned
                    .push((server.name.clone(), server.entry.clone()));
            }
            moves.push(PlannedMove {
                name: server.name.clone(),
                entry: server.entry.clone(),
                fate,
            });
        }
        for name in &found.content.unusable {
            let notes = &found.content.notes;
            let note = notes.iter().find(|note| note.server.as_ref() == Some(name));
            // Parts of the client itself, such as extensions built into goose, are not servers.
            if note.is_some_and(|note| note.code == "skipped") {
                continue;
            }
            let reason = note.map_or("it cannot be imported", |note| &note.message);
            moves.push(PlannedMove {
                name: name.clone(),
                entry: ServerEntry::default(),
                fate: Fate::Stays(reason.to_owned()),
            });
        }
        Ok(moves)
    }

    fn fate(&self, server: &ImportedServer) -> Result<Fate, Failure> {
        let (name, entry) = (&server.name, &server.entry);
        if self.config.enterprise == Some(EnterpriseMode::Exclusive) {
            let reason = "this machine's enterprise file excludes all other servers";
            return Ok(Fate::Stays(reason.to_owned()));
        }
        let ours = self.config.servers.iter().filter(|other| {
            other.scope() == Scope::User
                && other
                    .origin
                    .path()
                    .starts_with(&self.context.environment.config)
        });
        let ours = ours.map(|other| (&other.name, &other.entry));
        let planned = self.planned.iter().map(|(name, entry)| (name, entry));
        let known: Vec<(&String, &ServerEntry)> = ours.chain(planned).collect();
        let same = |(_, other): &&(&String, &ServerEntry)| is_same(entry, other);
        if let Some((other, _)) = known.iter().find(same) {
            return Ok(Fate::Same((*other).clone()));
        }
        let stays = |reason: String| Ok(Fate::Stays(reason));
        let text = match std::fs::read_to_string(&self.target.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let message = format!("cannot read {}", self.target.shown());
                return Err(Failure::failed(message).because(error));
            }
        };
        let is_taken = locate_entry(&text, &self.target, name)?.keys.is_some()
            || known.iter().any(|(other, _)| *other == name);
        if is_taken {
            return stays("Switchboard has a different server of that name".to_owned());
        }
        if let Err(failure) = insert::check(name, entry) {
            return stays(failure.message);
        }
        let key = confusable::server_key(name);
        let alike = |(other, _): &&(&String, &ServerEntry)| confusable::server_key(other) == key;
        if let Some((other, _)) = known.iter().find(alike) {
            return stays(format!("its name can be mistaken for `{}`", visible(other)));
        }
        if let Some((reason, _)) = insert::look_alike(name, Scope::User, self.context) {
            return stays(reason);
        }
        Ok(Fate::Moved)
    }
}

/// Whether two entries are the same server for a user: the same endpoint with the same credentials.
fn is_same(one: &ServerEntry, other: &ServerEntry) -> bool {
    same_endpoint(one, other)
        && one.headers == other.headers
        && one.bearer_token_env_var == other.bearer_token_env_var
        && other.enabled != Some(false)
}

impl Machine<'_> {
    /// Adds the moved servers to Switchboard's file. If one fails, the others are removed again.
    pub(super) fn take_over(
        &self,
        moves: &[PlannedMove],
        found: &Found,
    ) -> Result<Vec<MovedServer>, Failure> {
        let target = Target::of_scope(WritableScope::User, self.context);
        let file = file_of(&found.client, found.text.as_deref().unwrap_or_default());
        let mut taken: Vec<MovedServer> = Vec::new();
        for each in moves.iter().filter(|each| each.leaves_client()) {
            let Some(value) = file.value_of(&each.name) else {
                continue;
            };
            let taken_as = match &each.fate {
                Fate::Same(other) => other.clone(),
                _ => each.name.clone(),
            };
            let is_added = each.fate == Fate::Moved;
            if is_added {
                let added = insert::insert(
                    &taken_as,
                    &each.entry,
                    &target,
                    Existing::Refuse,
                    self.context,
                );
                if let Err(failure) = added {
                    self.take_back(&taken);
                    return Err(failure);
                }
            }
            let digest = self.entry_digest(&taken_as, &target.path);
            taken.push(MovedServer {
                name: each.name.clone(),
                value,
                taken_as,
                target: target.path.clone(),
                digest: digest.unwrap_or_default(),
                is_added,
            });
        }
        Ok(taken)
    }

    /// Removes servers from Switchboard's file that a failed or undone move had added. Best effort: one that stays is
    /// defined twice, not lost.
    pub(super) fn take_back(&self, taken: &[MovedServer]) {
        for server in taken.iter().filter(|server| server.is_added) {
            if let Err(failure) = self.remove_taken(server) {
                let message = format!(
                    "`{}` stays in Switchboard: {}",
                    visible(&server.taken_as),
                    failure.message
                );
                self.context.printer.warning(message, None);
            }
        }
    }

    /// Removes one server from Switchboard's file.
    pub(super) fn remove_taken(&self, server: &MovedServer) -> Result<(), Failure> {
        let target = Target::of_path(server.target.clone(), Scope::User);
        store::edit(&target, self.context, |text| {
            let location = locate_entry(text, &target, &server.taken_as)?;
            if location.keys.is_none() {
                return Ok(text.to_owned());
            }
            let path: Vec<&str> = location.path.iter().map(String::as_str).collect();
            store::apply(text, &target, &Edit::Remove { path: &path })
        })
    }

    /// Digest of an entry in Switchboard's file; `None` if it is not there.
    pub(super) fn entry_digest(&self, name: &str, path: &Path) -> Option<String> {
        let config = self.context.load_files(self.context.decisions());
        let standing = config.servers.iter();
        let standing = standing.map(|server| (&server.name, &server.origin, &server.entry));
        let lost = config.shadowed.iter();
        let lost = lost.map(|lost| (&lost.name, &lost.origin, &lost.entry));
        let mut all = standing.chain(lost);
        let found = all.find(|(other, origin, _)| *other == name && origin.path() == path);
        found.map(|(_, _, entry)| digest_of_entry(entry))
    }
}
