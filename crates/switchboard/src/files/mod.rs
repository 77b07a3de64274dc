//! Reading, listing and searching files, for the embedded server and for an agent's tools.
//!
//! | where | what |
//! |---|---|
//! | this file | [`FileError`], and `Folder`: a folder that no path leads out of |
//! | `open` | opens regular files only, without waiting; tells text from binary |
//! | `lines` | reads a range of lines within limits; a line as text |
//! | `glob` | patterns for paths |
//! | `walk` | lists files with git's ignore rules, without places that contain secrets |
//! | `grep` | searches files for a regular expression |
//!
//! Every function is bounded and stops soon after it is cancelled. Arguments, output formats and texts belong to the
//! tools; so does the decision which files may be read, except for `Folder`.

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

/// Why a file cannot be read, listed or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is not in the folder that paths are confined to.
    #[error("outside the folder")]
    Outside,
    /// It is a folder where a file is required.
    #[error("a folder")]
    Folder,
    /// It is a device, a pipe or a socket.
    #[error("a device, pipe or socket")]
    Special,
    /// It has more than this many bytes.
    #[error("larger than {0} bytes")]
    TooLarge(u64),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ))
    }
}

/// A folder that no path leads out of: a path is checked as written first, then where its symbolic links lead, and
/// the file is opened so that neither can change in between.
pub(crate) struct Folder {
    /// Without symbolic links.
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

    /// Where a path leads, if that is within the folder.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        let wanted = Path::new(path);
        let wanted = wanted.strip_prefix(&self.path).unwrap_or(wanted);
        // As written first, so that nothing can be learned of what exists elsewhere.
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
