//! Causes: the process cannot be started.

use std::path::{Path, PathBuf};

use switchboard_config::text::visible;

use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::transport::TransportErrorKind;

/// Programs that commonly start servers, and how to install them.
const INSTALLERS: &[(&[&str], &str)] = &[
    (
        &["npx", "npm", "node"],
        "install Node.js (https://nodejs.org, or your system's package manager), which brings node, npm and npx",
    ),
    (&["bunx", "bun"], "install Bun (https://bun.sh)"),
    (&["deno"], "install Deno (https://deno.com)"),
    (
        &["uvx", "uv"],
        "install uv (https://docs.astral.sh/uv), which brings uvx",
    ),
    (
        &["python", "python3", "pip", "pipx"],
        "install Python (https://python.org, or your system's package manager); on many systems it is called python3",
    ),
    (
        &["docker"],
        "install Docker (https://docs.docker.com/get-docker) and start it",
    ),
    (&["podman"], "install Podman (https://podman.io)"),
    (&["java"], "install a Java runtime"),
    (&["dotnet"], "install .NET (https://dotnet.microsoft.com)"),
];

/// `command = "npx -y some-server"`: a command line in place of the program.
pub(super) fn command_with_arguments(symptoms: &Symptoms<'_>) -> Option<Finding> {
    symptoms.transport_error_of(TransportErrorKind::ProgramNotFound)?;
    let (program, rest) = symptoms.program()?.trim().split_once(char::is_whitespace)?;
    let is_name =
        !program.contains(std::path::is_separator) || !rest.contains(std::path::is_separator);
    is_name.then(|| {
        let arguments: Vec<String> = rest
            .split_whitespace()
            .map(|argument| format!("\"{}\"", visible(argument)))
            .collect();
        error(
            "command-with-arguments",
            "`command` contains arguments",
            "no shell is involved, so the whole text is used as the program's name",
            format!(
                "split it: command = \"{}\", args = [{}]",
                visible(program),
                arguments.join(", ")
            ),
        )
    })
}

pub(super) fn not_found(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::ProgramNotFound)?;
    let program = symptoms.program().unwrap_or_default();
    let what = format!("the program {} was not found", visible(program));
    let why = quoted(&failure.message);
    if program.contains(std::path::is_separator) {
        return Some(error(
            "program-not-found",
            what,
            why,
            "correct `command`; a relative path is resolved against `cwd`, or the project's folder",
        ));
    }
    if let Some(place) = elsewhere(program, symptoms.home) {
        return Some(error(
            "program-not-in-path",
            what,
            why,
            format!(
                "it is installed, but not in the server's PATH: write command = \"{}\", or add its folder to \
                 PATH where Switchboard is started (programs started from a desktop do not read your shell's files)",
                visible(&place.display().to_string())
            ),
        ));
    }
    let name = program.split('.').next().unwrap_or(program);
    let known = INSTALLERS
        .iter()
        .find(|(programs, _)| programs.contains(&name));
    let install = known.map_or("install it, or correct `command`", |(_, install)| install);
    Some(error(
        "program-not-found",
        what,
        why,
        format!(
            "{install}; if it is installed, write its full path (from `which {}`) as `command`: programs started \
             from a desktop do not have your shell's PATH",
            visible(program)
        ),
    ))
}

pub(super) fn not_executable(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::ProgramNotExecutable)?;
    let program = visible(symptoms.program().unwrap_or_default());
    Some(error(
        "program-not-executable",
        format!("the program {program} cannot be run"),
        quoted(&failure.message),
        format!(
            "make it executable (chmod +x {program}) and check that its first line (#!…) names an interpreter that \
             exists; or start it through its interpreter: command = \"python3\", args = [\"{program}\"]"
        ),
    ))
}

pub(super) fn no_folder(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::NoSuchFolder)?;
    Some(error(
        "no-such-folder",
        "the folder to start in does not exist",
        quoted(&failure.message),
        "correct `cwd` in its entry, or create the folder; a relative `cwd` is resolved against the project's folder",
    ))
}

pub(super) fn no_sandbox(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Sandbox)?;
    Some(error(
        "no-sandbox",
        "not started: its sandbox is not available on this system",
        quoted(&failure.message),
        "use a kernel that supports it (see docs/sandbox.md), or remove `sandbox` from its entry if you trust the server",
    ))
}

pub(super) fn not_started(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Spawn)?;
    let remedy = if symptoms.program().is_some() {
        "check whether the machine is out of memory or processes, and whether `args` and `env` are too long"
    } else {
        "run the command of headers_helper by hand: it must print headers and exit with status 0"
    };
    Some(error(
        "not-started",
        "the program could not be started",
        quoted(&failure.message),
        remedy,
    ))
}

/// Finds a program outside the `PATH`, in common installation folders.
fn elsewhere(program: &str, home: Option<&Path>) -> Option<PathBuf> {
    const SYSTEM: &[&str] = &[
        "/usr/local/bin",
        "/opt/homebrew/bin",
        "/home/linuxbrew/.linuxbrew/bin",
        "/snap/bin",
    ];
    const HOME: &[&str] = &[
        ".local/bin",
        ".cargo/bin",
        ".bun/bin",
        ".deno/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/share/mise/shims",
        ".pyenv/shims",
        ".npm-global/bin",
        "bin",
    ];
    // Without a home folder, the machine is not searched.
    let home = home.filter(|_| !program.is_empty())?;
    SYSTEM
        .iter()
        .map(PathBuf::from)
        .chain(HOME.iter().map(|folder| home.join(folder)))
        .chain(newest_of_nvm(home))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// nvm has one folder per version of Node.
fn newest_of_nvm(home: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(home.join(".nvm/versions/node")).ok()?;
    let newest = versions.flatten().max_by_key(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let numbers = name.trim_start_matches('v').split('.');
        numbers
            .map(|number| number.parse::<u64>().unwrap_or_default())
            .collect::<Vec<_>>()
    })?;
    Some(newest.path().join("bin"))
}
