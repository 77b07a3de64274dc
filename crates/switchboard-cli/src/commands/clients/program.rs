//! This program as other programs start it.

use std::path::{Path, PathBuf};

use switchboard_config::own_program::PROGRAM;

use crate::environment::Environment;
use crate::error::Failure;

/// How clients start this program.
pub(super) struct Program {
    /// The program's name if that finds it on `PATH`, else its path.
    pub(super) command: String,
    /// The running executable.
    pub(super) path: PathBuf,
    search: Vec<PathBuf>,
}

impl Program {
    pub(super) fn find(environment: &Environment) -> Result<Self, Failure> {
        let unknown = |cause: String| {
            Failure::failed("the path of this program is unknown")
                .because(cause)
                .hint("start it by its full path")
        };
        let path = std::env::current_exe().map_err(|error| unknown(error.to_string()))?;
        let shown = path
            .to_str()
            .ok_or_else(|| unknown("it is not UTF-8".to_owned()))?;
        let mut program = Self {
            command: shown.to_owned(),
            search: search(environment),
            path: path.clone(),
        };
        if program.is_started_by(PROGRAM) {
            PROGRAM.clone_into(&mut program.command);
        }
        Ok(program)
    }

    /// Whether a command in a client's file starts this very program.
    pub(super) fn is_started_by(&self, command: &str) -> bool {
        let found = if Path::new(command).is_absolute() {
            Some(PathBuf::from(command))
        } else {
            let file = format!("{command}{}", std::env::consts::EXE_SUFFIX);
            let candidates = self.search.iter().map(|folder| folder.join(&file));
            candidates.into_iter().find(|path| path.is_file())
        };
        let real = |path: &Path| path.canonicalize().ok();
        found.is_some_and(|found| real(&found).is_some() && real(&found) == real(&self.path))
    }
}

fn search(environment: &Environment) -> Vec<PathBuf> {
    let path = environment.all.iter().find(|(name, _)| name == "PATH");
    let folders = path.map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>());
    let mut folders = folders.unwrap_or_default();
    // A relative folder depends on where the client is started.
    folders.retain(|folder| folder.is_absolute());
    folders
}
