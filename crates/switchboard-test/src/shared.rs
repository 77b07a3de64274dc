//! Finds external test data: the protocol's schemas and examples, and corpora.
//!
//! The data is not part of the repository. It may be next to it, in `shared/data`; a test without its data is skipped.
//! This module finds folders but does not read their contents.

use std::path::{Path, PathBuf};

use crate::skipped::skipped;

/// The folder with the data of one revision, such as `2026-07-28`.
///
/// Searches next to the repository and next to each of its parent folders, so that a second working tree finds the data
/// too. If it is missing, reports the check as skipped and returns `None`.
pub fn protocol_data(revision: &str) -> Option<PathBuf> {
    let folder = Path::new("mcp").join(revision);
    let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), &folder);
    if found.is_none() {
        skipped(&format!(
            "no data of protocol revision {revision} next to the repository"
        ));
    }
    found
}

/// The folder with the tool search benchmark: `tools.jsonl` and `queries-dev.jsonl`.
///
/// Searches like [`protocol_data`].
pub fn tool_search_data() -> Option<PathBuf> {
    let found = find(
        Path::new(env!("CARGO_MANIFEST_DIR")),
        Path::new("tool-search"),
    );
    if found.is_none() {
        skipped("no tool search data next to the repository");
    }
    found
}

/// The folder with poisoned and ordinary tool definitions: `tools.jsonl`.
///
/// Searches like [`protocol_data`].
pub fn poison_data() -> Option<PathBuf> {
    let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("poison"));
    if found.is_none() {
        skipped("no public corpus of poisoned definitions next to the repository");
    }
    found
}

fn find(start: &Path, data: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|folder| folder.join("shared/data").join(data))
        .find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_found_beside_any_ancestor_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("shared/data/mcp/2026-07-28");
        let crate_folder = root.path().join("trees/second/crates/some-crate");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(&crate_folder).unwrap();
        let found = |folder: &str| find(&crate_folder, Path::new(folder));
        assert_eq!(found("mcp/2026-07-28"), Some(data));
        assert_eq!(found("mcp/1999-01-01"), None);
    }
}
