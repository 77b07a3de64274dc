//! Configuration files that change while the host runs.
//!
//! Owns the watching and nothing of what files mean: it says that something may have changed, and the caller reads
//! everything again. Folders are watched rather than files, because editors replace files, and files that do not
//! exist yet may come into being.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::host::Host;
use crate::spec::ServerSpec;

/// Watches files, whether they exist or not. Dropping it ends the watching.
pub struct FileWatcher {
    files: Vec<PathBuf>,
    watched: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

/// Files cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("changes of configuration files cannot be noticed: {0}")]
pub struct WatchError(#[from] notify::Error);

/// How long after the last change files count as written: editors save in several steps.
const SETTLE: Duration = Duration::from_millis(100);
/// Whatever else happens, files are read again after this long a storm of changes.
const LONGEST_SETTLE: Duration = Duration::from_secs(2);

impl FileWatcher {
    /// Begins to watch.
    pub fn new(files: Vec<PathBuf>) -> Result<Self, WatchError> {
        let (sender, changes) = mpsc::channel(1);
        let names = files.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // One change that waits stands for any number of them.
            if event.is_ok_and(|event| concerns(&event, &names)) {
                let _ = sender.try_send(());
            }
        })?;
        let mut watcher = Self {
            files,
            watched: BTreeSet::new(),
            watcher,
            changes,
        };
        watcher.watch_folders()?;
        Ok(watcher)
    }

    /// Waits until a file has changed and the change is complete.
    pub async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            return std::future::pending().await;
        }
        let quiet = async { while timeout(SETTLE, self.changes.recv()).await.is_ok() {} };
        let _ = timeout(LONGEST_SETTLE, quiet).await;
        // A folder that has come into being is watched from now on.
        if let Err(error) = self.watch_folders() {
            tracing::warn!(%error, "a folder cannot be watched");
        }
    }

    /// Watches the nearest folder that exists of each file.
    fn watch_folders(&mut self) -> Result<(), WatchError> {
        let folders: BTreeSet<PathBuf> = self
            .files
            .iter()
            .filter_map(|file| file.ancestors().skip(1).find(|folder| folder.is_dir()))
            .map(Path::to_owned)
            .collect();
        for gone in self.watched.difference(&folders) {
            let _ = self.watcher.unwatch(gone);
        }
        for new in folders.difference(&self.watched) {
            self.watcher.watch(new, RecursiveMode::NonRecursive)?;
        }
        self.watched = folders;
        Ok(())
    }
}

impl std::fmt::Debug for FileWatcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FileWatcher")
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

/// Keeps a host's servers those of the files, for as long as the future lives.
///
/// `read` gives the servers that the files describe now; `None` leaves everything as it is.
pub async fn follow(
    host: &Host,
    mut watcher: FileWatcher,
    mut read: impl FnMut() -> Option<Vec<ServerSpec>>,
) {
    loop {
        watcher.changed().await;
        if let Some(specs) = read() {
            host.apply(specs).await;
        }
        // However fast files change, servers are not restarted faster than this.
        sleep(SETTLE).await;
    }
}

/// Whether an event may be about one of the files: about itself, or about a folder on the way to it.
fn concerns(event: &Event, files: &[PathBuf]) -> bool {
    if event.kind.is_access() {
        return false;
    }
    event.need_rescan()
        || event
            .paths
            .iter()
            .any(|path| files.iter().any(|file| file.starts_with(path)))
}
