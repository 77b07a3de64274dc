//! Checks an edit of a configuration file before it is written.

use std::path::{Path, PathBuf};

use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::files::{Disk, Files, ReadError};
use switchboard_config::text::visible;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::local_file::Target;

/// The files on disk, with one of them as it would be after an edit.
struct Edited<'e> {
    path: &'e Path,
    text: &'e str,
}

impl Files for Edited<'_> {
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
        if path == self.path {
            return Ok(Some(self.text.as_bytes().to_vec()));
        }
        Disk.read(path)
    }

    fn folders(&self, path: &Path) -> Vec<PathBuf> {
        Disk.folders(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path == self.path || Disk.exists(path)
    }

    fn is_program(&self, path: &Path) -> bool {
        Disk.is_program(path)
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let is_new = || (path == self.path).then(|| path.to_owned());
        Disk.real_path(path).or_else(is_new)
    }

    fn is_folder(&self, path: &Path) -> bool {
        Disk.is_folder(path)
    }

    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError> {
        Disk.digest(path)
    }
}

/// Refuses a new text of a file that has a mistake which the file does not have now.
pub(crate) fn check(target: &Target, text: &str, context: &Context) -> Result<(), Failure> {
    let edited = Edited {
        path: &target.path,
        text,
    };
    let now = mistakes(context.findings(&Disk), &target.path);
    let mut then = mistakes(context.findings(&edited), &target.path);
    then.retain(|each| !now.iter().any(|old| is_same(old, each)));
    let Some(mistake) = then.first() else {
        return Ok(());
    };
    let message = format!("{} was not changed", target.shown());
    let failure = Failure::new(Exit::Configuration, message).because(visible(&mistake.message));
    Err(match &mistake.hint {
        Some(hint) => failure.hint(visible(hint)),
        None => failure,
    })
}

/// Errors and unknown keys of one file.
fn mistakes(findings: Vec<Diagnostic>, path: &Path) -> Vec<Diagnostic> {
    let is_mistake =
        |finding: &Diagnostic| finding.severity == Severity::Error || finding.code == "unknown-key";
    let is_there = |finding: &Diagnostic| finding.place.file().is_none_or(|file| file == path);
    let findings = findings.into_iter();
    findings
        .filter(|finding| is_mistake(finding) && is_there(finding))
        .collect()
}

/// Whether two findings say the same; an edit moves lines.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.code, &one.message, &one.server) == (other.code, &other.message, &other.server)
}
