//! Records and backups in the state folder, and writes of clients' files.

use std::convert::Infallible;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::record::{Record, RecordError};
use crate::files::{Disk, Files as _, ReadError};
use crate::foreign::Tool;
use crate::write::{Access, Update, WriteError, WriteErrorKind, create_private};

/// Attempts to find a free name for a backup.
const MAX_BACKUPS: usize = 1000;

/// The part of the state folder that belongs to clients.
#[derive(Debug, Clone)]
pub struct ClientStore {
    folder: PathBuf,
    locks: PathBuf,
}

/// Why a file, a backup or a record could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ReadError,
    },
    /// A file is not UTF-8.
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// A record cannot be used.
    #[error("cannot use the record {}: {source}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The cause.
        source: RecordError,
    },
    /// A backup could not be written, so the client's file was not changed.
    #[error("cannot write the backup {}: {source}", path.display())]
    Backup {
        /// The backup.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("{0}")]
    Write(WriteError<Infallible>),
    /// The file does not have the text that was written.
    #[error("{} does not have the text that was written to it", .0.display())]
    NotVerified(PathBuf),
}

impl StoreError {
    /// Suggested fix.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { .. } => "make the file readable".to_owned(),
            Self::NotText(_) => "save the file as UTF-8".to_owned(),
            Self::Record { path, .. } => format!(
                "move {} away; without it, only the entry itself can be removed",
                path.display()
            ),
            Self::Backup { .. } => "free disk space, or make the state folder writable".to_owned(),
            Self::Write(error) => error.hint().unwrap_or_default(),
            Self::NotVerified(_) => {
                "another program changed the file at the same time: close it, then repeat the command".to_owned()
            }
        }
    }
}

impl ClientStore {
    /// The store in a state folder.
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join("clients"),
            locks: state.join("locks"),
        }
    }

    /// Folder of the backups.
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    /// Reads a client's file; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> Result<Option<String>, StoreError> {
        let bytes = Disk.read(path).map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
        bytes
            .map(String::from_utf8)
            .transpose()
            .map_err(|_| StoreError::NotText(path.to_owned()))
    }

    /// The record of a client; `None` if there is none.
    pub fn record(&self, tool: Tool) -> Result<Option<Record>, StoreError> {
        let path = self.record_path(tool);
        let Some(text) = self.read(&path)? else {
            return Ok(None);
        };
        let record = Record::parse(&text);
        record
            .map(Some)
            .map_err(|source| StoreError::Record { path, source })
    }

    /// Replaces the record of a client.
    pub fn save(&self, tool: Tool, record: &Record) -> Result<(), StoreError> {
        let path = self.record_path(tool);
        let text = record.to_text().map_err(|source| StoreError::Record {
            path: path.clone(),
            source,
        })?;
        self.set_damaged_aside(tool)?;
        // Locks are created beside the records, so the folder is private from the start.
        let folder = crate::write::create_private_folder(&self.folder);
        folder.map_err(|source| StoreError::Backup {
            path: self.folder.clone(),
            source,
        })?;
        Update::new(&path, &self.locks, Access::Private)
            .run(|_| Ok(Some(text)))
            .map(drop)
            .map_err(StoreError::Write)
    }

    /// Deletes the record of a client.
    pub fn forget(&self, tool: Tool) -> Result<(), StoreError> {
        self.set_damaged_aside(tool)?;
        let path = self.record_path(tool);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(StoreError::Backup { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Renames a damaged record: a person may still find in it what the program cannot.
    fn set_damaged_aside(&self, tool: Tool) -> Result<(), StoreError> {
        if !matches!(self.record(tool), Err(StoreError::Record { .. })) {
            return Ok(());
        }
        let path = self.record_path(tool);
        let mut names = (1..MAX_BACKUPS).map(|number| {
            let name = format!("{}.damaged-{number}", tool.name());
            self.folder.join(name)
        });
        let free = names.find(|path| !path.exists());
        let aside = free.unwrap_or_else(|| path.with_extension("damaged"));
        fs::rename(&path, aside).map_err(|source| StoreError::Backup { path, source })
    }

    /// Stores a copy of a file that only the user can read, and returns its name. `time` is part of the name.
    pub fn back_up(
        &self,
        tool: Tool,
        time: &str,
        path: &Path,
        text: &str,
    ) -> Result<String, StoreError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let extension = extension.unwrap_or("txt");
        let mut failed = None;
        for number in 1..MAX_BACKUPS {
            let count = match number {
                1 => String::new(),
                _ => format!("-{number}"),
            };
            let name = format!("{time}-{}{count}.{extension}", tool.name());
            let path = self.backups().join(&name);
            match create_private(&path, text.as_bytes()) {
                Ok(()) => return Ok(name),
                Err(source) => {
                    let is_taken = source.kind() == ErrorKind::AlreadyExists;
                    failed = Some(StoreError::Backup { path, source });
                    if !is_taken {
                        break;
                    }
                }
            }
        }
        Err(failed.unwrap_or_else(|| StoreError::NotVerified(path.to_owned())))
    }

    /// The text of a backup; `None` if it is gone or unreadable.
    pub fn backup(&self, name: &str) -> Option<String> {
        // The name is from a record, which could be damaged: it must not lead elsewhere.
        let is_plain = Path::new(name).file_name() == Some(name.as_ref());
        let text = is_plain.then(|| self.read(&self.backups().join(name)))?;
        text.ok().flatten()
    }

    /// Deletes a backup whose bytes are the client's file again.
    pub fn discard_backup(&self, name: &str) {
        if Path::new(name).file_name() == Some(name.as_ref()) {
            let _ = fs::remove_file(self.backups().join(name));
        }
    }

    /// Writes a client's file, unless it is not as it was read, and reads it back.
    pub fn write(&self, path: &Path, before: Option<&str>, after: &str) -> Result<(), StoreError> {
        let mut is_changed = false;
        Update::new(path, &self.locks, Access::Private)
            .run(|text| {
                if text == before {
                    return Ok(Some(after.to_owned()));
                }
                is_changed = true;
                Ok::<_, Infallible>(None)
            })
            .map_err(StoreError::Write)?;
        if is_changed {
            return Err(StoreError::Write(WriteError {
                path: path.to_owned(),
                kind: WriteErrorKind::Changed,
            }));
        }
        match self.read(path)? {
            Some(text) if text == after => Ok(()),
            _ => Err(StoreError::NotVerified(path.to_owned())),
        }
    }

    /// Deletes a file that has this text, and these folders as far as they are empty.
    pub fn delete(&self, path: &Path, text: &str, folders: &[PathBuf]) -> Result<(), StoreError> {
        Update::new(path, &self.locks, Access::Private)
            .remove(text)
            .map_err(StoreError::Write)?;
        for folder in folders.iter().rev() {
            // A folder that is in use by now stays.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Folders that do not exist yet above a file, outermost first.
    pub fn missing_folders(&self, path: &Path) -> Vec<PathBuf> {
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|folder| !folder.exists());
        let mut folders: Vec<PathBuf> = missing.map(PathBuf::from).collect();
        folders.reverse();
        folders
    }

    fn record_path(&self, tool: Tool) -> PathBuf {
        self.folder.join(format!("{}.json", tool.name()))
    }
}
