//! Changes of files by the built-in tools of a session: recorded, compared, and undone.
//!
//! Contents are kept with the session, so a change can be undone later, but only while the file is as the change
//! left it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use switchboard_store::{Expected, Key, Space, Store, StoreError, Write};

use crate::record;
use crate::session::SessionId;
use crate::tools::{Target, whole_difference};

/// One record per change, under `SESSION/NNNNNNNN`.
const CHANGES: Space = Space::new("session-changes");

/// Changes with more text, before and after, are listed without it.
const MAX_KEPT_BYTES: usize = 2 << 20;

/// A change of a file by a built-in tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Number in the session, from 1.
    pub number: usize,
    /// Path, relative if it is in the workspace.
    pub name: String,
    /// Unified diff; `None` if the contents were too large or not text.
    pub difference: Option<String>,
    /// Whether the file did not exist before.
    pub is_new: bool,
    /// Whether the change was undone.
    pub is_undone: bool,
}

/// Why a change was not undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// No change is left to undo.
    #[error("no change to undo")]
    Nothing,
    /// No change has this number.
    #[error("no change number {0}")]
    Unknown(usize),
    /// The change was undone before.
    #[error("change {0} is already undone")]
    Already(usize),
    /// The contents before the change were too large or not text.
    #[error("cannot undo the change of {0}: its earlier contents were not kept")]
    NotKept(String),
    /// The file is not as the change left it.
    #[error("{name} has changed since")]
    Changed {
        /// The file.
        name: String,
        /// A later change of the session that can be undone first.
        later: Option<usize>,
    },
    /// The file cannot be written.
    #[error("cannot write {name}: {reason}")]
    Unwritable {
        /// The file.
        name: String,
        /// Error of the file system.
        reason: String,
    },
    /// The store failed, after the file was restored.
    #[error("the file is restored, but that could not be recorded: {0}")]
    Unrecorded(String),
}

/// Contents of a file before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Before {
    Absent,
    Text(String),
    /// Not text, or too large.
    NotKept,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Change {
    path: PathBuf,
    name: String,
    before: Before,
    /// `None` if it was too large.
    after: Option<String>,
    #[serde(default)]
    is_undone: bool,
    /// Whether the store has it.
    #[serde(skip)]
    is_saved: bool,
}

/// The changes of a session and its sub-agents, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    all: Mutex<Vec<Change>>,
    /// Held from reading a file to writing it: sub-agents run side by side.
    writing: Mutex<()>,
}

impl Changes {
    pub(crate) async fn read(store: &dyn Store, session: &SessionId) -> Result<Self, StoreError> {
        let records = record::all_below(store, CHANGES, session).await?;
        let changes = records.into_iter().filter_map(|(_, value)| {
            let change: Change = serde_json::from_slice(&value).ok()?;
            Some(Change {
                is_saved: true,
                ..change
            })
        });
        Ok(Self {
            all: Mutex::new(changes.collect()),
            writing: Mutex::default(),
        })
    }

    pub(crate) async fn delete(store: &dyn Store, session: &SessionId) -> Result<(), StoreError> {
        for (key, _) in record::all_below(store, CHANGES, session).await? {
            store.remove(CHANGES, &key, Expected::Anything).await?;
        }
        Ok(())
    }

    /// Keeps other tools of the session from writing meanwhile.
    pub(crate) fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, path: &Path, name: &str, before: Before, after: &str) {
        let size = match &before {
            Before::Text(text) => text.len() + after.len(),
            Before::Absent | Before::NotKept => after.len(),
        };
        let is_kept = size <= MAX_KEPT_BYTES;
        self.lock().push(Change {
            path: path.to_owned(),
            name: name.to_owned(),
            before: if is_kept { before } else { Before::NotKept },
            after: is_kept.then(|| after.to_owned()),
            is_undone: false,
            is_saved: false,
        });
    }

    /// Writes the changes that the store does not have.
    pub(crate) async fn save(
        &self,
        store: &dyn Store,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let unsaved: Vec<(usize, Vec<u8>)> = {
            let mut all = self.lock();
            let unsaved = all.iter_mut().enumerate().filter(|(_, it)| !it.is_saved);
            let unsaved = unsaved.map(|(place, change)| {
                change.is_saved = true;
                (place, serde_json::to_vec(change).unwrap_or_default())
            });
            unsaved.collect()
        };
        for (place, value) in unsaved {
            let key = Key::new(format!("{session}/{place:08}"))?;
            store.put(CHANGES, &key, Write::new(value)).await?;
        }
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<FileChange> {
        let all = self.lock();
        let changes = (1..).zip(all.iter());
        changes
            .map(|(number, change)| change.shown(number))
            .collect()
    }

    /// Undoes a change: the given one, or the last that is not undone.
    pub(crate) fn undo(&self, number: Option<usize>) -> Result<FileChange, UndoError> {
        let _writing = self.writing();
        let mut all = self.lock();
        let last = || all.iter().rposition(|change| !change.is_undone);
        let number = number.or_else(|| Some(last()? + 1));
        let number = number.ok_or(UndoError::Nothing)?;
        let change = number.checked_sub(1).and_then(|place| all.get(place));
        let change = change.ok_or(UndoError::Unknown(number))?;
        if change.is_undone {
            return Err(UndoError::Already(number));
        }
        let (Before::Absent | Before::Text(_), Some(after)) = (&change.before, &change.after)
        else {
            return Err(UndoError::NotKept(change.name.clone()));
        };
        let is_current = fs::read(&change.path).is_ok_and(|current| current == after.as_bytes());
        if !is_current {
            let later = all.iter().enumerate().skip(number);
            let mut later = later.filter(|(_, it)| it.path == change.path && !it.is_undone);
            return Err(UndoError::Changed {
                name: change.name.clone(),
                later: later.next_back().map(|(place, _)| place + 1),
            });
        }
        change.restore().map_err(|reason| UndoError::Unwritable {
            name: change.name.clone(),
            reason,
        })?;
        let change = all.get_mut(number - 1).ok_or(UndoError::Unknown(number))?;
        change.is_undone = true;
        change.is_saved = false;
        Ok(change.shown(number))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    fn restore(&self) -> Result<(), String> {
        match &self.before {
            Before::Absent => fs::remove_file(&self.path).map_err(|error| error.to_string()),
            Before::Text(before) => {
                let target = Target::at(&self.path)?;
                let written = target.write(before.as_bytes());
                written.map(|_| ()).map_err(|error| error.to_string())
            }
            Before::NotKept => Err("its earlier contents were not kept".to_owned()),
        }
    }

    fn shown(&self, number: usize) -> FileChange {
        let before = match &self.before {
            Before::Absent => Some(""),
            Before::Text(text) => Some(text.as_str()),
            Before::NotKept => None,
        };
        let both = before.zip(self.after.as_deref());
        FileChange {
            number,
            name: self.name.clone(),
            difference: both.map(|(before, after)| whole_difference(&self.name, before, after)),
            is_new: self.before == Before::Absent,
            is_undone: self.is_undone,
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_store::MemoryStore;

    use super::*;

    /// Records a change as a tool does.
    fn change(changes: &Changes, path: &Path, before: Before, after: &str) {
        fs::write(path, after).unwrap();
        changes.record(path, "a.txt", before, after);
    }

    fn text(text: &str) -> Before {
        Before::Text(text.to_owned())
    }

    #[test]
    fn changes_are_undone_last_first_and_only_if_the_file_is_as_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.txt");
        let changes = Changes::default();
        assert_eq!(changes.undo(None), Err(UndoError::Nothing));
        change(&changes, &path, Before::Absent, "one\n");
        change(&changes, &path, text("one\n"), "two\n");
        assert_eq!(changes.undo(Some(3)), Err(UndoError::Unknown(3)));
        assert_eq!(changes.undo(Some(0)), Err(UndoError::Unknown(0)));
        let name = "a.txt".to_owned();
        let later = Some(2);
        assert_eq!(
            changes.undo(Some(1)),
            Err(UndoError::Changed { name, later })
        );
        assert!(changes.undo(None).unwrap().is_undone);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        assert_eq!(changes.undo(Some(2)), Err(UndoError::Already(2)));
        fs::write(&path, "mine").unwrap();
        let name = "a.txt".to_owned();
        let later = None;
        assert_eq!(changes.undo(None), Err(UndoError::Changed { name, later }));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::write(&path, "one\n").unwrap();
        assert!(changes.undo(None).unwrap().is_new);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn changes_survive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.txt");
        let (store, id) = (MemoryStore::new(), SessionId::parse("s").unwrap());
        let changes = Changes::default();
        change(&changes, &path, text("one\n"), "two\n");
        changes.record(
            &path,
            "big",
            Before::Absent,
            &"x".repeat(MAX_KEPT_BYTES + 1),
        );
        changes.save(&store, &id).await.unwrap();
        let later = Changes::read(&store, &id).await.unwrap();
        assert_eq!(later.list(), changes.list());
        let difference = later.list()[0].difference.clone().unwrap();
        assert!(difference.contains("-one\n+two\n"), "{difference}");
        assert_eq!(
            later.undo(Some(2)),
            Err(UndoError::NotKept("big".to_owned()))
        );
        later.undo(Some(1)).unwrap();
        later.save(&store, &id).await.unwrap();
        let last = Changes::read(&store, &id).await.unwrap();
        assert!(last.list()[0].is_undone);
        Changes::delete(&store, &id).await.unwrap();
        assert_eq!(Changes::read(&store, &id).await.unwrap().list(), []);
    }
}
