//! A helper program: run once, read to its end, and killed with all it has started.
//!
//! Owns one run: started by its words with no shell between, in a process group of its own, bounded in time and output.
//! What the output means is known to the callers (hooks, commands that print headers). Servers and the agent's commands
//! are not helpers: they run under the supervisor, see `transport/stdio`.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long output may still come once the program has ended, from what it left running.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What one run may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// From the start to the end.
    pub(crate) deadline: Duration,
    /// Bytes of standard output. One more is read, to tell too much from just enough.
    pub(crate) output: u64,
    /// Bytes of standard error that are kept.
    pub(crate) complaint: u64,
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) complaint: Vec<u8>,
    /// Whether it printed more than its bound.
    pub(crate) is_too_long: bool,
}

/// Why a run has no end.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It could not be started.
    Start(io::Error),
    /// Its pipes could not be read.
    Read(io::Error),
    /// It did not end in time, and was killed.
    Timeout,
}

/// Runs a program, with this on its standard input, or nothing. Dropping the future kills it with all it has started.
pub(crate) async fn run(
    command: &mut Command,
    input: Option<&[u8]>,
    bounds: Bounds,
) -> Result<Finished, RunError> {
    let has_input = input.is_some();
    command
        .stdin(if has_input {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut running = Running::new(command.spawn().map_err(RunError::Start)?);
    match timeout(bounds.deadline, running.finish(input, bounds)).await {
        Ok(finished) => finished.map_err(RunError::Read),
        Err(_) => Err(RunError::Timeout),
    }
}

/// A program that runs; dropping it kills it and what it started.
struct Running {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl Running {
    fn new(child: Child) -> Self {
        Self {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)),
            child,
        }
    }

    async fn finish(&mut self, input: Option<&[u8]>, bounds: Bounds) -> io::Result<Finished> {
        let (mut output, mut complaint) = (Vec::new(), Vec::new());
        let mut stdin = self.child.stdin.take();
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let status = {
            let talk = async {
                let write = async {
                    if let Some((mut stdin, input)) = stdin.take().zip(input) {
                        // A program need not read what it is told.
                        let _ = stdin.write_all(input).await;
                    }
                    Ok(())
                };
                let read_output = read(stdout, bounds.output.saturating_add(1), &mut output);
                let read_complaint = read(stderr, bounds.complaint, &mut complaint);
                tokio::try_join!(write, read_output, read_complaint).map(drop)
            };
            let mut talk = std::pin::pin!(talk);
            let status = tokio::select! {
                said = &mut talk => {
                    said?;
                    None
                }
                status = self.child.wait() => Some(status?),
            };
            match status {
                Some(status) => {
                    match timeout(LAST_WORDS, talk).await {
                        Ok(said) => said?,
                        // A process that it left running holds the pipes. While that is one of its group, the group's
                        // number belongs to no other.
                        Err(_) => self.kill_group(),
                    }
                    status
                }
                None => self.child.wait().await?,
            }
        };
        let is_too_long = u64::try_from(output.len()).is_ok_and(|length| length > bounds.output);
        Ok(Finished {
            status,
            output,
            complaint,
            is_too_long,
        })
    }

    #[cfg(unix)]
    fn kill_group(&self) {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "the same signature on every platform")]
    fn kill_group(&self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only while it has not been waited for is the number surely its own.
        if self.child.id().is_some() {
            self.kill_group();
        }
    }
}

/// Reads at most so much. Dropping the pipe then ends a program that goes on.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    most: u64,
    into: &mut Vec<u8>,
) -> io::Result<()> {
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(into).await?;
    }
    Ok(())
}
