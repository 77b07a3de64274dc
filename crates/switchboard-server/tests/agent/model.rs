//! A model that executes the last message.
//!
//! | message | what it does |
//! |---|---|
//! | `call NAME JSON` | calls that tool, then returns the result |
//! | `wait` | never answers |
//! | `fail` | fails for good |
//! | anything else | repeats the message, with the number of messages so far |

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use switchboard_agent::message::{Content, Message, Part, Role, ToolCall};
use switchboard_agent::provider::{
    Chunk, Model, ModelReply, Provider, ProviderError, ProviderErrorKind, Request, Stop, Usage,
};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Obedient {
    model: Model,
    calls: AtomicUsize,
    waiting: Arc<watch::Sender<usize>>,
}

impl Default for Obedient {
    fn default() -> Self {
        Self {
            model: Model {
                id: "obedient".to_owned(),
                provider: "test".to_owned(),
                window: 100_000,
                max_output: 1000,
                vision: false,
                tools: true,
                price: None,
            },
            calls: AtomicUsize::new(0),
            waiting: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Obedient {
    /// Waits until this many requests wait for an answer that never comes.
    pub(crate) async fn waits(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        waiting.wait_for(|waiting| *waiting == count).await.unwrap();
    }
}

/// One unanswered request, until it is dropped.
struct Waiting(Arc<watch::Sender<usize>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

impl Provider for Obedient {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let last = request.messages.last().unwrap();
        let result = last.parts.iter().find_map(|part| match part {
            Part::ToolResult(result) => Some(&result.content),
            _ => None,
        });
        if let Some(content) = result {
            let texts = content.iter().filter_map(|content| match content {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            });
            return say(format!("result: {}", texts.collect::<String>()));
        }
        let text = last.all_text();
        if let Some(call) = text.strip_prefix("call ") {
            let (name, arguments) = call.split_once(' ').unwrap();
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            return end(Part::ToolCall(ToolCall {
                id: format!("call-{number}"),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }));
        }
        match text.as_str() {
            "wait" => {
                self.waiting.send_modify(|waiting| *waiting += 1);
                let waiting = Waiting(Arc::clone(&self.waiting));
                stream::pending()
                    .map(move |nothing| {
                        let _ = &waiting;
                        nothing
                    })
                    .boxed()
            }
            "fail" => {
                let kind = ProviderErrorKind::Unauthorized;
                let error = ProviderError::new("test", kind, "the key is not good");
                stream::iter([Err(error)]).boxed()
            }
            other => say(format!("{other} ({})", request.messages.len())),
        }
    }
}

fn say(text: String) -> BoxStream<'static, Result<Chunk, ProviderError>> {
    let chunk = Chunk::Text(text.clone());
    stream::iter([Ok(chunk)])
        .chain(end(Part::Text { text }))
        .boxed()
}

fn end(part: Part) -> BoxStream<'static, Result<Chunk, ProviderError>> {
    let stop = match part {
        Part::ToolCall(_) => Stop::Calls,
        _ => Stop::Done,
    };
    let message = Message {
        role: Role::Assistant,
        parts: vec![part],
    };
    let answer = ModelReply {
        message,
        stop,
        usage: Usage::default(),
    };
    stream::iter([Ok(Chunk::End(answer))]).boxed()
}
