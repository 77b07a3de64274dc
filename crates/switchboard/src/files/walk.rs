//! Listing the files of a folder with git's ignore rules, without places that contain secrets.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};

use super::FileError;
use crate::permissions::SecretPlaces;
use crate::service::Cancellation;

/// How deep folders may lie within one another.
const MAX_DEPTH: usize = 128;

/// Which files to list.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The folder whose ignore files count. It may also be a file.
    pub root: &'a Path,
    /// A file or folder within it, by its whole path: nothing else is listed.
    pub under: Option<&'a Path>,
    /// Which ignore files count.
    pub rules: IgnoreRules,
    /// Whether files that were changed last come first; by path otherwise.
    pub newest_first: bool,
    /// How many files are looked at.
    pub max_files: usize,
    /// What is left out.
    pub secrets: &'a SecretPlaces,
}

/// Which ignore files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreRules {
    /// Those within the folder, whether it is in a repository or not. What lies outside changes nothing.
    OfFolder,
    /// Those of the repository the folder is in, if it is in one.
    OfRepository,
}

/// The files that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Whole paths, which begin as the root does.
    pub paths: Vec<PathBuf>,
    /// How many more are left out because they are in places that contain secrets.
    pub passed_over: usize,
    /// Whether there are more files than may be looked at.
    pub is_partial: bool,
}

impl Walk<'_> {
    /// Lists the regular files that are not ignored and that `keep` accepts by their paths from the root. Symbolic links
    /// are not followed, the folder of git itself is left out, and so is what cannot be read. A file that is named
    /// outright is listed even if it is ignored.
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

    /// Visits files in no particular order; returns whether these are all.
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
            // This depends on the environment of the process.
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
