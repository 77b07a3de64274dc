//! A hook that is a program: JSON on its standard input, its answer on its standard output.
//!
//! Owns one run: started by its words with no shell between, in a process group of its own, bounded in time and output,
//! and ended with all it started when time is up or nobody waits any longer.
//!
//! | it ends with | which means |
//! |---|---|
//! | 0 and nothing printed | it only looked |
//! | 0 and a JSON object | its answer |
//! | 2 | the call is blocked; what it wrote to standard error is the reason |
//! | anything else, a signal, no end in time, too much output, no JSON | it failed |

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_config::policy::HookEvent;
use switchboard_config::text::visible;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Hook, HookAnswer, HookDecision, HookInput};
use crate::catalog::text::neutralise;
use crate::json::SharedJson;

/// How much a hook may print. A result that it puts in place of another can be large.
const MAX_OUTPUT: u64 = 16 << 20;
/// How much of what it complains about is kept.
const MAX_COMPLAINT: u64 = 64 << 10;
/// How much of a reason is passed on, in characters.
const MAX_REASON: usize = 2000;
/// How long output may still come once the program has ended, from what it left running.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program that looks at calls.
#[derive(Debug, Clone)]
pub struct CommandHook {
    /// The program. One with a slash in it is looked for in the folder.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
    /// Variables of this process that it is not given.
    pub withheld: Vec<String>,
}

/// Why a hook has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hook `{program}` {reason}")]
pub struct HookError {
    /// The program, safe to show.
    pub program: String,
    /// What happened: a lowercase fragment.
    pub reason: String,
}

impl CommandHook {
    /// How long a hook may take unless it is told otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// The hook of a program and its arguments; `None` without words.
    pub fn new(words: &[String], folder: PathBuf) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let program = if program.contains('/') {
            folder.join(program)
        } else {
            PathBuf::from(program)
        };
        Some(Self {
            program,
            arguments: arguments.to_vec(),
            folder,
            timeout: Self::TIMEOUT,
            withheld: Vec::new(),
        })
    }

    async fn ask(&self, call: HookInput<'_>) -> Result<HookAnswer, HookError> {
        let told = told(call, &self.folder);
        let child = self.command().spawn();
        let child = child.map_err(|error| self.error(format!("cannot be started: {error}")))?;
        let mut running = Running::new(child);
        let finished = timeout(self.timeout, running.finish(&told)).await;
        let Ok(finished) = finished else {
            let seconds = self.timeout.as_secs_f32();
            return Err(self.error(format!("did not end within {seconds} seconds")));
        };
        let (status, output, complaint) =
            finished.map_err(|error| self.error(format!("cannot be read from: {error}")))?;
        if output.len() as u64 > MAX_OUTPUT {
            return Err(self.error("printed more than 16 MiB".to_owned()));
        }
        if status.code() == Some(2) {
            return Ok(HookAnswer {
                decision: Some(HookDecision::Block),
                reason: reason(&complaint),
                ..HookAnswer::default()
            });
        }
        if !status.success() {
            let complaint = reason(&complaint).map(|reason| format!(": {reason}"));
            let complaint = complaint.unwrap_or_default();
            return Err(self.error(format!("failed ({status}){complaint}")));
        }
        std::str::from_utf8(&output)
            .map_err(|_| "printed something other than text")
            .and_then(HookAnswer::parse)
            .map_err(|reason| self.error(reason.to_owned()))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("SWITCHBOARD_PROJECT_DIR", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for name in &self.withheld {
            command.env_remove(name);
        }
        #[cfg(unix)]
        command.process_group(0);
        command
    }

    fn error(&self, reason: String) -> HookError {
        HookError {
            program: visible(&self.program.to_string_lossy()).into_owned(),
            reason,
        }
    }
}

impl Hook for CommandHook {
    fn run<'a>(&'a self, call: HookInput<'a>) -> BoxFuture<'a, Result<HookAnswer, HookError>> {
        self.ask(call).boxed()
    }
}

/// What a hook reads. The names are those that other agents' hooks know.
#[derive(Serialize)]
struct Told<'a> {
    hook_event_name: &'static str,
    session_id: &'a str,
    call_id: String,
    cwd: &'a str,
    tool_name: &'a str,
    server: Option<&'a str>,
    tool: &'a str,
    tool_input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_response: Option<&'a RawValue>,
}

fn told(call: HookInput<'_>, folder: &std::path::Path) -> Vec<u8> {
    let told = Told {
        hook_event_name: match call.event {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
        },
        session_id: call.session,
        call_id: call.call.to_string(),
        cwd: &folder.to_string_lossy(),
        tool_name: call.subject.exposed,
        server: call.subject.server,
        tool: call.subject.tool,
        tool_input: call.arguments,
        tool_response: call.result.map(SharedJson::raw),
    };
    // Texts and JSON that was checked already: this cannot fail, and an empty input would only fail the hook.
    serde_json::to_vec(&told).unwrap_or_default()
}

/// A hook that runs; dropping it ends it and what it started.
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

    async fn finish(&mut self, told: &[u8]) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let (mut output, mut complaint) = (Vec::new(), Vec::new());
        let mut input = self.child.stdin.take();
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let status = {
            let talk = async {
                let write = async {
                    if let Some(mut input) = input.take() {
                        // A hook need not read what it is told.
                        let _ = input.write_all(told).await;
                    }
                    Ok(())
                };
                let read_output = read(stdout, MAX_OUTPUT + 1, &mut output);
                let read_complaint = read(stderr, MAX_COMPLAINT, &mut complaint);
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
                        // Somebody it left running holds the pipes. While that is one of its group, the group's number
                        // belongs to nobody else.
                        Err(_) => self.end_group(),
                    }
                    status
                }
                None => self.child.wait().await?,
            }
        };
        Ok((status, output, complaint))
    }

    #[cfg(unix)]
    fn end_group(&self) {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "the same signature on every platform")]
    fn end_group(&self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only while it has not been waited for is the number surely its own.
        if self.child.id().is_some() {
            self.end_group();
        }
    }
}

/// Reads at most so much. Dropping the pipe then ends a program that goes on.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    most: u64,
    into: &mut Vec<u8>,
) -> std::io::Result<()> {
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(into).await?;
    }
    Ok(())
}

/// What it complained about, as a reason that is safe to show.
fn reason(complaint: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(complaint);
    let text: String = text.trim().chars().take(MAX_REASON).collect();
    (!text.is_empty()).then(|| neutralise(&text).into_owned())
}
