//! Detects incomplete npx installations of a server, and removes them.
//!
//! An npx killed during installation leaves an incomplete folder, which every later npx considers complete. [`Repair`]
//! is the only way in which the doctor changes anything.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::transport::InstalledPackage;

/// The maximum number of folders searched for leftovers.
const MAX_ENTRIES: usize = 10_000;
/// The length of the suffix that npm appends to a folder it moves aside: `.name-AbCd1234`.
const LEFTOVER_LETTERS: std::ops::RangeInclusive<usize> = 8..=10;

/// The installed copy of the package that a server's npx runs.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) package: InstalledPackage,
    pub(super) exists: bool,
    /// The damage found in the folder.
    pub(super) damage: Option<String>,
}

impl Installed {
    pub(super) fn look(package: InstalledPackage) -> Self {
        let exists = is_real_folder(&package.folder);
        let damage = exists.then(|| damage(&package.folder)).flatten();
        Self {
            package,
            exists,
            damage,
        }
    }

    /// The name of the folder, which occurs in the paths of npm's messages.
    pub(super) fn hash(&self) -> &str {
        let name = self.package.folder.file_name();
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }

    pub(super) fn repair(&self) -> Option<Repair> {
        let folder = self.package.folder.clone();
        self.exists.then_some(Repair { folder })
    }
}

/// A repair that `doctor` runs only on the user's request: removes one folder of npx's cache, which npx recreates on
/// the next start of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    folder: PathBuf,
}

impl Repair {
    /// The folder to remove: `<cache>/_npx/<hash>`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the folder. Links in it are removed, not followed.
    ///
    /// # Errors
    ///
    /// If the folder or `_npx` itself is a link or not a folder, or cannot be removed.
    pub fn run(&self) -> io::Result<()> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let Some(npx) = self.folder.parent().filter(|npx| npx.ends_with("_npx")) else {
            return refused("it is not in npx's cache");
        };
        if !is_real_folder(npx) || !is_real_folder(&self.folder) {
            return refused("it is a link, or not a folder");
        }
        std::fs::remove_dir_all(&self.folder)
    }
}

fn is_real_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Signs of an interrupted installation in the folder.
fn damage(folder: &Path) -> Option<String> {
    let modules = folder.join("node_modules");
    if let Some(name) = leftover(&modules) {
        return Some(format!(
            "node_modules has {name}, left by an interrupted install"
        ));
    }
    let Some(manifest) = json(&folder.join("package.json")) else {
        let is_empty = names(&modules).next().is_none();
        return (!is_empty).then(|| "it has node_modules and no package.json".to_owned());
    };
    let packages = manifest["dependencies"].as_object()?;
    packages.keys().find_map(|package| {
        let Some(installed) = json(&modules.join(package).join("package.json")) else {
            return Some(format!(
                "package.json names {package}, and node_modules does not have it"
            ));
        };
        let missing = programs(package, &installed).into_iter().find(|program| {
            let file = modules.join(".bin").join(program);
            file.symlink_metadata().is_err()
                && file.with_extension("cmd").symlink_metadata().is_err()
        })?;
        Some(format!("node_modules/.bin does not have {missing}"))
    })
}

/// A folder that npm moved aside and did not remove.
fn leftover(modules: &Path) -> Option<String> {
    let is_leftover = |name: &String| {
        let suffix = name
            .strip_prefix('.')
            .and_then(|rest| rest.rsplit_once('-'));
        suffix.is_some_and(|(package, letters)| {
            !package.is_empty()
                && LEFTOVER_LETTERS.contains(&letters.len())
                && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    names(modules).find_map(|name| match name.strip_prefix('@') {
        Some(_) => {
            let inner = names(&modules.join(&name)).find(is_leftover)?;
            Some(format!("{name}/{inner}"))
        }
        None => Some(name).filter(is_leftover),
    })
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| entry.file_name().into_string().ok())
}

/// The programs that a package installs in `node_modules/.bin`.
fn programs(package: &str, manifest: &Value) -> Vec<String> {
    match &manifest["bin"] {
        Value::String(_) => {
            let name = package.rsplit('/').next().unwrap_or(package);
            vec![name.to_owned()]
        }
        Value::Object(named) => named.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    const NAMES: (&str, &str) = ("package.json", r#"{"dependencies":{"@a/server":"^1"}}"#);
    const SERVER: (&str, &str) = (
        "node_modules/@a/server/package.json",
        r#"{"bin":{"a-server":"index.js"}}"#,
    );
    const PROGRAM: (&str, &str) = ("node_modules/.bin/a-server", "");

    #[test]
    fn an_interrupted_install_shows_in_its_folder() {
        let check = |files: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(damage(made(files).path()).as_deref(), expected, "{files:?}");
        };
        check(&[], None);
        check(&[NAMES, SERVER, PROGRAM], None);
        check(
            &[
                NAMES,
                SERVER,
                PROGRAM,
                ("node_modules/.package-lock.json", "{}"),
            ],
            None,
        );
        check(
            &[NAMES, SERVER],
            Some("node_modules/.bin does not have a-server"),
        );
        check(
            &[NAMES, PROGRAM],
            Some("package.json names @a/server, and node_modules does not have it"),
        );
        check(&[SERVER], Some("it has node_modules and no package.json"));
        check(
            &[
                NAMES,
                SERVER,
                PROGRAM,
                ("node_modules/@a/.server-x9Yz01Ab/index.js", ""),
            ],
            Some("node_modules has @a/.server-x9Yz01Ab, left by an interrupted install"),
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_repair_removes_one_folder_of_npx_and_follows_no_link() {
        use std::os::unix::fs::symlink;
        let folder = made(&[
            ("_npx/0011223344556677/package.json", "{}"),
            ("_npx/8899aabbccddeeff/package.json", "{}"),
            ("kept/file", ""),
        ]);
        let at = |path: &str| folder.path().join(path);
        let run = |path: &str| Repair { folder: at(path) }.run();
        symlink(at("kept"), at("_npx/0011223344556677/link")).unwrap();
        symlink(at("kept"), at("_npx/linked")).unwrap();
        symlink(at("_npx"), at("other")).unwrap();
        std::fs::create_dir(at("moved")).unwrap();
        symlink(at("_npx"), at("moved/_npx")).unwrap();
        for refused in [
            "_npx",
            "kept",
            "_npx/linked",
            "other/8899aabbccddeeff",
            "moved/_npx/8899aabbccddeeff",
        ] {
            run(refused).unwrap_err();
        }
        run("_npx/0011223344556677").unwrap();
        assert!(!at("_npx/0011223344556677").exists());
        assert!(at("kept/file").exists() && at("_npx/8899aabbccddeeff/package.json").exists());
    }
}
