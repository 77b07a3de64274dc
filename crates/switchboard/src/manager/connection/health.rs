//! Whether a server still answers: probes, how often, and when a connection counts as lost.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep};

use super::super::Report;
use super::{Connection, STDERR_SHOWN};
use crate::peer::{Peer, RequestError};
use crate::status::{Cause, Failure};

/// The least time between two looks at a connection's health.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// How well a connection is.
pub(super) struct Health {
    /// When to look at it next.
    pub(super) next: Instant,
    /// Probes that have failed in a row.
    pub(super) failures: u32,
    way: ProbeBy,
}

/// How a server is asked whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeBy {
    /// By the probe of its era.
    Era,
    /// By the first page of a list that it has.
    List,
}

impl Health {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            next: Instant::now() + interval,
            failures: 0,
            way: ProbeBy::Era,
        }
    }

    /// Something was heard at that moment.
    pub(super) fn alive(&mut self, heard: Instant, interval: Duration) {
        self.failures = 0;
        self.next = (heard + interval).max(Instant::now() + SHORTEST_WAIT);
    }
}

impl ProbeBy {
    const fn other(self) -> Self {
        match self {
            Self::Era => Self::List,
            Self::List => Self::Era,
        }
    }
}

impl Connection {
    /// Asks whether the server is there. The connection is lost when so many probes in a row have failed and nothing
    /// else was heard meanwhile.
    pub(super) async fn probe(&self, peer: &Peer, health: &mut Health) -> Result<(), Failure> {
        let settings = &self.settings;
        let asked = Instant::now();
        let answer = match health.way {
            ProbeBy::Era => peer.probe(settings.health_timeout).await,
            ProbeBy::List => peer.probe_by_list(settings.health_timeout).await,
        };
        let error = match answer {
            Ok(()) => {
                self.report(Report::Probed(asked.elapsed())).await;
                health.alive(peer.heard(), settings.health_interval);
                return Ok(());
            }
            Err(error) => error,
        };
        if error.session_expired() || error.wants_authorization() {
            // There is no doubt about what it says.
            return Err(self.unanswered(1, &error));
        }
        if peer.heard() > asked || peer.is_busy() {
            // It talks, if not about this; or it is at work, and its callers have deadlines.
            health.alive(Instant::now(), settings.health_interval);
            return Ok(());
        }
        health.failures += 1;
        tracing::debug!(server = %self.spec.name, failures = health.failures, %error, "a probe failed");
        if health.failures >= settings.health_failures {
            return Err(self.unanswered(health.failures, &error));
        }
        let pause = if matches!(error, RequestError::Idle(_) | RequestError::Expired(_)) {
            // It may be busy with itself, and has time until the next probe. Or it answers everything but `ping`: what it
            // has answered before tells whether it is there.
            health.way = health.way.other();
            (asked + settings.health_interval).saturating_duration_since(Instant::now())
        } else {
            // It cannot be reached, which is known sooner.
            settings.backoff.before_attempt(health.failures - 1)
        };
        health.next = Instant::now() + pause.max(SHORTEST_WAIT);
        Ok(())
    }

    /// Asks whether the server is there when there is reason to doubt it: a call met with trouble, or the machine slept.
    /// Callers wait for the outcome, so the probes overlap.
    pub(super) async fn probe_at_once(
        &self,
        peer: &Peer,
        health: &mut Health,
    ) -> Result<(), Failure> {
        let settings = &self.settings;
        let count = settings.health_failures.max(1);
        let pause = settings.health_timeout / count.saturating_mul(4);
        let begun = Instant::now();
        let mut probes: FuturesUnordered<_> = (0..count)
            .map(|number| async move {
                sleep(pause * number).await;
                if number % 2 == 0 {
                    peer.probe(settings.health_timeout).await
                } else {
                    peer.probe_by_list(settings.health_timeout).await
                }
            })
            .collect();
        let mut last = None;
        while let Some(answer) = probes.next().await {
            match answer {
                Ok(()) => {
                    self.report(Report::Probed(begun.elapsed())).await;
                    health.alive(peer.heard(), settings.health_interval);
                    return Ok(());
                }
                Err(_) if peer.heard() > begun => {
                    health.alive(peer.heard(), settings.health_interval);
                    return Ok(());
                }
                Err(error) if error.session_expired() || error.wants_authorization() => {
                    return Err(self.unanswered(1, &error));
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(self.unanswered(count, &error)),
            None => Ok(()),
        }
    }

    fn unanswered(&self, probes: u32, error: &RequestError) -> Failure {
        Failure {
            step: None,
            cause: Cause::Lost,
            message: match probes {
                1 => format!("it did not answer a probe: {error}"),
                probes => format!("it did not answer {probes} probes in a row: {error}"),
            },
            stderr: self.logs.stderr_tail(STDERR_SHOWN),
        }
    }
}
