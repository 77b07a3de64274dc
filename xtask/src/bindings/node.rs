//! The package for Node.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{built, packages};
use crate::interop;
use crate::run::{command, root, run_command};

/// Selects the build that is packaged: `dist` by default, `dev` for a quick try.
const PROFILE: &str = "SWITCHBOARD_PACKAGE_PROFILE";

/// Runs the tests of the package with the dev build.
pub(super) fn test() -> Result<(), String> {
    install()?;
    let mut test = command(&["node", "--test", "--test-timeout=300000"]);
    test.current_dir(folder())
        .args(tests()?)
        .env("SWITCHBOARD_NATIVE", built().join(native_file()))
        .env("SWITCHBOARD_PROGRAM", built().join(program_file()));
    run_command(test)
}

/// Makes the npm packages for this machine, and tries them in an empty folder without a network.
pub(super) fn package() -> Result<(), String> {
    let profile = std::env::var(PROFILE).unwrap_or_else(|_| "dist".to_owned());
    let mut build = command(&["cargo", "build", "--profile", &profile]);
    build.args(["-p", "switchboard-node", "-p", "switchboard-cli"]);
    run_command(build)?;
    let output = match profile.as_str() {
        "dev" => built(),
        other => built().with_file_name(other),
    };
    create(&packages())?;
    let mut pack = command(&["node"]);
    pack.arg(folder().join("scripts/package.mjs"))
        .arg(platform())
        .arg(output.join(native_file()))
        .arg(output.join(program_file()))
        .arg(root())
        .arg(packages());
    let tarballs = output_of(pack)?;
    try_out(&tarballs)
}

/// Installs the tarballs into an empty folder, and runs the program and a call from there.
fn try_out(tarballs: &str) -> Result<(), String> {
    let servers = interop::install_npm()?;
    let place = packages().join("npm/installed");
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    create(&place)?;
    let npm = |arguments: &[&str]| {
        let mut npm = command(arguments);
        npm.current_dir(&place)
            .env_remove("SWITCHBOARD_NATIVE")
            .env_remove("SWITCHBOARD_PROGRAM");
        npm
    };
    let manifest = place.join("package.json");
    std::fs::write(&manifest, "{\"private\": true}\n")
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    let mut install = npm(&["npm", "install", "--offline", "--no-audit", "--no-fund"]);
    install.args(tarballs.lines());
    run_command(install)?;
    let version = output_of(npm(&["npx", "--no", "--", "switchboard-mcp", "--version"]))?;
    if !version.starts_with("switchboard ") {
        return Err(format!(
            "`npx switchboard-mcp --version` printed {version:?}"
        ));
    }
    let server = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let mut call = npm(&["node", "--input-type=module", "--eval", TRIAL]);
    call.arg(servers.join(server)).arg(&place);
    run_command(call)
}

/// Calls a tool of the server that the first argument names.
const TRIAL: &str = "import { Host } from 'switchboard-mcp';
const [server, folder] = process.argv.slice(1);
const host = await Host.fromServers({ files: { command: process.execPath, args: [server, folder] } });
const { text, isError } = await host.call('files/list_directory', { path: folder });
if (isError || !text.includes('package.json')) throw new Error(text);
await host.close();
console.log('the installed package works');";

/// Installs the packages that the tests need, from the lock file, once.
fn install() -> Result<(), String> {
    let lock = folder().join("package-lock.json");
    let wanted =
        std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let stamp = folder().join("node_modules/installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut install = command(&["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    install.arg("--loglevel=error").current_dir(folder());
    run_command(install)?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// The files with tests.
fn tests() -> Result<Vec<PathBuf>, String> {
    let place = folder().join("test");
    let unreadable = |error: std::io::Error| format!("{}: {error}", place.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&place).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".test.mjs") || name.ends_with(".test.cjs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The name of the platform package for this machine, without `switchboard-mcp-`.
fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    match std::env::consts::OS {
        "linux" if cfg!(target_env = "musl") => format!("linux-{arch}-musl"),
        "linux" => format!("linux-{arch}-gnu"),
        "macos" => format!("darwin-{arch}"),
        "windows" => format!("win32-{arch}-msvc"),
        other => format!("{other}-{arch}"),
    }
}

fn native_file() -> String {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    format!("{prefix}switchboard_node{suffix}")
}

fn program_file() -> String {
    format!("switchboard{}", std::env::consts::EXE_SUFFIX)
}

fn folder() -> PathBuf {
    root().join("bindings/node")
}

fn create(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs a command and returns what it prints.
fn output_of(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        let program = command.get_program().to_string_lossy();
        Err(format!("{program} failed: {text}"))
    }
}
