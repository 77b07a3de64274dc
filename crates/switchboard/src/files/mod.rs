//! Reads, lists and searches files, for the embedded server and for the agent's tools.
//!
//! | module | content |
//! |---|---|
//! | this file | [`FileError`], and `Folder`: confines paths to a folder |
//! | `open` | opens regular files only, without blocking; detects binary files |
//! | `lines` | reads a range of lines within limits |
//! | `glob` | glob patterns for paths |
//! | `walk` | lists files by git's ignore rules, without secret paths |
//! | `grep` | searches files for a regular expression |
//!
//! Every function is bounded and stops soon after it is cancelled. The tools define arguments and output, and decide
//! which files may be read, except for `Folder`.

mod glob;
mod grep;
mod lines;
mod open;
mod walk;

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

pub use glob::{filter, pattern};
pub use grep::{Grep, GrepOptions};
pub use lines::{Line, LineRange, LineText, ReadEnd, read_lines};
pub use open::{beginning, check_regular, is_binary, open_regular, read_whole};
pub use walk::{IgnoreRules, Listing, Walk};

/// The reason a file cannot be read, listed or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Outside the folder that paths are confined to.
    #[error("outside the folder")]
    Outside,
    /// A folder instead of a file.
    #[error("a folder")]
    Folder,
    /// A device, pipe or socket.
    #[error("a device, pipe or socket")]
    Special,
    /// Larger than this many bytes.
    #[error("larger than {0} bytes")]
    TooLarge(u64),
    /// Cancelled by the caller.
    #[error("cancelled")]
    Cancelled,
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ))
    }
}

/// Confines paths to a folder: a path is checked lexically, then after resolving symbolic links, and the file is opened
/// so that neither can change in between.
pub(crate) struct Folder {
    /// The path, with symbolic links resolved.
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.canonicalize()?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file.
    pub(crate) fn open(&self, path: &str) -> Result<(File, Metadata), FileError> {
        let real = self.resolve(path)?;
        let relative = real.strip_prefix(&self.path).unwrap_or(&real);
        open::checked(&real, || open::open_within(&self.path, relative))
    }

    /// Resolves a path, if it lies within the folder.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        let wanted = Path::new(path);
        let wanted = wanted.strip_prefix(&self.path).unwrap_or(wanted);
        // Lexically first, so that callers cannot probe for files elsewhere.
        let mut depth = 0_usize;
        for component in wanted.components() {
            depth = match component {
                Component::Normal(_) => depth + 1,
                Component::CurDir => depth,
                Component::ParentDir => depth.checked_sub(1).ok_or(FileError::Outside)?,
                Component::RootDir | Component::Prefix(_) => return Err(FileError::Outside),
            };
        }
        let real = self.path.join(wanted).canonicalize()?;
        if real.starts_with(&self.path) {
            Ok(real)
        } else {
            Err(FileError::Outside)
        }
    }
}
