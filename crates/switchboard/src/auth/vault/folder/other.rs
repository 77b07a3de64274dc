//! Private folder on systems without file modes: the user profile's access control protects it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use switchboard_config::write::{self, Access};

use super::{FileError, FileProblem};

/// Folder that only the current user can access.
#[derive(Debug)]
pub(in crate::auth::vault) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Opens the folder and creates it if missing.
    pub(in crate::auth::vault) fn create(path: &Path) -> Result<Self, FileError> {
        write::create_private_folder(path).map_err(|error| failed(path, error))?;
        match Self::open(path)? {
            Some(folder) => Ok(folder),
            None => Err(failed(path, io::Error::from(io::ErrorKind::NotFound))),
        }
    }

    /// Opens the folder; `None` if missing.
    pub(in crate::auth::vault) fn open(path: &Path) -> Result<Option<Self>, FileError> {
        let path = path.to_owned();
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(Some(Self { path })),
            Ok(_) => {
                let problem = FileProblem::Kind;
                Err(FileError { path, problem })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    /// Reads a whole file; `None` if missing.
    pub(in crate::auth::vault) fn read(
        &self,
        name: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.path.join(name);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => {
                let problem = FileProblem::Kind;
                return Err(FileError { path, problem });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        }
        let mut content = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(limit + 1).read_to_end(&mut content));
        let length = read.map_err(|error| failed(&path, error))?;
        if length as u64 > limit {
            let problem = FileProblem::TooLarge;
            return Err(FileError { path, problem });
        }
        Ok(Some(content))
    }

    /// Writes a file atomically and syncs it to disk.
    pub(in crate::auth::vault) fn write(
        &self,
        name: &str,
        content: &[u8],
    ) -> Result<(), FileError> {
        let written = || -> io::Result<()> {
            let mut file = write::draft(&self.path, ".", ".tmp", Access::Private)?;
            file.write_all(content)?;
            file.as_file().sync_all()?;
            file.persist(self.path.join(name))
                .map_err(|error| error.error)?;
            Ok(())
        };
        written().map_err(|error| failed(&self.path.join(name), error))
    }

    /// Deletes a file; returns whether it existed.
    pub(in crate::auth::vault) fn remove(&self, name: &str) -> Result<bool, FileError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&path, error)),
        }
    }

    /// Opens a lock file and creates it if missing.
    pub(in crate::auth::vault) fn lock_file(&self, name: &str) -> Result<File, FileError> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.open(&path).map_err(|error| failed(&path, error))
    }

    /// Path of a file, for messages.
    pub(in crate::auth::vault) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

fn failed(path: &Path, error: io::Error) -> FileError {
    FileError {
        path: path.to_owned(),
        problem: FileProblem::Io(error),
    }
}
