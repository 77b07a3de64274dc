//! Hooks: programs and closures that inspect calls before and after they are made.
//!
//! Defines the input and answer of a hook, and runs it within limits. Hooks are matched to calls by the same patterns
//! as permission rules; the [`PermissionGate`](crate::permissions::PermissionGate) applies their answers. A hook that
//! fails, times out or prints an invalid answer blocks the call, unless it is registered to fail open.

mod answer;
mod command;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_config::policy::{HookEntry, HookEvent};
use switchboard_config::source::Origin;

use crate::json::SharedJson;
use crate::names::CallId;
use crate::permissions::pattern::{Target, hook_target};
use crate::permissions::{RuleProblem, Subject};

pub use answer::{HookAnswer, HookDecision};
pub use command::{CommandHook, HookError};

/// Inspects calls. Closures that answer synchronously are hooks, too.
pub trait Hook: Send + Sync + 'static {
    /// Inspects one call. Must terminate on its own; dropping the future must stop everything it started.
    fn run<'a>(&'a self, call: HookInput<'a>) -> BoxFuture<'a, Result<HookAnswer, HookError>>;
}

impl<F> Hook for F
where
    F: Fn(&HookInput<'_>) -> HookAnswer + Send + Sync + 'static,
{
    fn run<'a>(&'a self, call: HookInput<'a>) -> BoxFuture<'a, Result<HookAnswer, HookError>> {
        ready(Ok(self(&call))).boxed()
    }
}

/// The input of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookInput<'a> {
    /// Whether it runs before or after the call.
    pub event: HookEvent,
    /// The session of the front end.
    pub session: &'a str,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub subject: Subject<'a>,
    /// The arguments, with what earlier hooks changed.
    pub arguments: Option<&'a RawValue>,
    /// The result, after the call.
    pub result: Option<&'a SharedJson>,
}

/// A built-in hook.
pub struct Registration {
    /// When it runs.
    pub event: HookEvent,
    /// The tools it covers: a pattern as in rules, or several separated by `|`.
    pub tool: String,
    /// Whether a call proceeds if the hook fails.
    pub fail_open: bool,
    /// The hook.
    pub hook: Arc<dyn Hook>,
}

impl Registration {
    /// Whether its pattern can be used. A hook with one that cannot covers every tool.
    pub(crate) fn has_valid_pattern(&self) -> bool {
        hook_target(&self.tool).is_some()
    }
}

/// All hooks, in the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct HookList {
    hooks: Vec<Registered>,
    problems: Vec<RuleProblem>,
}

/// A hook with the tools it covers.
pub(crate) struct Registered {
    event: HookEvent,
    target: Target,
    pub(crate) fail_open: bool,
    pub(crate) origin: Option<Origin>,
    pub(crate) hook: Arc<dyn Hook>,
}

impl HookList {
    /// The hooks of a configuration, which run in this folder without these variables.
    pub(crate) fn of_config(entries: &[HookEntry], folder: &Path, withheld: &[String]) -> Self {
        let mut list = Self::default();
        for entry in entries {
            // An invalid pattern covers everything: a hook meant to block something must run.
            let target = hook_target(&entry.tool).unwrap_or_else(|| {
                list.problems.push(RuleProblem {
                    message: format!("the pattern \"{}\" of a hook cannot be used", entry.tool),
                    origin: entry.origin.clone(),
                });
                Target::Everything
            });
            let Some(mut command) = CommandHook::new(&entry.command, folder.to_owned()) else {
                continue;
            };
            if let Some(timeout) = entry.timeout {
                command.timeout = timeout;
            }
            command.withheld = withheld.to_vec();
            list.hooks.push(Registered {
                event: entry.event,
                target,
                fail_open: entry.fail_open,
                origin: Some(entry.origin.clone()),
                hook: Arc::new(command),
            });
        }
        list
    }

    /// Adds built-in hooks.
    pub(crate) fn extend(&mut self, hooks: impl IntoIterator<Item = Registration>) {
        let registered = |registration: Registration| Registered {
            event: registration.event,
            target: hook_target(&registration.tool).unwrap_or(Target::Everything),
            fail_open: registration.fail_open,
            origin: None,
            hook: registration.hook,
        };
        self.hooks.extend(hooks.into_iter().map(registered));
    }

    pub(crate) fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }

    /// The hooks of an event, each with its index in the list.
    pub(crate) fn of(&self, event: HookEvent) -> impl Iterator<Item = (usize, &Target)> {
        let hooks = self.hooks.iter().enumerate();
        hooks
            .filter(move |(_, hook)| hook.event == event)
            .map(|(index, hook)| (index, &hook.target))
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Registered> {
        self.hooks.get(index)
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Registered")
            .field("event", &self.event)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Registration")
            .field("event", &self.event)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}
