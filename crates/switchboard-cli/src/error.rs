//! The error type of commands: message, causes and hints.

use std::io;

use anstream::adapter::strip_str;
use serde_json::{Value, json};
use switchboard_config::own_program::SelfRecursion;

use crate::exit::Exit;

pub(crate) type Outcome = Result<Exit, Failure>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// A lowercase fragment without a final period.
    pub(crate) message: String,
    /// Outermost first.
    pub(crate) causes: Vec<String>,
    /// Remedies, printed last.
    pub(crate) hints: Vec<String>,
    /// Whether nothing is printed: the reader is gone, or the user interrupted.
    pub(crate) silent: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            silent: false,
        }
    }

    /// A failure with [`Exit::Failed`].
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// An invalid command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A signal ended the command. The sender knows, so nothing is printed.
    pub(crate) fn interrupted(exit: Exit) -> Self {
        let mut failure = Self::new(exit, "interrupted");
        failure.silent = true;
        failure
    }

    #[must_use]
    pub(crate) fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The failure as JSON, for scripts.
    pub(crate) fn to_json(&self) -> Value {
        let plain = |text: &String| strip_str(text).to_string();
        let hints: Vec<String> = self.hints.iter().map(plain).collect();
        json!({
            "error": {
                "code": self.exit.word(),
                "exit_code": self.exit.code(),
                "message": plain(&self.message),
                "causes": self.causes.iter().map(plain).collect::<Vec<_>>(),
                "hint": (!hints.is_empty()).then(|| hints.join("\n")),
            }
        })
    }

    /// Output could not be written. A closed pipe, as with `head`, is not an error.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            let mut failure = Self::new(Exit::Done, "the reader closed the pipe");
            failure.silent = true;
            return failure;
        }
        Self::failed("could not write the output")
            .because(error)
            .hint("check the disk and the redirection target")
    }
}

impl From<SelfRecursion> for Failure {
    fn from(recursion: SelfRecursion) -> Self {
        Self::new(Exit::Configuration, recursion.to_string()).hint(recursion.hint())
    }
}
