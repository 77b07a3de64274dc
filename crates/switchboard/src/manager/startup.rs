//! Start-up: which servers it still waits for, and what is told when it is over.

use super::{ConnectionState, Manager};
use crate::events::Event;
use crate::status::Failure;

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
        let mut ready = Vec::new();
        let mut failed = Vec::new();
        for (name, managed) in &self.servers {
            let reason = managed.failure.as_deref().map(Failure::summary);
            match &managed.state {
                ConnectionState::Connected(_) => ready.push(name.clone()),
                state if state.kept().is_some() => ready.push(name.clone()),
                ConnectionState::Failed | ConnectionState::NeedsAuth(_) => {
                    let reason = reason.unwrap_or_else(|| "it requires a login".to_owned());
                    failed.push((name.clone(), reason));
                }
                // One that is tried again in the background is not there either.
                ConnectionState::Pending { .. } => {
                    failed.extend(reason.map(|reason| (name.clone(), reason)));
                }
                _ => {}
            }
        }
        self.resources
            .events
            .send(Event::StartupComplete { ready, failed });
    }
}
