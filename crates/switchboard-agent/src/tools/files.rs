//! Shared by the file tools: path resolution, tracking of read files, and error texts.
//!
//! Permissions are checked before a tool runs, so paths must resolve here exactly as they do there: relative paths
//! start in the workspace, and ambiguous ones (`~`, `file:`) are rejected.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use switchboard_config::sort;

use switchboard::internal::files::{FileError, LineText, open_regular};

use super::{LocalContext, LocalOutput};

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.6;
/// Maximum number of compared names per folder.
const MAX_NAMES: usize = 10_000;
/// Maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

pub(super) fn resolve(text: &str, context: &LocalContext) -> Result<PathBuf, LocalOutput> {
    let problem = if text.is_empty() {
        "it is empty"
    } else if text.contains('\0') {
        "it contains a NUL character"
    } else if text.starts_with('~') {
        "`~` is not expanded; write the path in full"
    } else if text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("file:"))
    {
        "it is a URI; write a path"
    } else {
        return Ok(context.workspace.join(text));
    };
    Err(LocalOutput::error(format!(
        "{text:?} is not a path: {problem}"
    )))
}

/// Path for messages: relative if it is in the workspace.
pub(super) fn shown(path: &Path, workspace: &Path) -> String {
    let path = match path.strip_prefix(workspace) {
        Ok(inner) if inner.as_os_str().is_empty() => Path::new("."),
        Ok(inner) => inner,
        Err(_) => path,
    };
    path.display().to_string()
}

/// Opens a regular file for reading.
pub(super) fn open(path: &Path) -> Result<(File, Metadata), String> {
    open_regular(path).map_err(|error| match error {
        FileError::Io(error) => missing(path, &error),
        error => reason(&error),
    })
}

pub(super) fn reason(error: &FileError) -> String {
    match error {
        FileError::Folder => "it is a folder; use Glob to see what is in it".to_owned(),
        FileError::Special => "it is a device, pipe or socket, not a regular file".to_owned(),
        error => error.to_string(),
    }
}

/// A numbered line, with a note if it was cut.
pub(super) fn numbered(number: u64, mark: char, line: &LineText, length: usize) -> String {
    let note = if line.is_cut {
        format!(" [… line of {length} bytes cut]")
    } else {
        String::new()
    };
    format!("{number}{mark}{}{note}", line.text)
}

/// Explains why a file cannot be opened, and suggests similar names.
fn missing(path: &Path, error: &io::Error) -> String {
    let is_missing = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    if !is_missing {
        return error.to_string();
    }
    // The first missing component is the wrong one.
    let ancestors: Vec<&Path> = path.ancestors().collect();
    let absent = ancestors
        .iter()
        .rev()
        .find(|path| path.symlink_metadata().is_err());
    let Some(absent) = absent else {
        return "it is a broken symlink".to_owned();
    };
    let reason = if *absent == path {
        "no such file".to_owned()
    } else {
        format!("{} does not exist", absent.display())
    };
    let similar = absent.parent().zip(absent.file_name());
    let similar = similar.map(|(folder, name)| similar_names(folder, &name.to_string_lossy()));
    match similar {
        Some(names) if !names.is_empty() => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("{reason}; did you mean {}?", names.join(" or "))
        }
        _ => reason,
    }
}

fn similar_names(folder: &Path, name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut alike: Vec<(f64, String)> = entries
        .take(MAX_NAMES)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| {
            let alike = strsim::normalized_damerau_levenshtein(&wanted, &name.to_lowercase());
            (alike, name)
        })
        .filter(|(alike, _)| *alike >= ALIKE)
        .collect();
    sort::by(&mut alike, |left, right| {
        right
            .0
            .total_cmp(&left.0)
            .then_with(|| left.1.cmp(&right.1))
    });
    alike.truncate(MAX_SUGGESTIONS);
    alike.into_iter().map(|(_, name)| name).collect()
}

/// Files that the session has read or written, with their state at that time.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<PathBuf, Stamp>>);

/// Detects changes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and ctime.
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    Unread,
    /// Changed since it was read or written.
    Stale,
    Current,
}

impl Known {
    /// Records the current state of a file.
    pub(super) fn note(&self, path: &Path, metadata: &Metadata) {
        self.lock().insert(real(path), Stamp::of(metadata));
    }

    /// Compares a file with its recorded state.
    pub(super) fn of(&self, path: &Path, metadata: &Metadata) -> Knowledge {
        match self.lock().get(&real(path)) {
            None => Knowledge::Unread,
            Some(stamp) if *stamp == Stamp::of(metadata) => Knowledge::Current,
            Some(_) => Knowledge::Stale,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Stamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: (
                metadata.dev(),
                metadata.ino(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ),
        }
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
