//! Runs a program that is not a server: started like a server, read to its end, and ended with its descendants.
//!
//! Its input is empty. Once its main process has exited, its remaining descendants are killed, so that a background
//! process that holds a pipe open blocks no reader.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use switchboard_config::own_program;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};

use super::system::{self, Process};
use super::{Exit, Launch, StdioConnector};
use crate::transport::TransportError;

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;

/// How long output may still arrive once no process of the program is found.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Environment variable that marks its descendants, the same one a supervisor uses.
#[cfg(unix)]
const MARK: &str = crate::supervisor::wire::MARK;
#[cfg(not(unix))]
const MARK: &str = "SWITCHBOARD_SERVER_ID";

/// A running program. Dropping it kills it with its descendants.
pub struct Program {
    process: Process,
    output: Source,
    complaints: Source,
    /// Deadline for output once the program has gone.
    last_words: Option<Instant>,
}

/// Exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// Exited with this status.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// The status is not available.
    Unknown,
}

impl StdioConnector {
    /// Starts it as a program that is not a server. Dropping the future undoes what was started.
    pub async fn run(&self) -> Result<Program, TransportError> {
        let mut launch = Launch::new(self)?;
        // It is not a server: a client that it starts may use Switchboard.
        launch.env.retain(|(name, _)| name != own_program::DEPTH);
        let inherited = self.base_env.iter();
        let inherited = inherited.filter(|(name, _)| name == own_program::DEPTH);
        launch.env.extend(inherited.cloned());
        if launch.supervisor.is_none() {
            let mark = mark();
            launch.env.push((MARK.into(), mark.clone().into()));
            launch.mark = Some(mark);
        }
        let started = system::start(launch).await?;
        // Closes its input at once.
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
    /// The next output, from stdout or stderr; `None` at the end. Cancel-safe.
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

    /// Waits until no process of it is left, and returns how it ended.
    pub async fn gone(&self) -> ProgramEnd {
        self.process.gone().await;
        match self.process.life().exit() {
            Some(Exit::Status(status)) => ProgramEnd::Exited(status),
            Some(Exit::Signal(signal)) => ProgramEnd::Signalled(signal),
            Some(Exit::Unknown) | None => ProgramEnd::Unknown,
        }
    }

    /// Starts its shutdown, with its grace periods.
    pub fn end(&self) {
        self.process.end();
    }
}

enum Event {
    Output(usize),
    Complaint(usize),
    Over,
}

/// One of its pipes, and the buffer last read into.
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

    /// Number of bytes read; 0 at the end.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A read error counts as the end.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => pending().await,
        }
    }
}

/// A mark that is unique on this machine and not a prefix of another.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);

    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{now:x}-{count}-", std::process::id())
}
