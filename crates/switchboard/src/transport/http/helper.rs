//! Runs a command that prints headers, and parses its output.
//!
//! The output is a JSON object of strings, or lines of `Name: value`. [`crate::helper_process`] spawns the command.

use std::path::PathBuf;
use std::time::Duration;

use switchboard_config::redact::Redactor;
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;
use tokio::process::Command;

use crate::helper_process::{self, Bounds, RunError};
use crate::transport::{TransportError, TransportErrorKind};

/// Maximum output in bytes, more than any set of headers needs.
const MAX_OUTPUT: u64 = 64 * 1024;
/// Maximum bytes of stderr quoted in an error.
const MAX_COMPLAINT: usize = 200;

/// A command that prints headers. It runs before a link is opened, and again when the server answers 401.
#[derive(Debug, Clone)]
pub struct HeadersHelper {
    /// Program to run.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables set in addition to those of this process.
    pub environment: Vec<(String, Secret)>,
    /// Working directory; `None` for that of this process.
    pub folder: Option<PathBuf>,
    /// Timeout of one run.
    pub deadline: Duration,
    /// Redactor that is given the printed values.
    pub redactor: Redactor,
}

impl HeadersHelper {
    /// Default timeout.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// The helper of a configuration entry: a program and its arguments; `None` if empty.
    pub fn from_words(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
            environment: Vec::new(),
            folder: None,
            deadline: Self::DEADLINE,
            redactor: Redactor::default(),
        })
    }

    pub(super) async fn run(&self) -> Result<Vec<(String, Secret)>, TransportError> {
        let bounds = Bounds {
            deadline: self.deadline,
            output: MAX_OUTPUT,
            complaint: MAX_OUTPUT,
        };
        let finished = helper_process::run(&mut self.command(), None, bounds).await;
        let finished = finished.map_err(|error| {
            let (kind, reason) = match error {
                RunError::Start(error) => match error.kind() {
                    std::io::ErrorKind::NotFound => (
                        TransportErrorKind::ProgramNotFound,
                        "does not exist".to_owned(),
                    ),
                    std::io::ErrorKind::PermissionDenied => (
                        TransportErrorKind::ProgramNotExecutable,
                        "cannot be run".to_owned(),
                    ),
                    _ => (
                        TransportErrorKind::Spawn,
                        format!("cannot be started: {error}"),
                    ),
                },
                RunError::Read(error) => (
                    TransportErrorKind::Io,
                    format!("cannot be read from: {error}"),
                ),
                RunError::Timeout => (
                    TransportErrorKind::Timeout,
                    format!("timed out after {} seconds", self.deadline.as_secs_f32()),
                ),
            };
            self.error(kind, &reason)
        })?;
        if finished.is_too_long {
            return Err(self.error(TransportErrorKind::Invalid, "printed more than 64 KiB"));
        }
        if !finished.status.success() {
            let complaint = last_line(&finished.complaint);
            let reason = format!("failed ({}){complaint}", finished.status);
            return Err(self.error(TransportErrorKind::Spawn, &reason));
        }
        parse(&finished.output).map_err(|reason| self.error(TransportErrorKind::Invalid, reason))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        for (name, value) in &self.environment {
            command.env(name, value.expose());
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    fn error(&self, kind: TransportErrorKind, reason: &str) -> TransportError {
        TransportError::new(
            kind,
            format!("the headers helper `{}` {reason}", visible(&self.program)),
        )
    }
}

fn parse(output: &[u8]) -> Result<Vec<(String, Secret)>, &'static str> {
    let text = std::str::from_utf8(output).map_err(|_| "printed something other than text")?;
    if text.trim_start().starts_with('{') {
        // The parser's error could quote a secret, so it is dropped.
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|_| "printed a JSON object that cannot be read")?;
        return object
            .into_iter()
            .map(|(name, value)| match value {
                serde_json::Value::String(text) => Ok((name, Secret::new(text))),
                _ => Err("printed a JSON object with a value that is not a string"),
            })
            .collect();
    }
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let (name, value) = line
                .split_once(':')
                .ok_or("printed neither a JSON object nor lines of `Name: value`")?;
            Ok((name.trim().to_owned(), Secret::new(value.trim())))
        })
        .collect()
}

/// The last line of stderr.
fn last_line(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let line: String = line.trim().chars().take(MAX_COMPLAINT).collect();
    format!(": {}", visible(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_printed_as_json_or_as_lines() {
        let check = |output: &str, expected: Result<&[(&str, &str)], &str>| {
            let expected = expected.map(|pairs| {
                let owned =
                    |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new(*value));
                pairs.iter().map(owned).collect::<Vec<_>>()
            });
            assert_eq!(parse(output.as_bytes()), expected, "{output:?}");
        };
        check("", Ok(&[]));
        check(" {\"A\": \"b\"}\n", Ok(&[("A", "b")]));
        check("A: b\r\n\nC:d:e\n", Ok(&[("A", "b"), ("C", "d:e")]));
        check(
            "{\"A\": 1}",
            Err("printed a JSON object with a value that is not a string"),
        );
        check("{\"A\"", Err("printed a JSON object that cannot be read"));
        check(
            "token",
            Err("printed neither a JSON object nor lines of `Name: value`"),
        );
    }

    #[cfg(unix)]
    fn shell(script: &str) -> HeadersHelper {
        let words = ["sh", "-c", script].map(str::to_owned);
        HeadersHelper::from_words(&words).expect("words")
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_run_ends_with_headers_or_with_a_reason() {
        let check = async |helper: HeadersHelper, kind: TransportErrorKind, message: &str| {
            let error = helper.run().await.expect_err(message);
            assert_eq!((error.kind, error.message.as_str()), (kind, message));
        };
        let mut helper = shell("printf 'X-Token: %s' \"$TOKEN\"");
        helper.environment = vec![("TOKEN".to_owned(), Secret::new("t"))];
        let headers = helper.run().await.expect("headers");
        assert_eq!(headers, [("X-Token".to_owned(), Secret::new("t"))]);

        let missing = HeadersHelper::from_words(&["no-such-helper".to_owned()]).expect("words");
        check(
            missing,
            TransportErrorKind::ProgramNotFound,
            "the headers helper `no-such-helper` does not exist",
        )
        .await;
        check(
            shell("echo one >&2; echo not logged in >&2; exit 3"),
            TransportErrorKind::Spawn,
            "the headers helper `sh` failed (exit status: 3): not logged in",
        )
        .await;
        check(
            shell("yes"),
            TransportErrorKind::Invalid,
            "the headers helper `sh` printed more than 64 KiB",
        )
        .await;
    }

    /// For example an agent that caches a login.
    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_helper_leaves_running_does_not_hold_it_up() {
        let helper = shell("echo 'A: b'; sleep 600 &");
        let headers = helper.run().await.expect("headers");
        assert_eq!(headers, [("A".to_owned(), Secret::new("b"))]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_helper_that_hangs_is_given_up() {
        let mut helper = shell("sleep 600");
        helper.deadline = Duration::from_millis(20);
        let error = helper.run().await.expect_err("a deadline");
        assert_eq!(error.kind, TransportErrorKind::Timeout);
        assert_eq!(
            error.message,
            "the headers helper `sh` timed out after 0.02 seconds"
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_helper_nobody_waits_for_ends_with_what_it_started() {
        use std::io::Read as _;

        let folder = tempfile::tempdir().expect("folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .await
            .expect("mkfifo");
        assert!(made.success());
        // The helper and its child hold the pipe open; both are gone when it closes.
        let helper = shell(&format!(
            "exec 3>{}; echo x >&3; sleep 600 & sleep 600",
            pipe.display()
        ));
        let (started, has_started) = tokio::sync::oneshot::channel();
        let reader = tokio::task::spawn_blocking(move || {
            let mut pipe = std::fs::File::open(pipe)?;
            pipe.read_exact(&mut [0; 2])?;
            let _ = started.send(());
            pipe.read_to_end(&mut Vec::new())
        });
        tokio::select! {
            outcome = helper.run() => panic!("it ended: {outcome:?}"),
            started = has_started => started.expect("the helper runs"),
        }
        let rest = reader.await.expect("the reader").expect("the pipe");
        assert_eq!(rest, 0);
    }
}
