//! A conversation as its entries make it.
//!
//! Owns the state of a session that follows from what was recorded, and nothing else does: [`Conversation::apply`] is
//! the only thing that changes it. Messages of one side that follow one another are one message, as some models insist
//! that the sides alternate.

use std::collections::HashSet;

use switchboard::catalog::Tokens;
use switchboard::internal::catalog::text::{cut, neutralise};

use crate::message::{Content, Message, Part, Role, ToolCall, ToolResult};
use crate::provider::Usage;
use crate::record::{Entry, Header};

/// What a picture is taken to cost.
const IMAGE_TOKENS: Tokens = Tokens(1_600);

/// How many characters the title of a session has.
const TITLE_CHARACTERS: usize = 80;

/// What became of a call that was under way when the session ended.
const INTERRUPTED: &str = "The call was interrupted before its result was known. Whether it had an effect is not \
                           known: check before calling again.";

/// What became of a call that was never begun.
const NOT_RUN: &str = "The call was not run, because the turn was interrupted before it.";

/// What the entries of a session come to.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    header: Option<Header>,
    messages: Vec<Message>,
    /// The calls of the last answer, while not all of them have ended.
    open: Vec<OpenCall>,
    /// Ids of calls that are taken.
    ids: HashSet<String>,
    /// The tools that the model was told of, in order.
    viewed: Vec<String>,
    is_searching: bool,
    introduced: HashSet<String>,
    usage: Usage,
    /// What the provider last counted, for all up to its answer.
    counted: Option<u64>,
    /// What came after that, or everything, as we estimate it.
    estimated: Tokens,
    title: String,
    prompts: u64,
}

/// A call that the model wants made.
#[derive(Debug)]
struct OpenCall {
    call: ToolCall,
    has_begun: bool,
    result: Option<ToolResult>,
}

impl Conversation {
    /// Makes of an entry what it means.
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
                let begun = |open: &&mut OpenCall| calls.contains(&open.call.id);
                for open in self.open.iter_mut().filter(begun) {
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
                let kept = self.messages.split_off(replaced.min(self.messages.len()));
                self.messages = Vec::with_capacity(kept.len() + 1);
                self.counted = None;
                self.estimated = Tokens::default();
                self.push(summary);
                for message in kept {
                    self.push(message);
                }
            }
        }
    }

    /// How the session began; `None` before it has.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The messages, as a model is shown them.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What became of the calls that have no result, if nobody makes them any more.
    pub(crate) fn abandoned(&self) -> Vec<ToolResult> {
        let open = self.open.iter().filter(|open| open.result.is_none());
        open.map(OpenCall::abandoned).collect()
    }

    /// Whether a call has that id already.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The tools that the model was told of, in order.
    pub(crate) fn viewed(&self) -> &[String] {
        &self.viewed
    }

    /// Whether tools of servers are searched for.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Whether the model was told of this server.
    pub(crate) fn knows(&self, server: &str) -> bool {
        self.introduced.contains(server)
    }

    /// What all of it has cost.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// The first words of the first message.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// How many messages a person sent.
    pub(crate) fn prompts(&self) -> u64 {
        self.prompts
    }

    /// How many tokens a request has that begins with `overhead`: as far as possible what the provider counted.
    pub(crate) fn tokens(&self, overhead: Tokens) -> u64 {
        let before = self.counted.unwrap_or(overhead.0);
        before.saturating_add(self.estimated.0)
    }

    /// Ends the last answer's calls: what came of them is said in the order in which they were wanted.
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

/// What a message is taken to cost.
pub(crate) fn tokens(message: &Message) -> Tokens {
    message.parts.iter().map(part_tokens).sum()
}

fn part_tokens(part: &Part) -> Tokens {
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
