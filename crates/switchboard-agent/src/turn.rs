//! Turn loop: sends a prompt to the model and runs its tool calls until it is done.
//!
//! Each step is recorded before the next one depends on it, so a turn that is dropped at any point leaves a session
//! that can continue ([`TurnState::repair`]).

mod answer;
mod calls;
mod sub_agent;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::mpsc;

use crate::budget::Budget;
use crate::context::AgentContext;
use crate::events::{CallSummary, EndReason, Reply, SessionEvent};
use crate::instructions::{self, Situation};
use crate::message::{Message, Part, Role, ToolCall};
use crate::provider::{Stop, Usage};
use crate::record::{Entry, Header, Journal, keepable};
use crate::session::{Prompt, SessionError};
use crate::sub_agents::Watched;
use crate::tools::mcp_search;
use crate::view::{Change, Moment, Offer, View};

/// Maximum number of compactions for a conversation that is too long.
const MAX_SHORTENED: u32 = 2;

/// State that carries over between turns.
pub(crate) struct TurnState {
    pub(crate) journal: Journal,
    pub(crate) view: View,
    /// Text streamed so far of an unfinished answer.
    unfinished: String,
    /// The last used model.
    model: Option<String>,
}

/// Sends the events of a turn.
#[derive(Clone)]
pub(crate) struct Emitter {
    sender: mpsc::Sender<SessionEvent>,
    /// Id of the `Agent` call if this is a sub-agent.
    parent: Option<String>,
    /// The sub-agent that sends the events.
    watched: Option<Arc<Watched>>,
}

pub(crate) struct Turn<'a> {
    context: &'a Arc<AgentContext>,
    state: &'a mut TurnState,
    emitter: Emitter,
    budget: Arc<Budget>,
    calls: Vec<CallSummary>,
    usage: Usage,
    response: String,
}

impl TurnState {
    pub(crate) fn new(context: &AgentContext, journal: Journal) -> Self {
        let conversation = journal.conversation();
        let view = View::new(
            context.definitions(),
            conversation.viewed(),
            conversation.is_searching(),
        );
        Self {
            journal,
            view,
            unfinished: String::new(),
            model: None,
        }
    }

    /// Closes what the last turn left open: records the partial answer and marks open calls as interrupted. No call is
    /// repeated.
    pub(crate) async fn repair(&mut self) -> Result<(), SessionError> {
        self.journal.settle().await?;
        let unfinished = std::mem::take(&mut self.unfinished);
        if !unfinished.trim().is_empty() {
            let text = format!("{unfinished}\n[interrupted]");
            let entry = Entry::Answered {
                message: Message::text(Role::Assistant, text),
                stop: None,
                usage: Usage::default(),
            };
            self.journal.append(entry).await?;
        }
        for result in self.journal.conversation().abandoned() {
            let usage = Usage::default();
            self.journal
                .append(Entry::CallEnded { result, usage })
                .await?;
        }
        Ok(())
    }
}

impl Emitter {
    pub(crate) fn new(sender: mpsc::Sender<SessionEvent>) -> Self {
        Self {
            sender,
            parent: None,
            watched: None,
        }
    }

    /// Creates the emitter of a sub-agent.
    fn of_call(&self, call: &str) -> Self {
        Self {
            sender: self.sender.clone(),
            parent: Some(self.event_id(call)),
            watched: None,
        }
    }

    /// Id of a call in events. Sub-agents run side by side, and each has call ids of its own.
    fn event_id(&self, call: &str) -> String {
        match &self.parent {
            Some(parent) => format!("{parent}/{call}"),
            None => call.to_owned(),
        }
    }

    /// Sends an event. Sub-agents send only events about calls, usage, retries and notices.
    pub(crate) async fn tell(&self, event: SessionEvent) {
        if let Some(watched) = &self.watched {
            watched.note(&event);
        }
        let is_sent = self.parent.is_none()
            || matches!(
                event,
                SessionEvent::CallBegins { .. }
                    | SessionEvent::CallEnds { .. }
                    | SessionEvent::Usage { .. }
                    | SessionEvent::Retrying { .. }
                    | SessionEvent::Notice { .. }
            );
        if is_sent {
            // Fails only if the turn itself was dropped.
            let _ = self.sender.send(event).await;
        }
    }

    async fn notice(&self, text: String) {
        let parent = self.parent.clone();
        self.tell(SessionEvent::Notice { text, parent }).await;
    }

    /// Sends an event unless the channel is full: late progress is worthless.
    fn hint(&self, event: SessionEvent) {
        let _ = self.sender.try_send(event);
    }
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        context: &'a Arc<AgentContext>,
        state: &'a mut TurnState,
        emitter: Emitter,
        budget: Arc<Budget>,
    ) -> Self {
        Self {
            context,
            state,
            emitter,
            budget,
            calls: Vec::new(),
            usage: Usage::default(),
            response: String::new(),
        }
    }

    pub(crate) async fn run(mut self, prompt: Prompt) -> Result<Reply, SessionError> {
        self.begin(prompt).await?;
        let reason = self.work().await?;
        Ok(Reply {
            session_id: self.context.id.to_string(),
            response: self.response,
            tool_calls: self.calls,
            usage: self.usage,
            reason,
            failed_servers: self.context.failed_servers(),
        })
    }

    pub(crate) async fn only_compact(mut self) -> Result<(), SessionError> {
        self.state.repair().await?;
        let provider = self.context.provider();
        self.compact(&*provider, 0).await.map(|_| ())
    }

    /// Prepares the first request: repairs the state, updates the tools, and records the prompt.
    async fn begin(&mut self, prompt: Prompt) -> Result<(), SessionError> {
        let parts = prompt.parts.into_iter().filter(|part| !is_blank(part));
        let message = Message {
            role: Role::User,
            parts: parts.collect(),
        };
        self.state.repair().await?;
        // An empty prompt continues an interrupted turn, if there is one.
        let last = self.state.journal.conversation().messages().last();
        let says_nothing = message.parts.is_empty();
        if says_nothing && last.is_none_or(|last| last.role == Role::Assistant) {
            return Err(SessionError::Empty);
        }
        let change = self.update_view(Moment::Turn);
        let is_new = self.state.journal.conversation().header().is_none();
        if is_new {
            let header = self.header();
            self.state.journal.append(Entry::Begun(header)).await?;
        }
        self.record_view(change, is_new).await?;
        if !says_nothing {
            let said = Entry::Said {
                message,
                is_note: false,
                introduces: Vec::new(),
            };
            self.state.journal.append(said).await?;
            self.state.journal.list().await?;
        }
        let provider = self.context.provider();
        let model = provider.model();
        let tools = self.state.view.definitions().len();
        let started = SessionEvent::Started {
            session_id: self.context.id.to_string(),
            model: model.id.clone(),
            tools: if model.tools { tools } else { 0 },
            failed_servers: self.context.failed_servers(),
        };
        self.emitter.tell(started).await;
        Ok(())
    }

    /// Sends requests and runs calls until the model is done or a budget is used up.
    async fn work(&mut self) -> Result<EndReason, SessionError> {
        let mut was_empty = false;
        let mut shortened = 0;
        loop {
            if let Err(reason) = self.budget.take_request() {
                return Ok(reason);
            }
            let answer = self.ask().await?;
            let stop = answer.stop;
            let mut message = self.tidied(answer.message);
            if stop == Stop::Window {
                // Discard the partial answer; it is requested again after compaction.
                let provider = self.context.provider();
                self.spend(answer.usage).await;
                shortened += 1;
                if shortened > MAX_SHORTENED || !self.compact(&*provider, shortened).await? {
                    return Ok(EndReason::Length);
                }
                continue;
            }
            if stop == Stop::Refused {
                message
                    .parts
                    .retain(|part| !matches!(part, Part::ToolCall(_)));
            }
            let calls: Vec<ToolCall> = message.calls().cloned().collect();
            let text = message.all_text();
            let is_empty = text.trim().is_empty() && calls.is_empty();
            if is_empty {
                // Reasoning alone is not an answer, and providers reject a message without other content.
                message.parts.clear();
            }
            if !text.trim().is_empty() {
                self.response = text;
            }
            let answered = Entry::Answered {
                message,
                stop: Some(stop),
                usage: answer.usage,
            };
            self.state.journal.append(answered).await?;
            self.state.unfinished.clear();
            self.spend(answer.usage).await;
            if calls.is_empty() {
                match stop {
                    Stop::Refused => return Ok(EndReason::Refused),
                    Stop::Length => return Ok(EndReason::Length),
                    Stop::Paused => {}
                    _ if is_empty && !was_empty => was_empty = true,
                    _ => {
                        if is_empty {
                            let text = "the model returned an empty answer".to_owned();
                            self.emitter.notice(text).await;
                        }
                        return Ok(EndReason::Done);
                    }
                }
                continue;
            }
            was_empty = false;
            if let Err(reason) = self.budget.left() {
                self.leave_out(&calls, reason).await?;
                return Ok(reason);
            }
            self.make(&calls, stop == Stop::Length).await?;
            let change = self.update_view(Moment::Request);
            self.record_view(change, false).await?;
        }
    }

    async fn spend(&mut self, usage: Usage) {
        self.usage += usage;
        self.budget.spend(usage);
        let parent = self.emitter.parent.clone();
        let event = SessionEvent::Usage { usage, parent };
        self.emitter.tell(event).await;
    }

    fn header(&self) -> Header {
        let catalog = self.context.options.host.catalog();
        let (system, servers) = instructions::system_prompt(&Situation {
            audience: self.context.audience(),
            workspace: &self.context.calls.workspace,
            now: SystemTime::now(),
            instructions: self.context.options.instructions.as_deref(),
            catalog: &catalog,
            is_searching: self.state.view.is_searching(),
        });
        Header {
            workspace: keepable(&self.context.calls.workspace),
            model: self.context.provider().model().id.clone(),
            system,
            servers,
        }
    }

    fn update_view(&mut self, moment: Moment) -> Change {
        let context = self.context;
        let host = &context.options.host;
        self.state.view.want(context.found.take());
        let Some(search) = context.definition(mcp_search::NAME) else {
            return Change::default();
        };
        let provider = context.provider();
        let model = provider.model();
        let before = self.state.model.replace(model.id.clone());
        let offer = Offer {
            catalog: &host.catalog(),
            statuses: &host.statuses(),
            subset: &context.calls.subset,
            is_new_model: before.is_some_and(|before| before != model.id),
            model,
            mode: context.options.search,
            min_window: context.options.min_context_window,
        };
        let mut change = self.state.view.update(&offer, search, moment);
        // Tools of a resumed session were already listed.
        let viewed = self.state.journal.conversation().viewed();
        if !viewed.is_empty() && !change.added.is_empty() {
            let viewed: HashSet<&str> = viewed.iter().map(String::as_str).collect();
            change.added.retain(|name| !viewed.contains(name.as_str()));
        }
        change
    }

    /// Records changes of the listed tools, and introduces new servers to the model.
    async fn record_view(&mut self, change: Change, is_new: bool) -> Result<(), SessionError> {
        let began_search = change.began_search;
        if !change.is_empty() {
            if !is_new {
                let event = SessionEvent::ToolsChanged {
                    added: change.added.clone(),
                    removed: change.removed.clone(),
                };
                self.emitter.tell(event).await;
            }
            let entry = Entry::Tools {
                added: change.added,
                removed: change.removed,
                is_searching: self.state.view.is_searching(),
            };
            self.state.journal.append(entry).await?;
        }
        if is_new {
            return Ok(());
        }
        let catalog = self.context.options.host.catalog();
        let conversation = self.state.journal.conversation();
        let servers = catalog.servers().iter();
        let new: Vec<_> = servers
            .filter(|server| !conversation.knows(server.name().as_str()))
            .collect();
        let mut notes = Vec::new();
        if began_search {
            notes.push(instructions::note_on_search());
        }
        notes.extend(instructions::note_on(&new, self.state.view.is_searching()));
        let mut introduces: Vec<String> = new
            .iter()
            .map(|server| server.name().as_str().to_owned())
            .collect();
        for message in notes {
            let note = Entry::Said {
                message,
                is_note: true,
                introduces: std::mem::take(&mut introduces),
            };
            self.state.journal.append(note).await?;
        }
        Ok(())
    }
}

/// Providers reject empty texts.
fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text { text } if text.trim().is_empty())
}
