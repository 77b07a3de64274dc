//! Health checks of a connection: probe interval, retries, and when it counts as lost.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep};

use super::super::Report;
use super::{Connection, STDERR_SHOWN};
use crate::peer::{Peer, RequestError};
use crate::status::{Cause, Failure};

/// Shortest interval between two checks.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

pub(super) struct Health {
    /// Time of the next check.
    pub(super) next: Instant,
    /// Consecutive failed probes.
    pub(super) failures: u32,
    way: ProbeBy,
}

/// Method used to probe a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeBy {
    /// The probe of its era.
    Era,
    /// The first page of a list it offers.
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

    /// Records a sign of life at that time.
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
    /// Probes the server. The connection is lost when the maximum number of probes in a row has failed and no other
    /// message arrived meanwhile.
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
            // The error is conclusive.
            return Err(self.unanswered(1, &error));
        }
        if peer.heard() > asked || peer.is_busy() {
            // The server sends other messages, or is processing calls, which have their own deadlines.
            health.alive(Instant::now(), settings.health_interval);
            return Ok(());
        }
        health.failures += 1;
        tracing::debug!(server = %self.spec.name, failures = health.failures, %error, "probe failed");
        if health.failures >= settings.health_failures {
            return Err(self.unanswered(health.failures, &error));
        }
        let pause = if matches!(error, RequestError::Idle(_) | RequestError::Expired(_)) {
            // The server may be busy and has until the next probe. Or it does not answer `ping`: the next probe uses
            // the other method.
            health.way = health.way.other();
            (asked + settings.health_interval).saturating_duration_since(Instant::now())
        } else {
            // An unreachable server fails at once, so it is probed again sooner.
            settings.backoff.before_attempt(health.failures - 1)
        };
        health.next = Instant::now() + pause.max(SHORTEST_WAIT);
        Ok(())
    }

    /// Probes the server when there is reason to suspect it: a call had trouble, or the machine was suspended. Callers
    /// wait for the outcome, so probes overlap.
    pub(super) async fn probe_at_once(
        &self,
        peer: &Peer,
        health: &mut Health,
    ) -> Result<(), Failure> {
        let settings = &self.settings;
        let count = settings.health_failures.max(1);
        let pause = settings.health_timeout / count.saturating_mul(4);
        let started = Instant::now();
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
                    self.report(Report::Probed(started.elapsed())).await;
                    health.alive(peer.heard(), settings.health_interval);
                    return Ok(());
                }
                Err(_) if peer.heard() > started => {
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
