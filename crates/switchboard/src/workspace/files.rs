//! The folder the embedded server is confined to: which paths lie within it, and what may be read there.
//!
//! Owns every access to the file system. A path is judged as written first, then where its symbolic links lead, and
//! the file is opened so that neither can change in between.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use url::Url;

use super::open::open_within;
use crate::find::{self, IgnoreRules, Walk, Walked};
use crate::permissions::SecretPlaces;
use crate::service::Cancellation;

/// The largest file that is read whole. Whatever JSON makes of its bytes, it fits into one message of 16 MiB.
pub(super) const MAX_WHOLE: u64 = 2 * 1024 * 1024;

/// How many files are looked at in one go.
const MAX_FILES: usize = 50_000;

/// A file that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {kind}")]
#[non_exhaustive]
pub(super) struct FileError {
    pub(super) path: String,
    pub(super) kind: FileErrorKind,
}

/// Why a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileErrorKind {
    #[error("no such file in the workspace")]
    NotFound,
    #[error("outside the workspace; only files within it can be read")]
    Outside,
    #[error("a folder; name a file, or use glob to list what is in it")]
    Folder,
    #[error("not a regular file")]
    Special,
    #[error("a binary file; read it as a resource to get its bytes")]
    Binary,
    #[error("larger than {0} bytes; use grep or read_file with offset and limit")]
    TooLarge(u64),
    #[error("{0}")]
    Invalid(String),
    #[error("cancelled")]
    Cancelled,
    #[error("{0}")]
    Io(io::Error),
}

impl FileErrorKind {
    pub(super) fn at(self, path: impl Into<String>) -> FileError {
        FileError {
            path: path.into(),
            kind: self,
        }
    }
}

/// The folder, without symbolic links on the way to it.
pub(super) struct Root {
    path: PathBuf,
    uri: Url,
    /// What no list and no search shows.
    pub(super) secrets: SecretPlaces,
}

impl Root {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.canonicalize()?;
        let uri = Url::from_directory_path(&path)
            .map_err(|()| io::Error::other("the folder has no file: URI"))?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            path,
            uri,
            secrets: SecretPlaces::default(),
        })
    }

    /// The URI of a path within the folder.
    pub(super) fn uri_of(&self, path: &str) -> String {
        match Url::from_file_path(self.path.join(path)) {
            Ok(uri) if !path.is_empty() => uri.into(),
            _ => self.uri.to_string(),
        }
    }

    /// The path a `file:` URI stands for, relative to the folder where it lies within it.
    pub(super) fn path_of(&self, uri: &str) -> Option<String> {
        let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
        let path = uri.to_file_path().ok()?;
        let path = path.strip_prefix(&self.path).unwrap_or(&path);
        path.to_str().map(str::to_owned)
    }

    /// Opens a regular file.
    pub(super) fn open(&self, path: &str) -> Result<File, FileError> {
        let fail = |kind: FileErrorKind| kind.at(path);
        let real = self.resolve(path)?;
        let relative = real.strip_prefix(&self.path).unwrap_or(&real);
        // Looked at before it is opened as well: opening a device can do something.
        check_regular(&real.metadata().map_err(|error| fail(io_kind(error)))?).map_err(fail)?;
        let file = open_within(&self.path, relative).map_err(|error| fail(io_kind(error)))?;
        check_regular(&file.metadata().map_err(|error| fail(io_kind(error)))?).map_err(fail)?;
        Ok(file)
    }

    /// Reads a file whole, up to [`MAX_WHOLE`].
    pub(super) fn read(
        &self,
        path: &str,
        cancellation: &Cancellation,
    ) -> Result<Vec<u8>, FileError> {
        let file = self.open(path)?;
        if cancellation.is_cancelled() {
            return Err(FileErrorKind::Cancelled.at(path));
        }
        let mut bytes = Vec::new();
        // One byte more than allowed tells a file that is too large, also one that is just growing.
        let read = file.take(MAX_WHOLE + 1).read_to_end(&mut bytes);
        read.map_err(|error| io_kind(error).at(path))?;
        if bytes.len() as u64 > MAX_WHOLE {
            return Err(FileErrorKind::TooLarge(MAX_WHOLE).at(path));
        }
        Ok(bytes)
    }

    /// The files that git does not ignore and `keep` keeps, sorted, as paths relative to the folder with `/` between
    /// their parts; and whether these are all. Symbolic links are not followed, and names that are no text left out.
    pub(super) fn files(
        &self,
        under: Option<&str>,
        cancellation: &Cancellation,
        mut keep: impl FnMut(&str) -> bool,
    ) -> Result<(Vec<String>, bool), FileError> {
        let under = self.resolve(under.unwrap_or_default())?;
        if under.is_file() {
            // Named outright, so it counts even if git ignores it.
            let named = self.relative(&under).filter(|path| keep(path));
            return Ok((named.into_iter().collect(), true));
        }
        let mut files = Vec::new();
        let walk = Walk {
            root: &self.path,
            under: Some(&under),
            // Which files there are is not to depend on what lies outside the folder.
            rules: IgnoreRules::OfFolder,
            max_files: MAX_FILES,
        };
        let walked = find::walk(&walk, cancellation, |entry| {
            let path = entry.path();
            if !self.secrets.skips(path, &under) {
                files.extend(self.relative(path).filter(|path| keep(path)));
            }
        });
        if walked == Walked::Cancelled {
            return Err(FileErrorKind::Cancelled.at(""));
        }
        files.sort_unstable();
        Ok((files, walked == Walked::Whole))
    }

    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(&self.path).ok()?.to_str()?;
        Some(path.replace(std::path::MAIN_SEPARATOR, "/"))
    }

    /// Where a path leads, if that is within the folder.
    fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        let wanted = Path::new(path);
        let wanted = wanted.strip_prefix(&self.path).unwrap_or(wanted);
        // Judged as written first, so that nothing can be learned of what exists elsewhere.
        let mut depth = 0_usize;
        for component in wanted.components() {
            let stays = match component {
                Component::Normal(_) => {
                    depth += 1;
                    true
                }
                Component::CurDir => true,
                Component::ParentDir => {
                    let up = depth.checked_sub(1);
                    depth = up.unwrap_or_default();
                    up.is_some()
                }
                Component::RootDir | Component::Prefix(_) => false,
            };
            if !stays {
                return Err(FileErrorKind::Outside.at(path));
            }
        }
        let real = self.path.join(wanted).canonicalize();
        let real = real.map_err(|error| io_kind(error).at(path))?;
        if real.starts_with(&self.path) {
            Ok(real)
        } else {
            Err(FileErrorKind::Outside.at(path))
        }
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(formatter)
    }
}

fn check_regular(metadata: &std::fs::Metadata) -> Result<(), FileErrorKind> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(FileErrorKind::Folder)
    } else {
        Err(FileErrorKind::Special)
    }
}

pub(super) fn io_kind(error: io::Error) -> FileErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileErrorKind::NotFound,
        _ => FileErrorKind::Io(error),
    }
}
