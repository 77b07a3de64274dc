//! Finds the project files that a command runs or reads, to bind an approval to their contents.
//!
//! Decides which words of a command line are files, and which files a program reads implicitly. Only files in the
//! repository are bound: like the entry, they are part of it. Files that these load in turn are not tracked.

use crate::sort;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::fingerprint::hex;
use crate::files::{Files, ReadError};

/// Targets of an entry, which an approval is bound to besides its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leads {
    /// Resolved program of the command.
    pub(crate) program: Option<Arc<Path>>,
    /// Resolved `cwd`.
    pub(crate) folder: Option<String>,
    /// Project files that are run or read.
    pub(crate) files: Vec<BoundFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundFile {
    /// Relative to the project.
    pub(crate) path: String,
    pub(crate) content: FileContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileContent {
    Hashed {
        digest: String,
        bytes: u64,
    },
    /// A symlink to a target outside the repository.
    Link(PathBuf),
    Unreadable(ReadError),
}

/// Words of a command that may name files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Named<'n> {
    /// Program and arguments, expanded.
    pub(crate) words: &'n [String],
    /// Values of variables, expanded.
    pub(crate) values: &'n [String],
    /// Resolved program, if known.
    pub(crate) program: Option<&'n Path>,
}

/// Maximum length of a path.
const LONGEST_PATH: usize = 4096;

/// Maximum number of words to examine; no realistic command has more.
const MOST_WORDS: usize = 4096;

/// Finds and hashes project files, each once.
pub(crate) struct FileBinder<'f, F> {
    files: &'f F,
    project: PathBuf,
    /// Root of the project's repository, as given and with symlinks resolved.
    repository: PathBuf,
    real_repository: PathBuf,
    seen: HashMap<PathBuf, Option<BoundFile>>,
}

impl<'f, F: Files> FileBinder<'f, F> {
    pub(crate) fn new(files: &'f F, project: &Path) -> Self {
        // A project may be a subfolder of a repository; its siblings are untrusted as well.
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

    /// Description of a `cwd` that an approval is bound to.
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

    /// Files that a command names or reads implicitly, in path order.
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
                    // A folder prepended to `PATH` decides which program runs.
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
        sort::by(&mut found, |one, other| one.path.cmp(&other.path));
        found.dedup();
        found
    }

    /// The file that a setting names, if it is in the repository. Relative paths start in the project.
    pub(crate) fn named(&mut self, path: &Path) -> Option<BoundFile> {
        let path = self.project.join(path);
        self.file(&path)
    }

    /// Adds a file, or the entry points of a folder that is run as a program.
    fn add(&mut self, path: &Path, found: &mut Vec<BoundFile>) {
        if let Some(file) = self.file(path) {
            found.push(file);
        } else if self.is_inside(path) && self.files.is_folder(path) {
            for name in OF_A_FOLDER {
                found.extend(self.file(&path.join(name)));
            }
        }
    }

    /// Whether a path is in the repository, ignoring symlinks.
    fn is_inside(&self, path: &Path) -> bool {
        let path = plain(path);
        path.starts_with(&self.repository) || path.starts_with(&self.real_repository)
    }

    /// Hashes a file of the project; `None` if it is not one.
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
                // Neither a linked folder nor a missing file is bound.
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

/// Removes `.` and `..` lexically.
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

/// Possible paths in a word: the word itself, the text after `=`, `:`, `,` or `@`, and the words of shell code.
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

/// Extensions that an interpreter adds to the name of a script or module.
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

/// Entry points of a folder that is run as a program: `node .`, `python package`, `npx ./server`.
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

/// Files in its folder that a program reads implicitly and that decide what runs.
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
        // A fetched package does not depend on the project's packages, but on the registry.
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
    // `npx x` runs the project's own `x` if there is one; `npm exec` and the others do, too.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_spellings(word: &str, expected: &[&str]) {
        assert_eq!(spellings(word), expected, "{word:?}");
    }

    #[test]
    fn a_word_is_taken_apart_into_all_paths_that_it_may_name() {
        check_spellings("", &[]);
        check_spellings("a", &["a"]);
        check_spellings(".", &["."]);
        check_spellings("--x=./y", &["--x", "./y", "--x=./y"]);
        check_spellings("=a", &["a", "=a"]);
        check_spellings("a=.", &["a", "a=."]);
        check_spellings("file:///p/x", &["file", "/p/x", "file:///p/x"]);
        check_spellings("cd a; ./b", &["cd", "a", "./b", "cd a; ./b"]);
        check_spellings("node .", &["node", ".", "node ."]);
        check_spellings(". .", &[".", ". ."]);
        check_spellings("a a", &["a", "a a"]);
        // Neither can be a path.
        check_spellings("a\0b", &[]);
        check_spellings(&"a".repeat(LONGEST_PATH + 1), &[]);
        let longest = "a".repeat(LONGEST_PATH);
        check_spellings(&longest, &[&longest]);
    }

    #[test]
    fn a_word_of_any_length_has_a_bounded_number_of_spellings() {
        let words = (0..MOST_WORDS / 2).map(|number| format!("k{number}=v{number}"));
        let words: Vec<String> = words.collect();
        // Each of these has three; the one at the limit is completed.
        let found = spellings(&words.join(" ")).len();
        assert!(found > MOST_WORDS && found <= MOST_WORDS + 3, "{found}");
    }

    #[test]
    fn runners_read_the_packages_that_their_words_name() {
        let words = ["-y", "tool", "@scope/other", "folder/", ".", "..", "a/.."];
        let words = words.map(str::to_owned);
        let expected = [
            ".npmrc",
            "bunfig.toml",
            "node_modules/.bin/tool",
            "node_modules/.bin/other",
        ];
        assert_eq!(read_by_itself("npx", &words), expected);
        assert_eq!(read_by_itself("deno", &words), ["deno.json", "deno.jsonc"]);
        assert_eq!(read_by_itself("node", &words), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_is_known_by_its_name_and_by_where_it_is() {
        use crate::files::Disk;

        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let make = |name: &str| std::fs::create_dir_all(root.join(name)).unwrap();
        let write = |name: &str| std::fs::write(root.join(name), name).unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(root.join(target), root.join(name)).unwrap();
        };
        for folder in ["real/sub", "outside/tools"] {
            make(folder);
        }
        for file in ["real/run.sh", "outside/run.sh", "outside/tools/index.js"] {
            write(file);
        }
        link("real", "project");
        link("outside/run.sh", "real/out.sh");
        link("outside/tools", "real/tools");
        link("outside/missing", "real/dangling");
        let mut binder = FileBinder::new(&Disk, &root.join("project"));
        let mut bound = |word: &str| {
            let words = [word.replace("ROOT", root.to_str().unwrap())];
            let named = Named {
                words: &words,
                ..Named::default()
            };
            let found = binder.bind(named, Path::new("")).into_iter();
            let shown = found.map(|file| match file.content {
                FileContent::Hashed { bytes, .. } => format!("{bytes} bytes"),
                FileContent::Link(target) => {
                    let target = target.strip_prefix(&root).unwrap();
                    format!("link to {}", target.display())
                }
                FileContent::Unreadable(reason) => reason.to_string(),
            });
            shown.collect::<Vec<_>>()
        };
        for place in ["", "ROOT/project/", "ROOT/real/"] {
            let mut check = |name: &str, expected: &[&str]| {
                assert_eq!(bound(&format!("{place}{name}")), expected, "{place}{name}");
            };
            check("run.sh", &["11 bytes"]);
            check("out.sh", &["link to outside/run.sh"]);
            // A folder that is a link is not bound itself, but the programs in it are.
            check("tools", &["link to outside/tools/index.js"]);
            check(
                "dangling",
                &["cannot be read: the target of the symlink does not exist"],
            );
            check("sub", &[]);
        }
        assert_eq!(bound("ROOT/outside/run.sh"), [""; 0]);
        assert_eq!(bound("ROOT/outside/tools"), [""; 0]);

        let binder = FileBinder::new(&Disk, &root.join("project"));
        for (folder, expected) in [
            ("sub", "ROOT/real/sub (in the repository)"),
            ("tools", "ROOT/outside/tools (outside of the repository)"),
            ("none", "ROOT/project/none (does not exist)"),
        ] {
            let expected = expected.replace("ROOT", root.to_str().unwrap());
            assert_eq!(binder.folder(Path::new(folder)), expected);
        }
    }
}
