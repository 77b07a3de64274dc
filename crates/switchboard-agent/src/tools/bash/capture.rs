//! Output of a command: bounded buffer, conversion to plain text, and progress reports.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use switchboard::internal::catalog::text::neutralise;
use tokio::time::Instant;

use crate::tools::LocalContext;
use crate::tools::prepare::first;

/// Bytes kept of the beginning, and of the end. Excess output is dropped without blocking the command.
const KEPT: usize = 16 * 1024 * 1024;

/// Minimum interval of progress reports, and maximum length of a reported line.
const PAUSE: Duration = Duration::from_millis(500);
const MAX_LINE: usize = 200;

/// Interval of progress reports while a command is silent.
const SILENCE: Duration = Duration::from_secs(30);

/// Output of a command; if too large, without its middle.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    lost: u64,
}

impl Capture {
    pub(super) fn add(&mut self, chunk: &[u8]) {
        let room = KEPT - self.head.len();
        let (head, rest) = chunk.split_at_checked(room).unwrap_or((chunk, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..excess);
        self.lost += excess as u64;
    }

    /// Returns the output, with a note where bytes were dropped.
    pub(super) fn whole(self) -> Vec<u8> {
        let mut whole = self.head;
        if self.lost > 0 {
            whole.extend(format!("\n[… {} bytes dropped]\n", self.lost).bytes());
        }
        whole.extend(self.tail);
        whole
    }
}

/// Converts output to sanitized text: final state of overwritten lines, without colours.
pub(super) fn plain(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let text = if text.contains('\r') {
        Cow::Owned(as_seen(&text))
    } else {
        text
    };
    neutralise(&text).trim_end().to_owned()
}

/// Applies carriage returns, as used by progress bars: only the last rewrite of a line stays.
fn as_seen(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let line = line.trim_end_matches('\r');
        seen.push_str(line.rsplit('\r').next().unwrap_or(line));
        seen.push_str(end);
    }
    seen
}

/// Reports progress of a command: the last line it wrote, at most one every [`PAUSE`].
///
/// A line that comes too early is held back until the pause is over; a later one replaces it.
pub(super) struct Teller<'a> {
    context: &'a LocalContext,
    started: Instant,
    last: Instant,
    /// Not yet sanitized. Empty: nothing to report.
    held: Vec<u8>,
}

impl<'a> Teller<'a> {
    /// Create it before the command starts, so that its clock never lags behind the command's.
    pub(super) fn new(context: &'a LocalContext) -> Self {
        let now = Instant::now();
        Self {
            context,
            started: now,
            last: now,
            held: Vec::new(),
        }
    }

    /// Time of the next report if the command writes nothing until then.
    pub(super) fn due(&self) -> Instant {
        let pause = if self.held.is_empty() { SILENCE } else { PAUSE };
        self.last + pause
    }

    /// Reports the last line of a chunk, or holds it back if the last report was too recent.
    pub(super) fn output(&mut self, chunk: &[u8]) {
        let mut lines = chunk.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) else {
            return;
        };
        self.held.clear();
        self.held.extend_from_slice(line);
        if self.due() <= Instant::now() {
            self.report();
        }
    }

    /// Makes the report that is [`due`](Self::due).
    pub(super) fn report(&mut self) {
        let text = if self.held.is_empty() {
            let seconds = self.started.elapsed().as_secs();
            format!("running for {seconds} s")
        } else {
            let held = std::mem::take(&mut self.held);
            let line = String::from_utf8_lossy(&held);
            neutralise(first(line.trim(), MAX_LINE)).into_owned()
        };
        self.last = Instant::now();
        (self.context.progress)(first(&text, MAX_LINE).to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_reads_as_on_a_terminal() {
        let check = |output: &[u8], expected: &str| assert_eq!(plain(output), expected);
        check(b"one\ntwo\n\n", "one\ntwo");
        check(b"one\r\ntwo\r\n", "one\ntwo");
        check(b" 10%\r 50%\r100%\ndone\n", "100%\ndone");
        check(b" 10%\r 50%\r", " 50%");
        check(b"\x1b[31mred\x1b[0m", "red");
        check(b"a\x1b]0;title\x07b", "a\\u{1b}]0;title\\u{7}b");
        check(b"\xff\xfe", "\u{fffd}\u{fffd}");
        check(b"", "");
    }

    #[test]
    fn the_middle_of_very_much_is_not_kept() {
        let mut capture = Capture::default();
        let chunk = vec![b'x'; 1024 * 1024];
        capture.add(b"first");
        for _ in 0..40 {
            capture.add(&chunk);
        }
        capture.add(b"last");
        let whole = capture.whole();
        assert!(whole.starts_with(b"firstx") && whole.ends_with(b"xlast"));
        assert!(whole.len() < 2 * KEPT + 100);
        let lost = 40 * 1024 * 1024 + 9 - 2 * KEPT;
        let note = format!("[… {lost} bytes dropped]");
        assert!(memchr::memmem::find(&whole, note.as_bytes()).is_some());
    }
}
