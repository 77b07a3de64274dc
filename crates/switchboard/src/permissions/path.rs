//! Paths in arguments, resolved in two ways: as they are written, and as the file system leads.
//!
//! Owns the resolving. Nothing is opened or changed. Both ways are needed: a rule that allows a folder must not be led
//! out of it by `..` or by a link, and one that denies must not be led around.

use std::path::{Component, Path, PathBuf};

/// No path is longer for the system.
pub(super) const LONGEST: usize = 4096;

/// Where relative paths and `~` lead.
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    /// The folder that relative paths start in.
    pub(super) folder: PathBuf,
    /// The user's home.
    pub(super) home: Option<PathBuf>,
}

/// A path, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// With `.` and `..` taken away as they are written.
    pub(super) written: PathBuf,
    /// Where the file system leads, links included; `None` where that cannot be told.
    pub(super) real: Option<PathBuf>,
}

impl Base {
    /// What a text means as a path; `None` where different readers would read it differently.
    pub(super) fn resolve(&self, text: &str) -> Option<Resolved> {
        let absolute = self.absolute(text)?;
        Some(Resolved {
            real: real(&absolute),
            written: written(&absolute),
        })
    }

    fn absolute(&self, text: &str) -> Option<PathBuf> {
        let is_doubtful = text.is_empty()
            || text.len() > LONGEST
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
        // Some servers undo this, others do not.
        if has_escaped_separator(text) {
            return None;
        }
        if let Some(rest) = text.strip_prefix('~') {
            let rest = match rest.strip_prefix('/') {
                Some(rest) => rest,
                None if rest.is_empty() => "",
                // Another user's home is not known here.
                None => return None,
            };
            return Some(self.home.as_ref()?.join(rest.trim_start_matches('/')));
        }
        Some(self.folder.join(text))
    }
}

/// A folder, as it was named and where it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    written: PathBuf,
    real: PathBuf,
}

impl Folder {
    /// The folder that a rule names; `None` if it cannot be told which.
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

    /// Whether a path is beyond doubt this folder or in it.
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

/// An absolute path without `.` and `..`.
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

/// Where an absolute path leads, step by step as the system goes. What does not exist yet is taken as it is written.
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
                    // A link to something that is not there leads to wherever that will be made.
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
        // Whether it surely is inside, and whether it could be.
        let check = |text: &str, holds: bool, may_hold: bool| {
            let resolved = base.resolve(text);
            let found = resolved
                .as_ref()
                .map(|path| (folder.holds(path), folder.may_hold(path)));
            // What cannot be read surely is not, and could be.
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
        // Through a link it leads out, or comes in.
        check("out/x", false, true);
        check("out/../y", false, true);
        check(&absolute("elsewhere/in/x"), false, true);
        check("dangling", false, true);
        // Different readers would read it differently.
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
