//! The folder that the embedded server is confined to: converts paths, URIs and errors.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use url::Url;

use crate::files::{FileError, Folder, IgnoreRules, Walk, read_whole};
use crate::permissions::SecretPlaces;
use crate::service::Cancellation;

/// The maximum size of a file read at once. Even if JSON escapes every byte, it fits into one 16 MiB message.
pub(super) const MAX_WHOLE: u64 = 2 * 1024 * 1024;

/// The maximum number of files visited per request.
const MAX_FILES: usize = 50_000;

/// The reason a request failed, with the path or argument.
#[derive(Debug, thiserror::Error)]
#[error("{at}: {reason}")]
pub(super) struct WorkspaceError {
    at: String,
    reason: String,
    /// Whether the file does not exist.
    pub(super) is_missing: bool,
}

impl WorkspaceError {
    pub(super) fn new(at: &str, reason: impl Into<String>) -> Self {
        Self {
            at: at.to_owned(),
            reason: reason.into(),
            is_missing: false,
        }
    }

    pub(super) fn of(path: &str, error: &FileError) -> Self {
        let mut failed = match error {
            FileError::Outside => Self::new(
                path,
                "outside the workspace; only files within it can be read",
            ),
            FileError::Folder => Self::new(
                path,
                "a folder; name a file, or use glob to list what is in it",
            ),
            FileError::Special => Self::new(path, "not a regular file"),
            FileError::TooLarge(_) => Self::new(
                path,
                format!("{error}; use grep or read_file with offset and limit"),
            ),
            _ if error.is_missing() => Self::new(path, "no such file in the workspace"),
            _ => Self::new(path, error.to_string()),
        };
        failed.is_missing = error.is_missing() || matches!(error, FileError::Outside);
        failed
    }
}

pub(super) struct Root {
    folder: Folder,
    uri: Url,
    /// Paths that lists and searches omit.
    pub(super) secrets: SecretPlaces,
}

impl Root {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let folder = Folder::new(folder)?;
        let uri = Url::from_directory_path(folder.path())
            .map_err(|()| io::Error::other("the folder has no file: URI"))?;
        Ok(Self {
            folder,
            uri,
            secrets: SecretPlaces::default(),
        })
    }

    /// The URI of a path within the folder.
    pub(super) fn uri_of(&self, path: &str) -> String {
        match Url::from_file_path(self.folder.path().join(path)) {
            Ok(uri) if !path.is_empty() => uri.into(),
            _ => self.uri.to_string(),
        }
    }

    /// The path of a `file:` URI, relative to the folder if it lies within it.
    pub(super) fn path_of(&self, uri: &str) -> Option<String> {
        let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
        let path = uri.to_file_path().ok()?;
        let path = path.strip_prefix(self.folder.path()).unwrap_or(&path);
        path.to_str().map(str::to_owned)
    }

    /// Opens a regular file.
    pub(super) fn open(&self, path: &str) -> Result<File, WorkspaceError> {
        let opened = self.folder.open(path);
        let (file, _) = opened.map_err(|error| WorkspaceError::of(path, &error))?;
        Ok(file)
    }

    /// Reads a complete file, up to [`MAX_WHOLE`].
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, WorkspaceError> {
        read_whole(self.open(path)?, MAX_WHOLE).map_err(|error| WorkspaceError::of(path, &error))
    }

    /// The files that git does not ignore and `keep` accepts, sorted, as relative paths with `/` as separator; `true`
    /// if these are all. Names that are not UTF-8 are omitted.
    pub(super) fn files(
        &self,
        under: Option<&str>,
        cancellation: &Cancellation,
        mut keep: impl FnMut(&str) -> bool,
    ) -> Result<(Vec<String>, bool), WorkspaceError> {
        let named = under.unwrap_or_default();
        let fail = |error: FileError| WorkspaceError::of(named, &error);
        let under = self.folder.resolve(named).map_err(fail)?;
        let walk = Walk {
            root: self.folder.path(),
            under: Some(&under),
            // Files outside the folder must not affect the list.
            rules: IgnoreRules::OfFolder,
            newest_first: false,
            max_files: MAX_FILES,
            secrets: &self.secrets,
        };
        let listing = walk.list(cancellation, |path| {
            text(path).is_some_and(|path| keep(&path))
        });
        let listing = listing.map_err(fail)?;
        let paths = listing.paths.iter();
        let paths = paths.filter_map(|path| text(path.strip_prefix(self.folder.path()).ok()?));
        let mut paths: Vec<String> = paths.collect();
        // Sorted as text, like the pages of resources; `Path` compares component by component.
        paths.sort_unstable();
        Ok((paths, !listing.is_partial))
    }
}

/// Converts a relative path to text.
fn text(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    Some(path.replace(std::path::MAIN_SEPARATOR, "/"))
}

impl fmt::Debug for Root {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.folder.path().fmt(formatter)
    }
}
