//! Requests one answer of the model, streams it as events, and normalises it.

use std::borrow::Cow;
use std::collections::HashSet;

use futures_util::StreamExt as _;
use switchboard::catalog::Tokens;

use super::{MAX_SHORTENED, Turn, is_blank};
use crate::compact;
use crate::events::SessionEvent;
use crate::message::{Content, Image, Message, Part, Role, ToolResult};
use crate::provider::{
    Chunk, Model, ModelReply, Provider, ProviderError, ProviderErrorKind, Request, Usage,
};
use crate::record::Entry;
use crate::session::SessionError;

impl Turn<'_> {
    /// Requests an answer, after compacting the conversation if it is too long.
    pub(super) async fn ask(&mut self) -> Result<ModelReply, SessionError> {
        let provider = self.context.provider();
        let limit = compact::limit(provider.model());
        let overhead = self.overhead();
        let tokens = self.state.journal.conversation().tokens(overhead);
        // Compaction does not help if the tools alone fill the window.
        let can_gain = tokens.saturating_sub(overhead.0) > limit / 4;
        if tokens > limit && can_gain {
            self.compact(&*provider, 0).await?;
        }
        let mut shortened = 0;
        loop {
            let error = match self.ask_once(&*provider).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_too_long = error.kind == ProviderErrorKind::TooLong;
            if !is_too_long || shortened == MAX_SHORTENED {
                return Err(error.into());
            }
            shortened += 1;
            if !self.compact(&*provider, shortened).await? {
                return Err(error.into());
            }
        }
    }

    /// Replaces older messages by a summary. Fewer messages stay with higher `hardness`; `false` if there is nothing to
    /// gain.
    pub(super) async fn compact(
        &mut self,
        provider: &dyn Provider,
        hardness: u32,
    ) -> Result<bool, SessionError> {
        let overhead = self.overhead();
        let conversation = self.state.journal.conversation();
        let before = conversation.tokens(overhead);
        let messages = conversation.messages();
        let Some(replaced) = compact::place(messages, provider.model(), hardness) else {
            return Ok(false);
        };
        let older = messages.get(..replaced).unwrap_or_default();
        let (summary, usage) = match compact::summarise(provider, older).await {
            Ok((summary, usage)) => (summary, provider.model().priced(usage)),
            Err(error) => {
                let text = format!("earlier messages were left out without a summary: {error}");
                self.emitter.notice(text).await;
                (compact::left_out(older), Usage::default())
            }
        };
        let entry = Entry::Compacted {
            replaced,
            summary,
            usage,
        };
        self.state.journal.append(entry).await?;
        if usage != Usage::default() {
            self.spend(usage).await;
        }
        let after = self.state.journal.conversation().tokens(overhead);
        let event = SessionEvent::Compacted { before, after };
        self.emitter.tell(event).await;
        Ok(true)
    }

    async fn ask_once(&mut self, provider: &dyn Provider) -> Result<ModelReply, ProviderError> {
        let model = provider.model();
        let conversation = self.state.journal.conversation();
        let messages = for_model(conversation.messages(), model);
        let tools = if model.tools {
            self.state.view.definitions()
        } else {
            &[]
        };
        let system = conversation.header().map_or("", |header| &header.system);
        let mut chunks = provider.ask(Request {
            system,
            tools,
            messages: &messages,
            max_output_tokens: None,
        });
        self.state.unfinished.clear();
        while let Some(chunk) = chunks.next().await {
            match chunk? {
                Chunk::Text(text) => {
                    self.state.unfinished.push_str(&text);
                    self.emitter.tell(SessionEvent::Text { text }).await;
                }
                Chunk::Thinking(text) => {
                    self.emitter.tell(SessionEvent::Thinking { text }).await;
                }
                Chunk::Again(retry) => {
                    self.state.unfinished.clear();
                    let event = SessionEvent::Retrying {
                        reason: retry.reason,
                        wait_ms: u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX),
                        attempt: retry.attempt,
                        parent: self.emitter.parent.clone(),
                    };
                    self.emitter.tell(event).await;
                }
                Chunk::End(answer) => {
                    return Ok(ModelReply {
                        usage: model.priced(answer.usage),
                        ..answer
                    });
                }
                // The complete call is part of the final chunk.
                _ => {}
            }
        }
        Err(ProviderError::new(
            &model.provider,
            ProviderErrorKind::Broken,
            "the answer is incomplete",
        ))
    }

    /// Tokens of the system prompt and the tools.
    fn overhead(&self) -> Tokens {
        let header = self.state.journal.conversation().header();
        let system = header.map_or_else(Tokens::default, |header| Tokens::of(&header.system));
        system + self.state.view.tokens()
    }

    /// Removes empty parts, and gives every call a unique id.
    pub(super) fn tidied(&self, message: Message) -> Message {
        let conversation = self.state.journal.conversation();
        let mut taken: HashSet<String> = HashSet::new();
        let mut parts = Vec::with_capacity(message.parts.len());
        for mut part in message.parts {
            if is_blank(&part) {
                continue;
            }
            if let Part::ToolCall(call) = &mut part {
                let is_taken =
                    |id: &String| id.is_empty() || taken.contains(id) || conversation.has_call(id);
                if is_taken(&call.id) {
                    let made = (1_u64..).map(|number| format!("call_{number}"));
                    let free = made.into_iter().find(|id| !is_taken(id));
                    call.id = free.unwrap_or_default();
                }
                taken.insert(call.id.clone());
            }
            parts.push(part);
        }
        Message {
            role: Role::Assistant,
            parts,
        }
    }
}

/// Replaces images by notes if the model does not support them.
fn for_model<'m>(messages: &'m [Message], model: &Model) -> Cow<'m, [Message]> {
    let has_image = |part: &Part| match part {
        Part::Image(_) => true,
        Part::ToolResult(result) => {
            let mut content = result.content.iter();
            content.any(|content| matches!(content, Content::Image(_)))
        }
        _ => false,
    };
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    if model.vision || !parts.any(has_image) {
        return Cow::Borrowed(messages);
    }
    let blind = |part: &Part| match part {
        Part::Image(image) => Part::Text {
            text: unseen(image),
        },
        Part::ToolResult(result) => {
            let content = result.content.iter().map(|content| match content {
                Content::Image(image) => Content::Text {
                    text: unseen(image),
                },
                other => other.clone(),
            });
            Part::ToolResult(ToolResult {
                content: content.collect(),
                ..result.clone()
            })
        }
        other => other.clone(),
    };
    let messages = messages.iter().map(|message| Message {
        role: message.role,
        parts: message.parts.iter().map(blind).collect(),
    });
    Cow::Owned(messages.collect())
}

fn unseen(image: &Image) -> String {
    let kind = switchboard::internal::catalog::text::neutralise(&image.mime_type);
    format!("[a picture ({kind}) is left out: this model cannot see pictures]")
}
