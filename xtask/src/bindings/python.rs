//! The package for Python.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{built, packages};
use crate::interop;
use crate::run::{command, root, run_command};

/// The variable with the Cargo profile of `cargo xtask package`.
const PROFILE: &str = "SWITCHBOARD_PACKAGE_PROFILE";

/// The most bytes that the published program may have.
const MAX_PROGRAM_BYTES: u64 = 20_000_000;

/// The call that shows that an installed package works: a tool of the program, through the host.
const TRY: &str = "
import sys
from switchboard_mcp import SyncHost, _program
servers = {'recording': {'command': sys.executable, 'args': [sys.argv[1]]}}
with SyncHost.from_servers(servers) as host:
    print(host.call('recording/echo', {'installed': True}).structured)
assert _program.find().startswith(sys.prefix), _program.find()
";

/// Puts the built module into the package and runs the tests in an environment of their own.
pub(super) fn test() -> Result<(), String> {
    interop::install()?;
    let programs = interop::install_python_package()?;
    let module = source().join(module_name());
    copy(&built().join(library_name()), &module)?;
    let mut pytest = command(&[
        &programs.join("python").to_string_lossy(),
        "-m",
        "pytest",
        "-q",
    ]);
    pytest
        .current_dir(package_folder())
        .env("PYTHONPATH", package_folder().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWITCHBOARD_PROGRAM", built().join(program_name()));
    run_command(pytest)
}

/// Makes a wheel with the program in it, and tries it in an empty environment without a network or a compiler.
pub(super) fn package() -> Result<(), String> {
    let profile = std::env::var(PROFILE).unwrap_or_else(|_| "dist".to_owned());
    let programs = interop::install_python_package()?;
    let cli = [
        "cargo",
        "build",
        "--profile",
        &profile,
        "--package",
        "switchboard-cli",
    ];
    run_command(command(&cli))?;
    let folder = if profile == "dev" { "debug" } else { &profile };
    let program = built().with_file_name(folder).join(program_name());
    if profile == "dist" {
        check_size(&program)?;
    }
    let carried = source().join("_bin");
    fs::create_dir_all(&carried).map_err(|error| format!("{}: {error}", carried.display()))?;
    copy(&program, &carried.join(program_name()))?;

    for wheel in wheels()? {
        fs::remove_file(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?;
    }
    let manifest = package_folder().join("Cargo.toml");
    let maturin = command(&[
        &programs.join("maturin").to_string_lossy(),
        "build",
        "--profile",
        &profile,
        "--manifest-path",
        &manifest.to_string_lossy(),
        "--out",
        &packages().to_string_lossy(),
    ]);
    let outcome = run_command(maturin);
    // A program in the source tree would be used by the tests instead of the one that they name.
    fs::remove_dir_all(&carried).map_err(|error| format!("{}: {error}", carried.display()))?;
    outcome?;
    let found = wheels()?;
    let [wheel] = found.as_slice() else {
        return Err(format!("{} wheels were made instead of one", found.len()));
    };
    try_wheel(wheel)
}

/// Installs a wheel and uses it.
fn try_wheel(wheel: &Path) -> Result<(), String> {
    let environment = packages().join("try-python");
    let shown = environment.to_string_lossy();
    run_command(command(&["python3", "-m", "venv", "--clear", &shown]))?;
    let programs = environment.join("bin");
    let isolated = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(programs.join(program));
        // Nothing but the environment itself can be found: neither a compiler nor the source tree.
        command
            .args(arguments)
            .current_dir(&environment)
            .env_clear()
            .env("HOME", &environment)
            .env("PATH", &programs);
        run_command(command)
    };
    isolated(
        "python",
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            &wheel.to_string_lossy(),
        ],
    )?;
    for program in ["switchboard-mcp", "switchboard"] {
        isolated(program, &["--version"])?;
    }
    let server = package_folder().join("tests/servers/recording.py");
    isolated("python", &["-c", TRY, &server.to_string_lossy()])?;
    fs::remove_dir_all(&environment).map_err(|error| format!("{shown}: {error}"))
}

/// The wheels of this package.
fn wheels() -> Result<Vec<PathBuf>, String> {
    let folder = packages();
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension() == Some(OsStr::new("whl")) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Fails if the published program has grown too large.
fn check_size(program: &Path) -> Result<(), String> {
    let file = fs::metadata(program);
    let bytes = file.map_err(|error| format!("{}: {error}", program.display()))?;
    println!("{}: {} bytes", program.display(), bytes.len());
    if bytes.len() > MAX_PROGRAM_BYTES {
        return Err(format!(
            "the program is larger than {MAX_PROGRAM_BYTES} bytes; docs/design/0011-builds.md says what made it smaller"
        ));
    }
    Ok(())
}

fn package_folder() -> PathBuf {
    root().join("bindings/python")
}

/// The folder of the package's Python modules.
fn source() -> PathBuf {
    package_folder().join("python/switchboard_mcp")
}

/// The name of the native module as Cargo builds it.
const fn library_name() -> &'static str {
    if cfg!(windows) {
        "_native.dll"
    } else if cfg!(target_os = "macos") {
        "lib_native.dylib"
    } else {
        "lib_native.so"
    }
}

/// The name of the native module as Python finds it.
const fn module_name() -> &'static str {
    if cfg!(windows) {
        "_native.pyd"
    } else {
        "_native.abi3.so"
    }
}

const fn program_name() -> &'static str {
    if cfg!(windows) {
        "switchboard.exe"
    } else {
        "switchboard"
    }
}

/// Replaces a file by a copy. The old one is removed first, since a running program may still use it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let _ = fs::remove_file(to);
    let copied = fs::copy(from, to);
    copied.map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(())
}
