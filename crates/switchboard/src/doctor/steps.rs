//! Records the steps of connecting to a server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_config::entry::Transport;
use switchboard_config::redact::Redactor;
use tokio::time::Instant;

use crate::peer::OpenStep;

/// A step of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Spawns its process.
    Spawn,
    /// Respawns its process, because it exited on the first request.
    Respawn,
    /// Opens the connection.
    Connect,
    /// Opens a legacy HTTP+SSE connection, because Streamable HTTP was refused.
    ConnectLegacy,
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
    /// Lists its tools.
    Tools,
    /// Lists its prompts.
    Prompts,
    /// Lists its resources.
    Resources,
    /// Probes the connection.
    Probe,
    /// Closes the connection.
    Close,
}

impl Step {
    /// The name in reports and for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Respawn => "spawn again",
            Self::Connect => "connect",
            Self::ConnectLegacy => "connect (HTTP+SSE)",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Probe => "probe",
            Self::Close => "close",
        }
    }
}

/// A completed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub step: Step,
    /// The outcome.
    pub outcome: Outcome,
    /// The duration.
    pub duration: Duration,
}

impl StepReport {
    /// Masks the server's secrets.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let Outcome::Failed(reason) = &mut self.outcome {
            *reason = redactor.redact(reason).into_owned();
        }
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// The server does not support it; another way was tried next.
    NotSpoken,
    /// It failed, with this message.
    Failed(String),
}

pub(super) struct Steps {
    transport: Transport,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    taken: Vec<StepReport>,
    current: Option<(Step, Instant)>,
}

impl Steps {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            transport,
            notes: Mutex::default(),
        }
    }

    /// Starts a step of opening the connection, and ends the previous one.
    pub(super) fn opening(&self, step: OpenStep) {
        let again = self.lock().current.is_some();
        let step = match step {
            OpenStep::Connect => match (self.transport, again) {
                (Transport::Stdio, false) => Step::Spawn,
                (Transport::Stdio, true) => Step::Respawn,
                (_, false) => Step::Connect,
                (_, true) => Step::ConnectLegacy,
            },
            OpenStep::Discover => Step::Discover,
            OpenStep::Initialize => Step::Initialize,
            OpenStep::List => Step::Tools,
        };
        // Opening continues after such a request only if the response led elsewhere.
        let previous = match self.current() {
            Some(Step::Discover | Step::Initialize) => Outcome::NotSpoken,
            _ => Outcome::Done,
        };
        self.end(previous);
        self.begin(step);
    }

    /// Attributes the failure of the current step to the connect step before it: HTTP connects with its first request.
    pub(super) fn never_connected(&self) {
        let mut notes = self.lock();
        let Some(last) = notes.taken.last() else {
            return;
        };
        let is_connect = matches!(last.step, Step::Connect | Step::ConnectLegacy);
        let (step, duration) = (last.step, last.duration);
        if let Some((_, begun)) = notes.current
            && is_connect
        {
            notes.taken.pop();
            let begun = begun.checked_sub(duration).unwrap_or(begun);
            notes.current = Some((step, begun));
        }
    }

    /// Starts a step; the previous one succeeded.
    pub(super) fn begin(&self, step: Step) {
        self.end(Outcome::Done);
        self.lock().current = Some((step, Instant::now()));
    }

    /// Ends the current step and returns its duration.
    pub(super) fn end(&self, outcome: Outcome) -> Duration {
        let mut notes = self.lock();
        let Some((step, begun)) = notes.current.take() else {
            return Duration::ZERO;
        };
        let duration = begun.elapsed();
        notes.taken.push(StepReport {
            step,
            outcome,
            duration,
        });
        duration
    }

    pub(super) fn current(&self) -> Option<Step> {
        self.lock().current.map(|(step, _)| step)
    }

    pub(super) fn taken(&self) -> Vec<StepReport> {
        self.lock().taken.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(transport: Transport, opening: &[OpenStep], expected: &[(Step, Outcome)]) {
        let steps = Steps::new(transport);
        for step in opening {
            steps.opening(*step);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        steps.end(Outcome::Done);
        let taken = steps.taken();
        let all_took_a_second = taken
            .iter()
            .all(|report| report.duration == Duration::from_secs(1));
        assert!(all_took_a_second, "{taken:?}");
        let taken: Vec<_> = taken
            .into_iter()
            .map(|report| (report.step, report.outcome))
            .collect();
        assert_eq!(taken, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_was_never_made_is_what_failed() {
        let steps = Steps::new(Transport::Http);
        steps.opening(OpenStep::Connect);
        steps.opening(OpenStep::Discover);
        tokio::time::advance(Duration::from_secs(1)).await;
        steps.never_connected();
        steps.end(Outcome::Failed("refused".to_owned()));
        let expected = StepReport {
            step: Step::Connect,
            outcome: Outcome::Failed("refused".to_owned()),
            duration: Duration::from_secs(1),
        };
        assert_eq!(steps.taken(), [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_opening_is_told_by_the_ways_it_takes() {
        use OpenStep::{Connect, Discover, Initialize};
        use Outcome::{Done, NotSpoken};
        check(
            Transport::Stdio,
            &[Connect, Discover],
            &[(Step::Spawn, Done), (Step::Discover, Done)],
        )
        .await;
        check(
            Transport::Stdio,
            &[Connect, Discover, Connect, Initialize],
            &[
                (Step::Spawn, Done),
                (Step::Discover, NotSpoken),
                (Step::Respawn, Done),
                (Step::Initialize, Done),
            ],
        )
        .await;
        check(
            Transport::Http,
            &[Connect, Discover, Initialize, Connect, Initialize],
            &[
                (Step::Connect, Done),
                (Step::Discover, NotSpoken),
                (Step::Initialize, NotSpoken),
                (Step::ConnectLegacy, Done),
                (Step::Initialize, Done),
            ],
        )
        .await;
    }
}
