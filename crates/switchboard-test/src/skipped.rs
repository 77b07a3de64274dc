//! Checks that a test leaves out, because something is missing on this machine, and how that is told.
//!
//! Test runners hide what a test prints when it passes. So a test that leaves something out says so here: it is printed,
//! for those who run that test by hand, and noted in a file for `cargo xtask test`, which shows all such notes in its
//! last lines. Whether a check can be made is for the test to find out.

#![expect(
    clippy::print_stderr,
    reason = "a test that checks less than it could must say so"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The variable that names the folder for notes. Without it nothing is noted.
pub const FOLDER: &str = "SWITCHBOARD_SKIPPED_CHECKS";

/// Says that this test leaves out a check: what, and why, on one line.
pub fn skipped(what: &str) {
    let what = what.replace('\n', " ");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {what} ({test})");
    if let Some(folder) = std::env::var_os(FOLDER) {
        note(Path::new(&folder), &test, &what);
    }
}

/// Notes it, in a file of this process, so that tests that run side by side do not disturb each other.
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
        eprintln!("the skipped check could not be noted: {error}");
    }
}

/// All notes in a folder, each once, in order.
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
    fn what_is_noted_is_found_once_and_in_order() {
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
