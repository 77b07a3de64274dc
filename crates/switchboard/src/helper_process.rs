//! Runs a helper program to completion, and kills it with all its children.
//!
//! One run: started without a shell, in its own process group, bounded in time and output. Callers (hooks, commands
//! that print headers) interpret the output. Servers and the agent's commands are not helpers: they run under the
//! supervisor, see `transport/stdio`.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long to read output from leftover children after the program has exited.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The limits of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// From start to exit.
    pub(crate) deadline: Duration,
    /// Bytes of standard output. One more is read, to detect excess.
    pub(crate) output: u64,
    /// Bytes of standard error to store.
    pub(crate) complaint: u64,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) complaint: Vec<u8>,
    /// Whether it exceeded the limit of standard output.
    pub(crate) is_too_long: bool,
}

/// The reason a run did not complete.
#[derive(Debug)]
pub(crate) enum RunError {
    Start(io::Error),
    Read(io::Error),
    /// It did not exit in time and was killed.
    Timeout,
}

/// Runs a program with optional standard input. Dropping the future kills it with all its children.
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

/// A running program; dropping it kills it and its children.
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
                        // A program need not read its input.
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
                        // A leftover child holds the pipes open. As long as it is in the process group, the group's ID
                        // is not reused.
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
        // The PID is certain to be its own only until it has been waited for.
        if self.child.id().is_some() {
            self.kill_group();
        }
    }
}

/// Reads up to a limit. Dropping the pipe then stops a program that keeps writing.
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
