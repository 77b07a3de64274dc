//! Spill files: results that are too large for a model, or not text, saved in full and readable only by this user.
//!
//! One folder of mode 0700 with files of mode 0600 and unguessable names. Files are never overwritten.
//! [`SpillFolder::clean`] limits the size of the folder and deletes only files that this module created.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use switchboard_config::write::{self, Access};

/// Prefix of all file names.
const PREFIX: &str = "output-";

/// Folder for large outputs, created on the first write.
#[derive(Debug, Clone)]
pub struct SpillFolder {
    path: PathBuf,
}

/// A spill file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spilled {
    /// Absolute or relative, as the folder's path is.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: usize,
}

/// Error of a write or a cleanup.
#[derive(Debug, thiserror::Error)]
#[error("cannot write into {}: {source}", .folder.display())]
#[non_exhaustive]
pub struct SpillError {
    /// Path of the spill folder.
    pub folder: PathBuf,
    /// Underlying I/O error.
    pub source: io::Error,
}

/// Limits of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillLimits {
    /// Files older than this are deleted.
    pub max_age: Duration,
    /// The oldest files are deleted until the total is at most this.
    pub max_bytes: u64,
}

impl Default for SpillLimits {
    /// One week, 512 MiB.
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(7 * 24 * 60 * 60),
            max_bytes: 512 * 1024 * 1024,
        }
    }
}

impl SpillFolder {
    /// Uses the folder at this path; does not create it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file. `label` (server and tool) and `extension` become part of its name.
    pub fn write(
        &self,
        label: &str,
        extension: &str,
        contents: &[u8],
    ) -> Result<Spilled, SpillError> {
        self.try_write(label, extension, contents)
            .map_err(|source| SpillError {
                folder: self.path.clone(),
                source,
            })
    }

    /// Deletes expired files, then the oldest until the rest fits the limit. Returns the number of deleted files.
    ///
    /// Files that cannot be deleted are retried on the next call.
    pub fn clean(&self, limits: SpillLimits, now: SystemTime) -> Result<usize, SpillError> {
        self.try_clean(limits, now).map_err(|source| SpillError {
            folder: self.path.clone(),
            source,
        })
    }

    fn try_write(&self, label: &str, extension: &str, contents: &[u8]) -> io::Result<Spilled> {
        private_folder(&self.path)?;
        let prefix = format!("{PREFIX}{}-", plain(label, 60));
        let suffix = format!(".{}", plain(extension, 12));
        // A draft is deleted if writing fails.
        let mut file = write::draft(&self.path, &prefix, &suffix, Access::Private)?;
        file.write_all(contents)?;
        let (_, path) = file.keep().map_err(|error| error.error)?;
        Ok(Spilled {
            path,
            bytes: contents.len(),
        })
    }

    fn try_clean(&self, limits: SpillLimits, now: SystemTime) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            // Symlinks are not followed: their targets are not ours.
            if let Ok(metadata) = entry.metadata()
                && is_ours
                && metadata.is_file()
            {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((modified, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| *size).sum();
        let mut removed = 0;
        for (modified, size, path) in files {
            let age = now.duration_since(modified).unwrap_or_default();
            if age <= limits.max_age && total <= limits.max_bytes {
                continue;
            }
            if fs::remove_file(path).is_ok() {
                total = total.saturating_sub(size);
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Replaces everything but ASCII letters and digits of an untrusted text by dashes, for a file name.
fn plain(text: &str, limit: usize) -> String {
    let plain: String = text
        .chars()
        .take(limit)
        .map(|character| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                '-'
            }
        })
        .collect();
    if plain.is_empty() {
        "x".to_owned()
    } else {
        plain
    }
}

#[cfg(unix)]
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    write::create_private_folder(path)?;
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is not a folder",
        ));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user",
        ));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> io::Result<()> {
    write::create_private_folder(path)
}
