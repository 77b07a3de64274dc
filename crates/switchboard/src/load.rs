//! Limits of the requests to one server: how many run at once, how many wait, and a circuit breaker.
//!
//! A server that is slow must not collect calls without end, and one that only fails must not make every caller wait for
//! its timeout. The common case (a free slot, a closed breaker) costs two atomic operations.
//!
//! | breaker | requests |
//! |---|---|
//! | closed | are sent |
//! | open, after a number of failures in a row | fail at once, for a while |
//! | half-open, after that | one is sent: if it succeeds, the breaker closes; if it fails, it opens again |
//!
//! A failure is a lost connection, a timeout, or an HTTP status that says so. An error that the server answers with is
//! not: the server works. A new connection closes the breaker.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_config::entry::LimitsEntry;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::peer::RequestError;

/// Limits of the requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Requests that run at once.
    pub concurrent: usize,
    /// Further requests that wait for one of these to end.
    pub queued: usize,
    /// Failures in a row that open the breaker.
    pub failures: u32,
    /// How long the breaker stays open.
    pub pause: Duration,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            concurrent: 256,
            queued: 1024,
            failures: 10,
            pause: Duration::from_secs(10),
        }
    }
}

impl From<LimitsEntry> for LoadLimits {
    fn from(entry: LimitsEntry) -> Self {
        let usual = Self::default();
        let size = |stated: Option<u64>, usual: usize| {
            let stated = stated.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            stated.unwrap_or(usual).min(Semaphore::MAX_PERMITS)
        };
        let failures = entry
            .failures
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Self {
            concurrent: size(entry.concurrent_calls, usual.concurrent),
            queued: size(entry.queued_calls, usual.queued),
            failures: failures.unwrap_or(usual.failures),
            pause: entry.pause.unwrap_or(usual.pause),
        }
    }
}

/// Whether requests to a server are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// They are sent.
    Closed,
    /// They fail at once, for this long.
    Open(Duration),
    /// One is sent to find out whether the server works again.
    HalfOpen,
}

impl BreakerState {
    /// The state as a word, for tables and scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open(_) => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// The load of a server at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadStatus {
    /// Requests that run.
    pub running: usize,
    /// Requests that wait for one of these to end.
    pub waiting: usize,
    /// The most that run at once.
    pub limit: usize,
    /// Requests that were refused since the start, because too many were waiting or the breaker was open.
    pub shed: u64,
    /// How often the breaker has opened.
    pub opened: u64,
    /// The state of the breaker.
    pub breaker: BreakerState,
}

/// The load of one server, across reconnects.
#[derive(Debug)]
pub struct ServerLoad {
    limits: LoadLimits,
    slots: Semaphore,
    waiting: AtomicUsize,
    shed: AtomicU64,
    opened: AtomicU64,
    /// Failures in a row. From the limit on, the breaker decides.
    failures: AtomicU32,
    breaker: Mutex<Breaker>,
}

/// Only used while failures are at their limit.
#[derive(Debug, Default)]
struct Breaker {
    until: Option<Instant>,
    is_probing: bool,
}

/// A request that runs. Dropped without an outcome if it is cancelled.
pub(crate) struct Slot<'l> {
    load: &'l ServerLoad,
    _permit: SemaphorePermit<'l>,
    is_probe: bool,
}

impl ServerLoad {
    pub(crate) fn new(limits: LoadLimits) -> Self {
        Self {
            slots: Semaphore::new(limits.concurrent),
            limits,
            waiting: AtomicUsize::new(0),
            shed: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            failures: AtomicU32::new(0),
            breaker: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> LoadLimits {
        self.limits
    }

    /// A slot, if one is free and the breaker is closed.
    #[inline]
    pub(crate) fn try_enter(&self) -> Option<Slot<'_>> {
        if self.failures.load(Ordering::Relaxed) >= self.limits.failures {
            return None;
        }
        let permit = self.slots.try_acquire().ok()?;
        Some(Slot {
            load: self,
            _permit: permit,
            is_probe: false,
        })
    }

    /// A slot, for which the caller may have to wait this long.
    #[cold]
    pub(crate) async fn enter(&self, patience: Duration) -> Result<Slot<'_>, RequestError> {
        let is_probe = self.admit()?;
        // A probe that gets no slot leaves the breaker half-open for the next one.
        let probe = is_probe.then(|| Probe(self));
        let permit = match self.slots.try_acquire() {
            Ok(permit) => permit,
            Err(_) => self.wait(patience).await?,
        };
        std::mem::forget(probe);
        Ok(Slot {
            load: self,
            _permit: permit,
            is_probe,
        })
    }

    async fn wait(&self, patience: Duration) -> Result<SemaphorePermit<'_>, RequestError> {
        let queued = Queued::new(&self.waiting);
        if queued.position > self.limits.queued {
            return Err(self.overloaded());
        }
        match timeout(patience, self.slots.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.overloaded()),
        }
    }

    fn overloaded(&self) -> RequestError {
        self.shed.fetch_add(1, Ordering::Relaxed);
        RequestError::Overloaded {
            running: self.limits.concurrent,
        }
    }

    /// Whether a request may be sent although failures are at their limit: as the probe of a half-open breaker.
    fn admit(&self) -> Result<bool, RequestError> {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures < self.limits.failures {
            return Ok(false);
        }
        let mut breaker = self.breaker();
        let remaining = breaker.remaining();
        if remaining.is_none() && !breaker.is_probing {
            breaker.is_probing = true;
            return Ok(true);
        }
        drop(breaker);
        self.shed.fetch_add(1, Ordering::Relaxed);
        Err(RequestError::Paused {
            failures,
            remaining: remaining.unwrap_or_default(),
        })
    }

    /// Closes the breaker: the server has a new connection.
    pub(crate) fn reset(&self) {
        if self.failures.swap(0, Ordering::Relaxed) > 0 {
            *self.breaker() = Breaker::default();
        }
    }

    #[cold]
    fn failed(&self) {
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        if failures >= self.limits.failures {
            let mut breaker = self.breaker();
            breaker.until = Some(Instant::now() + self.limits.pause);
            if failures == self.limits.failures {
                self.opened.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn status(&self) -> LoadStatus {
        let breaker = if self.failures.load(Ordering::Relaxed) < self.limits.failures {
            BreakerState::Closed
        } else {
            let remaining = self.breaker().remaining();
            remaining.map_or(BreakerState::HalfOpen, BreakerState::Open)
        };
        LoadStatus {
            running: self.limits.concurrent - self.slots.available_permits(),
            waiting: self.waiting.load(Ordering::Relaxed),
            limit: self.limits.concurrent,
            shed: self.shed.load(Ordering::Relaxed),
            opened: self.opened.load(Ordering::Relaxed),
            breaker,
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Breaker {
    /// How long it stays open; `None` if that time is over.
    fn remaining(&self) -> Option<Duration> {
        let remaining = self.until?.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }
}

impl Slot<'_> {
    /// Reports how the request ended.
    #[inline]
    pub(crate) fn end<T>(self, outcome: &Result<T, RequestError>) {
        match outcome {
            Err(error) if is_failure(error) => self.load.failed(),
            _ => {
                if self.load.failures.load(Ordering::Relaxed) > 0 {
                    self.load.reset();
                }
            }
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.load.breaker().is_probing = false;
        }
    }
}

/// A probe that waits for a slot.
struct Probe<'l>(&'l ServerLoad);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.breaker().is_probing = false;
    }
}

/// A request that waits for a slot.
struct Queued<'l> {
    waiting: &'l AtomicUsize,
    /// Counted from 1.
    position: usize,
}

impl<'l> Queued<'l> {
    fn new(waiting: &'l AtomicUsize) -> Self {
        let position = waiting.fetch_add(1, Ordering::Relaxed) + 1;
        Self { waiting, position }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether an error says that the server does not work.
fn is_failure(error: &RequestError) -> bool {
    match error {
        RequestError::Lost(_)
        | RequestError::NotSent(_)
        | RequestError::Idle(_)
        | RequestError::Expired(_) => true,
        RequestError::Refused(refusal) => refusal.status == 429 || refusal.status >= 500,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(concurrent: usize, queued: usize) -> ServerLoad {
        ServerLoad::new(LoadLimits {
            concurrent,
            queued,
            failures: 3,
            pause: Duration::from_secs(10),
        })
    }

    fn fail(slot: Slot<'_>) {
        slot.end::<()>(&Err(RequestError::Lost("gone".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn excess_requests_wait_and_then_are_refused() {
        let load = load(1, 1);
        let first = load.try_enter().unwrap();
        assert!(load.try_enter().is_none());
        let second = load.enter(Duration::from_secs(60));
        let mut second = std::pin::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!((load.status().running, load.status().waiting), (1, 1));
        let third = load.enter(Duration::from_secs(60)).await;
        assert!(matches!(
            third,
            Err(RequestError::Overloaded { running: 1 })
        ));
        first.end(&Ok(()));
        let second = second.await.unwrap();
        assert_eq!((load.status().running, load.status().waiting), (1, 0));
        // Nobody waits longer than the request may take.
        let late = load.enter(Duration::from_secs(5)).await;
        assert!(matches!(late, Err(RequestError::Overloaded { .. })));
        drop(second);
        assert!(load.try_enter().is_some());
        assert_eq!(load.status().shed, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_breaker_opens_half_opens_and_closes() {
        let load = load(4, 4);
        let patience = Duration::from_secs(1);
        for _ in 0..3 {
            assert_eq!(load.status().breaker, BreakerState::Closed);
            fail(load.try_enter().unwrap());
        }
        let open = BreakerState::Open(Duration::from_secs(10));
        assert_eq!(load.status().breaker, open);
        assert!(load.try_enter().is_none());
        let refused = load.enter(patience).await.err();
        assert!(matches!(
            refused,
            Some(RequestError::Paused { failures: 3, .. })
        ));

        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(load.status().breaker, BreakerState::HalfOpen);
        let probe = load.enter(patience).await.unwrap();
        assert!(load.enter(patience).await.is_err(), "one probe at a time");
        fail(probe);
        assert_eq!(load.status().breaker, open);

        tokio::time::advance(Duration::from_secs(10)).await;
        // A cancelled probe decides nothing.
        drop(load.enter(patience).await.unwrap());
        let probe = load.enter(patience).await.unwrap();
        probe.end(&Ok(()));
        assert_eq!(load.status().breaker, BreakerState::Closed);
        assert!(load.try_enter().is_some());
        assert_eq!(load.status().opened, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_and_new_connections_close_the_breaker() {
        let load = load(4, 4);
        fail(load.try_enter().unwrap());
        fail(load.try_enter().unwrap());
        let error = RequestError::Malformed("odd".to_owned());
        load.try_enter().unwrap().end::<()>(&Err(error));
        fail(load.try_enter().unwrap());
        fail(load.try_enter().unwrap());
        assert_eq!(load.status().breaker, BreakerState::Closed);
        fail(load.try_enter().unwrap());
        assert!(load.try_enter().is_none());
        load.reset();
        assert_eq!(load.status().breaker, BreakerState::Closed);
        assert!(load.try_enter().is_some());
    }
}
