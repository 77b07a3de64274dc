//! Cause: the installed copy of a package that npx runs is broken, because its installation was interrupted.

use switchboard_config::text::visible;

use super::stderr::Log;
use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::doctor::npx::Installed;

/// The code of both findings here.
pub(in crate::doctor) const BROKEN: &str = "npx-cache-broken";

/// Detected in the log: npm cannot move a folder, or an installed module or program is missing.
pub(super) fn broken_cache(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let installed = symptoms.installed.filter(|installed| installed.exists)?;
    let log = Log::new(symptoms);
    let names_folder = log.has(&[installed.hash()]);
    let is_damaged = installed.damage.is_some();
    let not_empty = || log.line_with(&["enotempty"]);
    let no_module = || {
        let line = log.line_with(&[
            "cannot find module",
            "cannot find package",
            "err_module_not_found",
        ]);
        line.filter(|_| names_folder || is_damaged)
    };
    // The package may start a program that is missing for other reasons.
    let no_program = || log.program_missing().filter(|_| is_damaged);
    let line = not_empty().or_else(no_module).or_else(no_program)?;
    let why = match &installed.damage {
        Some(damage) => format!("it wrote: {}; {damage}", quoted(line)),
        None => format!("it wrote: {}", quoted(line)),
    };
    Some(broken(symptoms.server, installed, why))
}

/// Detected on disk if nothing else explains the failure: the folder is incomplete.
pub(super) fn incomplete_cache(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let installed = symptoms.installed?;
    let damage = quoted(installed.damage.as_deref()?);
    Some(broken(symptoms.server, installed, damage))
}

fn broken(server: &str, installed: &Installed, why: String) -> Finding {
    let folder = installed.package.folder.display().to_string();
    error(
        BROKEN,
        format!(
            "npx's installed copy of {} is broken: its installation was interrupted",
            quoted(&installed.package.package)
        ),
        why,
        format!(
            "`switchboard doctor {} --repair` removes {}, and npx reinstalls the package on the next start; npx \
             never repairs it",
            visible(server),
            visible(&folder)
        ),
    )
}
