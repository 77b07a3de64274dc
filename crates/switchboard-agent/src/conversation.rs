//! In-memory state of a session, rebuilt by replaying its entries.
//!
//! [`Conversation::apply`] is the only way to change it. Consecutive messages of the same role are merged, as some
//! models require alternating roles.

use std::collections::HashSet;

use switchboard::catalog::Tokens;
use switchboard::internal::catalog::text::{cut, neutralise};

use crate::message::{Content, Message, Part, Role, ToolCall, ToolResult};
use crate::provider::Usage;
use crate::record::{Entry, Header};

/// Estimated cost of an image.
const IMAGE_TOKENS: Tokens = Tokens(1_600);

/// Maximum length of a session title.
const TITLE_CHARACTERS: usize = 80;

/// Result of a call that was running when the session ended.
const INTERRUPTED: &str = "The call was interrupted before its result was known. It may or may not have \
                           taken effect: check before calling again.";

/// Result of a call that never started.
const NOT_RUN: &str = "The call was not run, because the turn was interrupted before it.";

/// State of a session after its entries.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    header: Option<Header>,
    messages: Vec<Message>,
    /// Calls of the last answer, until all of them have a result.
    open: Vec<OpenCall>,
    /// Call ids in use.
    ids: HashSet<String>,
    /// Names of the listed tools, in order.
    viewed: Vec<String>,
    is_searching: bool,
    introduced: HashSet<String>,
    usage: Usage,
    /// Tokens up to and including the last answer, as counted by the provider.
    counted: Option<u64>,
    /// Estimated tokens since `counted`, or of the whole conversation.
    estimated: Tokens,
    title: String,
    prompts: u64,
}

/// A call of the last answer, with its progress.
#[derive(Debug)]
struct OpenCall {
    call: ToolCall,
    has_begun: bool,
    result: Option<ToolResult>,
}

impl Conversation {
    /// Updates the state with one entry.
    pub(crate) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Begun(header) => {
                self.introduced.extend(header.servers.iter().cloned());
                self.header = Some(header);
            }
            Entry::Said {
                message,
                is_note,
                introduces,
            } => {
                if !is_note {
                    self.prompts += 1;
                    if self.prompts == 1 {
                        self.title = title(&message);
                    }
                }
                self.introduced.extend(introduces);
                self.close();
                self.push(message);
            }
            Entry::Answered { message, usage, .. } => {
                self.close();
                self.usage += usage;
                let calls = message.calls().cloned();
                self.open = calls
                    .map(|call| OpenCall {
                        call,
                        has_begun: false,
                        result: None,
                    })
                    .collect();
                let ids = self.open.iter().map(|open| open.call.id.clone());
                self.ids.extend(ids);
                self.push(message);
                let counted = usage.total();
                if counted > 0 {
                    self.counted = Some(counted);
                    self.estimated = Tokens::default();
                }
            }
            Entry::CallsBegun { calls } => {
                let started = |open: &&mut OpenCall| calls.contains(&open.call.id);
                for open in self.open.iter_mut().filter(started) {
                    open.has_begun = true;
                }
            }
            Entry::CallEnded { result, usage } => {
                self.usage += usage;
                let mut open = self.open.iter_mut();
                if let Some(open) = open.find(|open| open.call.id == result.call) {
                    open.result = Some(result);
                }
                if self.open.iter().all(|open| open.result.is_some()) {
                    self.close();
                }
            }
            Entry::Tools {
                added,
                removed,
                is_searching,
            } => {
                self.viewed.retain(|name| !removed.contains(name));
                self.viewed.extend(added);
                self.is_searching = is_searching;
            }
            Entry::Compacted {
                replaced,
                summary,
                usage,
            } => {
                self.usage += usage;
                let remaining = self.messages.split_off(replaced.min(self.messages.len()));
                self.messages = Vec::with_capacity(remaining.len() + 1);
                self.counted = None;
                self.estimated = Tokens::default();
                self.push(summary);
                for message in remaining {
                    self.push(message);
                }
            }
        }
    }

    /// Set by the first entry; `None` before it.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Results for the calls that have none, marking them as interrupted or not run.
    pub(crate) fn abandoned(&self) -> Vec<ToolResult> {
        let open = self.open.iter().filter(|open| open.result.is_none());
        open.map(OpenCall::abandoned).collect()
    }

    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Names of the listed tools, in order.
    pub(crate) fn viewed(&self) -> &[String] {
        &self.viewed
    }

    /// Whether server tools are found by search instead of being listed.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Whether the server was already introduced to the model.
    pub(crate) fn knows(&self, server: &str) -> bool {
        self.introduced.contains(server)
    }

    /// Usage of all answers, summaries and sub-agents.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Number of messages sent by the user.
    pub(crate) fn prompts(&self) -> u64 {
        self.prompts
    }

    /// Tokens of the next request: the provider's count plus an estimate of what came after it. `overhead` is used
    /// until a count is known.
    pub(crate) fn tokens(&self, overhead: Tokens) -> u64 {
        let before = self.counted.unwrap_or(overhead.0);
        before.saturating_add(self.estimated.0)
    }

    /// Appends the results of the last answer's calls, in the order of the calls.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        let results = open.into_iter().map(|mut open| {
            let result = open.result.take();
            Part::ToolResult(result.unwrap_or_else(|| open.abandoned()))
        });
        self.push(Message {
            role: Role::User,
            parts: results.collect(),
        });
    }

    fn push(&mut self, message: Message) {
        if message.parts.is_empty() {
            return;
        }
        self.estimated += tokens(&message);
        match self.messages.last_mut() {
            Some(last) if last.role == message.role => last.parts.extend(message.parts),
            _ => self.messages.push(message),
        }
    }
}

impl OpenCall {
    fn abandoned(&self) -> ToolResult {
        let text = if self.has_begun { INTERRUPTED } else { NOT_RUN };
        ToolResult {
            call: self.call.id.clone(),
            content: vec![Content::Text {
                text: text.to_owned(),
            }],
            is_error: true,
        }
    }
}

/// Estimated cost of a message.
pub(crate) fn tokens(message: &Message) -> Tokens {
    message.parts.iter().map(part_tokens).sum()
}

/// Estimated cost of one part.
pub(crate) fn part_tokens(part: &Part) -> Tokens {
    match part {
        Part::Text { text } => Tokens::of(text),
        Part::Image(_) => IMAGE_TOKENS,
        Part::Thinking(thinking) => Tokens::of(&thinking.text),
        Part::ToolCall(call) => Tokens::of(&call.name) + Tokens::of(&call.arguments),
        Part::ToolResult(result) => {
            let content = result.content.iter().map(|content| match content {
                Content::Text { text } => Tokens::of(text),
                Content::Image(_) => IMAGE_TOKENS,
            });
            content.sum()
        }
    }
}

fn title(message: &Message) -> String {
    let text = message.all_text();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(neutralise(&line), TITLE_CHARACTERS).into_owned()
}
