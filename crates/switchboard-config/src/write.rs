//! Atomic, locked updates of files.
//!
//! An [`Update`] takes a lock, reads the file, calls the caller's change, writes the new text to a temporary file and
//! renames it into place. Until then the old file is untouched, so an error or a crash loses nothing. The lock is
//! advisory and only coordinates our own processes; to detect changes by other editors, the content is compared again
//! right before the rename.
//!
//! Lock files are in our own folder, not next to the file, so that repositories stay clean. They are never deleted: a
//! lock file that is deleted and recreated can be locked twice.
//!
//! A replaced file is a new inode: hard links and extended attributes do not follow. Independent of formats: see
//! [`crate::edit`].

#[cfg_attr(unix, path = "write/unix.rs")]
#[cfg_attr(not(unix), path = "write/other.rs")]
mod platform;

mod new_file;

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use thiserror::Error;

use new_file::{DRAFT_PREFIX, DRAFT_SUFFIX};

pub use new_file::{create_private, create_private_folder, draft};

/// Default time to wait for another update.
pub(crate) const DEFAULT_WAIT: Duration = Duration::from_secs(10);

/// Same limit of chained symlinks as Linux.
const MAXIMUM_LINKS: usize = 40;

/// Permissions of a file that an update creates. Existing files keep theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Owner only (`0600`): files of the user and of the state folder, which may contain secrets.
    Private,
    /// Everyone, as far as the umask allows (`0644`): files of a project.
    Shared,
}

/// Result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The text did not change.
    Unchanged,
    /// The file was created.
    Created,
    /// The file has a new text.
    Updated,
}

/// A pending update of one file.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    path: &'a Path,
    lock_directory: &'a Path,
    access: Access,
    wait: Duration,
}

impl<'a> Update<'a> {
    /// Updates the file at `path`, or the target if it is a symlink.
    pub fn new(path: &'a Path, lock_directory: &'a Path, access: Access) -> Self {
        Self {
            path,
            lock_directory,
            access,
            wait: DEFAULT_WAIT,
        }
    }

    /// Sets the maximum time to wait for another update.
    #[must_use]
    pub fn waiting(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Calls `change` with the text (`None` if the file does not exist) and writes what it returns, if anything.
    pub fn run<E: Error + 'static>(
        &self,
        change: impl FnOnce(Option<&str>) -> Result<Option<String>, E>,
    ) -> Result<Outcome, WriteError<E>> {
        self.attempt(change).map_err(|kind| WriteError {
            path: self.path.to_owned(),
            kind,
        })
    }

    /// Deletes the file if it still has this text.
    pub fn remove(&self, expected: &str) -> Result<(), WriteError<Infallible>> {
        let attempt = || {
            let target = follow_links(self.path)?;
            let _lock = self.lock(&target)?;
            if read(&target)?.as_deref() != Some(expected) {
                return Err(WriteErrorKind::Changed);
            }
            let folder = folder_of(&target);
            let failed = |source: io::Error| WriteErrorKind::Write {
                folder: folder.to_owned(),
                source,
            };
            fs::remove_file(&target).map_err(failed)?;
            platform::sync_folder(folder).map_err(failed)
        };
        attempt().map_err(|kind| WriteError {
            path: self.path.to_owned(),
            kind,
        })
    }

    fn attempt<E: Error + 'static>(
        &self,
        change: impl FnOnce(Option<&str>) -> Result<Option<String>, E>,
    ) -> Result<Outcome, WriteErrorKind<E>> {
        let target = follow_links(self.path)?;
        let _lock = self.lock(&target)?;
        let before = read(&target)?;
        let after = change(before.as_deref()).map_err(WriteErrorKind::Change)?;
        match (before, after) {
            (_, None) => Ok(Outcome::Unchanged),
            (Some(before), Some(after)) if before == after => Ok(Outcome::Unchanged),
            (before, Some(after)) => self.replace(&target, before.as_deref(), &after),
        }
    }

    /// Locks a file; dropping the handle releases the lock.
    fn lock<E: Error + 'static>(&self, target: &Path) -> Result<File, WriteErrorKind<E>> {
        let path = self.lock_directory.join(lock_name(target));
        let failed = |source: io::Error| WriteErrorKind::Lock {
            lock: path.clone(),
            source,
        };
        create_private_folder(self.lock_directory).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = platform::private(&mut options)
            .open(&path)
            .map_err(failed)?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let left = self.wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(WriteErrorKind::Busy {
                    lock: path.clone(),
                    waited: self.wait,
                });
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn replace<E: Error + 'static>(
        &self,
        target: &Path,
        before: Option<&str>,
        after: &str,
    ) -> Result<Outcome, WriteErrorKind<E>> {
        let folder = folder_of(target);
        let failed = |source: io::Error| WriteErrorKind::Write {
            folder: folder.to_owned(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut file = draft(folder, DRAFT_PREFIX, DRAFT_SUFFIX, self.access).map_err(failed)?;
        if before.is_some() {
            let permissions = fs::metadata(target).map_err(failed)?.permissions();
            file.as_file()
                .set_permissions(permissions)
                .map_err(failed)?;
        }
        file.write_all(after.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        // A program that does not use our lock may have saved the file meanwhile.
        if read(target)?.as_deref() != before {
            return Err(WriteErrorKind::Changed);
        }
        let outcome = if before.is_some() {
            file.persist(target).map_err(|error| failed(error.error))?;
            Outcome::Updated
        } else {
            match file.persist_noclobber(target) {
                Ok(_) => Outcome::Created,
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                    return Err(WriteErrorKind::Changed);
                }
                Err(error) => return Err(failed(error.error)),
            }
        };
        platform::sync_folder(folder).map_err(failed)?;
        Ok(outcome)
    }
}

/// A failed update, or one that may not survive a power failure (see the kind).
#[derive(Debug, Error)]
#[error("cannot update {}: {kind}", path.display())]
#[non_exhaustive]
pub struct WriteError<E: Error + 'static> {
    /// Path as given.
    pub path: PathBuf,
    /// The cause.
    pub kind: WriteErrorKind<E>,
}

impl<E: Error + 'static> WriteError<E> {
    /// Suggested fix; `None` for errors of the change itself, which the caller explains.
    pub fn hint(&self) -> Option<String> {
        Some(match &self.kind {
            WriteErrorKind::Change(_) => return None,
            WriteErrorKind::Busy { .. } => {
                "wait for the other update to finish, or end the process that hangs".to_owned()
            }
            WriteErrorKind::Lock { lock, .. } => {
                format!("make {} writable", folder_of(lock).display())
            }
            WriteErrorKind::Links => "fix the link".to_owned(),
            WriteErrorKind::NotAFile => "remove what stands there, or name another file".to_owned(),
            WriteErrorKind::NotText { .. } => "save the file as UTF-8".to_owned(),
            WriteErrorKind::Read(_) => "make the file readable".to_owned(),
            WriteErrorKind::Changed => "look at the file, then repeat the update".to_owned(),
            WriteErrorKind::Write { folder, source } => match source.kind() {
                ErrorKind::StorageFull => format!("free space on the disk of {}", folder.display()),
                _ => format!(
                    "make {} a folder that you may write to, or name a file elsewhere",
                    folder.display()
                ),
            },
        })
    }
}

/// Cause of a [`WriteError`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteErrorKind<E: Error + 'static> {
    /// The caller's change failed.
    #[error("{0}")]
    Change(#[source] E),
    /// Another update held the lock until the timeout.
    #[error("another update is in progress; waited {} s for {}", waited.as_secs_f32(), lock.display())]
    Busy {
        /// Path of the lock file.
        lock: PathBuf,
        /// Time spent waiting.
        waited: Duration,
    },
    /// The lock could not be acquired.
    #[error("cannot lock {}: {source}", lock.display())]
    Lock {
        /// Path of the lock file.
        lock: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The path is a loop of symlinks.
    #[error("it is a loop of symlinks")]
    Links,
    /// The path is a folder, a device or the like.
    #[error("it is not a file")]
    NotAFile,
    /// The file is not UTF-8.
    #[error("it is not UTF-8 text; the first bad byte is number {offset}")]
    NotText {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The file could not be read.
    #[error("cannot read it: {0}")]
    Read(#[source] io::Error),
    /// A program that does not use our lock changed the file during the update.
    #[error("it was changed by another program at the same time")]
    Changed,
    /// The new file could not be written or renamed.
    #[error("cannot write to {}: {source}", folder.display())]
    Write {
        /// Folder of the file.
        folder: PathBuf,
        /// I/O error.
        source: io::Error,
    },
}

/// The file that an update of this path writes: symlinks are resolved, also those to a file that does not exist. `None`
/// for a loop of symlinks.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    follow_links::<Infallible>(path).ok()
}

/// Resolves symlinks, also of a file that does not exist, to one canonical name.
fn follow_links<E: Error + 'static>(path: &Path) -> Result<PathBuf, WriteErrorKind<E>> {
    let mut path = std::path::absolute(path).map_err(WriteErrorKind::Read)?;
    for _ in 0..MAXIMUM_LINKS {
        match fs::read_link(&path) {
            // A relative link starts in its own folder.
            Ok(link) => path = folder_of(&path).join(link),
            Err(_) => return Ok(canonical(&path)),
        }
    }
    Err(WriteErrorKind::Links)
}

/// Canonicalizes the existing part of a path.
fn canonical(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    path.to_owned()
}

fn read<E: Error + 'static>(target: &Path) -> Result<Option<String>, WriteErrorKind<E>> {
    match fs::metadata(target) {
        Ok(metadata) if !metadata.is_file() => return Err(WriteErrorKind::NotAFile),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    let bytes = fs::read(target).map_err(WriteErrorKind::Read)?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        WriteErrorKind::NotText { offset }
    })
}

fn lock_name(target: &Path) -> String {
    let digest = Sha256::digest(target.as_os_str().as_encoded_bytes());
    let mut name = String::with_capacity(40);
    for byte in digest.iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    name.push_str(".lock");
    name
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
