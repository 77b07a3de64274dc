//! What happens in a turn, as notifications of progress.
//!
//! Calls are told as they begin and end. Text comes in small pieces, so it is told a few times a second at most, and
//! what a call says of itself likewise.

use std::collections::HashMap;
use std::time::Duration;

use switchboard::catalog::text::{cut, neutralise};
use switchboard::service::RequestContext;
use switchboard_agent::events::SessionEvent;
use tokio::time::Instant;

/// How often pieces of text are told.
const PAUSE: Duration = Duration::from_millis(300);
/// How long one message may be, in characters.
const MAX_MESSAGE: usize = 1000;

/// Tells the client of one request.
pub(super) struct Report<'a> {
    context: &'a RequestContext,
    /// Counts the messages, since values have to grow.
    told: u32,
    /// Text that was not told yet.
    text: String,
    /// When it will be.
    due: Option<Instant>,
    /// The names of calls under way.
    calls: HashMap<String, String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(context: &'a RequestContext) -> Self {
        Self {
            context,
            told: 0,
            text: String::new(),
            due: None,
            calls: HashMap::new(),
        }
    }

    /// When [`flush`](Self::flush) is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Text { text } => self.text(&text),
            SessionEvent::Retrying { reason, .. } => {
                self.text.clear();
                self.tell(&format!("asking the model again: {reason}"));
            }
            SessionEvent::CallBegins { id, name, .. } => {
                self.flush();
                self.tell(&format!("{name} begins"));
                self.calls.insert(id, name);
            }
            SessionEvent::CallProgress {
                id,
                elapsed_ms: Some(elapsed_ms),
                ..
            } => {
                if let Some(name) = self.calls.get(&id).cloned() {
                    let seconds = Duration::from_millis(elapsed_ms).as_secs();
                    self.tell(&format!("{name} is still running after {seconds} s"));
                }
            }
            SessionEvent::CallProgress { id, message, .. } => {
                if let (Some(name), Some(message)) = (self.calls.get(&id), message) {
                    self.text = format!("{name}: {message}");
                    self.due.get_or_insert_with(|| Instant::now() + PAUSE);
                }
            }
            SessionEvent::CallEnds {
                id,
                is_error,
                elapsed_ms,
                ..
            } => {
                self.flush();
                let name = self.calls.remove(&id).unwrap_or_default();
                let how = if is_error { "failed" } else { "is done" };
                let seconds = Duration::from_millis(elapsed_ms).as_secs_f32();
                self.tell(&format!("{name} {how} after {seconds:.1} s"));
            }
            SessionEvent::Compacted { .. } => self.tell("session compacted"),
            SessionEvent::Notice { text } => self.tell(&text),
            // What it thinks, costs or has is of no use to whoever waits.
            _ => {}
        }
    }

    /// Tells the text that waits.
    pub(super) fn flush(&mut self) {
        self.due = None;
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if !text.is_empty() {
            self.tell(text);
        }
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
        self.due.get_or_insert_with(|| Instant::now() + PAUSE);
        if self.text.len() > MAX_MESSAGE {
            self.flush();
        }
    }

    fn tell(&mut self, message: &str) {
        self.told += 1;
        let message = cut(neutralise(message), MAX_MESSAGE);
        self.context
            .progress(f64::from(self.told), None, Some(&message));
    }
}
