//! Start-up: which servers it still waits for, and what is told when it is over.

use super::Manager;
use crate::events::Event;
use crate::status::State;

impl Manager {
    /// Notes which servers start-up no longer waits for, and tells of its end.
    pub(super) fn check_startup(&mut self) {
        let Some(starting) = &mut self.starting else {
            return;
        };
        starting.retain(|name| {
            // One that is not there yet is about to be taken in; one that is removed leaves this set by itself.
            let managed = self.servers.get(name);
            managed.is_none_or(|managed| managed.status().is_coming_up())
        });
        if !starting.is_empty() {
            return;
        }
        self.starting = None;
        let in_state = |state: State| {
            self.servers
                .iter()
                .filter(move |(_, managed)| managed.state.kind() == state)
        };
        let resting = self
            .servers
            .iter()
            .filter(|(_, managed)| managed.state.kept().is_some());
        let ready = in_state(State::Connected)
            .chain(resting)
            .map(|(name, _)| name.clone());
        // One that is tried again in the background is not there either.
        let late = in_state(State::Pending).filter(|(_, managed)| managed.failure.is_some());
        let failed = in_state(State::Failed)
            .chain(in_state(State::NeedsAuth))
            .chain(late)
            .map(|(name, managed)| {
                let reason = managed.failure.as_ref().map(|failure| failure.summary());
                (
                    name.clone(),
                    reason.unwrap_or_else(|| "it requires a login".to_owned()),
                )
            });
        self.resources.events.send(Event::StartupComplete {
            ready: ready.collect(),
            failed: failed.collect(),
        });
    }
}
