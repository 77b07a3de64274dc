//! The `Bash` tool: runs one shell command and returns its output, exit status and working folder.
//!
//! Only the working folder carries over between commands. Each command gets its own shell, in its own process session,
//! without a terminal; stdin is empty, and stdout and stderr are interleaved. When it exits, times out or is cancelled,
//! all processes it started are killed, so nothing stays in the background.

mod capture;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::transport::stdio::{Grace, Program, ProgramEnd, StdioConnector};
use switchboard::transport::{TransportError, TransportErrorKind};
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep_until, timeout_at};

use self::capture::{Capture, Teller};
use super::files::shown;
use super::prepare::{arguments, definition, fit, remark};
use super::{LocalContext, LocalOutput, LocalTool, Shell};
use crate::message::ToolDefinition;

/// Default and maximum timeout, in seconds.
const USUAL_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 3600;

/// Time between terminate and kill, and maximum wait for the processes to be gone.
const GRACE: Duration = Duration::from_millis(500);
const ENDING: Duration = Duration::from_secs(10);

/// Below the system's limit for a single argument.
const MAX_COMMAND: usize = 100 * 1024;

/// Fallbacks if `bash` is not on the PATH.
const OTHER_SHELLS: [&str; 3] = ["/bin/bash", "sh", "/bin/sh"];

const DESCRIPTION: &str = "Run a shell command in the workspace. Input is empty and there is no terminal. The working folder is kept for the next command while it is in the workspace. Whatever the command starts ends with it, background processes too. Prefer Read, Grep, Glob, Edit and Write for files.";

const SCHEMA: &str = r#"{"type":"object","properties":{"command":{"type":"string","minLength":1,"description":"Command line for bash"},"timeout":{"type":"integer","minimum":1,"maximum":3600,"description":"Seconds until it is ended; 120 when absent"}},"required":["command"],"additionalProperties":false}"#;

pub(super) struct Bash {
    shell: Shell,
    /// Working folder of the next command; `None`: the workspace.
    folder: Mutex<Option<PathBuf>>,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

#[derive(Clone, Copy)]
enum End {
    ByItself(ProgramEnd),
    TimeIsUp,
}

impl Bash {
    pub(super) fn new(shell: Shell) -> Self {
        Self {
            shell,
            folder: Mutex::new(None),
        }
    }

    async fn execute(&self, arguments: Arguments, context: &LocalContext) -> LocalOutput {
        if arguments.command.len() > MAX_COMMAND {
            return LocalOutput::error(format!(
                "the command is longer than {MAX_COMMAND} bytes: write it to a file and run that"
            ));
        }
        if arguments.command.contains('\0') {
            return LocalOutput::error("the command contains a NUL character");
        }
        let (folder, is_lost) = self.start_folder(context);
        // Without the file the command still runs, but its folder does not carry over.
        let report = NamedTempFile::with_prefix("switchboard-folder-").ok();
        let script = script(report.as_ref().map(NamedTempFile::path));
        let report_file = report.as_ref().map(NamedTempFile::path);
        let mut teller = Teller::new(context);
        let started = self.start(&script, &arguments.command, &folder, report_file);
        let mut program = match started.await {
            Ok(program) => program,
            Err(error) => {
                return LocalOutput::error(format!("the shell cannot be started: {error}"));
            }
        };
        let seconds = arguments.timeout.unwrap_or(USUAL_TIMEOUT);
        let seconds = seconds.clamp(1, MAX_TIMEOUT);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut capture = Capture::default();
        let end = follow(&mut program, deadline, &mut capture, &mut teller).await;

        let whole = capture.whole();
        let mut text = fit(capture::plain(&whole), &whole, "bash", context);
        if text.is_empty() {
            text.push_str("[no output]");
        }
        match end {
            End::ByItself(ProgramEnd::Exited(0)) => {}
            End::ByItself(ProgramEnd::Exited(code)) => {
                remark(&mut text, &format!("exit code {code}"));
            }
            End::ByItself(ProgramEnd::Signalled(signal)) => {
                remark(&mut text, &format!("ended by signal {signal}"));
            }
            End::ByItself(ProgramEnd::Unknown) => remark(&mut text, "exit status unknown"),
            End::TimeIsUp => remark(
                &mut text,
                &format!("killed after {seconds} s; set timeout if it needs longer"),
            ),
        }
        if is_lost {
            remark(
                &mut text,
                "ran in the workspace: the previous folder is gone",
            );
        }
        let ended_in = report.and_then(|report| ended_in(report.path()));
        if let Some(note) = ended_in.and_then(|ended| self.keep_folder(&ended, &folder, context)) {
            remark(&mut text, &note);
        }
        LocalOutput {
            is_error: !matches!(end, End::ByItself(ProgramEnd::Exited(0))),
            ..LocalOutput::text(text)
        }
    }

    /// The working folder, and whether the previous one was deleted and replaced by the workspace.
    fn start_folder(&self, context: &LocalContext) -> (PathBuf, bool) {
        let mut current = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(folder) if folder.is_dir() => (folder.clone(), false),
            Some(_) => {
                *current = None;
                (context.workspace.clone(), true)
            }
            None => (context.workspace.clone(), false),
        }
    }

    /// Stores the final working folder; returns a note for the model if it has changed.
    fn keep_folder(&self, ended: &Path, before: &Path, context: &LocalContext) -> Option<String> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (workspace, before) = (real(&context.workspace), real(before));
        if ended == before {
            return None;
        }
        let mut current = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if !ended.starts_with(&workspace) {
            *current = None;
            let ended = ended.display();
            return Some(format!(
                "{ended} is outside the workspace; the next command starts in the workspace"
            ));
        }
        *current = Some(ended.to_owned()).filter(|ended| *ended != workspace);
        let shown = shown(ended, &workspace);
        Some(format!("working folder: {shown}"))
    }

    async fn start(
        &self,
        script: &str,
        command: &str,
        folder: &Path,
        report: Option<&Path>,
    ) -> Result<Program, TransportError> {
        let mut connector = StdioConnector::new("bash");
        connector.args = ["-c", script, "bash", command].map(Into::into).to_vec();
        connector.base_env = self.shell.environment.clone();
        connector.inherit_env = true;
        // Without a terminal, draw nothing.
        connector.env = vec![("TERM".to_owned(), "dumb".into())];
        connector.cwd = Some(folder.to_owned());
        connector.supervisor = self.shell.supervisor.clone();
        connector.sandbox = self.shell.sandbox.clone().map(|mut policy| {
            policy.writable.extend(report.map(Path::to_owned));
            policy
        });
        connector.grace = Grace {
            after_close: Duration::ZERO,
            after_terminate: GRACE,
        };
        let mut started = connector.run().await;
        for shell in OTHER_SHELLS {
            match started {
                Err(error) if error.kind == TransportErrorKind::ProgramNotFound => {
                    connector.program = PathBuf::from(shell);
                    started = connector.run().await;
                }
                started => return started,
            }
        }
        started
    }
}

impl LocalTool for Bash {
    fn definition(&self) -> ToolDefinition {
        definition("Bash", DESCRIPTION, SCHEMA)
    }

    fn run<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        async move {
            match arguments(raw) {
                Ok(arguments) => self.execute(arguments, context).await,
                Err(output) => output,
            }
        }
        .boxed()
    }
}

/// Reads the output until the command has exited or was killed.
async fn follow(
    program: &mut Program,
    deadline: Instant,
    capture: &mut Capture,
    teller: &mut Teller<'_>,
) -> End {
    loop {
        tokio::select! {
            biased;
            () = sleep_until(deadline) => break,
            () = sleep_until(teller.due()) => teller.report(),
            chunk = program.read() => match chunk {
                Some(chunk) => {
                    capture.add(chunk);
                    teller.output(chunk);
                }
                // The command may still run with its outputs closed.
                None => match timeout_at(deadline, program.gone()).await {
                    Ok(end) => return End::ByItself(end),
                    Err(_) => break,
                },
            },
        }
    }
    program.end();
    let until = Instant::now() + ENDING;
    while let Ok(Some(chunk)) = timeout_at(until, program.read()).await {
        capture.add(chunk);
    }
    // Only a process stuck in a system call outlasts this.
    let _ = timeout_at(until, program.gone()).await;
    End::TimeIsUp
}

/// Wrapper script: merges both outputs, and writes the final folder to `report`.
fn script(report: Option<&Path>) -> String {
    let trap = report.and_then(Path::to_str).map(|path| {
        // `>|` works even if the command has set `noclobber`.
        let report = format!("pwd -P 2>/dev/null >|{}", quoted(path));
        format!("trap {} EXIT; ", quoted(&report))
    });
    format!("exec 2>&1; {}eval \"$1\"", trap.unwrap_or_default())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Reads the final folder. Untrusted: the command may have written anything there.
fn ended_in(report: &Path) -> Option<PathBuf> {
    /// Maximum path length of the system.
    const LONGEST: u64 = 4096;

    let length = fs::metadata(report).ok()?.len();
    let text = (length <= LONGEST).then(|| fs::read_to_string(report).ok())??;
    let folder = PathBuf::from(text.strip_suffix('\n')?);
    let folder = folder.canonicalize().ok()?;
    folder.is_dir().then_some(folder)
}
