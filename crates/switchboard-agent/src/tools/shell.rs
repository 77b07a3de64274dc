//! What commands run in: their environment, and who ends them.
//!
//! Commands are the user's own, so they see the user's environment, except for what only Switchboard itself has any
//! business with: the keys of model providers, the tokens of servers, and secrets among our own variables. This module must not read the environment itself.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use switchboard::internal::own_variables::is_own_secret;
use switchboard::internal::sandbox::Policy;
use switchboard::internal::transport::stdio::SupervisorCommand;

/// What commands run in. Cheap to clone.
#[derive(Clone, Default)]
pub struct Shell {
    pub(super) environment: Arc<[(OsString, OsString)]>,
    pub(super) supervisor: Option<SupervisorCommand>,
    pub(super) sandbox: Option<Policy>,
}

impl Shell {
    /// Commands see this environment, without the secrets of Switchboard itself.
    pub fn new(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment = environment.into_iter();
        Self {
            environment: environment
                .filter(|(name, _)| !is_own_secret(name))
                .collect(),
            supervisor: None,
            sandbox: None,
        }
    }

    /// Commands do not see these variables either, such as those with the tokens of servers.
    #[must_use]
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let is_kept = |name: &OsStr| !names.iter().any(|withheld| name == *withheld);
        let kept = self.environment.iter().filter(|(name, _)| is_kept(name));
        self.environment = kept.cloned().collect();
        self
    }

    /// Commands run under a supervisor, which ends whatever they leave behind. Without one, what leaves its process group
    /// is found by a mark in its environment, where the system lets that be seen.
    #[must_use]
    pub fn supervised_by(mut self, supervisor: Option<SupervisorCommand>) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Commands run in this sandbox, which needs a supervisor. One that cannot be kept is an error of every command.
    #[must_use]
    pub fn confined_to(mut self, sandbox: Option<Policy>) -> Self {
        self.sandbox = sandbox;
        self
    }
}

/// Values may be secrets of the user, so their number has to do.
impl fmt::Debug for Shell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shell")
            .field("environment", &self.environment.len())
            .field("supervisor", &self.supervisor)
            .field("sandbox", &self.sandbox)
            .finish()
    }
}
