//! Watches configuration files for changes.
//!
//! Reports only that a file may have changed; the caller reads everything again. Folders are watched rather than files,
//! because editors replace files, and files may be created later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::desired::{Desired, ServerSource};

/// Watches files, whether they exist or not. Dropping it stops watching.
pub struct FileWatcher {
    files: Vec<PathBuf>,
    watched: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

/// Files cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch configuration files: {0}")]
pub struct WatchError(#[from] notify::Error);

/// The quiet time after which a change counts as complete: editors save in several steps.
const SETTLE: Duration = Duration::from_millis(100);
/// The maximum delay if changes keep coming.
const LONGEST_SETTLE: Duration = Duration::from_secs(2);

impl FileWatcher {
    /// Starts watching.
    pub fn new(files: Vec<PathBuf>) -> Result<Self, WatchError> {
        let (sender, changes) = mpsc::channel(1);
        let names = files.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // One queued change stands for any number of them.
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
        // Watch folders that have been created since.
        if let Err(error) = self.watch_folders() {
            tracing::warn!(%error, "cannot watch a folder");
        }
    }

    /// Watches the nearest existing parent folder of each file.
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

/// The servers described by files, read again whenever one of them changes.
///
/// Files are read on a separate thread, so a slow disk or a download delays neither calls nor servers. If reading
/// returns `None`, for example because a file is being written, nothing changes.
pub struct FileSource<R> {
    watcher: FileWatcher,
    read: Arc<R>,
    has_yielded: bool,
}

impl<R: Fn() -> Option<Desired> + Send + Sync + 'static> FileSource<R> {
    /// Creates a source that reads these files.
    pub fn new(watcher: FileWatcher, read: R) -> Self {
        Self {
            watcher,
            read: Arc::new(read),
            has_yielded: false,
        }
    }
}

impl<R: Fn() -> Option<Desired> + Send + Sync + 'static> ServerSource for FileSource<R> {
    async fn next(&mut self) -> Option<Desired> {
        loop {
            if std::mem::take(&mut self.has_yielded) {
                // Limits the rate of restarts, however fast files change.
                sleep(SETTLE).await;
            }
            self.watcher.changed().await;
            let read = Arc::clone(&self.read);
            if let Ok(Some(desired)) = on_thread(move || read()).await {
                self.has_yielded = true;
                return Some(desired);
            }
        }
    }
}

impl<R> std::fmt::Debug for FileSource<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FileSource")
            .field("watcher", &self.watcher)
            .finish_non_exhaustive()
    }
}

/// Runs blocking work, such as reading files or a download, on a separate thread. Unlike a blocking task of the
/// runtime, it does not delay exit: a thread whose result is no longer awaited is abandoned.
///
/// # Errors
///
/// If the thread cannot be started, or if the work panicked.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("configuration".to_owned());
    thread.spawn(move || drop(sender.send(work())))?;
    done.await
        .map_err(|_| std::io::Error::other("the reading thread panicked"))
}

/// Whether an event may affect one of the files: the file itself, or a parent folder.
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
