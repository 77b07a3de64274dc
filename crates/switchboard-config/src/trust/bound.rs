//! The files of a project that a command runs or reads, or that an entry names: an approval is bound to what is in them.
//!
//! Owns which words of a command line are files, and which files a program reads without being told to. Only files
//! inside of the repository are bound: they come with it, as the entry does. What they load in turn is not
//! looked for.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::fingerprint::hex;
use crate::files::{Files, ReadError};

/// Where an entry leads: what an approval is bound to besides its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leads {
    /// The file that the command names.
    pub(crate) program: Option<Arc<Path>>,
    /// The folder that `cwd` names, with links resolved.
    pub(crate) folder: Option<String>,
    /// The files of the project that are run or read.
    pub(crate) files: Vec<BoundFile>,
}

/// One file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundFile {
    /// Its path in the project.
    pub(crate) path: String,
    pub(crate) content: FileContent,
}

/// What is known of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileContent {
    Hashed {
        digest: String,
        bytes: u64,
    },
    /// It is a link to something that the repository does not carry.
    Link(PathBuf),
    Unreadable(ReadError),
}

/// What a command names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Named<'n> {
    /// The program and its arguments, with references replaced.
    pub(crate) words: &'n [String],
    /// Values of variables, with references replaced.
    pub(crate) values: &'n [String],
    /// The program that was found, where it is known.
    pub(crate) program: Option<&'n Path>,
}

/// No file name is longer than a path may be.
const LONGEST_PATH: usize = 4096;

/// So many words of one command are looked at; a command that has more is no command that somebody wrote.
const MOST_WORDS: usize = 4096;

/// Finds and hashes the files of a project, each once.
pub(crate) struct FileBinder<'f, F> {
    files: &'f F,
    project: PathBuf,
    /// The repository of the project, and the same with links resolved.
    repository: PathBuf,
    real_repository: PathBuf,
    seen: HashMap<PathBuf, Option<BoundFile>>,
}

impl<'f, F: Files> FileBinder<'f, F> {
    pub(crate) fn new(files: &'f F, project: &Path) -> Self {
        // A project may be a folder of a repository, which carries what stands beside it too.
        let repository = project
            .ancestors()
            .find(|folder| files.exists(&folder.join(".git")))
            .unwrap_or(project)
            .to_owned();
        let real_repository = files.real_path(&repository);
        Self {
            files,
            project: project.to_owned(),
            real_repository: real_repository.unwrap_or_else(|| repository.clone()),
            repository,
            seen: HashMap::new(),
        }
    }

    /// The folder of a `cwd`, as an approval is bound to it.
    pub(crate) fn folder(&self, folder: &Path) -> String {
        let path = self.project.join(folder);
        match self.files.real_path(&path) {
            Some(real) if real.starts_with(&self.real_repository) => {
                format!("{} (in the repository)", real.display())
            }
            Some(real) => format!("{} (outside of the repository)", real.display()),
            None => format!("{} (does not exist)", path.display()),
        }
    }

    /// The files that a command names or reads by itself, in the order of their paths.
    pub(crate) fn bind(&mut self, named: Named<'_>, folder: &Path) -> Vec<BoundFile> {
        let folder = self.project.join(folder);
        let mut found: Vec<BoundFile> = Vec::new();
        let words: Vec<String> = named
            .words
            .iter()
            .flat_map(|word| spellings(word))
            .take(MOST_WORDS)
            .collect();
        let values = named.values.iter().flat_map(|value| spellings(value));
        let values: Vec<String> = values.take(MOST_WORDS).collect();
        let tool = named
            .words
            .first()
            .and_then(|command| Path::new(command).file_name())
            .map(|name| name.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let tool = tool
            .strip_suffix(".exe")
            .or(tool.strip_suffix(".cmd"))
            .unwrap_or(&tool);
        for word in words.iter().chain(&values) {
            for base in [&folder, &self.project.clone()] {
                self.add(&base.join(word), &mut found);
                for ending in endings(tool) {
                    self.add(&base.join(format!("{word}{ending}")), &mut found);
                }
                if values.contains(word) {
                    // A folder that is put before the others in `PATH` decides which program runs.
                    if let Some(command) = named.words.first() {
                        self.add(&base.join(word).join(command), &mut found);
                    }
                }
            }
        }
        found.extend(named.program.and_then(|program| self.file(program)));
        for name in read_by_itself(tool, &words) {
            self.add(&folder.join(name), &mut found);
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found.dedup();
        found
    }

    /// The file that a setting names, where the repository carries it. A relative path is taken from the project.
    pub(crate) fn named(&mut self, path: &Path) -> Option<BoundFile> {
        let path = self.project.join(path);
        self.file(&path)
    }

    /// Adds a file, or what is read of a folder that stands for a program.
    fn add(&mut self, path: &Path, found: &mut Vec<BoundFile>) {
        if let Some(file) = self.file(path) {
            found.push(file);
        } else if self.is_inside(path) && self.files.is_folder(path) {
            for name in OF_A_FOLDER {
                found.extend(self.file(&path.join(name)));
            }
        }
    }

    /// Whether a path would be in the repository if it had no links in it.
    fn is_inside(&self, path: &Path) -> bool {
        let path = plain(path);
        path.starts_with(&self.repository) || path.starts_with(&self.real_repository)
    }

    /// A file of the project; `None` when it is none.
    fn file(&mut self, path: &Path) -> Option<BoundFile> {
        let path = plain(path);
        if path.as_os_str().len() > LONGEST_PATH {
            return None;
        }
        if let Some(known) = self.seen.get(&path) {
            return known.clone();
        }
        let file = self.look(&path);
        self.seen.insert(path, file.clone());
        file
    }

    fn look(&self, path: &Path) -> Option<BoundFile> {
        let is_named_inside = self.is_inside(path);
        let real = self.files.real_path(path);
        let is_inside = real
            .as_ref()
            .is_some_and(|real| real.starts_with(&self.real_repository));
        if !is_named_inside && !is_inside {
            return None;
        }
        let shown = path.strip_prefix(&self.project).unwrap_or(path);
        let content = match (&real, is_inside) {
            (Some(real), false) => {
                // A folder behind a link is no file, and a file that is not there is none either.
                if self.files.is_folder(real) || !self.files.exists(real) {
                    return None;
                }
                FileContent::Link(real.clone())
            }
            _ => match self.files.digest(path) {
                Ok(Some((digest, bytes))) => FileContent::Hashed {
                    digest: hex(&digest),
                    bytes,
                },
                Ok(None) | Err(ReadError::NotAFile) => return None,
                Err(reason) => FileContent::Unreadable(reason),
            },
        };
        let path = shown.display().to_string();
        Some(BoundFile { path, content })
    }
}

/// A path without `.` and `..`, as far as its text goes.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            component => plain.push(component),
        }
    }
    plain
}

/// What in a word may be the path of a file: the word itself, what follows `=`, `:`, `,` or `@`, and the words of a
/// text for a shell.
fn spellings(word: &str) -> Vec<String> {
    let separates = |character: char| {
        character.is_whitespace()
            || matches!(
                character,
                ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' | '"' | '\''
            )
    };
    let mut spellings = Vec::new();
    for piece in word.split(separates).chain([word]) {
        let parts = piece.split(['=', ':', ',', '@']);
        for part in parts.chain([piece]) {
            let part = part.strip_prefix("//").unwrap_or(part);
            let may_be = !part.is_empty() && part.len() <= LONGEST_PATH && !part.contains('\0');
            if may_be && part != "." && !spellings.iter().any(|known| known == part) {
                spellings.push(part.to_owned());
            }
        }
        if piece == "." && !spellings.iter().any(|known| known == ".") {
            spellings.push(".".to_owned());
        }
        if spellings.len() > MOST_WORDS {
            break;
        }
    }
    spellings
}

/// Endings that an interpreter adds to the name of a script or a module.
fn endings(tool: &str) -> &'static [&'static str] {
    match tool {
        "node" | "bun" | "deno" | "tsx" | "ts-node" | "npx" | "bunx" => {
            &[".js", ".mjs", ".cjs", ".ts", ".json"]
        }
        tool if tool.starts_with("python") || tool.starts_with("pypy") || tool == "uv" => &[".py"],
        "ruby" => &[".rb"],
        "perl" => &[".pl", ".pm"],
        _ => &[],
    }
}

/// What is read of a folder that is started as a program: `node .`, `python package`, `npx ./server`.
const OF_A_FOLDER: &[&str] = &[
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "server.js",
    "__init__.py",
    "__main__.py",
    "pyproject.toml",
    "setup.py",
    "deno.json",
    "Cargo.toml",
    "build.rs",
    "go.mod",
    "main.go",
    "Makefile",
    "Dockerfile",
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];

/// What a program reads in its folder without being told to, where it decides what is run.
fn read_by_itself(tool: &str, words: &[String]) -> Vec<String> {
    let names: &[&str] = match tool {
        "npm" | "pnpm" | "pnpx" | "yarn" | "bun" | "corepack" => &[
            "package.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            "bunfig.toml",
            "pnpm-workspace.yaml",
        ],
        // A package that is fetched does not hang on the project's own, but on where it is fetched from.
        "npx" | "bunx" => &[".npmrc", "bunfig.toml"],
        "deno" => &["deno.json", "deno.jsonc"],
        "uv" | "poetry" | "hatch" | "pdm" | "rye" => &["pyproject.toml", "uv.toml", "poetry.toml"],
        "uvx" | "pipx" => &["uv.toml"],
        "make" | "gmake" => &["GNUmakefile", "makefile", "Makefile"],
        "just" => &["justfile", "Justfile", ".justfile"],
        "task" => &["Taskfile.yml", "Taskfile.yaml"],
        "cargo" => &[
            "Cargo.toml",
            ".cargo/config.toml",
            ".cargo/config",
            "build.rs",
        ],
        "go" => &["go.mod", "main.go"],
        "docker" | "docker-compose" | "podman" => &[
            "compose.yaml",
            "compose.yml",
            "docker-compose.yaml",
            "docker-compose.yml",
            "Dockerfile",
        ],
        "bundle" | "rake" | "ruby" => &["Gemfile", "Rakefile"],
        "mvn" => &["pom.xml"],
        "gradle" => &["build.gradle", "build.gradle.kts", "settings.gradle"],
        "mise" => &["mise.toml", ".mise.toml"],
        "direnv" => &[".envrc"],
        _ => &[],
    };
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    // `npx x` runs the project's own `x` where it has one, `npm exec` and the others too.
    let is_runner = matches!(tool, "npx" | "bunx" | "npm" | "pnpm" | "yarn" | "bun");
    for word in words
        .iter()
        .filter(|word| is_runner && !word.starts_with('-'))
    {
        let bare = word.rsplit('/').next().unwrap_or(word);
        if !bare.is_empty() && bare != "." && bare != ".." {
            names.push(format!("node_modules/.bin/{bare}"));
        }
    }
    names
}
