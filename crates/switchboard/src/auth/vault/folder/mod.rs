//! Files that belong to one user alone.
//!
//! Owns the reading and writing of small files in one folder that nobody else may enter. What is not a plain file of this
//! user, readable by nobody else, is refused and never followed, repaired or replaced in silence. A file is put in place
//! whole: a reader or a crash sees the old one or the new one.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "other.rs")]
mod platform;

use std::io;
use std::path::PathBuf;

pub(super) use platform::PrivateFolder;

/// A file, or the folder, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub(super) struct FileError {
    pub(super) path: PathBuf,
    pub(super) problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileProblem {
    #[error("is not a plain file or folder, or is a link")]
    Kind,
    #[cfg(unix)]
    #[error("belongs to another user")]
    Owner,
    #[cfg(unix)]
    #[error("can be read or written by others (mode {0:03o})")]
    Mode(u32),
    #[error("is larger than any login")]
    TooLarge,
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl FileError {
    /// What to do about it.
    pub(super) fn hint(&self) -> String {
        let path = self.path.display();
        match &self.problem {
            FileProblem::Kind => format!("look at what {path} is, and move it away"),
            #[cfg(unix)]
            FileProblem::Owner => format!("find out who made {path}, and move it away"),
            #[cfg(unix)]
            FileProblem::Mode(_) => {
                format!("if nobody else has touched it: chmod go-rwx '{path}'")
            }
            FileProblem::TooLarge => format!("move {path} away and log in again"),
            FileProblem::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                "free space on the disk".to_owned()
            }
            FileProblem::Io(_) => format!("make {path} a place that you may read and write"),
        }
    }
}
