//! Calls under way, and the sign of life that each gives however silent its server is (CALL-6).
//!
//! Owns when the next sign is due. It knows nothing of what a call does, and ends no call.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::events::{Event, Events};
use crate::names::CallId;

/// All calls under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    calls: Mutex<BTreeMap<CallId, Signs>>,
    alarm: Alarm,
    interval: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Signs {
    started: Instant,
    next: Instant,
}

impl UnderWay {
    /// None yet; each will give a sign of life after that time, and again.
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            calls: Mutex::default(),
            alarm: Alarm::default(),
            interval,
        }
    }

    pub(crate) fn begin(&self, call: CallId, started: Instant) {
        let next = started + self.interval;
        self.calls().insert(call, Signs { started, next });
        self.alarm.by(next);
    }

    pub(crate) fn end(&self, call: CallId) {
        self.calls().remove(&call);
    }

    /// Gives signs of life, for as long as it is awaited.
    pub(crate) async fn give_signs(&self, events: &Events) {
        self.alarm.run(|now| self.look(now, events)).await;
    }

    fn look(&self, now: Instant, events: &Events) -> Option<Instant> {
        let mut calls = self.calls();
        for (call, signs) in calls.iter_mut().filter(|(_, signs)| signs.next <= now) {
            events.send(Event::CallProgress {
                call: *call,
                progress: None,
                elapsed: now - signs.started,
            });
            signs.next = now + self.interval;
        }
        calls.values().map(|signs| signs.next).min()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<CallId, Signs>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
