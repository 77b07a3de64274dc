//! Reads the server's output line by line.
//!
//! Owns the pipe and its buffer. Only one reader is active at a time, usually the task in [`Intake::read`]. A sender
//! that has just written a request may try one early read: if the server shares a core with us, it often has answered
//! already, which saves a wakeup and a task switch. Where early reads rarely succeed, they are rarely tried. A patient
//! thread tries for a little while, if the server usually answers that soon. Lines are not inspected.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use super::frames::{Frame, Frames};
use super::system::Inlet;
use super::writer::Writer;
use crate::transport::{Inbound, patience};

/// Bytes read at once: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// The receiving side of a link.
pub(super) struct Intake {
    /// `None` once the link delivers nothing more.
    reading: Mutex<Option<Reading>>,
    early_reads: EarlyReads,
    waits: Waits,
    limit: usize,
    inbound: Arc<dyn Inbound>,
    writer: Arc<Writer>,
}

struct Reading {
    inlet: Inlet,
    frames: Frames,
}

impl Intake {
    /// Delivers lines of at most `limit` bytes, and reports the number of answers to the writer.
    pub(super) fn new(
        inlet: Inlet,
        limit: usize,
        inbound: Arc<dyn Inbound>,
        writer: Arc<Writer>,
    ) -> Self {
        let frames = Frames::new(limit, CHUNK);
        Self {
            reading: Mutex::new(Some(Reading { inlet, frames })),
            early_reads: EarlyReads::default(),
            waits: Waits::default(),
            limit,
            inbound,
            writer,
        }
    }

    /// Delivers the server's output line by line until it ends.
    pub(super) async fn read(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_read(context)).await
    }

    fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut reading = self.reading();
        let Some(Reading { inlet, frames }) = &mut *reading else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let count = ready!(pin!(inlet.0.read_buf(frames.room())).poll(context))?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            self.deliver(frames);
        }
    }

    /// Whether the next request is one of many concurrent ones, judged by recent answers.
    pub(super) fn is_one_of_many(&self) -> bool {
        self.early_reads.is_one_of_many()
    }

    /// Early read: delivers what is available, if the statistics make an answer likely.
    pub(super) fn look(&self) {
        if patience::is_patient() {
            self.wait_briefly();
        } else if self.early_reads.is_worth_a_look() && self.read_early() {
            self.early_reads.was_good();
        }
    }

    /// Waits for the answer to the only request, as long as the answers before it took, if that is not long.
    fn wait_briefly(&self) {
        if self.writer.unanswered() != 1 {
            return;
        }
        let Some(limit) = self.waits.limit() else {
            return;
        };
        let start = Instant::now();
        loop {
            self.read_early();
            let elapsed = start.elapsed();
            // The task may have read the answer, too.
            if self.writer.unanswered() == 0 {
                return self.waits.succeeded(elapsed);
            }
            if elapsed >= limit {
                return self.waits.failed();
            }
            // The server may need this core.
            std::thread::yield_now();
        }
    }

    /// Delivers what is available. Returns whether there was something.
    fn read_early(&self) -> bool {
        // If another reader holds the lock, it will find the answer.
        let Ok(mut reading) = self.reading.try_lock() else {
            return false;
        };
        let Some(Reading { inlet, frames }) = &mut *reading else {
            return false;
        };
        // End of output and errors are left to the task.
        let has_read = matches!(inlet.read_now(frames.room()), Ok(1..));
        if has_read {
            self.deliver(frames);
        }
        has_read
    }

    /// Stops delivering.
    pub(super) fn close(&self) {
        *self.reading() = None;
    }

    fn deliver(&self, frames: &mut Frames) {
        let mut count = 0;
        frames.split(|frame| {
            count += 1;
            match frame {
                Frame::Line(line) => self.inbound.frame(line),
                Frame::Oversized(start) => self.inbound.oversized(start, self.limit),
            }
        });
        // A single in-flight request whose server also emits notifications is not concurrency.
        if count > 0 && self.writer.answered(count) > 1 && count > 1 {
            self.early_reads.many_wait();
        }
    }

    fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        // If a listener panics, the lines it did not get are not delivered again.
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Statistics that predict whether an early read finds an answer. Only hints: a lost update between threads costs one
/// read too many or too few.
#[derive(Debug, Default)]
struct EarlyReads {
    /// Early reads since the last success, skipped ones included.
    in_vain: AtomicU32,
    /// Successful early reads.
    found: AtomicU32,
    /// Whether the next early read is skipped.
    waits: AtomicBool,
    /// Number of further requests treated as concurrent.
    crowd: AtomicU32,
}

impl EarlyReads {
    /// After this many failed early reads, they become rare.
    const TRIES: u32 = 8;
    /// Then one in this many requests tries one.
    const SELDOM: u32 = 8;
    /// Early reads that always succeed would never let another task run. After this many, one is skipped.
    const ROW: u32 = 16;
    /// Answers that arrive several at a time indicate concurrent requests, for this many further requests.
    const CROWD: u32 = 64;

    fn is_worth_a_look(&self) -> bool {
        if self.waits.load(Ordering::Relaxed) {
            self.waits.store(false, Ordering::Relaxed);
            return false;
        }
        let in_vain = self.in_vain.fetch_add(1, Ordering::Relaxed);
        in_vain < Self::TRIES || in_vain.is_multiple_of(Self::SELDOM)
    }

    fn was_good(&self) {
        self.in_vain.store(0, Ordering::Relaxed);
        let found = self.found.fetch_add(1, Ordering::Relaxed) + 1;
        if found.is_multiple_of(Self::ROW) {
            self.waits.store(true, Ordering::Relaxed);
        }
    }

    fn many_wait(&self) {
        self.crowd.store(Self::CROWD, Ordering::Relaxed);
    }

    fn is_one_of_many(&self) -> bool {
        let crowd = self.crowd.load(Ordering::Relaxed);
        self.crowd.store(crowd.saturating_sub(1), Ordering::Relaxed);
        crowd > 0
    }
}

/// How long a patient thread waits for an answer. Only hints, like [`EarlyReads`].
#[derive(Debug, Default)]
struct Waits {
    /// Waits without an answer since the last success, skipped ones included.
    in_vain: AtomicU32,
    /// The limit of the next wait, in microseconds; 0: the longest.
    limit: AtomicU32,
}

impl Waits {
    /// Limits, in microseconds.
    const SHORTEST: u32 = 50;
    const LONGEST: u32 = 250;
    /// A wait may take this many times as long as the last successful one.
    const SLACK: u32 = 4;
    /// After this many waits in vain, they become rare: most servers take much longer.
    const TRIES: u32 = 4;
    /// Then one in this many requests waits.
    const SELDOM: u32 = 64;

    /// The limit of a wait; `None`: do not wait.
    fn limit(&self) -> Option<Duration> {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        if in_vain >= Self::TRIES && !in_vain.is_multiple_of(Self::SELDOM) {
            self.failed();
            return None;
        }
        let limit = match self.limit.load(Ordering::Relaxed) {
            0 => Self::LONGEST,
            limit => limit,
        };
        Some(Duration::from_micros(limit.into()))
    }

    fn succeeded(&self, elapsed: Duration) {
        self.in_vain.store(0, Ordering::Relaxed);
        let elapsed = u32::try_from(elapsed.as_micros()).unwrap_or(Self::LONGEST);
        let limit = elapsed
            .saturating_mul(Self::SLACK)
            .clamp(Self::SHORTEST, Self::LONGEST);
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn failed(&self) {
        self.in_vain.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patient_thread_waits_as_long_as_answers_took() {
        let waits = Waits::default();
        let limit = || waits.limit().map(|limit| limit.as_micros());
        assert_eq!(limit(), Some(250));
        for (took, expected) in [(1, 50), (30, 120), (90, 250), (2, 50)] {
            waits.succeeded(Duration::from_micros(took));
            assert_eq!(limit(), Some(expected), "{took}");
        }
        // A server that takes longer is hardly waited for any more.
        let waited = (0..1_000).filter(|_| {
            limit().is_some_and(|_| {
                waits.failed();
                true
            })
        });
        assert_eq!(waited.count(), 4 + 15);
        waits.succeeded(Duration::from_micros(30));
        assert_eq!(limit(), Some(120));
    }

    /// Number of early reads for that many requests.
    fn looks(early_reads: &EarlyReads, requests: u32, finds: bool) -> usize {
        let looks = (0..requests).filter(|_| {
            let looks = early_reads.is_worth_a_look();
            if looks && finds {
                early_reads.was_good();
            }
            looks
        });
        looks.count()
    }

    #[test]
    fn who_never_finds_anything_hardly_looks_any_more() {
        let early_reads = EarlyReads::default();
        assert_eq!(looks(&early_reads, 8, false), 8);
        assert_eq!(looks(&early_reads, 800, false), 100);
        early_reads.was_good();
        assert_eq!(looks(&early_reads, 16, false), 9);
    }

    #[test]
    fn who_always_finds_something_lets_others_run_now_and_then() {
        assert_eq!(looks(&EarlyReads::default(), 170, true), 160);
    }

    #[test]
    fn answers_that_come_together_are_waited_for_together() {
        let early_reads = EarlyReads::default();
        early_reads.many_wait();
        let many = (0..100).filter(|_| early_reads.is_one_of_many());
        assert_eq!(many.count(), 64);
    }

    #[cfg(unix)]
    mod with_a_pipe {
        use std::io::{PipeWriter, Write as _};
        use std::sync::OnceLock;

        use bytes::Bytes;
        use tokio::net::unix::pipe;

        use super::super::super::system::Outlet;
        use super::super::*;
        use crate::transport::{Closed, RequestFailure};

        /// Records every line, and tries an early read from within, as a listener that sends may do.
        #[derive(Default)]
        struct Noted {
            lines: Mutex<Vec<String>>,
            intake: OnceLock<std::sync::Weak<Intake>>,
        }

        impl Inbound for Noted {
            fn frame(&self, frame: Bytes) {
                let line = String::from_utf8_lossy(&frame).into_owned();
                self.lines.lock().unwrap().push(line);
                self.intake.get().unwrap().upgrade().unwrap().look();
            }

            fn oversized(&self, start: &[u8], limit: usize) {
                let line = format!("{} bytes or more, not {limit}", start.len());
                self.lines.lock().unwrap().push(line);
            }

            fn failed(&self, _request: u64, _failure: RequestFailure) {}

            fn diagnostic(&self, _line: &str) {}

            fn closed(&self, _closed: Closed) {}
        }

        fn intake() -> (Arc<Intake>, PipeWriter, Arc<Noted>) {
            let (stdout, server) = io::pipe().unwrap();
            let (_, stdin) = io::pipe().unwrap();
            let outlet = pipe::Sender::from_owned_fd(stdin.into()).unwrap();
            let inlet = pipe::Receiver::from_owned_fd(stdout.into()).unwrap();
            let writer = Arc::new(Writer::new(Outlet(outlet), 100, 100));
            let noted = Arc::<Noted>::default();
            let inbound = Arc::<Noted>::clone(&noted);
            let intake = Arc::new(Intake::new(Inlet(inlet), 20, inbound, writer));
            noted.intake.set(Arc::downgrade(&intake)).unwrap();
            (intake, server, noted)
        }

        fn lines(noted: &Noted) -> Vec<String> {
            std::mem::take(&mut *noted.lines.lock().unwrap())
        }

        #[tokio::test]
        async fn lines_come_once_and_in_order_whoever_finds_them() {
            let (intake, mut server, noted) = intake();
            intake.look();
            assert_eq!(lines(&noted), [""; 0]);
            server.write_all(b"one\ntwo\nthr").unwrap();
            intake.look();
            assert_eq!(lines(&noted), ["one", "two"]);
            server.write_all(b"ee\n").unwrap();
            let reading = tokio::spawn({
                let intake = Arc::clone(&intake);
                async move { intake.read().await }
            });
            while noted.lines.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(lines(&noted), ["three"]);
            server.write_all(b"four\n").unwrap();
            intake.look();
            server
                .write_all(b"far too long for a line\nfive\n")
                .unwrap();
            drop(server);
            // An early read at the end of the output leaves it to the task.
            intake.look();
            intake.look();
            reading.await.unwrap().unwrap();
            assert_eq!(lines(&noted), ["four", "23 bytes or more, not 20", "five"]);
        }

        #[tokio::test]
        async fn many_are_those_who_wait_not_what_a_server_says_beside_an_answer() {
            for (requests, expected) in [(1, false), (2, true)] {
                let (intake, mut server, _noted) = intake();
                for _ in 0..requests {
                    intake.writer.request();
                }
                server.write_all(b"one\ntwo\n").unwrap();
                intake.look();
                assert_eq!(intake.is_one_of_many(), expected, "{requests}");
            }
        }

        #[tokio::test]
        async fn a_patient_thread_reads_the_answer_to_its_only_request() {
            for (requests, is_read) in [(1, true), (2, false)] {
                let (intake, mut server, noted) = intake();
                // Other threads have given up looking.
                while intake.early_reads.is_worth_a_look() {}
                for _ in 0..requests {
                    intake.writer.request();
                }
                server.write_all(b"one\n").unwrap();
                intake.look();
                assert_eq!(lines(&noted), [""; 0]);
                patience::patiently(|| intake.look());
                assert_eq!(lines(&noted) == ["one"], is_read, "{requests}");
            }
        }

        #[tokio::test]
        async fn nothing_comes_after_the_end() {
            let (intake, mut server, noted) = intake();
            intake.close();
            // There is no reader, which makes the write fail.
            assert!(server.write_all(b"late\n").is_err());
            intake.look();
            intake.read().await.unwrap();
            assert_eq!(lines(&noted), [""; 0]);
        }
    }
}
