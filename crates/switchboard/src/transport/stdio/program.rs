//! A program that is no server: started as servers are, read to its end, and ended with all it has started.
//!
//! Owns the reading. Its input is empty. Once its main process has ended, what that left running is ended too, so that
//! nobody waits for a pipe that somebody in the background holds.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};

use super::system::{self, Process};
use super::{Exit, Launch, StdioConnector};
use crate::transport::TransportError;

/// How much is read at once.
const CHUNK: usize = 32 * 1024;

/// How long output may still come once nothing of the program is left, as far as anybody can see.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The variable that marks what the program starts, the same that a supervisor uses.
#[cfg(unix)]
const MARK: &str = crate::supervisor::wire::MARK;
#[cfg(not(unix))]
const MARK: &str = "SWITCHBOARD_SERVER_ID";

/// A program that runs. Dropping it ends it, and all it has started.
pub struct Program {
    process: Process,
    output: Source,
    complaints: Source,
    /// Until when output may come, once the program has gone.
    last_words: Option<Instant>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Nobody can tell.
    Unknown,
}

impl StdioConnector {
    /// Starts the program as one that is no server. Dropping the future ends whatever was begun.
    pub async fn run(&self) -> Result<Program, TransportError> {
        let mut launch = Launch::new(self)?;
        if launch.supervisor.is_none() {
            let mark = mark();
            launch.env.push((MARK.into(), mark.clone().into()));
            launch.mark = Some(mark);
        }
        let started = system::start(launch).await?;
        // Its input is closed here and now.
        drop(started.stdin);
        Ok(Program {
            process: started.process,
            output: Source::new(started.stdout.0),
            complaints: Source::new(started.stderr),
            last_words: None,
        })
    }
}

impl Program {
    /// What it writes next, wherever it writes it; `None` when nothing more comes. May be dropped at any time.
    pub async fn read(&mut self) -> Option<&[u8]> {
        while self.output.pipe.is_some() || self.complaints.pipe.is_some() {
            let over = async {
                self.process.gone().await;
                let until = || Instant::now() + LAST_WORDS;
                sleep_until(*self.last_words.get_or_insert_with(until)).await;
            };
            let event = tokio::select! {
                biased;
                () = over => Event::Over,
                count = self.output.read() => Event::Output(count),
                count = self.complaints.read() => Event::Complaint(count),
            };
            match event {
                Event::Over => {
                    self.output.pipe = None;
                    self.complaints.pipe = None;
                }
                Event::Output(0) => self.output.pipe = None,
                Event::Complaint(0) => self.complaints.pipe = None,
                Event::Output(count) => return self.output.buffer.get(..count),
                Event::Complaint(count) => return self.complaints.buffer.get(..count),
            }
        }
        None
    }

    /// Waits until nothing of it is left, and tells how it ended.
    pub async fn gone(&self) -> ProgramEnd {
        self.process.gone().await;
        match self.process.life().exit() {
            Some(Exit::Status(status)) => ProgramEnd::Exited(status),
            Some(Exit::Signal(signal)) => ProgramEnd::Signalled(signal),
            Some(Exit::Unknown) | None => ProgramEnd::Unknown,
        }
    }

    /// Begins to end it, in the steps of its grace.
    pub fn end(&self) {
        self.process.end();
    }
}

enum Event {
    Output(usize),
    Complaint(usize),
    Over,
}

/// One of its pipes, and what was read of it last.
struct Source {
    pipe: Option<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    buffer: Box<[u8]>,
}

impl Source {
    fn new(pipe: impl AsyncRead + Send + Sync + Unpin + 'static) -> Self {
        Self {
            pipe: Some(Box::new(pipe)),
            buffer: vec![0; CHUNK].into(),
        }
    }

    /// How much was read; 0 at the end.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that cannot be read has ended.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => pending().await,
        }
    }
}

/// What no other program on this machine is marked with, and what no other mark begins with.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);

    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{now:x}-{count}-", std::process::id())
}
