//! Reads lines from a terminal without a movable cursor. The kernel edits them.

use std::io::{self, BufRead as _};

use tokio::sync::{mpsc, oneshot};

use crate::error::Failure;
use crate::input::is_incomplete;

/// Reads lines on a thread that lives as long as the program: reading a terminal blocks.
pub(super) struct PlainLines {
    requests: mpsc::Sender<oneshot::Sender<io::Result<Option<String>>>>,
}

impl PlainLines {
    pub(super) fn start() -> Result<Self, Failure> {
        let (requests, mut receiver) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("prompt".to_owned());
        let work = move || {
            while let Some(request) = receiver.blocking_recv() {
                let request: oneshot::Sender<_> = request;
                if request.send(read()).is_err() {
                    return;
                }
            }
        };
        let failure = |error: io::Error| Failure::failed("cannot show the prompt").because(error);
        thread.spawn(work).map_err(failure)?;
        Ok(Self { requests })
    }

    /// Reads a line, or several that belong together; `None` at the end of the input.
    pub(super) async fn read(&self) -> Result<Option<String>, Failure> {
        let gone = || {
            Failure::failed("the prompt has stopped")
                .hint("start the chat again; the session is saved")
        };
        let (sender, line) = oneshot::channel();
        self.requests.send(sender).await.map_err(|_| gone())?;
        let line = line.await.map_err(|_| gone())?;
        line.map_err(|error| Failure::failed("cannot read the terminal").because(error))
    }
}

fn read() -> io::Result<Option<String>> {
    let mut text = String::new();
    loop {
        if io::stdin().lock().read_line(&mut text)? == 0 {
            return Ok((!text.is_empty()).then_some(text));
        }
        let line = text.trim_end_matches(['\r', '\n']);
        if !is_incomplete(line) {
            return Ok(Some(line.replace("\\\n", "\n")));
        }
    }
}
