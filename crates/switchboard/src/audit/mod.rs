//! The audit log: every call, decision, login and change, written off the call path (OBS-3).
//!
//! Owns the queue between those who have something to write down and the one task that writes it, and what is asked of
//! the log afterwards. Whoever records something never waits: when the queue is full, the entry is counted as lost, and
//! that so many were lost is itself an entry. A batch is written when a moment has passed, when there is enough, or when
//! somebody asks for it; [`Audit::close`] writes what is left.

mod entry;
mod query;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use switchboard_config::settings::{Setting, Settings};
use switchboard_store::{LogEntry, Retention, Space, SqliteStore, Store, StoreError, Timestamp};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use entry::Entry;

pub use entry::{CallNote, Digest, End, What};
pub use query::{Filter, Found, read};

/// Where the log is kept.
pub const LOG: Space = Space::new("audit");

/// How many entries may wait to be written.
const QUEUE: usize = 8192;
/// So many are written at once.
const BATCH: usize = 1024;
/// How long an entry waits for others.
const LINGER: Duration = Duration::from_millis(200);
/// How often a batch that cannot be written is tried again, and how long after.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// How long the end of a program waits for the log.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Writes things down. Cheap to clone.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    queue: mpsc::Sender<Message>,
    lost: Arc<AtomicU64>,
    /// The task ends by itself when the last handle is gone, once it has written what waits.
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Entry(Entry),
    Flush(oneshot::Sender<()>),
}

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
pub struct AuditSettings(Retention);

impl Default for AuditSettings {
    /// 90 days and 64 MiB, as the configuration has it.
    fn default() -> Self {
        Self(Retention {
            max_age: Duration::from_secs(90 * 86_400),
            max_bytes: 64 << 20,
        })
    }
}

impl From<&Settings> for AuditSettings {
    fn from(settings: &Settings) -> Self {
        Self(Retention {
            max_age: settings.duration(Setting::AuditMaxAge),
            max_bytes: settings.count(Setting::AuditMaxBytes),
        })
    }
}

impl AuditSettings {
    /// Remembers so much.
    pub const fn new(retention: Retention) -> Self {
        Self(retention)
    }
}

impl Audit {
    /// Begins to write down, in the runtime it is called in. `front_end` is who makes the calls, such as `gateway`.
    pub fn start(store: Arc<dyn Store>, settings: AuditSettings, front_end: &str) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            store,
            retention: settings.0,
            front_end: front_end.to_owned(),
            lost: Arc::clone(&lost),
        };
        let writer = tokio::spawn(writer.run(messages));
        Self(Arc::new(Inner {
            queue,
            lost,
            writer: Mutex::new(Some(writer)),
        }))
    }

    /// Writes something down, soon. It never waits; what cannot be taken is counted.
    pub fn record(&self, what: What) {
        let entry = Entry { at: now(), what };
        if self.0.queue.try_send(Message::Entry(entry)).is_err() {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything that was recorded before is written, or could not be.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.0.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }

    /// Writes what is left, within bounds. What is recorded afterwards is lost.
    pub async fn close(&self) {
        if timeout(LAST_WRITE, self.flush()).await.is_err() {
            tracing::warn!("the audit log could not be written in time");
        }
        if let Some(writer) = self.0.writer.lock().await.take() {
            writer.abort();
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Audit")
    }
}

/// Writes one entry at once, for a program that changes something and ends.
pub fn record_blocking(
    store: &SqliteStore,
    settings: AuditSettings,
    front_end: &str,
    what: What,
) -> Result<(), StoreError> {
    let entry = Entry { at: now(), what };
    store.append_blocking(LOG, &[kept(&entry, front_end)], settings.0)
}

/// The one task that writes.
struct Writer {
    store: Arc<dyn Store>,
    retention: Retention,
    front_end: String,
    lost: Arc<AtomicU64>,
}

impl Writer {
    async fn run(self, mut messages: mpsc::Receiver<Message>) {
        let mut batch = Vec::new();
        let mut waiting = Vec::new();
        let mut due: Option<Instant> = None;
        loop {
            let message = match due {
                None => messages.recv().await.map(Some),
                Some(due) => tokio::select! {
                    message = messages.recv() => message.map(Some),
                    () = sleep_until(due) => Some(None),
                },
            };
            let is_over = message.is_none();
            let is_due = matches!(message, Some(None));
            match message.flatten() {
                Some(Message::Entry(entry)) => {
                    batch.push(entry);
                    due.get_or_insert_with(|| Instant::now() + LINGER);
                }
                Some(Message::Flush(done)) => waiting.push(done),
                None => {}
            }
            if is_over || is_due || batch.len() >= BATCH || !waiting.is_empty() {
                self.write(&mut batch).await;
                due = None;
                for done in waiting.drain(..) {
                    let _ = done.send(());
                }
            }
            if is_over {
                return;
            }
        }
    }

    /// Writes a batch, with how many entries were lost before it. What cannot be written is lost, too.
    async fn write(&self, batch: &mut Vec<Entry>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let what = What::Lost { count: lost };
            batch.push(Entry { at: now(), what });
        }
        if batch.is_empty() {
            return;
        }
        let entries: Vec<LogEntry> = batch
            .iter()
            .map(|entry| kept(entry, &self.front_end))
            .collect();
        for attempt in 1..=ATTEMPTS {
            match self
                .store
                .append(LOG, entries.clone(), self.retention)
                .await
            {
                Ok(()) => break,
                Err(error) if attempt == ATTEMPTS => {
                    let count = batch.len() as u64 - u64::from(lost > 0);
                    tracing::warn!(%error, count, "entries of the audit log are lost");
                    self.lost.fetch_add(count + lost, Ordering::Relaxed);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        batch.clear();
    }
}

fn kept(entry: &Entry, front_end: &str) -> LogEntry {
    LogEntry {
        at: entry.at,
        value: entry.to_json(front_end, std::process::id()).into(),
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}
