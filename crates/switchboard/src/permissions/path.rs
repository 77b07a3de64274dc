//! Resolves paths in arguments in two ways: lexically, and through the file system.
//!
//! Nothing is opened or changed. Both ways are needed: an allow rule for a folder must not be escaped by `..` or a
//! link, and a deny rule must not be bypassed by one.

use std::path::{Component, Path, PathBuf};

/// The maximum length of a path (`PATH_MAX`).
pub(super) const LONGEST: usize = 4096;

/// The base for relative paths and `~`.
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    /// The folder that relative paths start in.
    pub(super) folder: PathBuf,
    pub(super) home: Option<PathBuf>,
}

/// A resolved path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Normalized lexically, without `.` and `..`.
    pub(super) written: PathBuf,
    /// The path after following links; `None` if it cannot be determined.
    pub(super) real: Option<PathBuf>,
}

impl Base {
    /// Resolves a text as a path; `None` if programs would interpret it differently.
    pub(super) fn resolve(&self, text: &str) -> Option<Resolved> {
        if text.len() > LONGEST {
            return None;
        }
        let absolute = self.absolute(text)?;
        Some(Resolved {
            real: real(&absolute),
            written: written(&absolute),
        })
    }

    /// What a text of any length means to a server that removes `.` and `..` before it opens a path.
    pub(super) fn resolve_shortened(&self, text: &str) -> Option<Resolved> {
        let written = written(&self.absolute(text)?);
        self.resolve(written.to_str()?)
    }

    fn absolute(&self, text: &str) -> Option<PathBuf> {
        let is_doubtful = text.is_empty()
            || text.contains('\0')
            || text.trim() != text
            || text.starts_with(['$', '%'])
            || (cfg!(unix) && text.contains('\\'));
        if is_doubtful {
            return None;
        }
        if starts_with_ignoring_case(text, "file:") {
            let path = url::Url::parse(text).ok()?.to_file_path().ok()?;
            return Some(path);
        }
        // Some servers decode percent-encoded separators, others do not.
        if has_escaped_separator(text) {
            return None;
        }
        if let Some(rest) = text.strip_prefix('~') {
            let rest = match rest.strip_prefix('/') {
                Some(rest) => rest,
                None if rest.is_empty() => "",
                // Another user's home is unknown.
                None => return None,
            };
            return Some(self.home.as_ref()?.join(rest.trim_start_matches('/')));
        }
        Some(self.folder.join(text))
    }
}

/// A folder, as written and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    written: PathBuf,
    real: PathBuf,
}

impl Folder {
    /// The folder that a rule names; `None` if it is ambiguous.
    pub(super) fn named(text: &str, base: &Base) -> Option<Self> {
        let text = text.trim();
        let folder = base.folder.to_str()?;
        let mut text = text.replace("${workspaceFolder}", folder);
        if let Some(home) = base.home.as_deref().and_then(Path::to_str) {
            text = text.replace("${home}", home);
        }
        let resolved = base.resolve(&text)?;
        Some(Self {
            real: resolved.real.unwrap_or_else(|| resolved.written.clone()),
            written: resolved.written,
        })
    }

    /// Whether a path is certainly this folder or in it.
    pub(super) fn holds(&self, path: &Resolved) -> bool {
        let written = &path.written;
        let real = path.real.as_ref();
        (written.starts_with(&self.written) || written.starts_with(&self.real))
            && real.is_some_and(|real| real.starts_with(&self.real))
    }

    /// Whether a path could be this folder or in it.
    pub(super) fn may_hold(&self, path: &Resolved) -> bool {
        path.written.starts_with(&self.written)
            || path.written.starts_with(&self.real)
            || path
                .real
                .as_ref()
                .is_none_or(|real| real.starts_with(&self.real))
    }
}

/// Removes `.` and `..` from an absolute path, lexically.
pub(super) fn written(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// Resolves an absolute path component by component, following links. Components that do not exist yet are taken
/// literally.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    let mut reached = PathBuf::new();
    let mut exists = true;
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                reached.pop();
                exists = exists || reached.exists();
            }
            Component::Normal(name) => {
                reached.push(name);
                if !exists {
                    continue;
                }
                match reached.canonicalize() {
                    Ok(real) => reached = real,
                    // The target of a dangling link is decided when it is created.
                    Err(_) if reached.is_symlink() => return None,
                    Err(_) => exists = false,
                }
            }
            root => reached.push(root),
        }
    }
    Some(reached)
}

fn has_escaped_separator(text: &str) -> bool {
    let escape = |rest: &str| {
        ["2e", "2f", "5c", "7e"]
            .iter()
            .any(|code| starts_with_ignoring_case(rest, code))
    };
    text.split('%').skip(1).any(escape)
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_what_is_really_in_it() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a path");
        let make = |name: &str| std::fs::create_dir_all(root.join(name)).expect("a folder");
        make("work/inner");
        make("home");
        make("elsewhere/deep");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(root.join(target), root.join(name)).expect("a link");
        };
        link("elsewhere/deep", "work/out");
        link("work/inner", "elsewhere/in");
        link("nowhere", "work/dangling");
        let base = Base {
            folder: root.join("work"),
            home: Some(root.join("home")),
        };
        let folder = Folder::named("${workspaceFolder}", &base).expect("a folder");
        let absolute = |rest: &str| format!("{}/{rest}", root.display());
        // Checks whether it is certainly inside, and whether it could be.
        let check = |text: &str, holds: bool, may_hold: bool| {
            let resolved = base.resolve(text);
            let found = resolved
                .as_ref()
                .map(|path| (folder.holds(path), folder.may_hold(path)));
            // An ambiguous path is not certainly inside, but could be.
            assert_eq!(found.unwrap_or((false, true)), (holds, may_hold), "{text}");
        };
        check(".", true, true);
        check("a", true, true);
        check("inner/../b", true, true);
        check("inner/new/deeper", true, true);
        check(&absolute("work/a"), true, true);
        check(&format!("file://{}", absolute("work/a")), true, true);
        check("../work2", false, false);
        check("..", false, false);
        check("inner/../../home/x", false, false);
        check("/etc/passwd", false, false);
        check("file:///etc/passwd", false, false);
        check("~/x", false, false);
        check("~", false, false);
        // A link leads out or in.
        check("out/x", false, true);
        check("out/../y", false, true);
        check("missing/../out/x", false, true);
        check(&absolute("elsewhere/in/x"), false, true);
        check("dangling", false, true);
        // A rule may name the folder by a link, and a call by its real path, or the other way round.
        link("work", "alias");
        let alias = Folder::named(&absolute("alias"), &base).expect("a folder");
        for text in ["work/a", "alias/a"] {
            let path = base.resolve(&absolute(text)).expect(text);
            assert!(alias.holds(&path) && alias.may_hold(&path), "{text}");
        }
        // By either name, a path that leads out of the folder could be in it.
        for text in ["work/out/x", "alias/out/x"] {
            let path = base.resolve(&absolute(text)).expect(text);
            assert!(!alias.holds(&path) && alias.may_hold(&path), "{text}");
        }
        let outside = base.resolve("../elsewhere/x").expect("a path");
        assert!(!alias.may_hold(&outside));
        // No longer than the system takes.
        let long = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert!(base.resolve(&long(LONGEST)).is_some());
        assert!(base.resolve(&long(LONGEST + 1)).is_none());
        assert!(base.resolve(&long(LONGEST + 2)).is_none());
        // Programs would interpret these differently.
        for text in [
            "",
            " a",
            "~root/x",
            "$HOME/x",
            "a\0b",
            "%2e%2e/x",
            "a\\..\\b",
            "file://host/x",
        ] {
            check(text, false, true);
        }
    }
}
