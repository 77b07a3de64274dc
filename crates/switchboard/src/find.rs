//! Finding files: which there are in a folder as git sees it, and whose path matches a pattern.
//!
//! Owns the walk and the reading of patterns, for the embedded server and for the tools of an agent alike. Both are
//! bounded, and end soon after nobody waits for them. It must not decide which folders may be looked into.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use crate::service::Cancellation;

/// How deep folders may lie within one another.
const MAX_DEPTH: usize = 128;

/// Where and how to look for files.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The folder to begin in.
    pub root: &'a Path,
    /// A file or folder within it, by its whole path: nothing else is looked at.
    pub under: Option<&'a Path>,
    /// Whose word counts on what to leave out.
    pub rules: IgnoreRules,
    /// How many files are looked at.
    pub max_files: usize,
}

/// Whose word counts on what to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreRules {
    /// That of the ignore files within the folder, whether it is a repository or not. What lies outside changes nothing.
    OfFolder,
    /// That of the repository the folder is in, if it is in one.
    OfRepository,
}

/// How a walk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// All files were seen.
    Whole,
    /// There are more files than may be looked at.
    Partly,
    /// Nobody waits any longer.
    Cancelled,
}

/// Shows `visit` every regular file that is not ignored, in no particular order. Symbolic links are not followed, the
/// folder of git itself is left out, and what cannot be read is as good as not there.
pub fn walk(
    walk: &Walk<'_>,
    cancellation: &Cancellation,
    mut visit: impl FnMut(&ignore::DirEntry),
) -> Walked {
    let under = walk.under.map(Path::to_owned);
    let is_wanted = move |entry: &ignore::DirEntry| {
        let path = entry.path();
        let on_the_way = |under: &Path| path.starts_with(under) || under.starts_with(path);
        under.as_deref().is_none_or(on_the_way) && entry.file_name() != ".git"
    };
    let of_repository = walk.rules == IgnoreRules::OfRepository;
    let entries = WalkBuilder::new(walk.root)
        .hidden(false)
        .parents(of_repository)
        .require_git(of_repository)
        // This depends on the environment of whoever runs us.
        .git_global(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(is_wanted)
        .build();
    let mut seen = 0_usize;
    for entry in entries.flatten() {
        if cancellation.is_cancelled() {
            return Walked::Cancelled;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        seen += 1;
        if seen > walk.max_files {
            return Walked::Partly;
        }
        visit(&entry);
    }
    Walked::Whole
}

/// A pattern for paths with `/` between their parts: `*` stays within one part, `**` does not.
pub fn pattern(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    Ok(glob.compile_matcher())
}

/// A pattern that picks files: one for names alone counts in every folder.
pub fn filter(text: &str) -> Result<GlobMatcher, globset::Error> {
    if text.contains('/') {
        pattern(text)
    } else {
        pattern(&format!("**/{text}"))
    }
}
