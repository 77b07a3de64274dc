//! Reports the events of a turn as progress notifications.
//!
//! The start and end of calls are reported at once. Text and progress of calls are reported a few times a second at
//! most.

use std::collections::HashMap;
use std::time::Duration;

use switchboard::internal::catalog::text::{cut, neutralise};
use switchboard::service::RequestContext;
use switchboard_agent::SessionEvent;
use tokio::time::Instant;

/// Minimum interval between reports of text.
const PAUSE: Duration = Duration::from_millis(300);
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 1000;

/// Sends progress notifications for one request.
pub(super) struct Report<'a> {
    context: &'a RequestContext,
    /// Number of messages sent: progress values have to increase.
    sent: u32,
    /// Text not reported yet.
    text: String,
    /// When it will be reported.
    due: Option<Instant>,
    /// The names of running calls.
    calls: HashMap<String, String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(context: &'a RequestContext) -> Self {
        Self {
            context,
            sent: 0,
            text: String::new(),
            due: None,
            calls: HashMap::new(),
        }
    }

    /// When [`flush`](Self::flush) must be called.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Text { text } => self.text(&text),
            SessionEvent::Retrying { reason, .. } => {
                self.text.clear();
                self.send(&format!("retrying the model request: {reason}"));
            }
            SessionEvent::CallBegins { id, name, .. } => {
                self.flush();
                self.send(&format!("{name} started"));
                self.calls.insert(id, name);
            }
            SessionEvent::CallProgress {
                id,
                elapsed_ms: Some(elapsed_ms),
                ..
            } => {
                if let Some(name) = self.calls.get(&id).cloned() {
                    let seconds = Duration::from_millis(elapsed_ms).as_secs();
                    self.send(&format!("{name} is still running after {seconds} s"));
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
                let how = if is_error { "failed" } else { "finished" };
                let seconds = Duration::from_millis(elapsed_ms).as_secs_f32();
                self.send(&format!("{name} {how} after {seconds:.1} s"));
            }
            SessionEvent::Compacted { .. } => self.send("session compacted"),
            SessionEvent::Notice { text, .. } => self.send(&text),
            // Reasoning, cost and the rest are not reported.
            _ => {}
        }
    }

    pub(super) fn flush(&mut self) {
        self.due = None;
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if !text.is_empty() {
            self.send(text);
        }
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
        self.due.get_or_insert_with(|| Instant::now() + PAUSE);
        if self.text.len() > MAX_MESSAGE {
            self.flush();
        }
    }

    fn send(&mut self, message: &str) {
        self.sent += 1;
        let message = cut(neutralise(message), MAX_MESSAGE);
        self.context
            .progress(f64::from(self.sent), None, Some(&message));
    }
}
