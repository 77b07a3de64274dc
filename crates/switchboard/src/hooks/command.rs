//! A hook that is a program: JSON on its standard input, its answer on its standard output.
//!
//! Owns what it is told and what its answer means; [`crate::helper_process`] runs it.
//!
//! | it ends with | which means |
//! |---|---|
//! | 0 and nothing printed | it only looked |
//! | 0 and a JSON object | its answer |
//! | 2 | the call is blocked; what it wrote to standard error is the reason |
//! | anything else, a signal, no end in time, too much output, no JSON | it failed |

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_config::policy::HookEvent;
use switchboard_config::text::visible;
use tokio::process::Command;

use super::{Hook, HookAnswer, HookDecision, HookInput};
use crate::catalog::text::neutralise;
use crate::helper_process::{self, Bounds, Finished, RunError};
use crate::json::SharedJson;
use crate::own_variables::own_secrets;

/// How much a hook may print. A result that it puts in place of another can be large.
const MAX_OUTPUT: u64 = 16 << 20;
/// How much of what it complains about is kept.
const MAX_COMPLAINT: u64 = 64 << 10;
/// How much of a reason is passed on, in characters.
const MAX_REASON: usize = 2000;

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
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

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
        let bounds = Bounds {
            deadline: self.timeout,
            output: MAX_OUTPUT,
            complaint: MAX_COMPLAINT,
        };
        let finished = helper_process::run(&mut self.command(), Some(&told), bounds).await;
        let finished = finished.map_err(|error| {
            self.error(match error {
                RunError::Start(error) => format!("cannot be started: {error}"),
                RunError::Read(error) => format!("cannot be read from: {error}"),
                RunError::Timeout => {
                    format!("did not end within {} seconds", self.timeout.as_secs_f32())
                }
            })
        })?;
        if finished.is_too_long {
            return Err(self.error("printed more than 16 MiB".to_owned()));
        }
        let Finished {
            status,
            output,
            complaint,
            ..
        } = finished;
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
            .env("SWITCHBOARD_PROJECT_DIR", &self.folder);
        for name in own_secrets().chain(self.withheld.iter().map(Into::into)) {
            command.env_remove(name);
        }
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

/// What it complained about, as a reason that is safe to show.
fn reason(complaint: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(complaint);
    let text: String = text.trim().chars().take(MAX_REASON).collect();
    (!text.is_empty()).then(|| neutralise(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn hooks_inherit_no_secret_of_ours_and_no_token_of_a_server() {
        let mut hook = CommandHook::new(&["hook".to_owned()], "/".into()).unwrap();
        hook.withheld = vec!["GITHUB_PAT".to_owned()];
        let command = hook.command();
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
            "GITHUB_PAT",
        ] {
            let mut variables = command.as_std().get_envs();
            assert!(
                variables.any(|pair| pair == (OsStr::new(name), None)),
                "{name}"
            );
        }
    }
}
