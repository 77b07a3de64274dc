//! Which files belong to which scope, and how they are read.
//!
//! [`Files`] is all this crate knows of a file system, so that every rule can be tested on files that exist
//! only in a test. [`Disk`] is the real one.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::diagnostic::{Diagnostic, Place};
use crate::document::{Dialect, Source};
use crate::format::Format;
use crate::scope::Scope;
use crate::source::{Position, SourceFile};

/// No configuration file is larger.
pub const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// Reads files.
pub trait Files {
    /// The bytes of a file, or `None` when there is none.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError>;

    /// The folders directly below a folder, sorted; none when it does not exist.
    fn folders(&self, path: &Path) -> Vec<PathBuf>;

    /// Whether something is at that path.
    fn exists(&self, path: &Path) -> bool;

    /// Whether a path is a program that can be started.
    fn is_program(&self, path: &Path) -> bool;

    /// The path with links resolved, when it exists.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;

    /// Whether a path is a folder.
    fn is_folder(&self, path: &Path) -> bool;

    /// The SHA-256 of a regular file of any size, and its length; `None` when there is none.
    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError>;
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// We may not.
    #[error("permission denied")]
    Denied,
    /// Links that lead to themselves.
    #[error("the path is a loop of symbolic links")]
    Loop,
    /// A folder, a pipe or a device.
    #[error("this is not a regular file")]
    NotAFile,
    /// Larger than [`LARGEST_FILE`].
    #[error("the file has {0} bytes, and a configuration file may have at most {LARGEST_FILE}")]
    TooLarge(u64),
    /// Anything else.
    #[error("cannot be read: {0}")]
    Other(String),
}

impl ReadError {
    fn hint(&self) -> &'static str {
        match self {
            ReadError::Denied => "make the file readable for you, or remove it",
            ReadError::Loop => "replace the link by a file",
            ReadError::NotAFile => "move it out of the way",
            ReadError::TooLarge(_) => {
                "split the file over several scopes, or remove what is not configuration"
            }
            ReadError::Other(_) => "check the file and the disk it is on",
        }
    }
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
        // What is not a regular file is refused before it is opened: opening a pipe would wait for a writer.
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return absent_or(&error, path),
        };
        if !metadata.is_file() {
            return Err(ReadError::NotAFile);
        }
        if metadata.len() > LARGEST_FILE {
            return Err(ReadError::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 > LARGEST_FILE => {
                Err(ReadError::TooLarge(bytes.len() as u64))
            }
            Ok(_) => Ok(Some(bytes)),
            Err(error) => absent_or(&error, path),
        }
    }

    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut folders: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        folders
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    #[cfg(unix)]
    fn is_program(&self, path: &Path) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    }

    #[cfg(not(unix))]
    fn is_program(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError> {
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            // A name that is too long for a file is the name of none.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return Ok(None),
            Err(error) => return absent_or(&error, path).map(|_| None),
        };
        if !metadata.is_file() {
            return Err(ReadError::NotAFile);
        }
        // What grows while it is read is read no further than it was long: a log that is written to would never end.
        let hashed = std::fs::File::open(path).and_then(|file| hash(file.take(metadata.len())));
        match hashed {
            Ok(hashed) => Ok(Some(hashed)),
            Err(error) => absent_or(&error, path).map(|_| None),
        }
    }
}

/// Reads to the end, and keeps nothing but the hash and the length.
fn hash(mut reader: impl io::Read) -> io::Result<([u8; 32], u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut length = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finalize().into(), length)),
            Ok(count) => {
                hasher.update(buffer.get(..count).unwrap_or_default());
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn absent_or(error: &io::Error, path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    match error.kind() {
        // A link that leads nowhere is something somebody wanted to be there.
        io::ErrorKind::NotFound if path.symlink_metadata().is_ok() => Err(ReadError::Other(
            "the link leads to a file that does not exist".to_owned(),
        )),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
        io::ErrorKind::PermissionDenied => Err(ReadError::Denied),
        _ if error.raw_os_error() == Some(ELOOP) => Err(ReadError::Loop),
        _ => Err(ReadError::Other(error.to_string())),
    }
}

/// Too many levels of symbolic links; std has no stable name for it.
#[cfg(target_os = "linux")]
const ELOOP: i32 = 40;
#[cfg(not(target_os = "linux"))]
const ELOOP: i32 = 62;

/// Files that exist only in memory.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    files: BTreeMap<PathBuf, Vec<u8>>,
    programs: Vec<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl InMemory {
    /// Adds a file.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), contents.into());
        self
    }

    /// Adds a program.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.programs.push(path.into());
        self
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.links.insert(path.into(), target.into());
        self
    }
}

impl Files for InMemory {
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self
            .files
            .get(self.links.get(path).map_or(path, PathBuf::as_path))
            .cloned())
    }

    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        let below = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(path).ok());
        let first = below
            .filter(|rest| rest.components().count() > 1)
            .filter_map(|rest| rest.components().next());
        let mut folders: Vec<_> = first.map(|name| path.join(name)).collect();
        folders.dedup();
        folders
    }

    fn exists(&self, path: &Path) -> bool {
        self.files
            .keys()
            .chain(&self.programs)
            .chain(self.links.keys())
            .any(|file| file.starts_with(path))
    }

    fn is_program(&self, path: &Path) -> bool {
        self.programs.iter().any(|program| program == path)
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        Some(
            self.links
                .get(path)
                .cloned()
                .unwrap_or_else(|| path.to_owned()),
        )
    }

    fn is_folder(&self, path: &Path) -> bool {
        !self.files.contains_key(path) && self.files.keys().any(|file| file.starts_with(path))
    }

    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError> {
        let bytes = self.read(path)?;
        Ok(bytes.map(|bytes| (Sha256::digest(&bytes).into(), bytes.len() as u64)))
    }
}

/// The folders and files that configuration is looked for in.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The user's home.
    pub home: PathBuf,
    /// The user's configuration of Switchboard.
    pub config: PathBuf,
    /// What Switchboard remembers: trust decisions, locks, run-time additions.
    pub state: PathBuf,
    /// The project: see [`project_root`].
    pub project: PathBuf,
    /// The managed file of the machine, when one is to be honoured.
    pub managed_file: Option<PathBuf>,
}

/// The file of one person in one project.
pub const LOCAL_FILE: &str = ".switchboard.local.toml";

/// Files of a project, those of ours first.
pub const PROJECT_FILES: [(&str, Dialect); 5] = [
    (".mcp.toml", Dialect::Native),
    ("switchboard.hcl", Dialect::Native),
    (".mcp.json", Dialect::McpJson),
    (".claude/settings.json", Dialect::Embedded),
    (AGENT_FILE, Dialect::Embedded),
];

/// The file of another agent, whose `mcp_servers` blocks are ours. Other programs, Vault for one, have files of this
/// name without such blocks: those are left alone.
const AGENT_FILE: &str = "agent.hcl";

/// Files of the user's configuration folder.
pub const USER_FILES: [&str; 3] = ["mcp.toml", "mcp.json", "mcp.hcl"];

/// Files of a plugin's folder that may name servers.
const PLUGIN_FILES: [(&str, Dialect); 4] = [
    ("plugin.toml", Dialect::Embedded),
    ("plugin.json", Dialect::Embedded),
    (".claude-plugin/plugin.json", Dialect::Embedded),
    (".mcp.json", Dialect::McpJson),
];

/// The project that a folder belongs to: the nearest folder at or above it with a project file, not above
/// a repository's root or the home folder; else the repository's root; else the folder itself.
pub fn project_root(start: &Path, home: &Path, files: &impl Files) -> PathBuf {
    for folder in start.ancestors() {
        let names = PROJECT_FILES
            .iter()
            .map(|(name, _)| *name)
            .chain([LOCAL_FILE]);
        let has_file = names.into_iter().any(|name| {
            let path = folder.join(name);
            match name {
                // The user's own settings are not a project's.
                ".claude/settings.json" if folder == home => false,
                AGENT_FILE => {
                    let bytes = files.read(&path).ok().flatten();
                    bytes.is_some_and(|bytes| names_servers(&bytes))
                }
                _ => files.exists(&path),
            }
        });
        if has_file || files.exists(&folder.join(".git")) {
            return folder.to_owned();
        }
        if folder == home {
            break;
        }
    }
    start.to_owned()
}

/// A place that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The scope it would belong to.
    pub scope: Scope,
    /// The path.
    pub path: PathBuf,
    /// Whether a file is there.
    pub found: bool,
}

/// A file to look for.
pub(crate) struct Candidate {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    pub(crate) dialect: Dialect,
    pub(crate) plugin_root: Option<PathBuf>,
    pub(crate) needs_trust: bool,
    /// Whether somebody named it, so that its absence is a mistake.
    pub(crate) by_hand: bool,
}

impl Candidate {
    /// A file named with `--config`.
    pub(crate) fn by_hand(path: PathBuf) -> Self {
        Self {
            scope: Scope::Local,
            path,
            dialect: Dialect::Native,
            plugin_root: None,
            needs_trust: false,
            by_hand: true,
        }
    }
}

impl Folders {
    /// Every file that may hold configuration, highest precedence first, without those named by hand.
    pub(crate) fn candidates(&self, files: &impl Files) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut add = |scope, path, dialect, plugin_root, needs_trust| {
            candidates.push(Candidate {
                scope,
                path,
                dialect,
                plugin_root,
                needs_trust,
                by_hand: false,
            });
        };
        if let Some(path) = &self.managed_file {
            add(
                Scope::Enterprise,
                path.clone(),
                Dialect::Native,
                None,
                false,
            );
        }
        // A repository can carry this file as well as any other, so it needs trust as any other.
        add(
            Scope::Local,
            self.project.join(LOCAL_FILE),
            Dialect::Native,
            None,
            true,
        );
        for (name, dialect) in PROJECT_FILES {
            if !(self.project == self.home && dialect == Dialect::Embedded) {
                add(Scope::Project, self.project.join(name), dialect, None, true);
            }
        }
        for name in USER_FILES {
            add(
                Scope::User,
                self.config.join(name),
                Dialect::Native,
                None,
                false,
            );
        }
        add(
            Scope::User,
            self.home.join(".claude/settings.json"),
            Dialect::Embedded,
            None,
            false,
        );
        for folder in files.folders(&self.config.join("plugins")) {
            for (name, dialect) in PLUGIN_FILES {
                add(
                    Scope::Plugin,
                    folder.join(name),
                    dialect,
                    Some(folder.clone()),
                    false,
                );
            }
        }
        add(
            Scope::Dynamic,
            self.state.join("dynamic.toml"),
            Dialect::Native,
            None,
            false,
        );
        candidates
    }
}

/// Reads a file into a source, or reports why it cannot be. `None` when it is absent or unusable.
pub(crate) fn open(
    candidate: Candidate,
    project: &Path,
    files: &impl Files,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<Source>, ()> {
    let Candidate {
        scope,
        path,
        dialect,
        plugin_root,
        needs_trust,
        by_hand: _,
    } = candidate;
    let mut refuse = |diagnostic: Diagnostic| {
        diagnostics.push(diagnostic);
        Err(())
    };
    let bytes = match files.read(&path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) => {
            let hint = error.hint();
            return refuse(
                Diagnostic::error("unreadable", path, error.to_string()).with_hint(hint),
            );
        }
    };
    if path.file_name().is_some_and(|name| name == AGENT_FILE) && !names_servers(&bytes) {
        return Ok(None);
    }
    if needs_trust && leads_out(&path, project, files) {
        let message = "a project's file is a link to a file outside of the project";
        return refuse(
            Diagnostic::error("link-leads-out", path, message)
                .with_hint("replace the link by a file"),
        );
    }
    let Some(format) = Format::of_path(&path) else {
        let message = "the file's ending names no format";
        let hint = "use .toml, .json, .jsonc or .hcl";
        return refuse(Diagnostic::error("unknown-format", path, message).with_hint(hint));
    };
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            // Some editors begin a file with a byte order mark, which is no part of any format.
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            let file = SourceFile::new(path, scope, text);
            Ok(Some(Source {
                file,
                format,
                dialect,
                plugin_root,
                needs_trust,
            }))
        }
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let before = error.as_bytes().get(..valid).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = before
                .iter()
                .rev()
                .take_while(|byte| **byte != b'\n')
                .count()
                + 1;
            let place = Place::Position(path, Position { line, column });
            refuse(
                Diagnostic::error("not-utf8", place, "the file is not UTF-8 text")
                    .with_hint("save it as UTF-8"),
            )
        }
    }
}

/// Whether a file has something about servers in it, as far as a glance tells.
fn names_servers(bytes: &[u8]) -> bool {
    let key = b"mcp_servers";
    bytes.windows(key.len()).any(|window| window == key)
}

fn leads_out(path: &Path, project: &Path, files: &impl Files) -> bool {
    match (files.real_path(path), files.real_path(project)) {
        (Some(path), Some(project)) => !path.starts_with(project),
        _ => true,
    }
}

/// A source that is no file on disk: fetched, or added at run time.
pub fn detached_source(
    scope: Scope,
    label: &str,
    format: Format,
    text: impl Into<String>,
) -> Source {
    let file: Arc<SourceFile> = SourceFile::new(label, scope, text);
    Source {
        file,
        format,
        dialect: Dialect::McpJson,
        plugin_root: None,
        needs_trust: false,
    }
}
