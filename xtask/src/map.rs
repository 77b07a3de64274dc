//! Checks that ARCHITECTURE.md names every module of the product, and nothing that does not exist.

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

    /// The crates whose modules the map has to name.
    const PRODUCT: [&str; 10] = [
        "switchboard",
        "switchboard-agent",
        "switchboard-bindings",
        "switchboard-cli",
        "switchboard-config",
        "switchboard-keyring",
        "switchboard-protocol",
        "switchboard-schema",
        "switchboard-server",
        "switchboard-store",
    ];

    #[test]
    fn the_map_names_every_module_of_the_product() {
        let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let named: Vec<&str> = map.split('`').skip(1).step_by(2).collect();
        let mut missing = Vec::new();
        for name in PRODUCT {
            let folder = root().join("crates").join(name).join("src");
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let module = path.file_name().unwrap().to_string_lossy().into_owned();
                let is_source = path.extension().is_some_and(|extension| extension == "rs");
                let is_module = path.is_dir() || is_source;
                // A folder `a/` next to `a.rs` is one module with it.
                let file = format!("{}.rs", module.trim_end_matches(".rs"));
                let is_named = named.iter().any(|place| {
                    let place = place.trim_end_matches('/');
                    place == module || place == file || place.starts_with(&format!("{module}/"))
                });
                if is_module && !["lib.rs", "main.rs"].contains(&module.as_str()) && !is_named {
                    missing.push(format!("{name}: {module}"));
                }
            }
        }
        assert!(missing.is_empty(), "ARCHITECTURE.md lacks {missing:#?}");
    }
}
