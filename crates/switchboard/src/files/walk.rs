//! Lists the files of a folder by git's ignore rules, without secret paths.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};

use super::FileError;
use crate::permissions::SecretPlaces;
use crate::service::Cancellation;

/// The maximum nesting of folders.
const MAX_DEPTH: usize = 128;

/// Selects the files to list.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The folder whose ignore files apply. May also be a file.
    pub root: &'a Path,
    /// Lists only this file or folder within it, by its full path.
    pub under: Option<&'a Path>,
    /// The ignore files that apply.
    pub rules: IgnoreRules,
    /// Whether to sort by modification time, newest first, instead of by path.
    pub newest_first: bool,
    /// The maximum number of files visited.
    pub max_files: usize,
    /// The paths to skip.
    pub secrets: &'a SecretPlaces,
}

/// The ignore files that apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreRules {
    /// Those within the folder, whether it is in a repository or not. Files outside have no effect.
    OfFolder,
    /// Those of the enclosing repository, if any.
    OfRepository,
}

/// The files that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Full paths, starting with the root.
    pub paths: Vec<PathBuf>,
    /// The number of files skipped as secret.
    pub passed_over: usize,
    /// Whether the limit of visited files was reached.
    pub is_partial: bool,
}

impl Walk<'_> {
    /// Lists the regular files that are not ignored and that `keep` accepts by their paths relative to the root. Does
    /// not follow symbolic links, and skips `.git` and unreadable files. A file given as the root is listed even if it
    /// is ignored.
    pub fn list(
        &self,
        cancellation: &Cancellation,
        mut keep: impl FnMut(&Path) -> bool,
    ) -> Result<Listing, FileError> {
        let start = self.under.unwrap_or(self.root);
        let real = start.canonicalize().unwrap_or_else(|_| start.to_owned());
        let mut listing = Listing::default();
        let mut is_wanted = |path: &Path| {
            if !keep(path.strip_prefix(self.root).unwrap_or(path)) {
                return false;
            }
            let is_secret = match path.strip_prefix(start) {
                Ok(inner) if !inner.as_os_str().is_empty() => {
                    self.secrets.skips(&real.join(inner), &real)
                }
                _ => self.secrets.skips(&real, &real),
            };
            listing.passed_over += usize::from(is_secret);
            !is_secret
        };
        let metadata = start.metadata()?;
        if metadata.is_file() {
            if is_wanted(start) {
                listing.paths.push(start.to_owned());
            }
            return Ok(listing);
        }
        if !metadata.is_dir() {
            return Err(FileError::Special);
        }
        let mut found = Vec::new();
        let is_whole = self.visit(cancellation, |entry| {
            if is_wanted(entry.path()) {
                let metadata = self.newest_first.then(|| entry.metadata().ok()).flatten();
                let modified = metadata.and_then(|metadata| metadata.modified().ok());
                let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((Reverse(modified), entry.path().to_owned()));
            }
        })?;
        found.sort_unstable();
        listing.is_partial = !is_whole;
        listing.paths = found.into_iter().map(|(_, path)| path).collect();
        Ok(listing)
    }

    /// Visits files in no particular order. Returns whether all were visited.
    fn visit(
        &self,
        cancellation: &Cancellation,
        mut visit: impl FnMut(&DirEntry),
    ) -> Result<bool, FileError> {
        let under = self.under.map(Path::to_owned);
        let is_on_the_way = move |entry: &DirEntry| {
            let path = entry.path();
            let leads_to = |under: &Path| path.starts_with(under) || under.starts_with(path);
            under.as_deref().is_none_or(leads_to) && entry.file_name() != ".git"
        };
        let of_repository = self.rules == IgnoreRules::OfRepository;
        let entries = WalkBuilder::new(self.root)
            .hidden(false)
            .parents(of_repository)
            .require_git(of_repository)
            // Depends on the environment of the process.
            .git_global(false)
            .max_depth(Some(MAX_DEPTH))
            .filter_entry(is_on_the_way)
            .build();
        let mut seen = 0_usize;
        for entry in entries.flatten() {
            if cancellation.is_cancelled() {
                return Err(FileError::Cancelled);
            }
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            seen += 1;
            if seen > self.max_files {
                return Ok(false);
            }
            visit(&entry);
        }
        Ok(true)
    }
}
