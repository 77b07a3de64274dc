//! Environment, supervisor and sandbox of shell commands.
//!
//! Commands get the user's environment, without Switchboard's own secrets: keys of model providers, tokens of servers,
//! and secret variables of ours. This module must not read the environment itself.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

use switchboard::internal::own_variables::is_own_secret;
use switchboard::internal::sandbox::Policy;
use switchboard::internal::transport::stdio::SupervisorCommand;
use switchboard_config::resolve::Config;

/// Environment, supervisor and sandbox of commands. Cheap to clone.
#[derive(Clone, Default)]
pub struct Shell {
    pub(super) environment: Arc<[(OsString, OsString)]>,
    pub(super) supervisor: Option<SupervisorCommand>,
    pub(super) sandbox: Option<Policy>,
}

impl Shell {
    /// Uses this environment, without Switchboard's own secrets.
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

    /// Removes variables from the environment, such as those with tokens of servers.
    #[must_use]
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let is_visible = |name: &OsStr| !names.iter().any(|withheld| name == *withheld);
        let visible = self.environment.iter().filter(|(name, _)| is_visible(name));
        self.environment = visible.cloned().collect();
        self
    }

    /// Removes the tokens of configured servers from the environment: commands must not see them.
    #[doc(hidden)]
    #[must_use]
    pub fn without_tokens_of(self, config: &Config) -> Self {
        let servers = config.servers.iter();
        self.without(
            servers.filter_map(|server| server.effective().bearer_token_env_var.as_deref()),
        )
    }

    /// Runs commands under a supervisor, which kills all processes that they leave behind. Without one, processes
    /// outside the process group are found by a marker in their environment, on systems that expose it.
    #[must_use]
    pub fn supervised_by(mut self, supervisor: Option<SupervisorCommand>) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Runs commands in a sandbox; requires a supervisor. If the sandbox cannot be set up, every command fails.
    #[must_use]
    pub fn confined_to(mut self, sandbox: Option<Policy>) -> Self {
        self.sandbox = sandbox;
        self
    }
}

/// Values may be secrets, so only their number is shown.
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
