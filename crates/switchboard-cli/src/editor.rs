//! Opens a configuration file in the user's editor, and checks it afterwards.

use std::path::Path;
use std::process::Command;

use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::files::Disk;
use switchboard_config::text::visible;
use switchboard_config::words;
use switchboard_config::write::create_private_folder;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::{environment, report, view};

/// Editors that take the line to start at as `+LINE`.
const WITH_LINE: [&str; 7] = ["vi", "vim", "nvim", "nano", "emacs", "micro", "kak"];

/// Opens a file at a line, waits for the editor, and prints what is wrong with the file.
pub(crate) fn edit(path: &Path, line: Option<usize>, context: &Context) -> Outcome {
    let shown = view::path(path, &context.environment.home);
    if let Some(folder) = path.parent() {
        create_private_folder(folder).map_err(|error| {
            Failure::failed(format!("could not create the folder of {shown}")).because(error)
        })?;
    }
    let editor = environment::editor();
    let mut program = words::split(&editor).unwrap_or_default().into_iter();
    let name = program.next().ok_or_else(|| {
        Failure::usage("EDITOR is not a command line").hint("set EDITOR, for example to nano")
    })?;
    let mut command = Command::new(&name);
    command.args(program);
    let stem = Path::new(&name).file_stem().and_then(|stem| stem.to_str());
    if let (Some(line), true) = (line, stem.is_some_and(|stem| WITH_LINE.contains(&stem))) {
        command.arg(format!("+{line}"));
    }
    let name = visible(&name).into_owned();
    let status = command.arg(path).status().map_err(|error| {
        Failure::failed(format!("could not start the editor `{name}`"))
            .because(error)
            .hint("set EDITOR to an editor that is installed, or edit the file yourself")
    })?;
    if !status.success() {
        return Err(
            Failure::failed(format!("the editor `{name}` failed: {status}"))
                .hint(format!("the file is {shown}")),
        );
    }
    let findings = context.findings(&Disk);
    let findings: Vec<&Diagnostic> = findings
        .iter()
        .filter(|finding| finding.place.file() == Some(path))
        .collect();
    for finding in &findings {
        context.printer.note(report::at_length(finding).trim_end());
    }
    if findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
    {
        return Err(
            Failure::new(Exit::Configuration, format!("{shown} has errors"))
                .hint("edit it again, or see `switchboard config check`"),
        );
    }
    context.printer.note(format!("checked {shown}"));
    Ok(Exit::Done)
}
