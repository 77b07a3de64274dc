//! Protects Switchboard's own files: no tool may change them.
//!
//! No rule can override this check: write access to these files would grant everything else. A call of a tool not known
//! to be read-only is denied if one of its arguments resolves to such a file. Command lines are searched for the paths
//! on a best-effort basis: a shell has too many ways to spell a path, so the sandbox has to cover those. Built-in tools
//! are checked for hard links as well.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use switchboard_config::files::{Folders, LOCAL_FILE, PROJECT_FILES};
use switchboard_protocol::cursor::Cursor;

use super::glob::{Case, Glob};
use super::path::{self, Base, LONGEST};
use super::subject::Subject;

/// The prefix of Switchboard's files in a project.
const OWN_PREFIX: &str = ".switchboard";
/// Arguments that hold a command line.
const COMMAND_KEYS: [&str; 7] = [
    "command", "commands", "cmd", "script", "shell", "args", "argv",
];
/// Up to this many names are looked up one by one; beyond, all links of the folder are read at once.
const FEW_NAMES: usize = 32;
/// Variables in a command line that refer to our folders, whatever their value.
const OWN_VARIABLES: [&str; 3] = [
    "SWITCHBOARD_CONFIG_DIR",
    "SWITCHBOARD_STATE_DIR",
    "SWITCHBOARD_MANAGED_FILE",
];

/// The maximum number of own files compared for hard links.
const MOST_OWN_FILES: usize = 50_000;

/// The access of a tool to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Read,
    Change,
}

/// The context in which a path is resolved.
#[derive(Clone, Copy)]
struct Whose<'a> {
    place: &'a Place,
    reach: Reach,
    looks_at_links: bool,
}

/// The files and folders that no tool may change.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// Folders within them that tools may use.
    open: Vec<PathBuf>,
    base: Base,
    /// Working directories of servers that do not run in the project.
    bases: HashMap<String, Place>,
    here: Place,
}

/// A base for relative paths, with the own files in it.
#[derive(Debug, Default)]
struct Place {
    base: Base,
    /// Whether the whole folder is ours.
    is_own: bool,
    /// Own files in it.
    names: Vec<String>,
    #[cfg(unix)]
    folder: Option<std::os::fd::OwnedFd>,
}

impl OwnFiles {
    /// The own files for these configuration folders.
    pub(crate) fn new(folders: &Folders) -> Self {
        let project = PROJECT_FILES.iter().map(|(name, _)| *name);
        let mut files: Vec<PathBuf> = project
            .chain([LOCAL_FILE])
            .map(|name| folders.project.join(name))
            .chain([folders.home.join(".claude/settings.json")])
            .chain(folders.managed_file.clone())
            .collect();
        let mut own = vec![folders.config.clone(), folders.state.clone()];
        for list in [&mut files, &mut own] {
            list.retain(|path| path.is_absolute());
            let real: Vec<PathBuf> = list.iter().filter_map(|path| path::real(path)).collect();
            list.extend(real);
            list.sort();
            list.dedup();
        }
        let base = Base {
            folder: folders.project.clone(),
            home: Some(folders.home.clone()),
        };
        let mut own = Self {
            folders: own,
            files,
            base: base.clone(),
            ..Self::default()
        };
        own.here = own.place(base);
        own
    }

    /// Exempts a folder within ours, such as the one for truncated output.
    #[must_use]
    pub(crate) fn except(mut self, folder: PathBuf) -> Self {
        self.open.extend(path::real(&folder));
        self.open.push(folder);
        self
    }

    /// Sets the working directory of a server.
    pub(crate) fn server_in(&mut self, server: &str, folder: &Path) {
        let base = Base {
            folder: self.base.folder.join(folder),
            home: self.base.home.clone(),
        };
        let place = self.place(base);
        self.bases.insert(server.to_owned(), place);
    }

    /// The base for relative paths of a tool.
    pub(super) fn base_of(&self, server: Option<&str>) -> &Base {
        &self.place_of(server).base
    }

    /// The first argument that names one of our files, as written: one that the tool would change, or, for a read-only
    /// tool, one in our folders.
    pub(super) fn named_by<'a>(
        &self,
        subject: &Subject<'_>,
        arguments: Option<&'a RawValue>,
        reach: Reach,
    ) -> Option<Cow<'a, str>> {
        if self.folders.is_empty() && self.files.is_empty() {
            return None;
        }
        let place = self.place_of(subject.server);
        let whose = Whose {
            place,
            reach,
            // Built-in tools accept any path, so check their arguments for hard links.
            looks_at_links: subject.server.is_none(),
        };
        let text = arguments?.get();
        let mut cursor = Cursor::new(text);
        let mut is_command = false;
        let mut links = Links::default();
        while let Some(at) = memchr::memchr(b'"', text.as_bytes().get(cursor.position()..)?) {
            cursor.rewind(cursor.position() + at);
            let contents = cursor.string().ok()?;
            let is_key = cursor.peek() == b':';
            let found = contents.decode();
            let is_own = self.is_named(&found, whose, &mut links)
                || (is_command && !is_key && self.is_in_command(&found, whose, &mut links));
            if is_own {
                return Some(found);
            }
            if is_key {
                is_command = COMMAND_KEYS.iter().any(|key| contents.is(key));
            }
        }
        None
    }

    fn place_of(&self, server: Option<&str>) -> &Place {
        if self.bases.is_empty() {
            return &self.here;
        }
        let named = server.and_then(|server| self.bases.get(server));
        named.unwrap_or(&self.here)
    }

    fn place(&self, base: Base) -> Place {
        let names = self
            .files
            .iter()
            .filter(|file| file.parent() == Some(&base.folder));
        Place {
            is_own: self.is_own(&base.folder, Reach::Change)
                || path::real(&base.folder).is_some_and(|real| self.is_own(&real, Reach::Change)),
            names: names
                .filter_map(|file| Some(file.file_name()?.to_str()?.to_owned()))
                .collect(),
            #[cfg(unix)]
            folder: open_folder(&base.folder),
            base,
        }
    }

    /// Whether a text, interpreted as a path, is one of our files.
    fn is_named(&self, text: &str, whose: Whose<'_>, links: &mut Links) -> bool {
        let place = whose.place;
        let text = text.trim();
        if text.is_empty() {
            return false;
        }
        let looks_like_path = text.starts_with(['~', '.'])
            || memchr::memchr3(b'/', b'\\', b':', text.as_bytes()).is_some();
        if looks_like_path {
            return self.is_path(text, whose);
        }
        place.is_own
            || (whose.reach == Reach::Change && place.names.iter().any(|name| name == text))
            || ((links.has(text, place) || whose.looks_at_links) && self.is_path(text, whose))
    }

    fn is_path(&self, text: &str, whose: Whose<'_>) -> bool {
        // A server may treat backslashes as separators on any system.
        let text = if text.contains('\\') && cfg!(unix) {
            Cow::Owned(text.replace('\\', "/"))
        } else {
            Cow::Borrowed(text)
        };
        let base = &whose.place.base;
        let resolved = if text.len() > LONGEST {
            base.resolve_shortened(&text)
        } else {
            base.resolve(&text)
        };
        let Some(resolved) = resolved else {
            return false;
        };
        self.is_own(&resolved.written, whose.reach)
            || resolved.real.is_some_and(|real| {
                self.is_own(&real, whose.reach) || whose.looks_at_links && self.is_hard_link(&real)
            })
    }

    /// Whether a path, as a built-in tool resolves it, is a hard link to one of our files.
    pub(super) fn has_hard_link(&self, text: &str) -> bool {
        self.is_hard_link(&self.base.folder.join(text))
    }

    /// Whether a path is a hard link to one of our files. Costs one `stat` for files with a single link, which is
    /// nearly all.
    #[cfg(unix)]
    fn is_hard_link(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(metadata) = path.metadata() else {
            return false;
        };
        if !metadata.is_file() || metadata.nlink() < 2 {
            return false;
        }
        let is_same = |other: &std::fs::Metadata| {
            (other.dev(), other.ino()) == (metadata.dev(), metadata.ino())
        };
        let is_in_open = |path: &Path| self.open.iter().any(|open| path.starts_with(open));
        let mut left: Vec<PathBuf> = self.folders.iter().chain(&self.files).cloned().collect();
        let mut looked_at = 0_usize;
        while let Some(own) = left.pop() {
            let Ok(found) = own.symlink_metadata() else {
                continue;
            };
            if is_same(&found) {
                return true;
            }
            looked_at += 1;
            // Beyond the limit, assume that the file is ours.
            if looked_at > MOST_OWN_FILES {
                return true;
            }
            if found.is_dir() && !is_in_open(&own) {
                let entries = std::fs::read_dir(&own).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            }
        }
        false
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "hard links cannot be detected there")]
    fn is_hard_link(&self, _: &Path) -> bool {
        false
    }

    fn is_own(&self, path: &Path, reach: Reach) -> bool {
        let is_in = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        let has_own_name = || {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(OWN_PREFIX))
        };
        let is_in_folder = is_in(&self.folders) && !is_in(&self.open);
        match reach {
            Reach::Read => is_in_folder,
            Reach::Change => {
                is_in_folder || self.files.iter().any(|file| file == path) || has_own_name()
            }
        }
    }

    /// Whether a command line names one of our files. Best effort.
    fn is_in_command(&self, command: &str, whose: Whose<'_>, links: &mut Links) -> bool {
        let place = whose.place;
        // A command has many words, and the sandbox protects against hard links.
        let whose = Whose {
            looks_at_links: false,
            ..whose
        };
        if OWN_VARIABLES.iter().any(|name| command.contains(name)) {
            return true;
        }
        // Quotes and escapes that a shell removes.
        let mut bare: String = command
            .chars()
            .filter(|character| !matches!(character, '"' | '\'' | '\\'))
            .collect();
        if let Some(home) = place.base.home.as_deref().and_then(Path::to_str) {
            bare = bare.replace("${HOME}", home).replace("$HOME", home);
        }
        let ends_word =
            |character: char| character.is_whitespace() || ";|&<>()`=,:{}$".contains(character);
        bare.split(ends_word)
            .filter(|word| !word.is_empty())
            .any(|word| self.is_named(word, whose, links) || self.is_globbed(word, place))
    }

    /// Whether a shell could expand this word to one of our files.
    fn is_globbed(&self, word: &str, place: &Place) -> bool {
        if !word.contains(['*', '?', '[']) {
            return false;
        }
        let pattern = match (word.strip_prefix("~/"), &place.base.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => place.base.folder.join(word),
        };
        let pattern = path::written(&pattern);
        let Some(glob) = pattern.to_str().and_then(Glob::new) else {
            return false;
        };
        // `*` also matches separators here, so require the same depth.
        let steps = pattern.components().count();
        let fits = |own: &PathBuf| {
            let same_depth = own.components().count() == steps;
            same_depth
                && own
                    .to_str()
                    .is_some_and(|own| glob.matches(own, Case::Exact))
        };
        let inside = || {
            // A file in one of our folders matches if the folder matches a prefix of the pattern.
            pattern.ancestors().any(|above| {
                let glob = above.to_str().and_then(Glob::new);
                let depth = above.components().count();
                self.folders.iter().any(|own| {
                    own.components().count() == depth
                        && own.to_str().is_some_and(|own| {
                            glob.as_ref()
                                .is_some_and(|glob| glob.matches(own, Case::Exact))
                        })
                })
            })
        };
        self.files.iter().any(fits) || inside()
    }
}

/// Caches which names of a folder are links, for one call.
#[derive(Debug, Default)]
struct Links {
    asked: usize,
    all: Option<HashSet<OsString>>,
}

impl Links {
    fn has(&mut self, name: &str, place: &Place) -> bool {
        self.asked += 1;
        if self.asked <= FEW_NAMES {
            return place.is_link(name);
        }
        let all = self.all.get_or_insert_with(|| place.links());
        all.contains(OsStr::new(name))
    }
}

impl Place {
    fn links(&self) -> HashSet<OsString> {
        let entries = std::fs::read_dir(&self.base.folder);
        let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let links = entries.into_iter().flatten().flatten().filter(is_link);
        links.map(|entry| entry.file_name()).collect()
    }

    /// Whether a name in this folder is a link. Costs one `statat` and no allocation.
    #[cfg(unix)]
    fn is_link(&self, name: &str) -> bool {
        use rustix::fs::{AtFlags, FileType, statat};
        let Some(folder) = &self.folder else {
            return false;
        };
        if name.len() > 255 {
            return false;
        }
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    #[cfg(not(unix))]
    fn is_link(&self, name: &str) -> bool {
        self.base.folder.join(name).is_symlink()
    }
}

#[cfg(unix)]
fn open_folder(folder: &Path) -> Option<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    open(folder, flags, Mode::empty()).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn our_own_files_are_found_in_any_disguise() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a path");
        for folder in ["home/.config/switchboard", "state/output", "project/sub"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
        };
        link("../home/.config/switchboard/mcp.toml", "project/notes.txt");
        std::fs::write(root.join("home/.config/switchboard/mcp.toml"), "").expect("a file");
        link("../home/.config", "project/dots");
        link("sub", "project/fine");
        let hard_link = |file: &str, name: &str| {
            std::fs::hard_link(root.join(file), root.join(name)).expect("a hard link");
        };
        hard_link("home/.config/switchboard/mcp.toml", "project/hard.txt");
        std::fs::write(root.join("state/output/7.txt"), "").expect("a file");
        hard_link("state/output/7.txt", "project/output.txt");
        std::fs::write(root.join("project/one.txt"), "").expect("a file");
        hard_link("project/one.txt", "project/two.txt");
        let mut own = OwnFiles::new(&Folders {
            home: root.join("home"),
            config: root.join("home/.config/switchboard"),
            state: root.join("state"),
            project: root.join("project"),
            managed_file: Some(root.join("managed.toml")),
        })
        .except(root.join("state/output"));
        own.server_in("inside", &root.join("home/.config/switchboard"));
        own.server_in("linked", &root.join("project/dots/switchboard"));
        let check_on = |server: Option<&str>, arguments: serde_json::Value, expected: bool| {
            let raw = serde_json::value::to_raw_value(&arguments).expect("JSON");
            let subject = Subject {
                server,
                ..Subject::built_in("Write")
            };
            let found = own.named_by(&subject, Some(&raw), Reach::Change).is_some();
            assert_eq!(found, expected, "{arguments}");
        };
        let check = |arguments, expected| check_on(None, arguments, expected);
        let absolute = |rest: &str| format!("{}/{rest}", root.display());
        for text in [
            absolute("home/.config/switchboard/mcp.toml"),
            absolute("home/.config/switchboard/plugins/new/plugin.toml"),
            absolute("home/.config/switchboard"),
            absolute("home/.config/./x/../switchboard/mcp.toml"),
            format!("file://{}", absolute("state/trust.json")),
            format!("file://{}", absolute("state/%74rust.json")),
            format!("  {}\n", absolute("state/switchboard.db")),
            absolute("managed.toml"),
            absolute("home/.claude/settings.json"),
            absolute("elsewhere/.switchboard.local.toml"),
            "~/.config/switchboard/mcp.toml".to_owned(),
            "../home/.config/switchboard/mcp.toml".to_owned(),
            "..\\home\\.config\\switchboard\\mcp.toml".to_owned(),
            ".mcp.json".to_owned(),
            ".mcp.toml".to_owned(),
            "switchboard.hcl".to_owned(),
            "sub/../.switchboard.local.toml".to_owned(),
            ".claude/settings.json".to_owned(),
            "notes.txt".to_owned(),
            "./notes.txt".to_owned(),
            "dots/switchboard/mcp.toml".to_owned(),
        ] {
            check(json!({ "path": text }), true);
            check(json!({ "edits": [{ "deep": ["x", text] }] }), true);
            check(json!({ "files": { text: "contents" } }), true);
        }
        for text in [
            "src/main.rs",
            "fine",
            "fine/x",
            "mcp.toml",
            "read about .mcp.json in docs/cli.md",
            "https://example.com/.mcp.json",
            "",
            "/",
            "~",
        ] {
            check(json!({ "path": text }), false);
        }
        // Each character may be written as an escape.
        let dots = r"\u002e\u002f".repeat(LONGEST / 3);
        let escaped = format!(r#"{{"path": "{dots}.mcp.json"}}"#);
        let raw: Box<RawValue> = serde_json::from_str(&escaped).expect("JSON");
        let write = Subject::built_in("Write");
        assert!(own.named_by(&write, Some(&raw), Reach::Change).is_some());
        // Padded until it is too long for the system. Many programs shorten a path before they open it.
        let padded = format!("{}.mcp.json", "./".repeat(LONGEST));
        check(json!({ "path": padded }), true);
        check(json!({ "path": format!("{padded}/sub") }), false);
        // The longest path that the system takes: `..` leads to the parent of a link's target.
        let behind = "dots/../.config/switchboard/mcp.toml";
        let longest = format!("{}{behind}", "./".repeat((LONGEST - behind.len()) / 2));
        assert_eq!(longest.len(), LONGEST);
        check(json!({ "path": longest }), cfg!(unix));
        let parent = format!("sub/{}.mcp.json", "../sub/".repeat(LONGEST));
        check(json!({ "path": format!("{parent}/../../.mcp.json") }), true);
        let uri = format!("file://{}{}", root.display(), "/%2e".repeat(LONGEST));
        check(json!({ "path": format!("{uri}/state/trust.json") }), true);
        // Text is not a path, however long it is and whatever it mentions.
        let text = "see docs/cli.md\n".repeat(LONGEST);
        check(json!({ "content": format!("{text}/.mcp.json") }), false);
        check(json!({ "path": absolute("state/output/7.txt") }), false);
        check_on(Some("inside"), json!({ "path": "mcp.toml" }), true);
        check_on(Some("linked"), json!({ "path": "mcp.toml" }), true);
        check_on(Some("other"), json!({ "path": "mcp.toml" }), false);
        check_on(Some("other"), json!({ "path": "switchboard.hcl" }), true);

        // Another name of a file of ours, for the tools that take any path as it is.
        check(json!({ "path": "hard.txt" }), true);
        check(json!({ "path": "output.txt" }), false);
        check(json!({ "path": "two.txt" }), false);
        check(json!({ "path": "sub" }), false);
        check(json!({ "command": "cat hard.txt" }), false);
        assert!(own.has_hard_link("hard.txt") && !own.has_hard_link("two.txt"));

        for command in [
            "echo x > .mcp.json",
            "cat ~/.config/switchboard/mcp.toml",
            "cd $HOME/.config/switchboard && ls",
            "cp a \"${HOME}/.config/switch\"\"board/mcp.toml\"",
            "sed -i s/a/b/ ~/.config/sw*/mcp.toml",
            "echo x >> $SWITCHBOARD_CONFIG_DIR/mcp.toml",
            "tee .switchboard.local.toml",
            "dd of=notes.txt",
            "rm .mcp.j*",
        ] {
            check(json!({ "command": command }), true);
            check(json!({ "content": command }), command == "x");
        }
        check(json!({ "command": "cargo test --all && ls *.rs" }), false);
        check(json!({ "command": ["sh", "-c", "rm .mcp.json"] }), true);
        let args = json!(["-c", "rm .mcp.json"]);
        check(json!({ "command": "sh", "args": args }), true);
        let mut many: Vec<String> = (0..1000).map(|number| format!("name{number}")).collect();
        check(json!({ "names": many }), false);
        check_on(Some("other"), json!({ "names": many }), false);
        many.push("notes.txt".to_owned());
        check(json!({ "names": many }), true);
        check_on(Some("other"), json!({ "names": many }), true);
        // No process that is started inherits the folder.
        let folder = own.here.folder.as_ref().expect("a folder");
        let flags = rustix::io::fcntl_getfd(folder).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_file_of_ours_is_found_by_each_of_its_names() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a path");
        for folder in ["config", "state", "project"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        let own = OwnFiles::new(&Folders {
            home: root.join("home"),
            config: root.join("config"),
            state: root.join("state"),
            project: root.join("project"),
            managed_file: None,
        });
        std::fs::write(root.join("state/trust.json"), "").expect("a file");
        std::fs::write(root.join("project/other.txt"), "").expect("a file");
        for number in 1..4 {
            let link = |file: &str, name: &str| {
                let name = format!("project/{name}{number}");
                std::fs::hard_link(root.join(file), root.join(name)).expect("a hard link");
            };
            link("state/trust.json", "ours");
            link("project/other.txt", "theirs");
            for name in 1..=number {
                assert!(own.has_hard_link(&format!("ours{name}")), "{number} links");
                assert!(
                    !own.has_hard_link(&format!("theirs{name}")),
                    "{number} links"
                );
            }
        }
        std::fs::write(root.join("project/single.txt"), "").expect("a file");
        assert!(!own.has_hard_link("single.txt"));
    }
}
