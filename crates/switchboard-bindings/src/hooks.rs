//! Functions of the program that inspect calls before and after they are made.
//!
//! They are hooks like the programs that a configuration names: asked in order, with the same answers. A function that
//! fails, times out or returns an invalid answer blocks the call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard::SharedJson;
use switchboard::internal::hooks::{
    CommandHook, Hook, HookAnswer, HookError, HookInput, Registration,
};
use switchboard_config::policy::HookEvent;
use tokio::time::timeout;

use crate::callback::{self, Callback};

/// A function that inspects calls.
#[derive(Clone)]
pub struct CallHook {
    /// When it is called.
    pub event: HookEvent,
    /// The tools it covers: a pattern as in permission rules, or several separated by `|`.
    pub tool: String,
    /// The function.
    pub callback: Arc<dyn Callback>,
}

impl CallHook {
    /// Finds an event by its name in the other languages: `before_call` or `after_call`.
    pub fn event(name: &str) -> Option<HookEvent> {
        let events = [HookEvent::PreToolUse, HookEvent::PostToolUse];
        events.into_iter().find(|event| event_name(*event) == name)
    }

    /// The name of the request that the hook with this index sends to its function.
    pub fn request_name(index: usize) -> String {
        format!("hook {index}")
    }

    /// The hook for the host. Without a timeout, that of hook programs applies.
    pub(crate) fn registration(&self, index: usize, timeout: Option<Duration>) -> Registration {
        let Self {
            event,
            tool,
            callback,
        } = self.clone();
        Registration {
            event,
            tool,
            fail_open: false,
            hook: Arc::new(AskFunction {
                name: Self::request_name(index),
                timeout: timeout.unwrap_or(CommandHook::TIMEOUT),
                callback,
            }),
        }
    }
}

const fn event_name(event: HookEvent) -> &'static str {
    match event {
        HookEvent::PreToolUse => "before_call",
        HookEvent::PostToolUse => "after_call",
    }
}

/// Asks a function of the program about calls.
struct AskFunction {
    name: String,
    timeout: Duration,
    callback: Arc<dyn Callback>,
}

impl Hook for AskFunction {
    fn run<'a>(&'a self, call: HookInput<'a>) -> BoxFuture<'a, Result<HookAnswer, HookError>> {
        async move {
            let error = |reason: String| HookError {
                program: event_name(call.event).to_owned(),
                reason,
            };
            let asked = callback::ask(&*self.callback, &self.name, payload(&call));
            let answer = match timeout(self.timeout, asked).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(message)) => return Err(error(format!("failed: {message}"))),
                Err(_) => {
                    let seconds = self.timeout.as_secs_f32();
                    return Err(error(format!("timed out after {seconds} seconds")));
                }
            };
            if answer == "null" {
                return Ok(HookAnswer::default());
            }
            let answer = HookAnswer::parse(&answer);
            answer.map_err(|returned| error(format!("returned {returned}")))
        }
        .boxed()
    }
}

/// What a function is called with. Keys are single words, so that they are the same in every language.
#[derive(Serialize)]
struct Payload<'a> {
    event: &'static str,
    call: String,
    session: &'a str,
    name: &'a str,
    server: Option<&'a str>,
    tool: &'a str,
    arguments: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
}

fn payload(call: &HookInput<'_>) -> String {
    let payload = Payload {
        event: event_name(call.event),
        call: call.call.to_string(),
        session: call.session,
        name: call.subject.exposed,
        server: call.subject.server,
        tool: call.subject.tool,
        arguments: call.arguments,
        result: call.result.map(SharedJson::raw),
    };
    // Text and validated JSON: encoding cannot fail, and an empty payload would only fail the hook.
    serde_json::to_string(&payload).unwrap_or_default()
}

impl fmt::Debug for CallHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallHook")
            .field("event", &self.event)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}
