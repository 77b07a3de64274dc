//! Locates and reads the configuration files of each scope.
//!
//! [`Files`] abstracts the file system, so that tests can use files in memory. [`Disk`] is the real one.

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

/// Maximum size of a configuration file, in bytes.
pub const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// File system access.
pub trait Files {
    /// The contents of a file; `None` if it does not exist.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError>;

    /// Direct subfolders, sorted; empty if the folder does not exist.
    fn folders(&self, path: &Path) -> Vec<PathBuf>;

    /// Whether the path exists.
    fn exists(&self, path: &Path) -> bool;

    /// Whether the path is an executable file.
    fn is_program(&self, path: &Path) -> bool;

    /// The path with symlinks resolved; `None` if it does not exist.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;

    /// Whether the path is a folder.
    fn is_folder(&self, path: &Path) -> bool;

    /// SHA-256 and length of a regular file of any size; `None` if it does not exist.
    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError>;
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Permission denied.
    #[error("permission denied")]
    Denied,
    /// A loop of symlinks.
    #[error("the path is a loop of symbolic links")]
    Loop,
    /// A folder, a pipe or a device.
    #[error("this is not a regular file")]
    NotAFile,
    /// Larger than [`LARGEST_FILE`].
    #[error("the file has {0} bytes, and a configuration file may have at most {LARGEST_FILE}")]
    TooLarge(u64),
    /// Another I/O error.
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
        // Reject special files before opening them: opening a pipe would block until it has a writer.
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
            // A file with a name that is too long cannot exist.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return Ok(None),
            Err(error) => return absent_or(&error, path).map(|_| None),
        };
        if !metadata.is_file() {
            return Err(ReadError::NotAFile);
        }
        // Read at most the initial length: a log that keeps growing would never end.
        let hashed = std::fs::File::open(path).and_then(|file| hash(file.take(metadata.len())));
        match hashed {
            Ok(hashed) => Ok(Some(hashed)),
            Err(error) => absent_or(&error, path).map(|_| None),
        }
    }
}

/// Hashes a stream in constant memory.
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
        // A broken symlink is not the same as an absent file.
        io::ErrorKind::NotFound if path.symlink_metadata().is_ok() => Err(ReadError::Other(
            "the target of the symlink does not exist".to_owned(),
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

/// Files in memory, for tests.
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

    /// Adds an executable file.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.programs.push(path.into());
        self
    }

    /// Adds a symlink.
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

/// Folders and files to search for configuration.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// Home folder of the user.
    pub home: PathBuf,
    /// Configuration folder of Switchboard.
    pub config: PathBuf,
    /// State folder: trust decisions, locks, run-time additions.
    pub state: PathBuf,
    /// Project folder, see [`project_root`].
    pub project: PathBuf,
    /// Managed file of the machine; `None`: not used.
    pub managed_file: Option<PathBuf>,
}

/// Configuration of one user in one project.
pub const LOCAL_FILE: &str = ".switchboard.local.toml";

/// Configuration files of a project, our own first.
pub const PROJECT_FILES: [(&str, Dialect); 5] = [
    (".mcp.toml", Dialect::Native),
    ("switchboard.hcl", Dialect::Native),
    (".mcp.json", Dialect::McpJson),
    (".claude/settings.json", Dialect::Embedded),
    (AGENT_FILE, Dialect::Embedded),
];

/// File of another agent with `mcp_servers` blocks. Other programs, such as Vault, use the same name without such
/// blocks: those files are ignored.
const AGENT_FILE: &str = "agent.hcl";

/// Files in the user's configuration folder.
pub const USER_FILES: [&str; 3] = ["mcp.toml", "mcp.json", "mcp.hcl"];

/// Files in a plugin's folder that may define servers.
const PLUGIN_FILES: [(&str, Dialect); 4] = [
    ("plugin.toml", Dialect::Embedded),
    ("plugin.json", Dialect::Embedded),
    (".claude-plugin/plugin.json", Dialect::Embedded),
    (".mcp.json", Dialect::McpJson),
];

/// The project of a folder: the nearest folder at or above it with a project file, within the repository and below the
/// home folder; else the repository's root; else the folder itself.
pub fn project_root(start: &Path, home: &Path, files: &impl Files) -> PathBuf {
    for folder in start.ancestors() {
        let names = PROJECT_FILES
            .iter()
            .map(|(name, _)| *name)
            .chain([LOCAL_FILE]);
        let has_file = names.into_iter().any(|name| {
            let path = folder.join(name);
            match name {
                // The user's own settings do not make the home folder a project.
                ".claude/settings.json" if folder == home => false,
                AGENT_FILE => {
                    let bytes = files.read(&path).ok().flatten();
                    bytes.is_some_and(|bytes| mentions(&bytes, "mcp_servers"))
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

/// A searched location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Scope of the file.
    pub scope: Scope,
    /// May not exist.
    pub path: PathBuf,
    /// Whether the file exists.
    pub found: bool,
}

pub(crate) struct Candidate {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    pub(crate) dialect: Dialect,
    pub(crate) plugin_root: Option<PathBuf>,
    pub(crate) needs_trust: bool,
    /// Whether the user named it, so that its absence is an error.
    pub(crate) by_hand: bool,
}

impl Candidate {
    /// A file given with `--config`.
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
    /// All possible configuration files, highest precedence first, except those given with `--config`.
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
        // A repository can contain this file, so it needs trust like any other.
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

/// Reads a file, or reports why it cannot be read. `None` if it is absent.
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
        by_hand,
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
    if path.file_name().is_some_and(|name| name == AGENT_FILE) {
        // Of a project's file only the servers are ours; one that is named by hand may say everything.
        let ours: &[&str] = if by_hand {
            &[
                "mcp_servers",
                "permissions",
                "settings",
                "hooks",
                "profiles",
            ]
        } else {
            &["mcp_servers"]
        };
        if !ours.iter().any(|key| mentions(&bytes, key)) {
            return Ok(None);
        }
    }
    if needs_trust && leads_out(&path, project, files) {
        let message = "a project's file is a symlink to a file outside of the project";
        return refuse(
            Diagnostic::error("link-leads-out", path, message)
                .with_hint("replace the link by a file"),
        );
    }
    let Some(format) = Format::of_path(&path) else {
        let message = "unknown file extension";
        let hint = "use .toml, .json, .jsonc or .hcl";
        return refuse(Diagnostic::error("unknown-format", path, message).with_hint(hint));
    };
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            // Strip the byte order mark that some editors write.
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

/// Quick check whether a file may have this key.
fn mentions(bytes: &[u8], key: &str) -> bool {
    let key = key.as_bytes();
    bytes.windows(key.len()).any(|window| window == key)
}

fn leads_out(path: &Path, project: &Path, files: &impl Files) -> bool {
    match (files.real_path(path), files.real_path(project)) {
        (Some(path), Some(project)) => !path.starts_with(project),
        _ => true,
    }
}

/// A source that is not a file: fetched, or added at run time.
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
