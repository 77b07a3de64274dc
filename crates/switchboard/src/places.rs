//! The locations of a user's Switchboard files, computed from environment variables, for the program and for programs
//! that embed the host.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use switchboard_config::files::{Disk, Folders, project_root};

/// The variable that names the user's configuration folder.
pub(crate) const CONFIG_DIR: &str = "SWITCHBOARD_CONFIG_DIR";
/// The variable that names the state folder: approvals, pins, logins, the audit log.
pub(crate) const STATE_DIR: &str = "SWITCHBOARD_STATE_DIR";
/// The variable that names an alternative enterprise file.
pub const MANAGED_FILE: &str = "SWITCHBOARD_MANAGED_FILE";

/// The database with pins, the audit log and caches, in the state folder.
pub const STORE_FILE: &str = "switchboard.db";
/// The folder for output too large for a model, in the state folder.
pub const SPILL_FOLDER: &str = "output";
/// The folder for the locks of agent sessions in use, in the state folder.
pub const LOCK_FOLDER: &str = "sessions";
/// The folder for logins, in the state folder.
pub const LOGINS_FOLDER: &str = "logins";

/// The enterprise file of the machine.
#[cfg(target_os = "macos")]
const MACHINE_FILE: &str = "/Library/Application Support/Switchboard/managed.toml";
#[cfg(windows)]
const MACHINE_FILE: &str = r"C:\ProgramData\Switchboard\managed.toml";
#[cfg(not(any(target_os = "macos", windows)))]
const MACHINE_FILE: &str = "/etc/switchboard/managed.toml";

/// The folders of a user.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home, with links resolved.
    pub home: PathBuf,
    /// The user's configuration folder.
    pub config: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    /// The enterprise file.
    pub managed: Managed,
}

/// The enterprise file in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managed {
    /// Its path, whether it exists or not.
    pub file: Option<PathBuf>,
    /// The reason the file named by the environment is ignored.
    pub refused: Option<String>,
}

/// The reason the folders cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacesError {
    /// Neither `HOME` nor the system names an absolute path.
    #[error("the home folder is not known: HOME is not set to an absolute path")]
    NoHome,
    /// A variable names a relative path, which could lead into a project.
    #[error("{0} is not an absolute path")]
    Relative(&'static str),
}

impl Places {
    /// Computes the folders from these variables.
    ///
    /// # Errors
    ///
    /// If the home folder is not known, or if a variable names a relative path.
    pub fn of(environment: &[(OsString, OsString)]) -> Result<Self, PlacesError> {
        let variable = |name: &str| {
            let mut variables = environment.iter();
            let found = variables.find(|(known, _)| known == OsStr::new(name));
            found
                .map(|(_, value)| value)
                .filter(|value| !value.is_empty())
        };
        let home = variable("HOME")
            .map(PathBuf::from)
            .or_else(std::env::home_dir)
            .filter(|home| home.is_absolute())
            .ok_or(PlacesError::NoHome)?;
        // Compared with the project's path, which has no links.
        let home = home.canonicalize().unwrap_or(home);
        let folder = |own: &'static str, shared: &str, windows: &str, default: &str| {
            if let Some(folder) = variable(own).map(PathBuf::from) {
                // A relative path could lead into a project.
                return if folder.is_absolute() {
                    Ok(folder)
                } else {
                    Err(PlacesError::Relative(own))
                };
            }
            let shared = if cfg!(windows) { windows } else { shared };
            let parent = variable(shared).map(PathBuf::from);
            let parent = parent.filter(|path| path.is_absolute());
            let parent = parent.unwrap_or_else(|| home.join(default));
            Ok(parent.join("switchboard"))
        };
        Ok(Self {
            config: folder(CONFIG_DIR, "XDG_CONFIG_HOME", "APPDATA", ".config")?,
            state: folder(STATE_DIR, "XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")?,
            managed: managed_file(variable(MANAGED_FILE).map(PathBuf::from)),
            home,
        })
    }

    /// The configuration folders for a program that works in `folder`, whose path must not contain links.
    pub fn folders(&self, folder: &Path) -> Folders {
        Folders {
            home: self.home.clone(),
            config: self.config.clone(),
            state: self.state.clone(),
            project: project_root(folder, &self.home, &Disk),
            managed_file: self.managed.file.clone(),
        }
    }
}

/// The enterprise file. A user must not be able to evade the machine's file by setting a variable, so another file
/// counts only if the machine has none, and only if an administrator wrote it. Debug builds, which are not deployed,
/// accept any file, so that the rules can be tested.
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
