//! Reports checks that a test skips because something is missing on this machine.
//!
//! Test runners hide the output of a passing test. So a skipped check is both printed, for manual runs, and written to
//! a file for `cargo xtask test`, which lists all of them at the end.

#![expect(clippy::print_stderr, reason = "a skipped check must be visible")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Environment variable with the folder for the notes. If unset, nothing is written.
pub const FOLDER: &str = "SWITCHBOARD_SKIPPED_CHECKS";

/// Reports a skipped check: what and why, on one line.
pub fn skipped(what: &str) {
    let what = what.replace('\n', " ");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {what} ({test})");
    if let Some(folder) = std::env::var_os(FOLDER) {
        note(Path::new(&folder), &test, &what);
    }
}

/// Appends to a file per process, so that parallel tests do not interfere.
fn note(folder: &Path, test: &str, what: &str) {
    let file = folder.join(format!("{}.txt", std::process::id()));
    let noted = std::fs::create_dir_all(folder).and_then(|()| {
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(file)?;
        writeln!(file, "{what} ({test})")
    });
    if let Err(error) = noted {
        eprintln!("cannot record the skipped check: {error}");
    }
}

/// All notes in a folder, sorted and without duplicates.
pub fn notes(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut notes = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(notes),
        Err(error) => return Err(error),
    };
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    for path in paths {
        notes.extend(std::fs::read_to_string(path)?.lines().map(str::to_owned));
    }
    notes.sort();
    notes.dedup();
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_sorted_and_unique() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("skipped");
        assert_eq!(notes(&folder).unwrap(), [] as [String; 0]);
        for what in ["node is not installed", "no data", "no data"] {
            note(&folder, "some::test", what);
        }
        std::fs::write(folder.join("0.txt"), "another process (x)\n").unwrap();
        assert_eq!(
            notes(&folder).unwrap(),
            [
                "another process (x)",
                "no data (some::test)",
                "node is not installed (some::test)"
            ]
        );
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(notes(&file).is_err());
    }
}
