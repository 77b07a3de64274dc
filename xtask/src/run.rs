//! Runs other programs, printing each command first.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// A command with the workspace root as its working folder.
pub(crate) fn command(line: &[&str]) -> Command {
    let (program, arguments) = line
        .split_first()
        .map_or(("true", line), |(program, rest)| (*program, rest));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command; fails if it does not succeed.
pub(crate) fn run(line: &[&str]) -> Result<(), String> {
    run_command(command(line))
}

/// Runs a prepared command; fails if it does not succeed.
pub(crate) fn run_command(mut command: Command) -> Result<(), String> {
    let shown = shown(&command);
    println!("\n$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed: {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// Whether a command exists and succeeds.
pub(crate) fn is_installed(line: &[&str]) -> bool {
    command(line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
