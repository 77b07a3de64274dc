//! Runs the tool calls of one answer: read-only calls in parallel, sub-agents side by side, others one at a time.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};
use serde_json::value::RawValue;
use switchboard::internal::person::working_time;
use switchboard::{Progress, ProgressSink, SharedJson, ToolRef};
use tokio::time::{Instant, sleep_until};

use super::sub_agent::SubAgent;
use super::{Emitter, Turn};
use crate::budget::Budget;
use crate::context::AgentContext;
use crate::dispatch::{Answered, Prepared};
use crate::events::{CallSummary, EndReason, SessionEvent};
use crate::message::{ToolCall, ToolResult};
use crate::provider::Usage;
use crate::record::Entry;
use crate::session::SessionError;
use crate::tools::agent;

/// Maximum number of parallel calls.
const MAX_AT_ONCE: usize = 8;
/// Maximum number of sub-agents that one agent runs at a time.
const MAX_SUB_AGENTS: usize = 4;

struct Caller<'a> {
    context: &'a Arc<AgentContext>,
    emitter: Emitter,
    budget: Arc<Budget>,
}

type Ready<'c> = (&'c ToolCall, Prepared);

struct Ended {
    call: ToolCall,
    /// `None` for built-in and unknown tools.
    reference: Option<ToolRef>,
    /// The result as sent by the server.
    result: Option<SharedJson>,
    arguments: Option<Box<RawValue>>,
    answered: Answered,
    /// Usage of a sub-agent; zero for other calls.
    usage: Usage,
    elapsed: Duration,
}

impl Turn<'_> {
    /// Runs the calls of an answer and records the results as they arrive.
    pub(super) async fn make(
        &mut self,
        calls: &[ToolCall],
        is_cut_off: bool,
    ) -> Result<(), SessionError> {
        let mut rest = calls;
        // Prepare lazily: earlier calls may affect later ones.
        let mut next = self.prepared(&mut rest, is_cut_off);
        while let Some(first) = next.take() {
            next = self.prepared(&mut rest, is_cut_off);
            let mut batch = vec![first];
            let kind = BatchKind::of(&batch[0].1);
            if kind != BatchKind::Single {
                while let Some(call) = next.take_if(|(_, call)| BatchKind::of(call) == kind) {
                    batch.push(call);
                    next = self.prepared(&mut rest, is_cut_off);
                }
            }
            let most = match kind {
                BatchKind::SubAgents => MAX_SUB_AGENTS,
                BatchKind::ReadOnly | BatchKind::Single => MAX_AT_ONCE,
            };
            self.make_at_once(batch, most).await?;
        }
        Ok(())
    }

    /// Prepares the next call. The last one may be incomplete if the answer was cut off.
    fn prepared<'c>(&self, rest: &mut &'c [ToolCall], is_cut_off: bool) -> Option<Ready<'c>> {
        let (call, others) = rest.split_first()?;
        *rest = others;
        let mut prepared = self.context.prepare(call);
        if is_cut_off && others.is_empty() && is_incomplete(call) {
            prepared.is_read_only = true;
            prepared.arguments = Err(CUT_OFF.to_owned());
        }
        Some((call, prepared))
    }

    /// Keeps the files that the calls have changed.
    async fn save_changes(&mut self) -> Result<(), SessionError> {
        let (store, id) = (&*self.context.options.store, &self.context.id);
        Ok(self.context.shared.changes.save(store, id).await?)
    }

    /// Records an error result for each call, because the budget is used up.
    pub(super) async fn leave_out(
        &mut self,
        calls: &[ToolCall],
        reason: EndReason,
    ) -> Result<(), SessionError> {
        let budget = match reason {
            EndReason::TokenBudget => "tokens",
            _ => "requests to the model",
        };
        let text = format!("The call was not run: the turn's budget of {budget} is used up.");
        for call in calls {
            let ended = Entry::CallEnded {
                result: result_of(call, Answered::error(&*text)),
                usage: Usage::default(),
            };
            self.state.journal.append(ended).await?;
        }
        Ok(())
    }

    async fn make_at_once(
        &mut self,
        batch: Vec<Ready<'_>>,
        most: usize,
    ) -> Result<(), SessionError> {
        let started = batch.iter().filter_map(|(call, prepared)| {
            let is_made = prepared.arguments.is_ok();
            is_made.then(|| call.id.clone())
        });
        let started: Vec<String> = started.collect();
        if !started.is_empty() {
            let entry = Entry::CallsBegun { calls: started };
            self.state.journal.append(entry).await?;
        }
        let caller = Caller {
            context: self.context,
            emitter: self.emitter.clone(),
            budget: Arc::clone(&self.budget),
        };
        let mut calls = Vec::with_capacity(batch.len());
        for (call, prepared) in batch {
            calls.push(caller.make(call.clone(), prepared));
        }
        let mut running = stream::iter(calls).buffer_unordered(most);
        while let Some(ended) = running.next().await {
            let elapsed_ms = u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX);
            let display = ended.answered.display.clone();
            let result = result_of(&ended.call, ended.answered);
            let (content, is_error) = (result.content.clone(), result.is_error);
            let usage = ended.usage;
            self.usage += usage;
            let entry = Entry::CallEnded { result, usage };
            self.state.journal.append(entry).await?;
            self.save_changes().await?;
            let (server, tool) = named(ended.reference.as_ref(), &ended.call);
            let event = SessionEvent::CallEnds {
                id: self.emitter.event_id(&ended.call.id),
                name: ended.call.name.clone(),
                server,
                tool,
                content,
                result: ended.result,
                is_error,
                elapsed_ms,
                display,
                parent: self.emitter.parent.clone(),
            };
            self.emitter.tell(event).await;
            self.calls.push(CallSummary {
                id: ended.call.id,
                name: ended.call.name,
                arguments: ended.arguments,
                is_error,
                elapsed_ms,
            });
        }
        Ok(())
    }
}

/// Which calls of an answer run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchKind {
    ReadOnly,
    SubAgents,
    Single,
}

impl BatchKind {
    fn of(call: &Prepared) -> Self {
        if call.is_read_only {
            Self::ReadOnly
        } else if call.is_built_in && call.name == agent::NAME {
            Self::SubAgents
        } else {
            Self::Single
        }
    }
}

impl Caller<'_> {
    fn make(&self, call: ToolCall, prepared: Prepared) -> BoxFuture<'_, Ended> {
        async move {
            let arguments = prepared.arguments.as_ref().ok().cloned();
            let mut reference = prepared.reference.clone();
            let mut result = None;
            let (server, tool) = named(reference.as_ref(), &call);
            let begins = SessionEvent::CallBegins {
                id: self.emitter.event_id(&call.id),
                name: call.name.clone(),
                server,
                tool,
                arguments: arguments.clone(),
                parent: self.emitter.parent.clone(),
            };
            self.emitter.tell(begins).await;
            let started = Instant::now();
            let spent = Arc::default();
            let work = self.answer(&call, prepared, &spent);
            let id = self.emitter.event_id(&call.id);
            let running = self.with_signs_of_life(&id, started, work);
            // The time in which the user decides about a permission prompt does not count.
            let (mut answered, elapsed) = working_time(running).await;
            // The server may have connected during the call, so its tool is known only now.
            if let Some(outcome) = answered.outcome.take()
                && let Some(tool) = outcome.tool.reference()
            {
                reference = Some(tool);
                result = Some(outcome.result);
            }
            Ended {
                call,
                reference,
                result,
                arguments,
                answered,
                usage: *spent.lock().unwrap_or_else(PoisonError::into_inner),
                elapsed,
            }
        }
        .boxed()
    }

    /// Makes a call. A sub-agent adds its usage to `spent`.
    async fn answer(
        &self,
        call: &ToolCall,
        prepared: Prepared,
        spent: &Arc<Mutex<Usage>>,
    ) -> Answered {
        let arguments = match prepared.arguments {
            Ok(arguments) => arguments,
            Err(problem) => {
                let host = &self.context.options.host;
                host.note_unreadable(&call.name, &call.arguments);
                return Answered::error(problem);
            }
        };
        if !prepared.is_built_in && self.context.calls.may_reach(&prepared.name) {
            // A tool called without being listed is added to the view.
            self.context.found.add([prepared.name.clone()]);
        }
        let sub_agent = SubAgent {
            parent: Arc::clone(self.context),
            emitter: self.emitter.of_call(&call.id),
            budget: Arc::clone(&self.budget),
            spent: Arc::clone(spent),
        };
        let progress = self.progress(&call.id, prepared.is_built_in);
        let name = prepared.name;
        let calling = self
            .context
            .call(name, arguments, progress, Arc::new(sub_agent));
        calling.await
    }

    /// Emits progress periodically, even if the tool itself reports none.
    async fn with_signs_of_life<T>(
        &self,
        call: &str,
        started: Instant,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        let pause = self.context.options.host.progress_interval();
        let mut next = started + pause;
        loop {
            tokio::select! {
                output = &mut work => return output,
                () = sleep_until(next) => {
                    next = Instant::now() + pause;
                    self.emitter.hint(SessionEvent::CallProgress {
                        id: call.to_owned(),
                        progress: None,
                        total: None,
                        message: None,
                        elapsed_ms: u64::try_from(started.elapsed().as_millis()).ok(),
                    });
                }
            }
        }
    }

    fn progress(&self, call: &str, is_built_in: bool) -> ProgressSink {
        let (emitter, id) = (self.emitter.clone(), self.emitter.event_id(call));
        Arc::new(move |progress: Progress| {
            emitter.hint(SessionEvent::CallProgress {
                id: id.clone(),
                // Built-in tools report only a message.
                progress: (!is_built_in).then_some(progress.progress),
                total: progress.total,
                message: progress.message,
                elapsed_ms: None,
            });
        })
    }
}

const CUT_OFF: &str = "The call was cut off, because the answer reached its limit, and was not run. Write it again in \
                       smaller parts.";

/// Whether the arguments are cut off.
fn is_incomplete(call: &ToolCall) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_err()
}

/// Server and tool of a call, for events.
fn named(reference: Option<&ToolRef>, call: &ToolCall) -> (Option<String>, String) {
    match reference {
        Some(reference) => (
            Some(reference.server.as_str().to_owned()),
            reference.tool.as_str().to_owned(),
        ),
        None => (None, call.name.clone()),
    }
}

fn result_of(call: &ToolCall, answered: Answered) -> ToolResult {
    ToolResult {
        call: call.id.clone(),
        content: answered.content,
        is_error: answered.is_error,
    }
}
