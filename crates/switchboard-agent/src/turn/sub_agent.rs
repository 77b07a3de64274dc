//! Runs an `Agent` call: a turn of a sub-agent, on the same host and with the same budget.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::value::RawValue;

use super::{Emitter, Turn, TurnState};
use crate::budget::Budget;
use crate::context::AgentContext;
use crate::events::EndReason;
use crate::message::ToolDefinition;
use crate::provider::Usage;
use crate::record::Journal;
use crate::session::Prompt;
use crate::sub_agents::{Running, SubAgentState};
use crate::tools::agent::{Task, tool_definition};
use crate::tools::{LocalContext, LocalOutput, LocalTool};

/// The `Agent` tool, bound to one call.
pub(super) struct SubAgent {
    /// Context of the calling agent.
    pub(super) parent: Arc<AgentContext>,
    /// Marks events as those of the call.
    pub(super) emitter: Emitter,
    pub(super) budget: Arc<Budget>,
    /// Receives the usage of the sub-agent.
    pub(super) spent: Arc<Mutex<Usage>>,
}

impl LocalTool for SubAgent {
    fn definition(&self) -> ToolDefinition {
        tool_definition()
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        _context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        async move {
            let task = Task::read(arguments).and_then(|task| Ok((task.patterns()?, task)));
            let (patterns, task) = match task {
                Ok(task) => task,
                Err(problem) => return LocalOutput::error(problem),
            };
            let context = Arc::new(self.parent.of_sub_agent(patterns));
            let store = Arc::clone(&context.options.store);
            let id = self.emitter.parent.clone().unwrap_or_default();
            let watched = context.shared.agents.begin(id, &task.prompt);
            let running = Running(Arc::clone(&watched));
            if let Err(error) = watched.save(&*store, &context.id).await {
                return LocalOutput::error(format!("the agent cannot be stored: {error}"));
            }
            let journal = Journal::of_sub_agent(Arc::clone(&store), watched.journal().clone());
            let mut state = TurnState::new(&context, journal);
            let emitter = Emitter {
                watched: Some(Arc::clone(&watched)),
                ..self.emitter.clone()
            };
            let turn = Turn::new(&context, &mut state, emitter, Arc::clone(&self.budget));
            let reply = turn.run(Prompt::from(task.prompt)).await;
            let usage = state.journal.conversation().usage();
            *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += usage;
            let ended = match &reply {
                Ok(reply) if reply.reason == EndReason::Done => SubAgentState::Done,
                _ => SubAgentState::Failed,
            };
            watched.end(ended, usage);
            drop(running);
            // The outcome is in the session, too: a record that cannot be updated is shown as interrupted.
            let _ = watched.save(&*store, &context.id).await;
            match reply {
                Err(error) => LocalOutput::error(format!("the agent failed: {error}")),
                Ok(reply) if reply.reason == EndReason::Done => LocalOutput::text(reply.response),
                Ok(reply) => {
                    let why = match reply.reason {
                        EndReason::Refused => "the model refused",
                        EndReason::Length => "its answer reached the limit",
                        _ => "the budget is used up",
                    };
                    LocalOutput::error(format!(
                        "The agent did not finish: {why}. It last said: {}",
                        reply.response
                    ))
                }
            }
        }
        .boxed()
    }
}
