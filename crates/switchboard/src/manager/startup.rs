//! Tracks the servers that startup waits for, and reports its completion.

use super::{ConnectionState, Manager};
use crate::events::Event;
use crate::status::Failure;

impl Manager {
    /// Removes servers that have settled, and sends the completion event after the last one.
    pub(super) fn check_startup(&mut self) {
        let Some(starting) = &mut self.starting else {
            return;
        };
        starting.retain(|name| {
            // A server that is missing here is about to be added; a removed one is taken out of this set elsewhere.
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
                // A server that is being retried in the background counts as failed.
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
