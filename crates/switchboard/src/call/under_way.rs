//! Calls in flight: routes progress to listeners, and emits a keep-alive event for each call even if its server is
//! silent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::events::{Event, Events};
use crate::id_map::IdMap;
use crate::names::CallId;
use crate::peer::{Progress, ProgressListener, ProgressRoute, ProgressSink};

/// Registry of all calls in flight. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UnderWay(Arc<Shared>);

struct Shared {
    calls: Mutex<IdMap<Call>>,
    alarm: Alarm,
    interval: Duration,
    events: Events,
}

struct Call {
    started: Instant,
    next_sign: Instant,
    caller: Option<ProgressSink>,
}

impl UnderWay {
    /// Creates an empty registry; `interval` is the time between keep-alive events of a call.
    pub(crate) fn new(interval: Duration, events: Events) -> Self {
        Self(Arc::new(Shared {
            calls: Mutex::default(),
            alarm: Alarm::default(),
            interval,
            events,
        }))
    }

    pub(crate) fn begin(&self, call: CallId, started: Instant, caller: Option<ProgressSink>) {
        let next_sign = started + self.0.interval;
        let entry = Call {
            started,
            next_sign,
            caller,
        };
        self.0.calls().insert(call.0, entry);
        self.0.alarm.by(next_sign);
    }

    pub(crate) fn end(&self, call: CallId) {
        self.0.calls().remove(&call.0);
    }

    /// Route for the progress of a call: to its caller and to event listeners.
    pub(crate) fn route(&self, call: CallId) -> ProgressRoute {
        ProgressRoute {
            listener: Arc::<Shared>::clone(&self.0),
            number: call.0,
        }
    }

    /// Emits keep-alive events while it is polled.
    pub(crate) async fn give_signs(&self) {
        self.0.alarm.run(|now| self.0.emit_due(now)).await;
    }
}

impl Shared {
    fn emit_due(&self, now: Instant) -> Option<Instant> {
        let mut calls = self.calls();
        for (call, entry) in calls.iter_mut().filter(|(_, call)| call.next_sign <= now) {
            self.events.send(Event::CallProgress {
                call: CallId(*call),
                progress: None,
                elapsed: now - entry.started,
            });
            entry.next_sign = now + self.interval;
        }
        calls.values().map(|call| call.next_sign).min()
    }

    fn calls(&self) -> MutexGuard<'_, IdMap<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressListener for Shared {
    fn progress(&self, number: u64, progress: Progress) {
        let (started, caller) = match self.calls().get(&number) {
            Some(call) => (call.started, call.caller.clone()),
            None => return,
        };
        if self.events.has_call_listeners() {
            self.events.send(Event::CallProgress {
                call: CallId(number),
                progress: Some(progress.clone()),
                elapsed: started.elapsed(),
            });
        }
        if let Some(caller) = caller {
            caller(progress);
        }
    }
}
