//! Ensures that a change is applied to the same file contents that the user approved.
//!
//! Stores a content hash for each previewed change. The change is applied only if the file still has this hash.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use switchboard::permissions::Preview;

/// Maximum number of pending previews; the oldest are evicted.
const MOST_SHOWN: usize = 64;
/// Larger files are compared by size and modification time.
const MAX_HASHED: u64 = 64 * 1024 * 1024;

/// Pending previews, by call arguments.
#[derive(Debug, Default)]
pub(super) struct Previewed(Mutex<Vec<(Box<str>, FileState)>>);

/// State of a file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileState {
    Absent,
    Contents([u8; 32]),
    /// Cannot be hashed. Holds the error, or size and time of a large file.
    Unreadable(String),
}

impl FileState {
    pub(super) fn of(path: &Path) -> Self {
        match fs::symlink_metadata(path).and_then(|_| fs::metadata(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Err(error) => Self::Unreadable(error.to_string()),
            Ok(metadata) if !metadata.is_file() => Self::Unreadable("not a file".to_owned()),
            Ok(metadata) if metadata.len() > MAX_HASHED => {
                Self::Unreadable(format!("{} {:?}", metadata.len(), metadata.modified().ok()))
            }
            Ok(_) => match fs::read(path) {
                Ok(contents) => Self::Contents(Sha256::digest(contents).into()),
                Err(error) => Self::Unreadable(error.to_string()),
            },
        }
    }
}

impl Previewed {
    /// Records the state of the file when a call with these arguments was previewed.
    pub(super) fn note(&self, arguments: &RawValue, state: FileState) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|(key, _)| **key != *arguments.get());
        if shown.len() >= MOST_SHOWN {
            shown.remove(0);
        }
        shown.push((arguments.get().into(), state));
    }

    /// Removes and returns the recorded state; `None` if the call was not previewed.
    pub(super) fn take(&self, arguments: &RawValue) -> Option<FileState> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = shown
            .iter()
            .position(|(key, _)| **key == *arguments.get())?;
        Some(shown.remove(index).1)
    }
}

/// Fails if the file has changed since the preview.
pub(super) fn unchanged(path: &Path, shown: Option<&FileState>) -> Result<(), String> {
    if shown.is_none_or(|shown| *shown == FileState::of(path)) {
        return Ok(());
    }
    Err("it has changed since the change was shown and approved; read it again, and propose the change anew".to_owned())
}

/// Preview with a diff. Line endings are hidden if they are CRLF in both versions.
pub(super) fn difference(
    title: String,
    name: &str,
    before: &str,
    after: &str,
    covers: &'static [&'static str],
) -> Preview {
    let has_carriage_returns = |text: &str| {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        ends > 0 && ends == memchr::memmem::find_iter(text.as_bytes(), "\r\n").count()
    };
    let plain = |text: &str| text.replace("\r\n", "\n");
    let text = if has_carriage_returns(before) && has_carriage_returns(after) {
        super::edit::whole_difference(name, &plain(before), &plain(after))
    } else {
        super::edit::whole_difference(name, before, after)
    };
    Preview {
        title,
        text,
        covers,
    }
}

pub(super) fn failing(name: &str, reason: &str) -> Preview {
    Preview {
        title: format!("{name} will not be changed"),
        text: reason.to_owned(),
        covers: &[],
    }
}
