//! `cargo xtask conformance`: runs the official suite's scenarios against our client, our server and our gateway.
//!
//! The suite runs one scenario at a time, and lists its scenarios with their revisions. Failures must be listed in
//! `tests/interop/conformance-expected-failures.txt`, and everything listed there must fail. Behind the gateway, every
//! scenario must pass that the server passes by itself.

mod side;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::interop;
use crate::run::root;
use side::{Side, Upstream};

/// The revisions to run. Extension scenarios belong to none and run once.
const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) fn conformance(words: &[&str]) -> Result<(), String> {
    let npm = interop::install_npm()?;
    if let ["gateway", names @ ..] = words {
        return behind_gateway(&npm, names);
    }
    let (sides, names) = match words {
        ["--client", client, names @ ..] => (vec![Side::client(Some(Path::new(client)))?], names),
        ["server", names @ ..] => (vec![Side::server()?], names),
        // Some names exist on only one side, so names require a side.
        [] => (vec![Side::client(None)?, Side::server()?], words),
        ["client", names @ ..] | names => (vec![Side::client(None)?], names),
    };
    let expected = expected_failures()?;
    let mut summary = Vec::new();
    let mut surprises = Vec::new();
    for side in sides {
        let suite = Suite::new(&npm, side, "");
        let runs = select(suite.scenarios()?, names)?;
        let passed = suite.run_all(&runs, &expected, &mut surprises)?;
        let name = suite.side.name();
        summary.push(format!(
            "{name}: {passed} of {} scenarios passed",
            runs.len()
        ));
    }
    println!("\n{}", summary.join("\n"));
    if surprises.is_empty() {
        return Ok(());
    }
    Err(format!("not as expected: {}", surprises.join(", ")))
}

/// Runs each scenario against a server by itself, and if it passes, behind the gateway, where it must pass, too.
fn behind_gateway(npm: &Path, names: &[&str]) -> Result<(), String> {
    let mut summary = Vec::new();
    let mut lost = Vec::new();
    for upstream in Upstream::ALL {
        let direct = Suite::new(npm, upstream.start()?, upstream.program());
        let behind = Suite::new(npm, upstream.start_behind_gateway()?, upstream.program());
        let (mut passed, mut both) = (0, 0);
        for run in select(direct.scenarios()?, names)? {
            let name = format!("{} {run}", upstream.program());
            let by_itself = direct.run(&run)?;
            if !by_itself.problems.is_empty() {
                println!("skip  {name}: does not pass without the gateway either");
                continue;
            }
            passed += 1;
            let verdict = behind.run(&run)?;
            if verdict.problems.is_empty() {
                both += 1;
                println!("ok    {name} ({} checks)", verdict.checks);
                continue;
            }
            println!("LOST  {name}");
            for problem in &verdict.problems {
                println!("        {problem}");
            }
            lost.push(name);
        }
        let name = upstream.program();
        summary.push(format!(
            "{name}: {both} of {passed} scenarios that it passes, it passes behind the gateway"
        ));
    }
    println!("\n{}", summary.join("\n"));
    if lost.is_empty() {
        return Ok(());
    }
    Err(format!("lost behind the gateway: {}", lost.join(", ")))
}

/// One scenario for one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    scenario: String,
    revision: Option<String>,
}

impl std::fmt::Display for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let revision = self.revision.as_deref().unwrap_or("extension");
        write!(formatter, "{revision} {}", self.scenario)
    }
}

/// The outcome of a run.
struct Verdict {
    checks: usize,
    problems: Vec<String>,
}

struct Suite {
    node: PathBuf,
    program: PathBuf,
    side: Side,
    results: PathBuf,
}

impl Suite {
    /// `group` is the folder of its results.
    fn new(npm: &Path, side: Side, group: &str) -> Self {
        Self {
            node: npm.join("node_modules/node/bin/node"),
            program: npm.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
            results: interop::folder()
                .join("conformance")
                .join(group)
                .join(side.name()),
            side,
        }
    }

    /// Runs scenarios and prints each outcome; returns how many passed, and adds unexpected outcomes to `surprises`.
    fn run_all(
        &self,
        runs: &[Run],
        expected: &[String],
        surprises: &mut Vec<String>,
    ) -> Result<usize, String> {
        let mut passed = 0;
        for run in runs {
            let verdict = self.run(run)?;
            let name = format!("{} {run}", self.side.name());
            let is_expected = expected.contains(&name);
            match (verdict.problems.is_empty(), is_expected) {
                (true, false) => {
                    passed += 1;
                    println!("ok    {name} ({} checks)", verdict.checks);
                }
                (true, true) => {
                    println!("STALE {name}: passes, but is listed as an expected failure");
                    surprises.push(name);
                }
                (false, true) => println!("known {name}"),
                (false, false) => {
                    println!("FAIL  {name}");
                    for problem in &verdict.problems {
                        println!("        {problem}");
                    }
                    surprises.push(name);
                }
            }
        }
        Ok(passed)
    }

    /// All scenarios of this side, for each supported revision they apply to.
    fn scenarios(&self) -> Result<Vec<Run>, String> {
        let output = self
            .command()
            .args(["list", &format!("--{}", self.side.role())])
            .output()
            .map_err(|error| format!("the conformance suite could not be started: {error}"))?;
        let mut runs = parse_list(&String::from_utf8_lossy(&output.stdout));
        runs.retain(|run| run.revision.is_some() || self.side.has_extensions());
        if runs.is_empty() {
            let side = self.side.name();
            return Err(format!("the conformance suite lists no {side} scenarios"));
        }
        Ok(runs)
    }

    fn run(&self, run: &Run) -> Result<Verdict, String> {
        // An empty folder per run, so that it contains exactly one result.
        let revision = run.revision.as_deref().unwrap_or("extension");
        let folder = self
            .results
            .join(revision)
            .join(run.scenario.replace('/', "-"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let mut suite = self.command();
        suite.args(self.side.words());
        suite.args(["--scenario", &run.scenario]);
        if let Some(revision) = &run.revision {
            suite.args(["--spec-version", revision]);
        }
        let output = suite
            .arg("--output-dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("the conformance suite could not be started: {error}"))?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(judge(
            &folder,
            output.status.success(),
            &stderr,
            run.revision.is_some() || run.scenario.starts_with("auth/"),
        ))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        if let Some(token) = self.side.token() {
            // The suite has no option for a token.
            let add_token = root().join("tests/interop/clients/authorization.mjs");
            command.arg("--import").arg(add_token);
            command.env("SWITCHBOARD_TEST_TOKEN", token);
        }
        command.arg(&self.program).current_dir(root());
        command
    }
}

/// Parses `  - name [2025-06-18,2025-11-25]` and `  - name [extension]`.
fn parse_list(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    for line in text.lines() {
        let Some((scenario, revisions)) = line
            .trim()
            .strip_prefix("- ")
            .and_then(|line| line.strip_suffix(']'))
            .and_then(|line| line.split_once(" ["))
        else {
            continue;
        };
        let run = |revision: Option<&str>| Run {
            scenario: scenario.to_owned(),
            revision: revision.map(str::to_owned),
        };
        if revisions == "extension" {
            runs.push(run(None));
        }
        let of_ours = revisions.split(',').filter(|one| REVISIONS.contains(one));
        runs.extend(of_ours.map(|revision| run(Some(revision))));
    }
    runs.sort_by(|left, right| {
        let key = |run: &Run| (run.revision.is_none(), run.revision.clone());
        key(left).cmp(&key(right))
    });
    runs
}

/// Selects runs by scenario, group such as `auth/`, revision, or both; all without names.
fn select(runs: Vec<Run>, names: &[&str]) -> Result<Vec<Run>, String> {
    let is_revision = |name: &&&str| REVISIONS.contains(name);
    let revisions: Vec<&&str> = names.iter().filter(is_revision).collect();
    let scenarios: Vec<&&str> = names.iter().filter(|name| !is_revision(name)).collect();
    let is_named = |run: &Run, name: &str| {
        run.scenario == name || (name.ends_with('/') && run.scenario.starts_with(name))
    };
    for name in &scenarios {
        if !runs.iter().any(|run| is_named(run, name)) {
            let mut known: Vec<&str> = runs.iter().map(|run| run.scenario.as_str()).collect();
            known.dedup();
            known.sort_unstable();
            known.dedup();
            return Err(format!(
                "no such scenario: {name}\nthere are: {}",
                known.join(", ")
            ));
        }
    }
    let is_wanted = |run: &Run| {
        let revision = run.revision.as_deref();
        let is_chosen = scenarios.is_empty() || scenarios.iter().any(|name| is_named(run, name));
        is_chosen && (revisions.is_empty() || revisions.iter().any(|one| revision == Some(**one)))
    };
    Ok(runs.into_iter().filter(is_wanted).collect())
}

/// Reads the suite's result. If a check is required and none ran, the run has failed.
fn judge(folder: &Path, succeeded: bool, stderr: &str, must_check: bool) -> Verdict {
    let results = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // Scenarios with a slash in their name create a nested folder.
    let nested = results.flat_map(|entry| {
        let inner = std::fs::read_dir(entry.path())
            .into_iter()
            .flatten()
            .flatten();
        std::iter::once(entry.path()).chain(inner.map(|entry| entry.path()))
    });
    let file = nested
        .map(|path| path.join("checks.json"))
        .find(|path| path.is_file());
    let Some(file) = file else {
        return Verdict {
            checks: 0,
            problems: vec![format!("the suite wrote no result: {}", stderr.trim())],
        };
    };
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let checks: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let status = |check: &Value| check["status"].as_str().unwrap_or_default().to_owned();
    let mut problems: Vec<String> = checks
        .iter()
        .filter(|check| matches!(status(check).as_str(), "FAILURE" | "WARNING"))
        .map(|check| {
            let words = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
            let message = match words("errorMessage") {
                message if message.is_empty() => words("description"),
                message => message,
            };
            format!(
                "{} {} ({}): {message}",
                status(check),
                words("id"),
                words("name")
            )
        })
        .collect();
    let done = checks
        .iter()
        .filter(|check| status(check) == "SUCCESS")
        .count();
    if problems.is_empty() && !succeeded {
        problems.push("the suite failed, for the reason below".to_owned());
    }
    if must_check && done == 0 && problems.is_empty() {
        problems.push("nothing was checked".to_owned());
    }
    if !problems.is_empty() {
        let stderr = std::fs::read_to_string(file.with_file_name("stderr.txt")).unwrap_or_default();
        let tail: Vec<&str> = stderr.trim().lines().rev().take(5).collect();
        problems.extend(tail.iter().rev().map(|line| format!("stderr: {line}")));
        if stderr.contains("CLIENT TIMED OUT") {
            problems.push("the client did not exit in time".to_owned());
        }
    }
    Verdict {
        checks: done,
        problems,
    }
}

fn expected_failures() -> Result<Vec<String>, String> {
    let file = root().join("tests/interop/conformance-expected-failures.txt");
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scenario: &str, revision: Option<&str>) -> Run {
        Run {
            scenario: scenario.to_owned(),
            revision: revision.map(str::to_owned),
        }
    }

    const LIST: &str = "Client scenarios (test against a client):
  - initialize [2025-06-18,2025-11-25]
  - tools_call [2025-06-18,2025-11-25,2026-07-28]
  - auth/basic-cimd [2025-11-25,2026-07-28]
  - auth/old [2025-03-26]
  - sep-2640-client-no-prefetch [extension]";

    #[test]
    fn the_list_of_the_suite_is_read_by_revision() {
        let expected = [
            run("auth/old", Some("2025-03-26")),
            run("initialize", Some("2025-06-18")),
            run("tools_call", Some("2025-06-18")),
            run("initialize", Some("2025-11-25")),
            run("tools_call", Some("2025-11-25")),
            run("auth/basic-cimd", Some("2025-11-25")),
            run("tools_call", Some("2026-07-28")),
            run("auth/basic-cimd", Some("2026-07-28")),
            run("sep-2640-client-no-prefetch", None),
        ];
        assert_eq!(parse_list(LIST), expected);
    }

    #[test]
    fn names_and_groups_choose() {
        let check = |names: &[&str], expected: &[Run]| {
            assert_eq!(select(parse_list(LIST), names).unwrap(), expected);
        };
        check(
            &["initialize"],
            &[
                run("initialize", Some("2025-06-18")),
                run("initialize", Some("2025-11-25")),
            ],
        );
        check(
            &["2026-07-28"],
            &[
                run("tools_call", Some("2026-07-28")),
                run("auth/basic-cimd", Some("2026-07-28")),
            ],
        );
        check(
            &["auth/", "2025-03-26", "2025-11-25"],
            &[
                run("auth/old", Some("2025-03-26")),
                run("auth/basic-cimd", Some("2025-11-25")),
            ],
        );
        check(
            &["auth/basic-cimd", "2025-11-25"],
            &[run("auth/basic-cimd", Some("2025-11-25"))],
        );
        let all = select(parse_list(LIST), &[]).unwrap();
        assert_eq!(all, parse_list(LIST));
        let error = select(parse_list(LIST), &["nothing"]).unwrap_err();
        assert!(error.starts_with("no such scenario: nothing\n"), "{error}");
    }
}
