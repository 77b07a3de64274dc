//! Who gets the keys of a chat: the input, or a question that is being answered.
//!
//! The input reads all keys. A question asks for them and gets those pressed after the input has handed over, so that
//! no key meant for the input answers a question.

use std::sync::{Mutex, PoisonError};

use crossterm::event::KeyEvent;
use tokio::sync::{mpsc, oneshot};

/// What the user did while a question had the keys.
#[derive(Debug)]
pub(crate) enum Pressed {
    Key(KeyEvent),
    Paste(String),
    /// The size of the terminal has changed.
    Resized,
}

/// A question that waits for the keys.
#[derive(Debug)]
pub(crate) struct Request {
    /// What waits, for a user who is typing.
    pub(crate) title: String,
    /// Whether the user has just asked for it, so that it need not wait for a pause in typing.
    pub(crate) is_wanted: bool,
    pub(crate) granted: oneshot::Sender<()>,
    /// Closed when the question is over.
    pub(crate) keys: mpsc::UnboundedSender<Pressed>,
}

static INPUT: Mutex<Option<mpsc::UnboundedSender<Request>>> = Mutex::new(None);

/// Makes the caller the reader of all keys, who receives the requests.
pub(crate) fn own() -> mpsc::UnboundedReceiver<Request> {
    // Unbounded: the number of questions is limited by the host.
    let (sender, requests) = mpsc::unbounded_channel();
    *INPUT.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    requests
}

/// Waits for the keys. `None` if no chat reads them.
pub(crate) async fn request(
    title: &str,
    is_wanted: bool,
) -> Option<mpsc::UnboundedReceiver<Pressed>> {
    let (granted, is_granted) = oneshot::channel();
    let (keys, pressed) = mpsc::unbounded_channel();
    let request = Request {
        title: title.to_owned(),
        is_wanted,
        granted,
        keys,
    };
    let sender = INPUT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()?;
    sender.send(request).ok()?;
    is_granted.await.ok()?;
    Some(pressed)
}
