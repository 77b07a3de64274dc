//! Rejects server names that are confusable with a built-in tool or another server.
//!
//! A server with such a name fails with that reason and is never connected: its tools could be mistaken for another's.

use super::{ConnectionState, Manager};
use crate::names::ServerName;
use crate::status::{Cause, Failure};

impl Manager {
    /// Reserves the name of an enabled server. If the name is rejected, the server fails and `false` is returned.
    pub(super) fn admit(&mut self, name: &ServerName) -> bool {
        let Err(disguise) = self.names.add(name) else {
            return true;
        };
        let failure = Failure {
            step: None,
            cause: Cause::Name,
            message: format!("{disguise}; rename the server"),
            stderr: Vec::new(),
        };
        self.set_state(name, ConnectionState::Failed, Some(Box::new(failure)));
        false
    }

    /// Starts servers whose names were rejected and no longer conflict, after others are gone.
    pub(super) async fn admit_refused(&mut self) {
        let refused = self.servers.iter().filter(|(name, managed)| {
            let cause = managed.failure.as_ref().map(|failure| failure.cause);
            cause == Some(Cause::Name) && self.names.is_free(name)
        });
        let free: Vec<ServerName> = refused.map(|(name, _)| name.clone()).collect();
        for name in free {
            self.begin(&name).await;
        }
    }
}
