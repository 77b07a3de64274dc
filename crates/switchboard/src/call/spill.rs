//! Files for what is too large for a model, or is not text: kept whole, readable by this user alone.
//!
//! One folder, mode 0700, with files of mode 0600 under names nobody can guess. Nothing is ever overwritten. [`SpillFolder::clean`]
//! keeps the folder within bounds; it touches only files this module has made.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use switchboard_config::write::{self, Access};

/// What the names of all our files begin with.
const PREFIX: &str = "output-";

/// A folder for large outputs. Nothing is created before something is written.
#[derive(Debug, Clone)]
pub struct SpillFolder {
    path: PathBuf,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spilled {
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: usize,
}

/// An output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write into {}: {source}", .folder.display())]
#[non_exhaustive]
pub struct SpillError {
    /// The folder.
    pub folder: PathBuf,
    /// What happened.
    pub source: io::Error,
}

/// How much the folder may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillLimits {
    /// Files older than this go.
    pub max_age: Duration,
    /// The oldest files go until no more than this is left.
    pub max_bytes: u64,
}

impl Default for SpillLimits {
    /// A week, 512 MiB.
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(7 * 24 * 60 * 60),
            max_bytes: 512 * 1024 * 1024,
        }
    }
}

impl SpillFolder {
    /// The folder at that place.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its place.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file. `label` says for people what it is (server and tool), `extension` how to open it.
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

    /// Removes what is too old, then the oldest until the rest is small enough. Returns how many files went.
    ///
    /// `now` is the present time. What cannot be removed stays, and is tried again the next time.
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
        // It is removed again if writing fails.
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
            // Links are not followed: what they point to is not ours.
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

/// Letters, digits and dashes of a text that comes from elsewhere, so that it can stand in a file's name.
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
            "it is not a folder of its own",
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
