//! Deadline of a server start, extended while a package runner installs the server.
//!
//! A runner such as `npx` may need minutes the first time, and killing it half way can corrupt its cache. As long as it
//! makes progress, it is not timed out.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Report;
use super::connection::Connection;
use crate::events::{Event, LogSource};
use crate::peer::OpenStep;

/// Interval between two progress checks.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest interval between two checks.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
/// A start that takes less time is not reported as an installation.
const NOTICED: Duration = Duration::from_secs(2);

/// Progress indicators of a start, readable from outside its task.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Id of the server process; 0 before it runs.
    pub(super) process: AtomicU32,
    /// Lines of output that are not messages.
    pub(super) lines: AtomicU64,
    /// The current [`OpenStep`](crate::peer::OpenStep).
    pub(super) step: AtomicU8,
}

impl Connection {
    /// Runs a start until its deadline; on timeout, returns the time elapsed. The permit is released once an
    /// installation is detected, so that other servers do not wait for it.
    pub(super) async fn within_deadline<T>(
        &self,
        start: impl Future<Output = T>,
        signs: &Signs,
        permit: SemaphorePermit<'_>,
    ) -> Result<T, Duration> {
        let mut permit = Some(permit);
        let mut start = pin!(start);
        let started = Instant::now();
        let patience = self.spec.startup_timeout;
        let mut deadline = started + patience;
        let may_install = self.spec.connector.may_install();
        let mut looks = interval(LOOK.min(patience / 4).max(SHORTEST_LOOK));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Seen::default();
        let mut is_told = false;
        loop {
            tokio::select! {
                outcome = &mut start => return Ok(outcome),
                () = sleep_until(deadline) => return Err(started.elapsed()),
                _ = looks.tick(), if may_install => {
                    let now = seen.look(signs).await;
                    let has_answered = signs.step.load(Ordering::Relaxed) >= OpenStep::List as u8;
                    if !now || has_answered {
                        continue;
                    }
                    // Progress extends the deadline, up to the maximum time of an installation.
                    let limit = started + self.settings.install_timeout.max(patience);
                    deadline = deadline.max((Instant::now() + patience).min(limit));
                    if started.elapsed() < NOTICED {
                        continue;
                    }
                    drop(permit.take());
                    if !std::mem::replace(&mut is_told, true) {
                        self.report(Report::Installing(true)).await;
                    }
                    self.tell_of_installation(started.elapsed());
                }
            }
        }
    }

    fn tell_of_installation(&self, elapsed: Duration) {
        if !self.events.has_listeners() {
            return;
        }
        let lines = self.logs.lines();
        let last = lines
            .iter()
            .rev()
            .find(|line| line.source == LogSource::Stderr && !line.text.trim().is_empty());
        self.events.send(Event::Installing {
            server: self.spec.name.clone(),
            elapsed,
            line: last.map(|line| line.text.clone()),
        });
    }
}

/// State at the last check.
#[derive(Debug, Default)]
struct Seen {
    lines: u64,
    #[cfg(unix)]
    activity: Option<crate::supervisor::activity::Activity>,
}

impl Seen {
    /// Whether there was progress since the last check.
    async fn look(&mut self, signs: &Signs) -> bool {
        let lines = signs.lines.load(Ordering::Relaxed);
        let has_written = lines > std::mem::replace(&mut self.lines, lines);
        self.has_worked(signs).await || has_written
    }

    #[cfg(unix)]
    async fn has_worked(&mut self, signs: &Signs) -> bool {
        use crate::supervisor::activity::Activity;

        let process = signs.process.load(Ordering::Relaxed);
        if process == 0 {
            return false;
        }
        let measured = tokio::task::spawn_blocking(move || Activity::of(process));
        let Ok(now) = measured.await else {
            return false;
        };
        let has_worked = self
            .activity
            .as_ref()
            .is_some_and(|before| now.is_progress_since(before));
        self.activity = Some(now);
        has_worked
    }

    #[cfg(not(unix))]
    #[expect(
        clippy::unused_async,
        clippy::unused_self,
        reason = "the same signature everywhere"
    )]
    async fn has_worked(&mut self, _: &Signs) -> bool {
        false
    }
}
