//! `cargo xtask mutants`: checks that the tests detect changes to security-relevant code.
//!
//! cargo-mutants applies one mutation at a time to these modules and runs their tests. Survivors must be listed in
//! `tests/mutants.toml` with the reason why they are not a gap. The command fails on a new survivor, and on a listed
//! one that is now caught, if its module was run.

use std::collections::BTreeSet;
use std::path::Path;

use crate::run::{command, is_installed, root, run_command};

/// The list of known survivors, relative to the root.
const KNOWN: &str = "tests/mutants.toml";
/// Output folder of cargo-mutants, relative to the root.
const OUTPUT: &str = "target/mutants";

/// A security-relevant part of the code, and the tests that must detect changes to it.
struct Module {
    name: &'static str,
    files: &'static [&'static str],
    /// The packages whose tests run.
    packages: &'static [&'static str],
    /// Selects their tests, as a nextest filter.
    tests: &'static str,
}

const MODULES: &[Module] = &[
    Module {
        name: "permissions",
        files: &["crates/switchboard/src/permissions/**/*.rs"],
        packages: &["switchboard"],
        tests: "test(permissions::) | binary(permissions)",
    },
    Module {
        name: "trust",
        files: &[
            "crates/switchboard-config/src/trust.rs",
            "crates/switchboard-config/src/trust/**/*.rs",
            "crates/switchboard-config/src/resolve/**/*.rs",
        ],
        packages: &["switchboard-config"],
        tests: "test(trust) | test(resolve::) | binary(resolve)",
    },
    Module {
        name: "pins",
        files: &["crates/switchboard/src/pins/**/*.rs"],
        packages: &["switchboard", "switchboard-test"],
        tests: "test(pins::) | binary(rug_pull)",
    },
    Module {
        name: "sandbox",
        files: &["crates/switchboard/src/sandbox/**/*.rs"],
        packages: &["switchboard", "switchboard-cli"],
        tests: "test(sandbox::)",
    },
    Module {
        name: "auth",
        files: &["crates/switchboard/src/auth/**/*.rs"],
        packages: &["switchboard", "switchboard-test"],
        tests: "test(auth::) | binary(auth) | binary(vault) | binary(logins)",
    },
    Module {
        name: "access",
        files: &[
            "crates/switchboard-server/src/http/access.rs",
            "crates/switchboard-server/src/http/token.rs",
            "crates/switchboard-server/src/http/admission.rs",
        ],
        packages: &["switchboard-server"],
        tests: "test(http::) | test(attacks::) | test(floods::)",
    },
];

pub(crate) fn mutants(words: &[&str]) -> Result<(), String> {
    // `--shard 0/20` runs a part of each module's mutants.
    let (shard, names): (Option<&str>, &[&str]) = match words {
        [names @ .., "--shard", shard] => (Some(*shard), names),
        names => (None, names),
    };
    let chosen = choose(names)?;
    if !is_installed(&["cargo", "mutants", "--version"]) {
        return Err("cargo-mutants is not installed: run `cargo install cargo-mutants`".to_owned());
    }
    // Files are mutated in place, to reuse the build and the installed servers; committed files can be restored.
    let is_clean = command(&["git", "status", "--porcelain", "--untracked-files=no"])
        .output()
        .is_ok_and(|output| output.status.success() && output.stdout.is_empty());
    if !is_clean {
        return Err("commit or undo your changes first: files are mutated in place".to_owned());
    }
    let known = known(&root().join(KNOWN))?;
    let mut troubles = Vec::new();
    for module in chosen {
        let survivors = run(module, shard)?;
        troubles.extend(compare(module, &survivors, &known, shard.is_none()));
    }
    if troubles.is_empty() {
        println!("\nevery mutant was caught, or is explained in {KNOWN}");
        return Ok(());
    }
    Err(troubles.join("\n"))
}

fn choose(names: &[&str]) -> Result<Vec<&'static Module>, String> {
    if names.is_empty() {
        return Ok(MODULES.iter().collect());
    }
    let find = |name: &&str| {
        let found = MODULES.iter().find(|module| module.name == *name);
        found.ok_or_else(|| {
            let all: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
            format!("unknown module \"{name}\"; use one of {}", all.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Runs the mutants of one module and returns the survivors, without line and column.
fn run(module: &Module, shard: Option<&str>) -> Result<BTreeSet<String>, String> {
    let output = root().join(OUTPUT).join(module.name);
    let missed = output.join("mutants.out/missed.txt");
    let mut mutants = command(&[
        "cargo",
        "mutants",
        // Not only the default members.
        "--workspace",
        "--in-place",
        "--no-shuffle",
        "--test-tool=nextest",
        "--timeout-multiplier=5",
        "--minimum-test-timeout=60",
        "--colors=never",
    ]);
    mutants.arg("--output").arg(&output);
    for file in module.files {
        mutants.args(["--file", file]);
    }
    for package in module.packages {
        mutants.args(["--test-package", package]);
    }
    if let Some(shard) = shard {
        mutants.args(["--shard", shard]);
    }
    mutants.args(["--", "-E", module.tests]);
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let outcome = run_command(mutants);
    match std::fs::read_to_string(&missed) {
        // cargo-mutants fails if any mutant survives; known survivors are filtered later.
        Ok(text) if is_finished(&output) => Ok(text.lines().map(without_place).collect()),
        _ => Err(outcome
            .err()
            .unwrap_or_else(|| format!("{} was not written", missed.display()))),
    }
}

fn is_finished(output: &Path) -> bool {
    let outcomes = std::fs::read(output.join("mutants.out/outcomes.json")).unwrap_or_default();
    all_tried(&serde_json::from_slice(&outcomes).unwrap_or_default())
}

/// Whether the tests passed without a mutation, and every mutant of at least one was tried.
fn all_tried(outcomes: &serde_json::Value) -> bool {
    let count = |name: &str| outcomes[name].as_u64();
    let tried: Option<u64> = ["caught", "missed", "timeout", "unviable"]
        .map(count)
        .into_iter()
        .sum();
    tried.is_some_and(|tried| tried > 0) && tried == count("total_mutants")
}

/// `path: mutation`, without line and column, which change with every edit.
fn without_place(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    let (path, _, _, mutation) = (parts.next(), parts.next(), parts.next(), parts.next());
    match (path, mutation) {
        (Some(path), Some(mutation)) => format!("{path}: {}", mutation.trim()),
        _ => line.to_owned(),
    }
}

/// Reads the known survivors, each with a reason.
fn known(path: &Path) -> Result<BTreeSet<String>, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{shown}: {error}"))?;
    let survivors = table.get("survivor").and_then(toml::Value::as_array);
    let mut known = BTreeSet::new();
    for survivor in survivors.into_iter().flatten() {
        let text = |key: &str| survivor.get(key).and_then(toml::Value::as_str);
        let (Some(file), Some(mutation), Some(why)) = (text("file"), text("mutation"), text("why"))
        else {
            return Err(format!(
                "{shown}: a survivor needs `file`, `mutation` and `why`"
            ));
        };
        if why.trim().is_empty() {
            return Err(format!(
                "{shown}: the survivor \"{mutation}\" has no reason"
            ));
        }
        known.insert(format!("{file}: {mutation}"));
    }
    Ok(known)
}

/// Returns survivors without a reason and, if all mutants were tried, reasons without a survivor.
fn compare(
    module: &Module,
    survivors: &BTreeSet<String>,
    known: &BTreeSet<String>,
    is_complete: bool,
) -> Vec<String> {
    let new = survivors
        .difference(known)
        .map(|survivor| format!("survived: {survivor}"));
    let is_of_module = |survivor: &&String| {
        let path = survivor.split(':').next().unwrap_or_default();
        module
            .files
            .iter()
            .any(|pattern| matches_pattern(pattern, path))
    };
    let gone = known
        .difference(survivors)
        .filter(|survivor| is_complete && is_of_module(survivor))
        .map(|survivor| format!("no longer survives, remove it from {KNOWN}: {survivor}"));
    new.chain(gone).collect()
}

/// Whether a path matches a pattern: the whole path, or the part before `**`.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    match pattern.split_once("**") {
        Some((folder, _)) => path.starts_with(folder),
        None => path == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_only_if_it_tried_every_mutant_and_there_were_some() {
        let outcomes = |total, caught, missed| {
            serde_json::json!({
                "total_mutants": total, "caught": caught, "missed": missed, "timeout": 1, "unviable": 2,
            })
        };
        assert!(all_tried(&outcomes(9, 5, 1)));
        assert!(!all_tried(&outcomes(10, 5, 1)));
        assert!(!all_tried(&serde_json::json!({
            "total_mutants": 0, "caught": 0, "missed": 0, "timeout": 0, "unviable": 0,
        })));
        assert!(!all_tried(&serde_json::Value::Null));
    }

    #[test]
    fn every_module_has_files_and_the_known_survivors_are_of_one() {
        for module in MODULES {
            for file in module.files {
                let path = file.split("**").next().unwrap_or(file);
                assert!(root().join(path).exists(), "{path}");
            }
        }
        let known = known(&root().join(KNOWN));
        let known = known.unwrap_or_else(|error| panic!("{error}"));
        for survivor in known {
            let path = survivor.split(':').next().unwrap_or_default();
            let is_of = |module: &Module| {
                module
                    .files
                    .iter()
                    .any(|pattern| matches_pattern(pattern, path))
            };
            assert!(MODULES.iter().any(is_of), "{survivor}");
            assert!(root().join(path).exists(), "{survivor}");
        }
    }

    #[test]
    fn new_survivors_and_stale_reasons_are_reported() {
        let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let access = choose(&["access"]).unwrap_or_default();
        let found = "crates/switchboard-server/src/http/access.rs:12:5: replace a -> b with true";
        let new = without_place(found);
        assert_eq!(
            new,
            "crates/switchboard-server/src/http/access.rs: replace a -> b with true"
        );
        let old = "crates/switchboard-server/src/http/token.rs: replace x with ()";
        let other = "crates/switchboard/src/pins/mod.rs: replace y with ()";
        let troubles = compare(access[0], &set(&[&new]), &set(&[old, other]), true);
        assert_eq!(troubles.len(), 2, "{troubles:?}");
        assert!(troubles[0].starts_with("survived: "), "{troubles:?}");
        assert!(troubles[1].contains("no longer survives"), "{troubles:?}");
        assert!(compare(access[0], &set(&[&new]), &set(&[&new]), true).is_empty());
        // A shard says nothing about the other mutants.
        assert!(compare(access[0], &set(&[]), &set(&[old]), false).is_empty());
        assert!(choose(&["nothing"]).is_err_and(|error| error.contains("permissions, trust")));
    }
}
