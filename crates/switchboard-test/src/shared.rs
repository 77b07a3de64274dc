//! Data that others have made, where it is at hand.
//!
//! The specification's schemas and examples and the sets that tool search is measured on are no part of the repository.
//! They may lie beside it, in `shared/data`; a test that uses them asks here, and passes without them. This module finds
//! folders and must not read what is in them.

use std::path::{Path, PathBuf};

use crate::skipped::skipped;

/// The folder with the data of one revision, such as `2026-07-28`.
///
/// It is looked for beside this repository and beside every folder the repository lies in, so that a second working
/// tree finds it too. Without it the check counts as skipped, and this is `None`.
pub fn protocol_data(revision: &str) -> Option<PathBuf> {
    let folder = Path::new("mcp").join(revision);
    let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), &folder);
    if found.is_none() {
        skipped(&format!(
            "the data of the protocol's revision {revision} is not beside the repository"
        ));
    }
    found
}

/// The folder with tools and questions that tool search is measured on: `tools.jsonl` and `queries-dev.jsonl`.
///
/// It is looked for as [`protocol_data`] is.
pub fn tool_search_data() -> Option<PathBuf> {
    let found = find(
        Path::new(env!("CARGO_MANIFEST_DIR")),
        Path::new("tool-search"),
    );
    if found.is_none() {
        skipped("the data for tool search is not beside the repository");
    }
    found
}

/// The folder with poisoned and ordinary definitions: `tools.jsonl`.
///
/// It is looked for as [`protocol_data`] is.
pub fn poison_data() -> Option<PathBuf> {
    let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("poison"));
    if found.is_none() {
        skipped("the poisoned definitions of others are not beside the repository");
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
