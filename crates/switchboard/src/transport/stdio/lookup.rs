//! Resolves the program of a server to a file before it is started, so that a wrong name is reported as such.
//!
//! Only inspects files; must not start any.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::transport::{TransportError, TransportErrorKind};

/// Search path if `PATH` is not set.
const DEFAULT_PATH: &str = if cfg!(windows) { "" } else { "/usr/bin:/bin" };

/// Maximum number of folders listed in an error.
const FOLDERS_SHOWN: usize = 8;

/// Resolves a program as the server's own environment would: a bare name in the folders of `path`, anything with a
/// separator relative to the server's working directory.
pub(super) fn find(
    program: &Path,
    path: Option<&OsStr>,
    cwd: Option<&Path>,
) -> Result<PathBuf, TransportError> {
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        return Err(TransportError::new(
            TransportErrorKind::NoSuchFolder,
            format!("the folder to start in does not exist: {}", cwd.display()),
        ));
    }
    let from = cwd.unwrap_or(Path::new(""));
    if has_separator(program) {
        let file = from.join(program);
        return match examine(&file) {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(error),
            None => Err(TransportError::new(
                TransportErrorKind::ProgramNotFound,
                format!("the program {} does not exist", file.display()),
            )),
        };
    }
    if program.as_os_str().is_empty() {
        return Err(TransportError::new(
            TransportErrorKind::ProgramNotFound,
            "the program name is empty",
        ));
    }

    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    // An empty entry would mean the current folder, where a repository could place its own `npx`.
    let folders: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| from.join(folder))
        .collect();
    let mut obstacle = None;
    for folder in &folders {
        match examine(&folder.join(program)) {
            Some(Ok(found)) => return Ok(found),
            Some(Err(error)) => obstacle = obstacle.or(Some(error)),
            None => {}
        }
    }
    Err(obstacle.unwrap_or_else(|| not_found(program, &folders)))
}

/// Describes why the system refused to start a resolved program.
pub(super) fn refused(file: &Path, error: &std::io::Error) -> TransportError {
    let file = file.display();
    let (kind, message) = match error.kind() {
        std::io::ErrorKind::NotFound => (
            TransportErrorKind::ProgramNotExecutable,
            format!(
                "{file} cannot be run: the interpreter named in its first line, or its loader, does not exist"
            ),
        ),
        std::io::ErrorKind::PermissionDenied => (
            TransportErrorKind::ProgramNotExecutable,
            format!("{file} cannot be run: permission denied"),
        ),
        std::io::ErrorKind::ArgumentListTooLong => (
            TransportErrorKind::Spawn,
            format!("{file} cannot be started: its arguments and environment are too long"),
        ),
        _ if is_wrong_format(error) => (
            TransportErrorKind::ProgramNotExecutable,
            format!("{file} cannot be run: it is not an executable for this system"),
        ),
        _ => (
            TransportErrorKind::Spawn,
            format!("{file} cannot be started: {error}"),
        ),
    };
    TransportError::new(kind, message)
}

/// The program at that path, the reason why it cannot run, or `None` if there is none.
#[cfg(unix)]
fn examine(file: &Path) -> Option<Result<PathBuf, TransportError>> {
    let not_executable = |why: &str| {
        Some(Err(TransportError::new(
            TransportErrorKind::ProgramNotExecutable,
            format!("{} cannot be run: {why}", file.display()),
        )))
    };
    let metadata = std::fs::metadata(file).ok()?;
    if metadata.is_dir() {
        return not_executable("it is a folder");
    }
    if rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return not_executable("it is not marked as executable");
    }
    Some(Ok(file.to_owned()))
}

/// The program at that path, with any of the executable extensions.
#[cfg(not(unix))]
fn examine(file: &Path) -> Option<Result<PathBuf, TransportError>> {
    const EXTENSIONS: [&str; 4] = ["exe", "com", "bat", "cmd"];

    let with_extension = EXTENSIONS.iter().map(|extension| {
        let mut name = file.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    });
    let as_written = file.extension().is_some().then(|| file.to_owned());
    as_written
        .into_iter()
        .chain(with_extension)
        .find(|candidate| candidate.is_file())
        .map(Ok)
}

fn has_separator(program: &Path) -> bool {
    let bytes = program.as_os_str().as_encoded_bytes();
    bytes
        .iter()
        .any(|byte| std::path::is_separator(char::from(*byte)))
}

#[cfg(unix)]
fn is_wrong_format(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

#[cfg(not(unix))]
fn is_wrong_format(error: &std::io::Error) -> bool {
    /// `ERROR_BAD_EXE_FORMAT`.
    const BAD_FORMAT: i32 = 193;
    error.raw_os_error() == Some(BAD_FORMAT)
}

fn not_found(program: &Path, folders: &[PathBuf]) -> TransportError {
    let listed: Vec<String> = folders
        .iter()
        .take(FOLDERS_SHOWN)
        .map(|folder| folder.display().to_string())
        .collect();
    let more = match folders.len().saturating_sub(FOLDERS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let program = program.display();
    let message = if listed.is_empty() {
        format!("the program `{program}` was not found: the server's PATH is empty")
    } else {
        format!(
            "the program `{program}` was not found in the server's PATH: {}{more}",
            listed.join(", ")
        )
    };
    TransportError::new(TransportErrorKind::ProgramNotFound, message)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder with `bin/tool` (executable), `other/tool` (not executable), `bin/folder/` and `local/tool`
    /// (executable).
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("bin/folder")).unwrap();
        for (file, mode) in [
            ("bin/tool", 0o755),
            ("other/tool", 0o644),
            ("local/tool", 0o755),
        ] {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        root
    }

    fn check(
        program: &str,
        path: Option<&str>,
        cwd: Option<&str>,
        expected: Result<&str, (TransportErrorKind, &str)>,
    ) {
        let root = machine();
        let root = root.path();
        let at_root = |text: &str| text.replace('~', root.to_str().unwrap());
        let path = path.map(at_root);
        let cwd = cwd.map(|cwd| PathBuf::from(at_root(cwd)));
        let found = find(
            Path::new(&at_root(program)),
            path.as_deref().map(OsStr::new),
            cwd.as_deref(),
        );
        let expected = match expected {
            Ok(file) => Ok(PathBuf::from(at_root(file))),
            Err((kind, message)) => Err((kind, at_root(message))),
        };
        assert_eq!(found.map_err(|error| (error.kind, error.message)), expected);
    }

    #[test]
    fn programs_are_found_as_the_server_would() {
        check("tool", Some("~/none:~/bin"), None, Ok("~/bin/tool"));
        check("tool", Some("~/other:~/bin"), None, Ok("~/bin/tool"));
        check("tool", Some("bin"), Some("~"), Ok("~/bin/tool"));
        check(
            "./tool",
            Some("~/bin"),
            Some("~/local"),
            Ok("~/local/./tool"),
        );
        check("~/local/tool", None, Some("~/bin"), Ok("~/local/tool"));
        check("bin/tool", None, Some("~"), Ok("~/bin/tool"));
    }

    #[test]
    fn errors_say_what_is_missing_and_where_it_was_looked_for() {
        use TransportErrorKind::{NoSuchFolder, ProgramNotExecutable, ProgramNotFound};
        check(
            "tol",
            Some("~/bin:~/local"),
            None,
            Err((
                ProgramNotFound,
                "the program `tol` was not found in the server's PATH: ~/bin, ~/local",
            )),
        );
        check(
            "tool",
            Some(":"),
            Some("~/local"),
            Err((
                ProgramNotFound,
                "the program `tool` was not found: the server's PATH is empty",
            )),
        );
        check(
            "",
            Some("~/bin"),
            None,
            Err((ProgramNotFound, "the program name is empty")),
        );
        check(
            "./tol",
            None,
            Some("~/local"),
            Err((ProgramNotFound, "the program ~/local/./tol does not exist")),
        );
        check(
            "tool",
            Some("~/other"),
            None,
            Err((
                ProgramNotExecutable,
                "~/other/tool cannot be run: it is not marked as executable",
            )),
        );
        check(
            "folder",
            Some("~/bin"),
            None,
            Err((
                ProgramNotExecutable,
                "~/bin/folder cannot be run: it is a folder",
            )),
        );
        check(
            "tool",
            Some("~/bin"),
            Some("~/gone"),
            Err((
                NoSuchFolder,
                "the folder to start in does not exist: ~/gone",
            )),
        );
    }

    #[test]
    fn a_long_path_is_cut() {
        let path = (0..20)
            .map(|index| format!("/none/{index}"))
            .collect::<Vec<_>>();
        let error = find(Path::new("tool"), Some(OsStr::new(&path.join(":"))), None).unwrap_err();
        assert!(
            error.message.ends_with("/none/6, /none/7 and 12 more"),
            "{error}"
        );
    }
}
