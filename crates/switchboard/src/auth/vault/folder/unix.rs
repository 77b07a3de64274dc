//! Private folder on Unix. All access goes through its descriptor, so that a checked file cannot be swapped.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use switchboard_config::write;

use super::{FileError, FileProblem};

/// Folder that only the current user can access.
#[derive(Debug)]
pub(in crate::auth::vault) struct PrivateFolder {
    path: PathBuf,
    folder: File,
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
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => File::from(folder),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(path, error)),
        };
        check(path, &folder, Metadata::is_dir)?;
        let path = path.to_owned();
        Ok(Some(Self { path, folder }))
    }

    /// Reads a whole file; `None` if missing.
    pub(in crate::auth::vault) fn read(
        &self,
        name: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.path.join(name);
        // Non-blocking: opening a FIFO would block forever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        check(&path, &file, Metadata::is_file)?;
        let mut content = Vec::new();
        let read = file.take(limit + 1).read_to_end(&mut content);
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
        let path = self.path.join(name);
        let beside = beside(name).map_err(|error| failed(&path, error))?;
        let written = self
            .write_beside(&beside, content)
            .and_then(|()| renameat(&self.folder, &*beside, &self.folder, name).map_err(Into::into))
            .and_then(|()| self.folder.sync_all());
        written.map_err(|error| {
            let _ = unlinkat(&self.folder, &*beside, AtFlags::empty());
            failed(&path, error)
        })
    }

    /// Deletes a file; returns whether it existed.
    pub(in crate::auth::vault) fn remove(&self, name: &str) -> Result<bool, FileError> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => return Ok(false),
            Err(error) => return Err(failed(&self.path.join(name), error)),
        }
        let synced = self.folder.sync_all();
        synced.map_err(|error| failed(&self.path, error))?;
        Ok(true)
    }

    /// Opens a lock file and creates it if missing.
    pub(in crate::auth::vault) fn lock_file(&self, name: &str) -> Result<File, FileError> {
        let path = self.path.join(name);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|error| failed(&path, error))?);
        check(&path, &file, Metadata::is_file)?;
        Ok(file)
    }

    /// Path of a file, for messages.
    pub(in crate::auth::vault) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(OsStr::new(name))
    }

    fn write_beside(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.new_file(name)?;
        file.write_all(content)?;
        file.sync_all()
    }

    /// Creates a file; fails if the name is taken, by a symlink as well.
    fn new_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }
}

/// Temporary file name, unique across machines and containers.
fn beside(name: &str) -> io::Result<String> {
    let mut random = [0; 8];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| io::Error::other("the system's random number generator failed"))?;
    Ok(format!(".{name}.{:016x}.tmp", u64::from_le_bytes(random)))
}

/// Checks that this is a regular file or folder that only the current user can access.
fn check(path: &Path, file: &File, is_wanted: fn(&Metadata) -> bool) -> Result<(), FileError> {
    let wrong = |problem| {
        let path = path.to_owned();
        Err(FileError { path, problem })
    };
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return wrong(FileProblem::Io(error)),
    };
    if !is_wanted(&metadata) {
        return wrong(FileProblem::Kind);
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return wrong(FileProblem::Owner);
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return wrong(FileProblem::Mode(mode));
    }
    Ok(())
}

fn failed(path: &Path, error: impl Into<io::Error>) -> FileError {
    let error = error.into();
    // Errors for a symlink with `O_NOFOLLOW`, or for a non-directory with `O_DIRECTORY`.
    let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
        || error.kind() == io::ErrorKind::NotADirectory;
    FileError {
        path: path.to_owned(),
        problem: if is_link {
            FileProblem::Kind
        } else {
            FileProblem::Io(error)
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::io::{Errno, FdFlags, fcntl_getfd};

    use super::*;

    fn private() -> (tempfile::TempDir, PrivateFolder) {
        let parent = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(&parent.path().join("logins")).unwrap();
        (parent, folder)
    }

    #[test]
    fn no_child_process_inherits_a_descriptor() {
        let (_parent, folder) = private();
        let lock = folder.lock_file("a.lock").unwrap();
        let new = folder.new_file("a").unwrap();
        for file in [&folder.folder, &lock, &new] {
            assert!(fcntl_getfd(file).unwrap().contains(FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn no_symlink_is_followed_and_no_file_overwritten() {
        let (parent, folder) = private();
        let target = parent.path().join("target");
        symlink(&target, folder.path_of("link")).unwrap();
        let error = folder.lock_file("link").unwrap_err();
        assert!(matches!(error.problem, FileProblem::Kind), "{error}");
        assert!(folder.new_file("link").is_err());
        assert!(!target.exists());
        folder.write("file", b"content").unwrap();
        assert!(folder.new_file("file").is_err());
        assert_eq!(folder.read("file", 7).unwrap().unwrap(), b"content");
    }

    #[test]
    fn temporary_names_are_hidden_and_do_not_repeat() {
        let (first, second) = (beside("key").unwrap(), beside("key").unwrap());
        assert!(first.starts_with(".key.") && second.starts_with(".key."));
        assert_ne!(first, second);
    }

    #[test]
    fn only_a_symlink_or_a_file_instead_of_a_folder_is_of_the_wrong_kind() {
        for (error, is_wrong_kind) in [
            (Errno::LOOP, true),
            (Errno::NOTDIR, true),
            (Errno::ACCESS, false),
            (Errno::NOSPC, false),
        ] {
            let found = failed(Path::new("/a"), error).problem;
            assert_eq!(
                matches!(found, FileProblem::Kind),
                is_wrong_kind,
                "{error}: {found}"
            );
        }
    }
}
