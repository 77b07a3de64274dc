//! The protocol's own data, where it is at hand.
//!
//! The specification's schemas and examples are no part of the repository. They may lie beside it, in
//! `shared/data/mcp/<revision>`; a test that uses them asks here, and passes without them. This module finds folders
//! and must not read what is in them.

#![expect(
    clippy::print_stderr,
    reason = "a test that checks less than it could must say so"
)]

use std::path::{Path, PathBuf};

/// The folder with the data of one revision, such as `2026-07-28`.
///
/// It is looked for beside this repository and beside every folder the repository lies in, so that a second working
/// tree finds it too. Without it there is a note on standard error, and `None`.
pub fn protocol_data(revision: &str) -> Option<PathBuf> {
    let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), revision);
    if found.is_none() {
        eprintln!(
            "skipped: the data of the protocol's revision {revision} does not lie beside the repository"
        );
    }
    found
}

fn find(start: &Path, revision: &str) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|folder| folder.join("shared/data/mcp").join(revision))
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
        assert_eq!(find(&crate_folder, "2026-07-28"), Some(data));
        assert_eq!(find(&crate_folder, "1999-01-01"), None);
    }
}
