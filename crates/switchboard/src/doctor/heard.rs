//! Collects a server's log lines during an examination.

use crate::events::{LogLine, LogSource};
use crate::logs::LogRing;
use crate::peer::{Notice, Observer};
use crate::transport::Closed;

/// Stores log lines, within limits.
#[derive(Debug, Default)]
pub(super) struct Heard(LogRing);

impl Heard {
    /// Drops all lines: the process is restarted and will print them again.
    pub(super) fn forget(&self) {
        self.0.clear();
    }

    /// The last lines of stderr, oldest first.
    pub(super) fn stderr(&self, count: usize) -> Vec<String> {
        self.0.stderr_tail(count)
    }

    /// Output that is not a protocol message.
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
