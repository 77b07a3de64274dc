//! Names that servers may not have: a built-in tool's, or one that reads like that of a server that is there already.
//!
//! A server with such a name fails with that reason. It is never connected: its tools could be taken for another's.

use super::{ConnectionState, Manager};
use crate::names::ServerName;
use crate::status::{Cause, Failure};

impl Manager {
    /// Takes the name for a server that is switched on. Where it may not have it, the server fails; `false`.
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

    /// Begins servers that were refused for their names and no longer are, after others have gone.
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
