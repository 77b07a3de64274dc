//! The most recent log lines of a server, bounded in number and in size.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::events::{LogLine, LogSource};

/// A ring buffer of lines. Survives reconnects, so that it shows the reason for one.
#[derive(Debug, Default)]
pub(crate) struct LogRing(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;

impl LogRing {
    pub(crate) fn push(&self, line: LogLine) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.bytes += line.text.len();
        ring.lines.push_back(line);
        while ring.lines.len() > MAX_LINES || (ring.bytes > MAX_BYTES && ring.lines.len() > 1) {
            let Some(oldest) = ring.lines.pop_front() else {
                break;
            };
            ring.bytes -= oldest.text.len();
        }
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Ring::default();
    }

    /// All stored lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.lines.iter().cloned().collect()
    }

    /// The last lines of stderr, oldest first.
    pub(crate) fn stderr_tail(&self, count: usize) -> Vec<String> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tail: Vec<String> = ring
            .lines
            .iter()
            .rev()
            .filter(|line| line.source == LogSource::Stderr)
            .take(count)
            .map(|line| line.text.clone())
            .collect();
        tail.reverse();
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine {
            source: LogSource::Stderr,
            text: text.to_owned(),
        }
    }

    #[test]
    fn old_lines_make_room_for_new_ones() {
        let ring = LogRing::default();
        for number in 0..MAX_LINES + 5 {
            ring.push(line(&number.to_string()));
        }
        assert_eq!(ring.lines().len(), MAX_LINES);
        assert_eq!(ring.stderr_tail(2), ["1003", "1004"]);
        ring.push(line(&"x".repeat(2 * MAX_BYTES)));
        assert_eq!(ring.lines().len(), 1);
    }
}
