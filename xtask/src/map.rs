//! Checks that everything named in ARCHITECTURE.md exists.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::run::root;

    /// Collects every source file and folder below `folder`.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != ".git" {
                found.push(path.clone());
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn the_map_names_only_what_exists() {
        let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let mut found = Vec::new();
        sources(&root(), &mut found);
        let named = map.split('`').skip(1).step_by(2);
        let is_place = |name: &&str| {
            let is_path = |letter: char| letter.is_ascii_alphanumeric() || "_-/.".contains(letter);
            let is_source = Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "rs");
            (is_source || name.ends_with('/')) && name.chars().all(is_path)
        };
        let mut missing: Vec<&str> = named
            .filter(is_place)
            .filter(|name| {
                !found
                    .iter()
                    .any(|path| path.ends_with(name.trim_end_matches('/')))
            })
            .collect();
        missing.dedup();
        assert!(
            missing.is_empty(),
            "ARCHITECTURE.md names what does not exist: {missing:?}"
        );
    }
}
