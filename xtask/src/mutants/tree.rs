//! A copy of the workspace in which the modules contain their mutants, and its build.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::Mutant;
use super::switched::{switch, switched};
use crate::run::{command, root};

/// Which lines of which file belong to which mutant.
type Lines = BTreeMap<String, Vec<(Range<usize>, usize)>>;

/// Packages whose tests reach no module with mutants, and that take time to build.
const LEFT_OUT: &[&str] = &[
    "switchboard-bindings",
    "switchboard-node",
    "switchboard-python",
    "xtask",
];

/// Where `cargo xtask test` installs third-party servers, below the root.
const SERVERS: &str = "target/interop";

/// A copy of the files that git knows.
pub(super) struct Tree {
    folder: PathBuf,
    target: PathBuf,
    /// Mutants that did not compile in an earlier run, by their digests.
    unviable: PathBuf,
}

impl Tree {
    /// Copies the workspace below `output`, except for the files that [`Tree::build_all`] writes for these mutants. Files
    /// that are the same already are left alone, so that they are not built again.
    pub(super) fn new(output: &Path, mutants: &[Mutant]) -> Result<Self, String> {
        let tree = Self {
            folder: output.join("tree"),
            target: output.join("target"),
            unviable: output.join("unviable.txt"),
        };
        let listed = command(&[
            "git",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut written: BTreeSet<String> =
            mutants.iter().map(|mutant| mutant.file.clone()).collect();
        for folder in crates(mutants) {
            written.insert(library(folder));
            written.insert(switch_module(folder));
        }
        for file in listed.lines().filter(|file| !written.contains(*file)) {
            // A file that is deleted and not committed yet is left out.
            if let Ok(content) = std::fs::read(root().join(file)) {
                tree.write(file, &content)?;
            }
        }
        let kept = written.iter().map(String::as_str);
        tree.remove_others(&listed.lines().chain(kept).collect())?;
        tree.link_servers()?;
        Ok(tree)
    }

    /// Links the third-party servers, which tests look for below their own root.
    fn link_servers(&self) -> Result<(), String> {
        let servers = root().join(SERVERS);
        let link = self.folder.join(SERVERS);
        if !servers.exists() || link.exists() {
            return Ok(());
        }
        let parent = link.parent().unwrap_or(&link);
        let linked = std::fs::create_dir_all(parent);
        #[cfg(unix)]
        let linked = linked.and_then(|()| std::os::unix::fs::symlink(&servers, &link));
        linked.map_err(|error| format!("{}: {error}", link.display()))
    }

    /// A command in the copy, which builds into a folder of its own.
    pub(super) fn command(&self, line: &[&str]) -> Command {
        let mut command = command(line);
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// Puts all mutants that compile into the copy; those that do not.
    pub(super) fn build_all(&self, mutants: &[Mutant]) -> Result<BTreeSet<usize>, String> {
        let digests: Vec<String> = mutants.iter().map(digest).collect::<Result<_, _>>()?;
        let known = std::fs::read_to_string(&self.unviable).unwrap_or_default();
        let known: HashSet<&str> = known.lines().collect();
        let mut unviable: BTreeSet<usize> = (0..mutants.len())
            .filter(|number| known.contains(digests[*number].as_str()))
            .collect();
        loop {
            let lines = self.write_mutants(mutants, &unviable)?;
            let more = self.build(&lines)?;
            if more.is_empty() {
                return Ok(unviable);
            }
            println!("{} mutants do not compile", more.len());
            unviable.extend(more);
            // Those of modules that this run does not try are kept.
            let found = unviable.iter().map(|number| digests[*number].as_str());
            let all: BTreeSet<&str> = known.iter().copied().chain(found).collect();
            let all: Vec<&str> = all.into_iter().collect();
            std::fs::write(&self.unviable, all.join("\n"))
                .map_err(|error| format!("{}: {error}", self.unviable.display()))?;
        }
    }

    /// Changes one file as a mutant does, without a switch. Whether that compiles.
    pub(super) fn build_one(&self, mutant: &Mutant) -> Result<bool, String> {
        let mut text = read(&mutant.file)?;
        text.replace_range(mutant.span.clone(), &format!(" {} ", mutant.replacement));
        self.write(&mutant.file, text.as_bytes())?;
        let mut build = self.command(&[
            "cargo",
            "test",
            "-p",
            package(mutant),
            "--no-run",
            "--quiet",
        ]);
        let status = build.stderr(Stdio::null()).status();
        status
            .map(|status| status.success())
            .map_err(|error| format!("cargo could not be started: {error}"))
    }

    /// Undoes what [`Tree::build_one`] has changed.
    pub(super) fn restore(&self, mutant: &Mutant) -> Result<(), String> {
        self.write(&mutant.file, read(&mutant.file)?.as_bytes())
    }

    /// Writes the files with mutants; which lines of which file belong to which mutant.
    fn write_mutants(
        &self,
        mutants: &[Mutant],
        without: &BTreeSet<usize>,
    ) -> Result<Lines, String> {
        let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            let of_file = files.entry(&mutant.file).or_default();
            if !without.contains(&number) {
                of_file.push((number, mutant));
            }
        }
        let mut lines = BTreeMap::new();
        for (file, mutants) in files {
            let switched = switched(&read(file)?, &mutants);
            self.write(file, switched.text.as_bytes())?;
            lines.insert(file.to_owned(), switched.lines);
        }
        for folder in crates(mutants) {
            let library = library(folder);
            let text = read(&library)? + "\nmod mutants_switch;\n";
            self.write(&library, text.as_bytes())?;
            let module = switch(mutants.len());
            self.write(&switch_module(folder), module.as_bytes())?;
        }
        Ok(lines)
    }

    /// Builds the copy with its tests; the mutants that do not compile. Libraries come first: most of these mutants are
    /// found there, at half the cost of a library and its tests.
    fn build(&self, lines: &Lines) -> Result<BTreeSet<usize>, String> {
        // Not `cargo build --lib`, which resolves other features and would build the dependencies again.
        let unviable = self.build_targets(&["--test=*"], lines)?;
        if !unviable.is_empty() {
            return Ok(unviable);
        }
        self.build_targets(&["--lib", "--bins", "--tests"], lines)
    }

    fn build_targets(&self, targets: &[&str], lines: &Lines) -> Result<BTreeSet<usize>, String> {
        let mut build = self.command(&["cargo", "test", "--workspace"]);
        let output = build
            .args(without_packages())
            .args(targets)
            .args(["--no-run", "--quiet", "--message-format=json"])
            .stderr(Stdio::null())
            .output()
            .map_err(|error| format!("cargo could not be started: {error}"))?;
        if output.status.success() {
            return Ok(BTreeSet::new());
        }
        let mut unviable = BTreeSet::new();
        let mut others = Vec::new();
        for message in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            let message = &message["message"];
            if message["level"] != "error" || message["spans"].as_array().is_none_or(Vec::is_empty)
            {
                continue;
            }
            match blamed(message, lines) {
                Some(mutant) => drop(unviable.insert(mutant)),
                None => others.push(message["rendered"].as_str().unwrap_or_default().to_owned()),
            }
        }
        if unviable.is_empty() {
            return Err(format!("the copy does not build:\n{}", others.join("\n")));
        }
        Ok(unviable)
    }

    /// Writes a file of the copy, unless it has this content.
    fn write(&self, file: &str, content: &[u8]) -> Result<(), String> {
        let path = self.folder.join(file);
        if std::fs::read(&path).is_ok_and(|now| now == content) {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, content))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Removes source files that are in the copy only.
    fn remove_others(&self, files: &HashSet<&str>) -> Result<(), String> {
        let mut folders = vec![self.folder.join("crates")];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            for path in entries.flatten().map(|entry| entry.path()) {
                let file = path.strip_prefix(&self.folder).unwrap_or(&path);
                if path.is_dir() {
                    folders.push(path);
                } else if !file.to_str().is_some_and(|file| files.contains(file)) {
                    std::fs::remove_file(&path)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// The mutant that an error is about: the one around its place, or else around a place that it mentions.
fn blamed(message: &Value, lines: &Lines) -> Option<usize> {
    let at = |span: &Value| {
        let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
        let of_file = lines.get(span["file_name"].as_str()?)?;
        let of_line = of_file.iter().filter(|(range, _)| range.contains(&line));
        // The innermost, of functions in functions.
        of_line
            .min_by_key(|(range, _)| range.len())
            .map(|(_, mutant)| *mutant)
    };
    let spans = message["spans"].as_array()?;
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        spans.iter().partition(|span| span["is_primary"] == true);
    primary.into_iter().chain(others).find_map(at)
}

/// The folders of the crates with mutants.
fn crates(mutants: &[Mutant]) -> BTreeSet<&str> {
    let folders = mutants.iter().map(|mutant| mutant.file.split_once("/src/"));
    folders.flatten().map(|(folder, _)| folder).collect()
}

/// The root module of a crate, which declares the switch.
fn library(folder: &str) -> String {
    format!("{folder}/src/lib.rs")
}

/// The module with the switch of a crate.
fn switch_module(folder: &str) -> String {
    format!("{folder}/src/mutants_switch.rs")
}

/// The arguments that leave packages out of a build of the workspace.
pub(super) fn without_packages() -> impl Iterator<Item = String> {
    LEFT_OUT
        .iter()
        .map(|package| format!("--exclude={package}"))
}

/// The package that a mutant is in, whose tests are the first to notice it.
pub(super) fn package(mutant: &Mutant) -> &str {
    let folder = mutant.file.strip_prefix("crates/").unwrap_or(&mutant.file);
    folder.split('/').next().unwrap_or(folder)
}

/// Changes when the function of a mutant does.
fn digest(mutant: &Mutant) -> Result<String, String> {
    let text = read(&mutant.file)?;
    let mut hasher = DefaultHasher::new();
    mutant.file.hash(&mut hasher);
    mutant.replacement.hash(&mut hasher);
    if let Some(function) = &mutant.function {
        text[function.whole.clone()].hash(&mut hasher);
        (mutant.span.start - function.body.start).hash(&mut hasher);
    } else {
        mutant.name.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn read(file: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_about_the_mutant_around_its_place() {
        let lines = BTreeMap::from([("a.rs".to_owned(), vec![(3..6, 0), (6..9, 1)])]);
        let span = |line: u64, is_primary: bool| serde_json::json!({"file_name": "a.rs", "line_start": line, "is_primary": is_primary});
        let message = |spans: &[Value]| serde_json::json!({ "spans": spans });
        assert_eq!(
            blamed(&message(&[span(4, false), span(8, true)]), &lines),
            Some(1)
        );
        assert_eq!(
            blamed(&message(&[span(20, true), span(5, false)]), &lines),
            Some(0)
        );
        assert_eq!(blamed(&message(&[span(20, true)]), &lines), None);
    }
}
