//! `cargo xtask test`: installs what the tests need, then runs all tests, with nextest if installed. The last lines
//! list the checks that were skipped because this machine lacks something.

use std::path::Path;

use switchboard_test::skipped;

use crate::run::{command, is_installed, root, run_command};
use crate::{bindings, interop};

/// Where tests record skipped checks, relative to the root.
const SKIPPED: &str = "target/skipped-checks";

pub(crate) fn test() -> Result<(), String> {
    interop::install()?;
    let folder = root().join(SKIPPED);
    clear(&folder)?;
    let outcome = run_all(&folder);
    // Also after a failure: a skipped check may explain it.
    print_skipped(&folder)?;
    outcome
}

fn run_all(skipped: &Path) -> Result<(), String> {
    let run = |line: &[&str]| {
        let mut command = command(line);
        command.env(skipped::FOLDER, skipped);
        run_command(command)
    };
    if is_installed(&["cargo", "nextest", "--version"]) {
        run(&["cargo", "nextest", "run", "--workspace", "--no-fail-fast"])?;
    } else {
        println!("cargo-nextest is not installed; using cargo test");
        run(&[
            "cargo",
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ])?;
    }
    // nextest does not run doctests.
    run(&["cargo", "test", "--workspace", "--doc"])?;
    bindings::test()
}

fn clear(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot clear {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn print_skipped(folder: &Path) -> Result<(), String> {
    let notes = skipped::notes(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    println!("\n{}", summary(&notes));
    Ok(())
}

fn summary(notes: &[String]) -> String {
    if notes.is_empty() {
        return "no check was skipped".to_owned();
    }
    let lines: Vec<String> = notes
        .iter()
        .map(|note| format!("skipped: {note}"))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_checks_are_listed_one_per_line() {
        assert_eq!(summary(&[]), "no check was skipped");
        let notes = ["no data (a)".to_owned(), "no node (b)".to_owned()];
        assert_eq!(
            summary(&notes),
            "skipped: no data (a)\nskipped: no node (b)"
        );
    }

    #[test]
    fn notes_of_an_earlier_run_are_cleared() {
        let folder = std::env::temp_dir().join(format!("xtask-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap_or_default();
        std::fs::write(folder.join("1.txt"), "old (a)\n").unwrap_or_default();
        assert_eq!(
            skipped::notes(&folder).ok(),
            Some(vec!["old (a)".to_owned()])
        );
        assert_eq!(clear(&folder), Ok(()));
        assert_eq!(clear(&folder), Ok(()), "nothing to clear");
        assert_eq!(skipped::notes(&folder).ok(), Some(Vec::new()));
    }
}
