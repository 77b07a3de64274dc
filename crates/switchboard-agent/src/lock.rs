//! Lock of a stored session: one process at a time continues it.
//!
//! The lock is a file lock, so it ends with its process, however that ends. Sessions of one process share it; the
//! journal keeps them apart.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use switchboard_config::write::create_private_folder;

use crate::session::{SessionError, SessionId};

/// Attempts to lock a file that its last owner is deleting.
const ATTEMPTS: usize = 16;
/// Time between attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// Locks held by this process, by path.
static HELD: LazyLock<Mutex<HashMap<PathBuf, Weak<SessionLock>>>> = LazyLock::new(Mutex::default);

/// A held lock. Dropping it deletes the file and releases the lock.
#[derive(Debug)]
pub(crate) struct SessionLock {
    path: PathBuf,
    _file: File,
}

impl SessionLock {
    /// Locks a session; fails at once if another process has it.
    ///
    /// `None` if the folder cannot be written: then the store cannot, either, or the journal alone keeps processes apart.
    pub(crate) fn take(folder: &Path, id: &SessionId) -> Result<Option<Arc<Self>>, SessionError> {
        for _ in 0..ATTEMPTS {
            match Self::take_once(folder, id) {
                // Another thread of this process is about to release it.
                Err(SessionError::InUse { pid, .. }) if pid == Some(std::process::id()) => {
                    std::thread::sleep(PAUSE);
                }
                taken => return taken,
            }
        }
        Self::take_once(folder, id)
    }

    fn take_once(folder: &Path, id: &SessionId) -> Result<Option<Arc<Self>>, SessionError> {
        let path = folder.join(format!("{id}.lock"));
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.get(&path).and_then(Weak::upgrade) {
            return Ok(Some(lock));
        }
        held.retain(|_, lock| lock.strong_count() > 0);
        let file = match create_private_folder(folder).and_then(|()| lock(&path)) {
            Ok(Locked::Here(file)) => file,
            Ok(Locked::Elsewhere(pid)) => {
                let session = id.to_string();
                return Err(SessionError::InUse { session, pid });
            }
            Err(_) => return Ok(None),
        };
        let lock = Arc::new(Self { path, _file: file });
        held.insert(lock.path.clone(), Arc::downgrade(&lock));
        Ok(Some(lock))
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // While it is locked: `lock` notices that the file it has opened is gone.
        let _ = fs::remove_file(&self.path);
    }
}

enum Locked {
    Here(File),
    /// With the process id, if its owner has written it.
    Elsewhere(Option<u32>),
}

fn lock(path: &Path) -> io::Result<Locked> {
    for _ in 0..ATTEMPTS {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path)?;
        match file.try_lock() {
            Ok(()) if is_same(&file, path) => {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "{}", std::process::id())?;
                return Ok(Locked::Here(file));
            }
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let pid = read.ok().and_then(|_| text.trim().parse().ok());
                return Ok(Locked::Elsewhere(pid));
            }
        }
    }
    Ok(Locked::Elsewhere(None))
}

/// Whether the path still leads to this file.
#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let opened = file.metadata().map(identity).ok();
    opened.is_some() && opened == fs::metadata(path).map(identity).ok()
}

/// An open file cannot be deleted.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_shares_a_lock_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let id = SessionId::parse("a").unwrap();
        let take = || SessionLock::take(folder.path(), &id).unwrap().unwrap();
        let (first, second) = (take(), take());
        assert!(Arc::ptr_eq(&first, &second));
        drop(first);
        assert!(folder.path().join("a.lock").exists());
        drop(second);
        assert!(!folder.path().join("a.lock").exists());
    }

    #[test]
    fn a_lock_of_another_names_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.lock");
        fs::write(&path, "4711").unwrap();
        let other = File::open(&path).unwrap();
        other.lock().unwrap();
        let id = SessionId::parse("b").unwrap();
        let error = SessionLock::take(folder.path(), &id).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the session \"b\" is in use by process 4711"
        );
        drop(other);
        assert!(SessionLock::take(folder.path(), &id).unwrap().is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_reason_to_refuse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let id = SessionId::parse("c").unwrap();
        assert!(SessionLock::take(&file, &id).unwrap().is_none());
    }
}
