//! The audit log: every call, decision, login and change, written off the call path.
//!
//! Owns the queue to the single writer task, and log queries. Recording never waits: if the queue is full, the entry is
//! counted as lost, and the number of lost entries is itself recorded. A batch is written after a short delay, when it
//! is full, or on request; [`Audit::close`] writes the rest.
//!
//! If the log is *required*, a call is recorded before it is made, and refused if that fails ([`Audit::confirm`]).
//! Otherwise the first failure is passed to a callback ([`Audit::on_failure`]).

mod entry;
mod query;

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use switchboard_config::settings::{Setting, Settings};
use switchboard_store::{ErrorKind, Retention, Space, SqliteStore, Store, StoreError, Timestamp};
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use entry::{Entry, Pen};

pub use entry::What;
pub(crate) use entry::{CallNote, Digest, End};
pub use query::{Filter, Found, read};

/// The store space of the log.
pub const LOG: Space = Space::new("audit");

/// The capacity of the queue, in entries.
const QUEUE: usize = 8192;
const BATCH: usize = 1024;
/// The maximum delay of an entry while its batch fills.
const LINGER: Duration = Duration::from_millis(200);
/// Attempts to write a batch, and the pause between them.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum wait for the log on exit.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Records events. Cheap to clone.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    queue: Arc<Queue>,
    is_required: bool,
    /// The task ends when the last handle is dropped, after writing all queued entries.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.waiting().is_over = true;
        self.queue.news.notify_one();
    }
}

/// The queue of the writer, which is woken by the first entry, by a full batch and by urgent requests. So recording
/// costs only a list insertion.
#[derive(Default)]
struct Queue {
    waiting: std::sync::Mutex<Waiting>,
    news: Notify,
    /// Called for the first batch that could not be written.
    on_failure: std::sync::Mutex<Option<OnFailure>>,
}

type OnFailure = Box<dyn FnOnce(&StoreError) + Send>;

#[derive(Default)]
struct Waiting {
    entries: Vec<Entry>,
    flushes: Vec<oneshot::Sender<Result<(), StoreError>>>,
    lost: u64,
    is_over: bool,
}

impl Queue {
    fn add(&self, at: Timestamp, what: What) {
        let mut waiting = self.waiting();
        if waiting.is_over {
            return;
        }
        if waiting.entries.len() >= QUEUE {
            waiting.lost += 1;
            return;
        }
        waiting.entries.push(Entry { at, what });
        let count = waiting.entries.len();
        drop(waiting);
        if count == 1 || count == BATCH {
            self.news.notify_one();
        }
    }

    /// Whether the queue must be written now.
    fn is_urgent(&self) -> bool {
        let waiting = self.waiting();
        waiting.entries.len() >= BATCH || !waiting.flushes.is_empty() || waiting.is_over
    }

    /// Takes all queued entries, leaving the empty `spare` in their place.
    fn take(&self, spare: Vec<Entry>) -> Waiting {
        let mut waiting = self.waiting();
        let next = Waiting {
            entries: spare,
            is_over: waiting.is_over,
            ..Waiting::default()
        };
        std::mem::replace(&mut *waiting, next)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The retention of the log, and whether calls depend on it.
#[derive(Debug, Clone, Copy)]
pub struct AuditSettings {
    retention: Retention,
    is_required: bool,
}

impl Default for AuditSettings {
    /// 90 days and 64 MiB, the defaults of the configuration.
    fn default() -> Self {
        Self::new(Retention {
            max_age: Duration::from_secs(90 * 86_400),
            max_bytes: 64 << 20,
        })
    }
}

impl From<&Settings> for AuditSettings {
    fn from(settings: &Settings) -> Self {
        let retention = Retention {
            max_age: settings.duration(Setting::AuditMaxAge),
            max_bytes: settings.count(Setting::AuditMaxBytes),
        };
        Self {
            is_required: settings.requires_audit(),
            ..Self::new(retention)
        }
    }
}

impl AuditSettings {
    /// Sets the retention.
    pub const fn new(retention: Retention) -> Self {
        Self {
            retention,
            is_required: false,
        }
    }

    /// Refuses calls that cannot be recorded.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

impl Audit {
    /// Starts the writer task in the current runtime. `front_end` identifies the caller, such as `gateway`.
    pub fn start(store: Arc<dyn Store>, settings: AuditSettings, front_end: &str) -> Self {
        let queue = Arc::<Queue>::default();
        let writer = Writer {
            store,
            retention: settings.retention,
            pen: Pen::new(front_end, std::process::id()),
            queue: Arc::clone(&queue),
        };
        let writer = tokio::spawn(writer.run());
        Self(Arc::new(Inner {
            queue,
            is_required: settings.is_required,
            writer: Mutex::new(Some(writer)),
        }))
    }

    /// Queues an event without waiting. If the queue is full, the event is counted as lost.
    pub fn record(&self, what: What) {
        self.0.queue.add(now(), what);
    }

    /// Whether calls that cannot be recorded are refused.
    pub fn is_required(&self) -> bool {
        self.0.is_required
    }

    /// Sets a callback, called once if entries cannot be written or are still unwritten when the log is closed. It runs
    /// on the writer task or on the closing one.
    pub fn on_failure(&self, tell: impl FnOnce(&StoreError) + Send + 'static) {
        let mut slot = lock(&self.0.queue.on_failure);
        *slot = Some(Box::new(tell));
    }

    /// Records an event and waits until it is written.
    pub async fn confirm(&self, what: What) -> Result<(), StoreError> {
        let (done, written) = oneshot::channel();
        {
            let mut waiting = self.0.queue.waiting();
            if waiting.is_over {
                return Err(closed());
            }
            // Not bounded by the queue's capacity: each caller waits for its own write.
            waiting.entries.push(Entry { at: now(), what });
            waiting.flushes.push(done);
        }
        self.0.queue.news.notify_one();
        written.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Waits until everything recorded so far is written or has failed.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        {
            let mut waiting = self.0.queue.waiting();
            if waiting.is_over {
                return;
            }
            waiting.flushes.push(done);
        }
        self.0.queue.news.notify_one();
        let _ = written.await;
    }

    /// Writes the remaining entries, within a time limit. Later events are lost.
    pub async fn close(&self) {
        if timeout(LAST_WRITE, self.flush()).await.is_err() {
            tracing::warn!("the audit log could not be written in time");
            let tell = lock(&self.0.queue.on_failure).take();
            if let Some(tell) = tell {
                let message = format!("not written within {} s", LAST_WRITE.as_secs());
                tell(&StoreError::new(ErrorKind::Busy, message));
            }
        }
        if let Some(writer) = self.0.writer.lock().await.take() {
            writer.abort();
        }
        self.0.queue.waiting().is_over = true;
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Audit")
    }
}

/// Writes one entry synchronously, for a program that changes something and exits.
pub fn record_blocking(
    store: &SqliteStore,
    settings: AuditSettings,
    front_end: &str,
    what: What,
) -> Result<(), StoreError> {
    let entry = Entry { at: now(), what };
    let entries = Pen::new(front_end, std::process::id()).write(&[entry]);
    store.append_blocking(LOG, &entries, settings.retention)
}

struct Writer {
    store: Arc<dyn Store>,
    retention: Retention,
    pen: Pen,
    queue: Arc<Queue>,
}

impl Writer {
    async fn run(mut self) {
        let mut spare = Vec::new();
        loop {
            self.queue.news.notified().await;
            let due = Instant::now() + LINGER;
            while !self.queue.is_urgent() {
                if timeout_at(due, self.queue.news.notified()).await.is_err() {
                    break;
                }
            }
            let Waiting {
                mut entries,
                flushes,
                lost,
                is_over,
            } = self.queue.take(spare);
            let written = self.write(&mut entries, lost).await;
            entries.clear();
            spare = entries;
            for done in flushes {
                let _ = done.send(written.clone());
            }
            if is_over {
                return;
            }
        }
    }

    /// Writes a batch, preceded by the number of entries lost before it. If that fails, its entries are lost, too.
    async fn write(&mut self, batch: &mut Vec<Entry>, lost: u64) -> Result<(), StoreError> {
        if lost > 0 {
            let what = What::Lost { count: lost };
            batch.push(Entry { at: now(), what });
        }
        if batch.is_empty() {
            return Ok(());
        }
        let entries = self.pen.write(batch);
        let mut attempt = 1;
        loop {
            let appended = self.store.append(LOG, entries.clone(), self.retention);
            match appended.await {
                Ok(()) => return Ok(()),
                Err(error) if attempt == ATTEMPTS => {
                    let count = batch.len() as u64 - u64::from(lost > 0);
                    tracing::warn!(%error, count, "audit log entries lost");
                    self.queue.waiting().lost += count + lost;
                    let tell = lock(&self.queue.on_failure).take();
                    if let Some(tell) = tell {
                        tell(&error);
                    }
                    return Err(error);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
            attempt += 1;
        }
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "the audit log is closed")
}

fn now() -> Timestamp {
    SystemTime::now().into()
}
