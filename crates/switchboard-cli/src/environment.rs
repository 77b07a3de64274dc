//! The one place that reads environment variables and computes the folders.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_config::expand;

use crate::cli::When;
use crate::error::Failure;
use crate::printer::Colors;

/// The user's configuration folder.
pub(crate) const CONFIG_DIR: &str = "SWITCHBOARD_CONFIG_DIR";
/// What Switchboard remembers.
pub(crate) const STATE_DIR: &str = "SWITCHBOARD_STATE_DIR";
/// Another place for the enterprise file.
pub(crate) const MANAGED_FILE: &str = "SWITCHBOARD_MANAGED_FILE";

/// Which of the program's own diagnostics are written.
const LOG: &str = "SWITCHBOARD_LOG";

/// The enterprise file of the machine.
#[cfg(target_os = "macos")]
const MACHINE_FILE: &str = "/Library/Application Support/Switchboard/managed.toml";
#[cfg(windows)]
const MACHINE_FILE: &str = r"C:\ProgramData\Switchboard\managed.toml";
#[cfg(not(any(target_os = "macos", windows)))]
const MACHINE_FILE: &str = "/etc/switchboard/managed.toml";

/// Everything that is taken from the environment.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// Every variable, for the servers that are started.
    pub(crate) all: Arc<[(OsString, OsString)]>,
    /// The variables that references in files can name.
    pub(crate) variables: expand::Environment,
    /// The user's home, with links resolved.
    pub(crate) home: PathBuf,
    /// The user's configuration folder.
    pub(crate) config: PathBuf,
    /// What Switchboard remembers.
    pub(crate) state: PathBuf,
    /// The enterprise file.
    pub(crate) managed: Managed,
}

/// The enterprise file that counts, and what was asked for in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) file: Option<PathBuf>,
    /// Why the file that the environment names is not honoured.
    pub(crate) refused: Option<String>,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn read() -> Result<Self, Failure> {
        let home = variable("HOME")
            .map(PathBuf::from)
            .or_else(std::env::home_dir)
            .filter(|home| home.is_absolute())
            .ok_or_else(|| {
                Failure::failed("the home folder is not known")
                    .because("HOME is not set to an absolute path")
                    .hint("set HOME")
            })?;
        // The project's path has no links in it, and the two are compared.
        let home = home.canonicalize().unwrap_or(home);
        let all: Arc<[_]> = std::env::vars_os().collect();
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        Ok(Self {
            variables: all
                .iter()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            all,
            config: folder(
                CONFIG_DIR,
                "XDG_CONFIG_HOME",
                "APPDATA",
                &home.join(".config"),
            )?,
            state: folder(
                STATE_DIR,
                "XDG_STATE_HOME",
                "LOCALAPPDATA",
                &home.join(".local/state"),
            )?,
            managed: managed_file(variable(MANAGED_FILE).map(PathBuf::from)),
            home,
        })
    }

    /// A folder that another program's variable names.
    pub(crate) fn folder_of(&self, name: &str) -> Option<PathBuf> {
        self.variables
            .get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }
}

/// Which streams are coloured: the flag, else `NO_COLOR`, else whether it is a terminal.
pub(crate) fn colors(when: When) -> Colors {
    let automatic = variable("NO_COLOR").is_none()
        && variable("TERM").is_none_or(|terminal| terminal != "dumb");
    let decide = |terminal: bool| match when {
        When::Always => true,
        When::Never => false,
        When::Auto => automatic && terminal,
    };
    Colors {
        stdout: decide(std::io::stdout().is_terminal()),
        stderr: decide(std::io::stderr().is_terminal()),
    }
}

/// Which of the program's own diagnostics are wanted; `None` for none.
pub(crate) fn log() -> Option<OsString> {
    variable(LOG)
}

/// Whether standard error is a terminal whose cursor can be moved.
pub(crate) fn can_draw() -> bool {
    std::io::stderr().is_terminal() && variable("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn folder(own: &str, shared: &str, windows: &str, default: &Path) -> Result<PathBuf, Failure> {
    if let Some(own_folder) = variable(own) {
        let own_folder = PathBuf::from(own_folder);
        // A folder relative to wherever the program is started could be a project's own.
        return if own_folder.is_absolute() {
            Ok(own_folder)
        } else {
            let message = format!("{own} is not an absolute path");
            Err(Failure::usage(message).hint(format!("set {own} to a path that starts with /")))
        };
    }
    let shared = if cfg!(windows) { windows } else { shared };
    let parent = variable(shared)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    Ok(parent
        .unwrap_or_else(|| default.to_owned())
        .join("switchboard"))
}

/// The enterprise file. Whoever starts the program must not be able to get rid of the machine's by setting a
/// variable, so another file counts only where there is none, and only when the administrator wrote it. Debug
/// builds, which nobody deploys, take any file, so that the rules can be tested.
fn managed_file(named: Option<PathBuf>) -> Managed {
    let machine = PathBuf::from(MACHINE_FILE);
    match named {
        Some(named) if cfg!(debug_assertions) => Managed {
            file: Some(named),
            refused: None,
        },
        Some(named) if machine.symlink_metadata().is_ok() => Managed {
            file: Some(machine),
            refused: (named != Path::new(MACHINE_FILE))
                .then(|| format!("this machine's own file {MACHINE_FILE} comes first")),
        },
        Some(named) => match written_by_administrator(&named) {
            Ok(()) => Managed {
                file: Some(named),
                refused: None,
            },
            Err(reason) => Managed {
                file: Some(machine),
                refused: Some(format!("{} {reason}", named.display())),
            },
        },
        None => Managed {
            file: Some(machine),
            refused: None,
        },
    }
}

#[cfg(unix)]
fn written_by_administrator(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path
        .symlink_metadata()
        .map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if metadata.uid() != 0 {
        return Err("does not belong to root".to_owned());
    }
    if metadata.mode() & 0o022 != 0 {
        return Err("can be written by others than root".to_owned());
    }
    Ok(())
}

#[cfg(not(unix))]
fn written_by_administrator(_: &Path) -> Result<(), String> {
    Err("cannot be shown to belong to the administrator".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_administrator_is_honoured() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("managed.toml");
        assert!(
            written_by_administrator(&file)
                .unwrap_err()
                .contains("cannot be read")
        );
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        // Whoever runs the tests, a file that others can write is refused.
        assert!(written_by_administrator(&file).is_err());
        assert_eq!(
            written_by_administrator(folder.path()).unwrap_err(),
            "is not a regular file"
        );
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert_eq!(
            written_by_administrator(&link).unwrap_err(),
            "is not a regular file"
        );
        assert_eq!(written_by_administrator(Path::new("/etc/passwd")), Ok(()));
    }
}
