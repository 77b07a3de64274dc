//! `switchboard config check`: prints every diagnostic of every file in full.

use switchboard::internal::permissions::Restrictions;
use switchboard::permissions::{Engine, Policy};
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::resolve::Config;

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::report;

pub(crate) fn run(context: &Context) -> Outcome {
    let printer = &context.printer;
    let config = context.load_quietly();
    let findings = &findings(&config, context);
    let outcome = if printer.json {
        printer.json(&findings.iter().map(report::to_json).collect())
    } else {
        let blocks: Vec<String> = findings.iter().map(report::at_length).collect();
        printer.data(blocks.join("\n"))
    };
    // A closed pipe does not change the exit code.
    match outcome {
        Err(failure) if !failure.silent => return Err(failure),
        _ => {}
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    let warnings = findings.len() - errors;
    let files = config.looked.iter().filter(|looked| looked.found).count();
    let count = |number: usize, one: &str, many: &str| {
        format!("{number} {}", if number == 1 { one } else { many })
    };
    printer.note(format!(
        "{}, {} in {}",
        count(errors, "error", "errors"),
        count(warnings, "warning", "warnings"),
        count(files, "file", "files")
    ));
    Ok(if errors > 0 {
        Exit::Configuration
    } else {
        Exit::Done
    })
}

/// The diagnostics of the files, and of rules and hooks that only the permission engine can validate.
fn findings(config: &Config, context: &Context) -> Vec<Diagnostic> {
    let engine = Engine::new(config, &context.folders(), Policy::agent());
    let folders = context.folders();
    let restrictions: Vec<Restrictions> = config
        .profiles
        .iter()
        .filter_map(|profile| Restrictions::new(&profile.rules, config, &folders))
        .collect();
    let of_profiles = restrictions.iter().flat_map(Restrictions::problems);
    let problems = engine.problems().chain(of_profiles).map(|problem| {
        Diagnostic::error("unusable-rule", problem.origin.clone(), &problem.message).with_hint(
            "fix it; until then it allows nothing, and asks or denies wherever it might apply",
        )
    });
    config.diagnostics.iter().cloned().chain(problems).collect()
}
