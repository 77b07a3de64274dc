//! Private files: small files in one folder that only the current user can access.
//!
//! Anything other than a regular file of this user without access for others is rejected, and never followed, repaired
//! or replaced silently. Writes are atomic: a reader or a crash sees the old content or the new.

// cargo-mutants follows `path`, but not `cfg_attr`. Its tests run on Unix, so only the module for Unix is to be found.
#[cfg(unix)]
#[path = "unix.rs"]
mod platform;
#[cfg(not(unix))]
#[cfg_attr(not(unix), path = "other.rs")]
mod platform;

use std::io;
use std::path::PathBuf;

pub(super) use platform::PrivateFolder;

#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub(super) struct FileError {
    pub(super) path: PathBuf,
    pub(super) problem: FileProblem,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FileProblem {
    #[error("is not a regular file or folder, or is a symlink")]
    Kind,
    #[cfg(unix)]
    #[error("belongs to another user")]
    Owner,
    #[cfg(unix)]
    #[error("can be read or written by others (mode {0:03o})")]
    Mode(u32),
    #[error("is too large for a login")]
    TooLarge,
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl FileError {
    pub(super) fn hint(&self) -> String {
        let path = self.path.display();
        match &self.problem {
            FileProblem::Kind => format!("check what {path} is, and move it away"),
            #[cfg(unix)]
            FileProblem::Owner => format!("find out who created {path}, and move it away"),
            #[cfg(unix)]
            FileProblem::Mode(_) => {
                format!("if no one else has modified it: chmod go-rwx '{path}'")
            }
            FileProblem::TooLarge => format!("move {path} away and log in again"),
            FileProblem::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                "free space on the disk".to_owned()
            }
            FileProblem::Io(_) => format!("make {path} readable and writable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_a_file_names_the_remedy() {
        let hint = |problem: FileProblem| {
            let path = PathBuf::from("/state/logins/key");
            FileError { path, problem }.hint()
        };
        let io = |kind: io::ErrorKind| FileProblem::Io(kind.into());
        for (problem, expected) in [
            (io(io::ErrorKind::StorageFull), "free space on the disk"),
            (
                io(io::ErrorKind::PermissionDenied),
                "make /state/logins/key readable and writable",
            ),
            (
                FileProblem::TooLarge,
                "move /state/logins/key away and log in again",
            ),
            (
                FileProblem::Kind,
                "check what /state/logins/key is, and move it away",
            ),
        ] {
            let described = problem.to_string();
            assert_eq!(hint(problem), expected, "{described}");
        }
    }
}
