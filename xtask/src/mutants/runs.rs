//! Runs of tests, each in a process of its own: which functions a test reaches, and whether one notices a mutant.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::switched::{ACTIVE, REACHED};
use super::tree::{Tree, without_packages};

/// How long a quick test takes at most.
const QUICK: Duration = Duration::from_secs(2);
/// Seconds that a test may take at least before it counts as stuck.
const PATIENCE: u64 = 10;
/// How many times as long as without a mutation a test may take, on a machine that is busy.
const SLOWER: u64 = 6;
/// Kilobytes of address space: a mutant that allocates without an end must not exhaust the machine.
const MEMORY: u64 = 12 << 20;

/// One test.
#[derive(Clone)]
pub(super) struct Test {
    pub(super) name: String,
    binary: PathBuf,
    folder: PathBuf,
    /// How long it takes without a mutation.
    pub(super) takes: Duration,
    /// The functions that it reaches, by their first mutants.
    pub(super) reaches: BTreeSet<usize>,
}

/// What became of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    TimedOut,
}

/// What became of a mutant.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With the test that noticed.
    Caught(String),
    /// With the test that did not end.
    TimedOut(String),
    Missed,
    Unreached,
}

impl Outcome {
    pub(super) fn is_noticed(&self) -> bool {
        matches!(self, Self::Caught(_) | Self::TimedOut(_))
    }

    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Caught(test) => format!("caught by {test}"),
            Self::TimedOut(test) => format!("timeout of {test}"),
            Self::Missed => "missed".to_owned(),
            Self::Unreached => "missed, not reached".to_owned(),
        }
    }
}

/// The tests that a nextest filter chooses.
pub(super) fn list(tree: &Tree, filter: &str) -> Result<Vec<Test>, String> {
    let mut nextest = tree.command(&["cargo", "nextest", "list", "--workspace"]);
    let output = nextest
        .args(without_packages())
        .args(["--lib", "--bins", "--tests", "--message-format=json"])
        .args(["-E", filter])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("cargo-nextest could not be started: {error}"))?;
    let listed: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the list of cargo-nextest cannot be read: {error}"))?;
    let mut tests = Vec::new();
    for suite in listed["rust-suites"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, suite)| suite)
    {
        let text = |key: &str| suite[key].as_str().unwrap_or_default();
        for (name, test) in suite["testcases"].as_object().into_iter().flatten() {
            if test["filter-match"]["status"] == "matches" && test["ignored"] == false {
                tests.push(Test {
                    name: format!("{} {name}", text("binary-id")),
                    binary: text("binary-path").into(),
                    folder: text("cwd").into(),
                    takes: Duration::ZERO,
                    reaches: BTreeSet::new(),
                });
            }
        }
    }
    Ok(tests)
}

/// Runs tests without a mutation, and stores what they reach and how long they take. Those that fail twice are returned.
pub(super) fn record(tests: &mut [Test], output: &Path) -> Vec<String> {
    let folder = output.join("reached");
    let _ = std::fs::remove_dir_all(&folder);
    let failed = Mutex::new(Vec::new());
    let results = in_parallel(&(0..tests.len()).collect::<Vec<_>>(), |index| {
        let test = &tests[*index];
        let folder = folder.join(index.to_string());
        let _ = std::fs::create_dir_all(&folder);
        let start = Instant::now();
        let run = || test.run(REACHED, folder.as_os_str(), 120) == End::Passed;
        if !run() && !run() {
            push(&failed, test.name.clone());
        }
        (start.elapsed(), reached(&folder))
    });
    for (test, (takes, reaches)) in tests.iter_mut().zip(results) {
        test.takes = takes;
        test.reaches = reaches;
    }
    failed.into_inner().unwrap_or_default()
}

fn reached(folder: &Path) -> BTreeSet<usize> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let text: String = files
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .collect();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Whether one of some tests notices the mutant that is switched on; the quickest tests first.
pub(super) fn outcome(number: usize, tests: &[&Test]) -> Outcome {
    if tests.is_empty() {
        return Outcome::Unreached;
    }
    let number = number.to_string();
    for test in tests {
        let run = || {
            test.run(
                ACTIVE,
                number.as_ref(),
                PATIENCE + SLOWER * test.takes.as_secs(),
            )
        };
        match run() {
            End::TimedOut => return Outcome::TimedOut(test.name.clone()),
            // Twice, for a test may fail for a reason of its own.
            End::Failed if run() != End::Passed => return Outcome::Caught(test.name.clone()),
            End::Failed | End::Passed => {}
        }
    }
    Outcome::Missed
}

impl Test {
    /// Runs the test with one more variable.
    fn run(&self, name: &str, value: &std::ffi::OsStr, seconds: u64) -> End {
        let test = self.name.split_once(' ').map_or("", |(_, test)| test);
        let script = format!("ulimit -v {MEMORY}; exec timeout -k 1 {seconds} \"$0\" \"$@\"");
        let status = Command::new("sh")
            .args(["-c", &script])
            .arg(&self.binary)
            .args(["--exact", test, "--nocapture"])
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            // Bodies that are there many times take more of the stack.
            .env("RUST_MIN_STACK", "67108864")
            .env("INSTA_UPDATE", "no")
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => End::Passed,
            Ok(Some(124 | 137)) => End::TimedOut,
            _ => End::Failed,
        }
    }
}

/// Does something for each item, on as many threads as there are processors; the results are in the order of the items.
pub(super) fn in_parallel<I: Sync, R: Send>(items: &[I], run: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0..items.len());
    let done = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(index) = next.lock().ok().and_then(|mut next| next.next()) {
                    let result = run(&items[index]);
                    if let Ok(mut done) = done.lock() {
                        done.insert(index, result);
                    }
                }
            });
        }
    });
    done.into_inner()
        .unwrap_or_default()
        .into_values()
        .collect()
}

fn push(list: &Mutex<Vec<String>>, item: String) {
    if let Ok(mut list) = list.lock() {
        list.push(item);
    }
}

/// The tests of a module that reach a function, the quickest first.
pub(super) fn reaching<'t>(
    tests: &'t [Test],
    of_module: &HashSet<String>,
    function: usize,
) -> Vec<&'t Test> {
    let mut found: Vec<&Test> = tests
        .iter()
        .filter(|test| of_module.contains(&test.name) && test.reaches.contains(&function))
        .collect();
    found.sort_by_key(|test| test.takes);
    found
}

/// How many tests are quick, of some in the order of their duration; one if none is.
pub(super) fn quick(tests: &[&Test]) -> usize {
    tests
        .iter()
        .take_while(|test| test.takes <= QUICK)
        .count()
        .max(1)
}
