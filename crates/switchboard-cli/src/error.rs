//! What a command fails with: what happened, why, and what to do.

use std::io;

use anstream::adapter::strip_str;
use serde_json::{Value, json};

use crate::exit::Exit;

/// A command's result.
pub(crate) type Outcome = Result<Exit, Failure>;

/// Why a command could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// What happened: a lowercase fragment with no final dot.
    pub(crate) message: String,
    /// Why, from near to far.
    pub(crate) causes: Vec<String>,
    /// What to do, rendered last.
    pub(crate) hints: Vec<String>,
    /// Whether nobody listens any more, so that there is nothing to say.
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

    /// The operation failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A signal ended the command. Whoever sent it knows, so there is nothing to say.
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

    /// The failure for scripts.
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

    /// Output that could not be written. A reader that went away, as `head` does, is no error.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            let mut failure = Self::new(Exit::Done, "the reader went away");
            failure.silent = true;
            return failure;
        }
        Self::failed("could not write the output")
            .because(error)
            .hint("check the disk, or where the output is redirected to")
    }
}
