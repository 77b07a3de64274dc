//! Configuration files that change while the host runs.
//!
//! Owns the watching and nothing of what files mean: it says that something may have changed, and the caller reads
//! everything again. Folders are watched rather than files, because editors replace files, and files that do not
//! exist yet may come into being.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::desired::{Desired, ServerSource};

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

/// The servers that files describe, read again whenever one of them changes.
///
/// Files are read on a thread of their own, so a slow disk or a download holds up neither calls nor servers. Reading
/// that gives `None`, such as of a file that is being written, leaves everything as it is.
pub struct FileSource<R> {
    watcher: FileWatcher,
    read: Arc<R>,
    has_yielded: bool,
}

impl<R: Fn() -> Option<Desired> + Send + Sync + 'static> FileSource<R> {
    /// A source that reads these files.
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
                // However fast files change, servers are not restarted faster than this.
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

/// Runs what reads files, and may download something for seconds, on a thread of its own. Unlike a blocking task of the
/// runtime, it does not delay the end of the program: a thread whose result is no longer awaited is abandoned.
///
/// # Errors
///
/// If the system starts no thread, or if the work has panicked.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("configuration".to_owned());
    thread.spawn(move || drop(sender.send(work())))?;
    done.await
        .map_err(|_| std::io::Error::other("the reading ended unexpectedly"))
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
