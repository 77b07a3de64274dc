//! A hook that is a program: JSON on its standard input, its answer on its standard output.
//!
//! Encodes its input and interprets its answer; [`crate::helper_process`] runs it.
//!
//! | exit status | meaning |
//! |---|---|
//! | 0 without output | no decision |
//! | 0 and a JSON object | its answer |
//! | 2 | the call is blocked; standard error is the reason |
//! | any other, a signal, a timeout, too much output, invalid JSON | the hook failed |

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

/// The maximum output of a hook, in bytes. A replacement result can be large.
const MAX_OUTPUT: u64 = 16 << 20;
/// The maximum standard error stored, in bytes.
const MAX_COMPLAINT: u64 = 64 << 10;
/// The maximum length of a reason, in characters.
const MAX_REASON: usize = 2000;

/// A hook that runs a program.
#[derive(Debug, Clone)]
pub struct CommandHook {
    /// The program. A name with a slash is resolved in the folder.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// The timeout.
    pub timeout: Duration,
    /// Variables of this process that it does not inherit.
    pub withheld: Vec<String>,
}

/// The error of a hook without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hook `{program}` {reason}")]
pub struct HookError {
    /// The program, sanitized; or the name of a function.
    pub program: String,
    /// The error: a lowercase fragment.
    pub reason: String,
}

impl CommandHook {
    /// The default timeout of a hook.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates a hook from a program and its arguments; `None` if `words` is empty.
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
        let input = encode(call, &self.folder);
        let bounds = Bounds {
            deadline: self.timeout,
            output: MAX_OUTPUT,
            complaint: MAX_COMPLAINT,
        };
        let finished = helper_process::run(&mut self.command(), Some(&input), bounds).await;
        let finished = finished.map_err(|error| {
            self.error(match error {
                RunError::Start(error) => format!("cannot be started: {error}"),
                RunError::Read(error) => format!("cannot be read from: {error}"),
                RunError::Timeout => {
                    format!("timed out after {} seconds", self.timeout.as_secs_f32())
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
            .map_err(|_| "something other than text")
            .and_then(HookAnswer::parse)
            .map_err(|printed| self.error(format!("printed {printed}")))
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

/// The input of a hook, with the field names of other agents' hooks.
#[derive(Serialize)]
struct Payload<'a> {
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

fn encode(call: HookInput<'_>, folder: &std::path::Path) -> Vec<u8> {
    let payload = Payload {
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
    // Text and validated JSON: encoding cannot fail, and an empty input would only fail the hook.
    serde_json::to_vec(&payload).unwrap_or_default()
}

/// The reason from standard error, sanitized.
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
