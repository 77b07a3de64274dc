//! What a server says while it is examined, besides its answers.

use crate::events::{LogLine, LogSource};
use crate::logs::LogRing;
use crate::peer::{Notice, Observer};
use crate::transport::Closed;

/// Keeps what is heard, within bounds.
#[derive(Debug, Default)]
pub(super) struct Heard(LogRing);

impl Heard {
    /// Forgets everything: the process is started anew, and says it all again.
    pub(super) fn forget(&self) {
        self.0.clear();
    }

    /// The last lines of stderr, oldest first.
    pub(super) fn stderr(&self, count: usize) -> Vec<String> {
        self.0.stderr_tail(count)
    }

    /// What was no message where one was expected.
    pub(super) fn noise(&self) -> Vec<String> {
        let lines = self.0.lines().into_iter();
        lines
            .filter(|line| line.source == LogSource::Noise)
            .map(|line| line.text)
            .collect()
    }
}

impl Observer for Heard {
    fn notice(&self, notice: Notice<'_>) {
        let (source, text) = match notice {
            Notice::Diagnostic(line) => (LogSource::Stderr, line),
            Notice::Noise(text) => (LogSource::Noise, text),
            _ => return,
        };
        self.0.push(LogLine {
            source,
            text: text.to_owned(),
        });
    }

    fn closed(&self, _: &Closed) {}
}
