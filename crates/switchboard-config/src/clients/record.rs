//! The record of what was done to a client's file, enough to undo it.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::entry::ServerEntry;
use crate::foreign::write_tree;
use crate::format::Format;

/// Version of the records that this program writes and reads.
const VERSION: u32 = 1;

/// What `clients connect` did to one client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The client's file.
    pub file: PathBuf,
    /// Digest of the text that was written last.
    pub written: String,
    /// Profile of the bridge.
    #[serde(default)]
    pub profile: Option<String>,
    /// Name of the backup with the bytes to restore, as long as the file is as it was written. `None` if the file did
    /// not exist, or the user had edited it between two runs.
    #[serde(default)]
    pub restores: Option<String>,
    /// Whether the file did not exist before.
    #[serde(default)]
    pub is_created: bool,
    /// Folders that were created for the file, outermost first.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// Whether the file had no table of servers before.
    #[serde(default)]
    pub adds_container: bool,
    /// Servers that were moved to Switchboard.
    #[serde(default)]
    pub moved: Vec<MovedServer>,
}

/// A server that was moved from a client's file to Switchboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedServer {
    /// Name in the client's file.
    pub name: String,
    /// Its entry there, as JSON in the client's own keys. Contains secrets.
    pub value: String,
    /// Name in Switchboard.
    pub taken_as: String,
    /// Switchboard's file that has it.
    pub target: PathBuf,
    /// Digest of the entry in Switchboard's file.
    pub digest: String,
    /// Whether the move added it there; otherwise Switchboard had it before.
    pub is_added: bool,
}

/// A record that cannot be used. A damaged one is renamed, never overwritten.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not a record.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// Written by a newer version.
    #[error("it was written by a newer version of Switchboard")]
    Newer,
}

impl Record {
    /// A record of a file, of which nothing is known yet but its new text.
    pub fn new(file: PathBuf, text: &str) -> Self {
        Self {
            version: VERSION,
            file,
            written: digest(text),
            profile: None,
            restores: None,
            is_created: false,
            folders: Vec::new(),
            adds_container: false,
            moved: Vec::new(),
        }
    }

    /// Whether the file is byte for byte what was written.
    pub fn is_as_written(&self, text: &str) -> bool {
        self.written == digest(text)
    }

    pub(super) fn parse(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |error: serde_json::Error| RecordError::Damaged(error.to_string());
        let Versioned { version } = serde_json::from_str(text).map_err(damaged)?;
        if version > VERSION {
            return Err(RecordError::Newer);
        }
        serde_json::from_str(text).map_err(damaged)
    }

    pub(super) fn to_text(&self) -> Result<String, RecordError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| RecordError::Damaged(error.to_string()))
    }
}

/// SHA-256 of a text, in hexadecimal.
pub fn digest(text: &str) -> String {
    let mut shown = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a `String` cannot fail.
        let _ = write!(shown, "{byte:02x}");
    }
    shown
}

/// SHA-256 of an entry, to see whether the user has changed it.
pub fn digest_of_entry(entry: &ServerEntry) -> String {
    digest(&write_tree(Format::Json, &entry.to_node()))
}
