//! `cargo xtask mutants`: whether the tests notice when the code that protects is changed.
//!
//! cargo-mutants lists the changes that it would make in the modules that security rests on. All of them are built into
//! one copy of the workspace, and switched on one at a time for the tests that reach the changed function. What they do
//! not notice has to stand in `tests/mutants.toml` with the reason why that is no gap. A new survivor fails the command,
//! and so does an entry that no longer survives. Reasons in `docs/design/0009-mutants.md`.

mod list;
mod runs;
mod switched;
mod tree;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write as _;
use std::path::Path;

use list::Mutant;
use runs::{Outcome, Test};
use tree::{Tree, package};

use crate::run::{is_installed, root};

/// The survivors that are known, below the root.
const KNOWN: &str = "tests/mutants.toml";
/// Where the copy is built and the outcomes are written, below the root.
const OUTPUT: &str = "target/mutants";

/// A part of the code that security rests on, and the tests that have to notice a change in it.
struct Module {
    name: &'static str,
    files: &'static [&'static str],
    /// Which tests, as a nextest filter over the workspace.
    tests: &'static str,
}

const MODULES: &[Module] = &[
    Module {
        name: "permissions",
        files: &["crates/switchboard/src/permissions/**/*.rs"],
        tests: "test(permissions::) | binary(permissions) | binary(audit) | test(/^(reading|secrets)::/) \
                | test(a_change_is_shown_before_it_is_approved)",
    },
    Module {
        name: "trust",
        files: &[
            "crates/switchboard-config/src/trust.rs",
            "crates/switchboard-config/src/trust/**/*.rs",
            "crates/switchboard-config/src/resolve/**/*.rs",
        ],
        tests: "binary(resolve) | test(trust)",
    },
    Module {
        name: "pins",
        files: &["crates/switchboard/src/pins/**/*.rs"],
        tests: "test(pins::) | binary(rug_pull)",
    },
    Module {
        name: "sandbox",
        files: &["crates/switchboard/src/sandbox/**/*.rs"],
        tests: "test(/sandbox[a-z_]*::/) | binary(sandbox_state)",
    },
    Module {
        name: "auth",
        files: &["crates/switchboard/src/auth/**/*.rs"],
        tests: "test(auth::) | binary(auth) | binary(vault) | binary(logins) | test(/^login::/)",
    },
    Module {
        name: "access",
        files: &[
            "crates/switchboard-server/src/http/access.rs",
            "crates/switchboard-server/src/http/token.rs",
            "crates/switchboard-server/src/http/admission.rs",
        ],
        tests: "package(switchboard-server) & (test(http::) | test(attacks::) | test(floods::))",
    },
];

/// What a run tries.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Extent {
    /// Only what the last run did not see noticed: survivors, and what it did not try.
    again: bool,
    /// With all tests of the workspace, to find the ones that a module's filter leaves out.
    wide: bool,
    /// With quick tests only: a first look, after which `again` tries the rest.
    quick: bool,
}

pub(crate) fn mutants(words: &[&str]) -> Result<(), String> {
    let (options, names): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with("--"));
    let extent = Extent {
        again: options.contains(&"--again"),
        wide: options.contains(&"--wide"),
        quick: options.contains(&"--quick"),
    };
    if let Some(other) = options
        .iter()
        .find(|option| !matches!(**option, "--again" | "--wide" | "--quick"))
    {
        return Err(format!(
            "unknown option {other}; expected --again, --quick or --wide"
        ));
    }
    let chosen = choose(&names)?;
    for tool in ["mutants", "nextest"] {
        if !is_installed(&["cargo", tool, "--version"]) {
            return Err(format!(
                "cargo-{tool} is not installed: run `cargo install cargo-{tool}`"
            ));
        }
    }
    let known = known(&root().join(KNOWN))?;
    let output = root().join(OUTPUT);
    let mut mutants = Vec::new();
    let mut of_modules = Vec::new();
    for module in &chosen {
        let start = mutants.len();
        mutants.extend(list::list(module.files, &root())?);
        of_modules.push(start..mutants.len());
    }
    println!("{} mutants", mutants.len());
    let tree = Tree::new(&output, &mutants)?;
    let unviable = tree.build_all(&mutants)?;
    let (tests, of_module) = tests(&tree, &chosen, extent.wide, &output)?;
    let functions = functions(&mutants, &unviable);
    let mut runs = Vec::new();
    for ((module, range), names) in chosen.iter().zip(of_modules).zip(&of_module) {
        let path = output.join(format!("{}.txt", module.name));
        let before = if extent.again {
            noticed_before(&path, &mutants[range.clone()])
        } else {
            HashSet::new()
        };
        let is_tried = |number: &usize| {
            let name = without_place(&mutants[*number].name);
            !unviable.contains(number) && !before.contains(&name)
        };
        let tried: Vec<usize> = range.clone().filter(is_tried).collect();
        if !extent.again {
            write_outcomes(&path, &[], &mutants, false)?;
        }
        let record = |number: usize, outcome: &Outcome| {
            append(&path, &line(&mutants[number], outcome));
        };
        let reaching = |number: usize, function: usize| {
            let mut reaching = runs::reaching(&tests, names, function);
            // Survivors cost the most, and these are explained already.
            if extent.quick || known.contains(&without_place(&mutants[number].name)) {
                reaching.truncate(runs::quick(&reaching));
            }
            reaching
        };
        let outcomes = try_all(module, &tried, &mutants, &functions, &reaching, &record);
        write_outcomes(&path, &outcomes, &mutants, extent.again)?;
        let unviable = range.clone().filter(|number| unviable.contains(number));
        println!(
            "\n{}: {} mutants, {} do not compile, {} tried",
            module.name,
            range.len(),
            unviable.count(),
            tried.len(),
        );
        runs.push((module, path, tried, outcomes));
    }
    let mut troubles = Vec::new();
    for (module, path, tried, mut outcomes) in runs {
        // A constant that other files use has no switch, so these are built one at a time.
        for number in tried {
            let mutant = &mutants[number];
            if mutant.function.is_none() && mutant.constant.is_none() {
                let outcome = try_alone(&tree, mutant, module)?;
                println!("{}: {}", mutant.name, outcome.to_line());
                outcomes.push((number, outcome));
                write_outcomes(&path, &outcomes, &mutants, extent.again)?;
            }
        }
        let survivors = outcomes
            .iter()
            .filter(|(_, outcome)| !outcome.is_noticed())
            .map(|(number, _)| without_place(&mutants[*number].name))
            .collect();
        troubles.extend(compare(module, &survivors, &known));
    }
    if troubles.is_empty() {
        println!("\nevery mutant was noticed, or is explained in {KNOWN}");
        return Ok(());
    }
    Err(troubles.join("\n"))
}

/// The tests with what they reach, and the names of those of each module.
fn tests(
    tree: &Tree,
    modules: &[&Module],
    wide: bool,
    output: &Path,
) -> Result<(Vec<Test>, Vec<HashSet<String>>), String> {
    let mut all: BTreeMap<String, Test> = BTreeMap::new();
    let mut of_module = Vec::new();
    for module in modules {
        let found = runs::list(tree, if wide { "all()" } else { module.tests })?;
        of_module.push(found.iter().map(|test| test.name.clone()).collect());
        all.extend(found.into_iter().map(|test| (test.name.clone(), test)));
    }
    let mut all: Vec<Test> = all.into_values().collect();
    println!("{} tests", all.len());
    let failed = runs::record(&mut all, output);
    for test in &failed {
        println!("left out, for it fails without a mutation: {test}");
    }
    all.retain(|test| !failed.contains(&test.name));
    if all.is_empty() {
        return Err("no test passes without a mutation".to_owned());
    }
    Ok((all, of_module))
}

/// The number of each mutant's function or constant, which is that of its first mutant that compiles.
fn functions(mutants: &[Mutant], unviable: &BTreeSet<usize>) -> BTreeMap<usize, usize> {
    let mut first = BTreeMap::new();
    let mut functions = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        if let Some(function) = &mutant.function
            && !unviable.contains(&number)
        {
            let key = (&mutant.file, function.body.start);
            functions.insert(number, *first.entry(key).or_insert(number));
        }
        if let Some(constant) = &mutant.constant
            && !unviable.contains(&number)
        {
            let key = (&mutant.file, constant.item.start);
            functions.insert(number, *first.entry(key).or_insert(number));
        }
    }
    functions
}

fn try_all<'t>(
    module: &Module,
    tried: &[usize],
    mutants: &[Mutant],
    functions: &BTreeMap<usize, usize>,
    reaching: &(dyn Fn(usize, usize) -> Vec<&'t Test> + Sync),
    record: &(dyn Fn(usize, &Outcome) + Sync),
) -> Vec<(usize, Outcome)> {
    let switched: Vec<(usize, usize)> = tried
        .iter()
        .filter_map(|number| Some((*number, *functions.get(number)?)))
        .collect();
    println!("\n{}: {} mutants to try", module.name, switched.len());
    runs::in_parallel(&switched, |(number, function)| {
        let outcome = runs::outcome(*number, &reaching(*number, *function));
        if !outcome.is_noticed() {
            println!("{}: {}", mutants[*number].name, outcome.to_line());
        }
        record(*number, &outcome);
        (*number, outcome)
    })
}

/// Builds a mutant that no switch can choose, and runs the tests of its module.
fn try_alone(tree: &Tree, mutant: &Mutant, module: &Module) -> Result<Outcome, String> {
    if !tree.build_one(mutant)? {
        return Ok(Outcome::Caught("the compiler".to_owned()));
    }
    let package = package(mutant);
    let mut run = tree.command(&["cargo", "nextest", "run", "-p", package, "-E", module.tests]);
    let output = run
        .output()
        .map_err(|error| format!("cargo-nextest could not be started: {error}"))?;
    tree.restore(mutant)?;
    Ok(if output.status.success() {
        Outcome::Missed
    } else {
        Outcome::Caught("the module's tests".to_owned())
    })
}

/// Writes one line for each mutant. Those that were not tried again stay as they are.
fn write_outcomes(
    path: &Path,
    outcomes: &[(usize, Outcome)],
    mutants: &[Mutant],
    again: bool,
) -> Result<(), String> {
    let names: HashSet<String> = outcomes
        .iter()
        .map(|(number, _)| without_place(&mutants[*number].name))
        .collect();
    let before = if again {
        std::fs::read_to_string(path).unwrap_or_default()
    } else {
        String::new()
    };
    let name = |line: &str| without_place(line.split('\t').next().unwrap_or_default());
    let others = before.lines().filter(|line| !names.contains(&name(line)));
    let lines: Vec<String> = others
        .map(str::to_owned)
        .chain(
            outcomes
                .iter()
                .map(|(number, outcome)| line(&mutants[*number], outcome)),
        )
        .map(|line| line + "\n")
        .collect();
    std::fs::write(path, lines.concat()).map_err(|error| format!("{}: {error}", path.display()))
}

fn line(mutant: &Mutant, outcome: &Outcome) -> String {
    format!("{}\t{}", mutant.name, outcome.to_line())
}

/// Adds the line of a mutant as soon as its tests have run, so that a run that is stopped leaves what it found.
fn append(path: &Path, line: &str) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    if let Err(error) = written {
        println!("{}: {error}", path.display());
    }
}

/// The mutations that tests noticed in the last run, at each of their places. One that was not tried is not among them.
fn noticed_before(path: &Path, mutants: &[Mutant]) -> HashSet<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for mutant in mutants {
        *places.entry(without_place(&mutant.name)).or_default() += 1;
    }
    let mut missed = HashSet::new();
    for (name, outcome) in text.lines().filter_map(|line| line.split_once('\t')) {
        let name = without_place(name);
        if outcome.starts_with("missed") {
            missed.insert(name);
        } else if let Some(left) = places.get_mut(&name) {
            *left = left.saturating_sub(1);
        }
    }
    places
        .into_iter()
        .filter(|(name, left)| *left == 0 && !missed.contains(name))
        .map(|(name, _)| name)
        .collect()
}

fn choose(names: &[&str]) -> Result<Vec<&'static Module>, String> {
    if names.is_empty() {
        return Ok(MODULES.iter().collect());
    }
    let find = |name: &&str| {
        let found = MODULES.iter().find(|module| module.name == *name);
        found.ok_or_else(|| {
            let all: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
            format!(
                "there is no module \"{name}\"; there are {}",
                all.join(", ")
            )
        })
    };
    names.iter().map(find).collect()
}

/// `path: mutation`, without the line and the column, which change with every edit.
fn without_place(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    let (path, _, _, mutation) = (parts.next(), parts.next(), parts.next(), parts.next());
    match (path, mutation) {
        (Some(path), Some(mutation)) => format!("{path}: {}", mutation.trim()),
        _ => line.to_owned(),
    }
}

/// The survivors of a file, each with a reason.
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

/// What is wrong: survivors without a reason, and reasons without a survivor.
fn compare(module: &Module, survivors: &BTreeSet<String>, known: &BTreeSet<String>) -> Vec<String> {
    let new = survivors
        .difference(known)
        .map(|survivor| format!("survived: {survivor}"));
    let is_of_module = |survivor: &&String| {
        let path = survivor.split(':').next().unwrap_or_default();
        module.files.iter().any(|pattern| fits(pattern, path))
    };
    let gone = known
        .difference(survivors)
        .filter(is_of_module)
        .map(|survivor| format!("no longer survives, remove it from {KNOWN}: {survivor}"));
    new.chain(gone).collect()
}

/// Whether a path fits one of the patterns above: all of a path, or what is before `**`.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once("**") {
        Some((folder, _)) => path.starts_with(folder),
        None => path == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let is_of = |module: &Module| module.files.iter().any(|pattern| fits(pattern, path));
            assert!(MODULES.iter().any(is_of), "{survivor}");
            assert!(root().join(path).exists(), "{survivor}");
        }
    }

    #[test]
    fn new_survivors_and_old_reasons_are_told() {
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
        let troubles = compare(access[0], &set(&[&new]), &set(&[old, other]));
        assert_eq!(troubles.len(), 2, "{troubles:?}");
        assert!(troubles[0].starts_with("survived: "), "{troubles:?}");
        assert!(troubles[1].contains("no longer survives"), "{troubles:?}");
        assert!(compare(access[0], &set(&[&new]), &set(&[&new])).is_empty());
        assert!(choose(&["nothing"]).is_err_and(|error| error.contains("permissions, trust")));
    }
}
