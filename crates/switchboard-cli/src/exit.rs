//! Exit codes. Scripts rely on them; `docs/cli.md` lists them.

use std::process::ExitCode;

/// The outcome of the program, as an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    /// Invalid command line.
    Usage,
    /// Invalid configuration.
    Configuration,
    /// A server could not be reached.
    Unreachable,
    /// Permission denied, or not trusted.
    Denied,
    /// A server requires a login.
    NeedsLogin,
    /// A tool returned an error.
    ToolError,
    /// A server is still starting; try again (`EX_TEMPFAIL`).
    Starting,
    /// A deadline expired.
    TimedOut,
    /// SIGHUP: the terminal was closed.
    HungUp,
    /// SIGINT: the user interrupted.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Configuration => 3,
            Exit::Unreachable => 4,
            Exit::Denied => 5,
            Exit::NeedsLogin => 6,
            Exit::ToolError => 7,
            Exit::Starting => 75,
            Exit::TimedOut => 124,
            Exit::HungUp => 129,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }
}

impl Exit {
    /// The code as a word, for JSON output.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::Configuration => "configuration",
            Exit::Unreachable => "unreachable",
            Exit::Denied => "denied",
            Exit::NeedsLogin => "needs-login",
            Exit::ToolError => "tool-error",
            Exit::Starting => "starting",
            Exit::TimedOut => "timed-out",
            Exit::HungUp => "hung-up",
            Exit::Interrupted => "interrupted",
            Exit::Terminated => "terminated",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_those_of_the_contract() {
        let exits = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Configuration,
            Exit::Unreachable,
            Exit::Denied,
            Exit::NeedsLogin,
            Exit::ToolError,
            Exit::Starting,
            Exit::TimedOut,
            Exit::HungUp,
            Exit::Interrupted,
            Exit::Terminated,
        ];
        assert_eq!(
            exits.map(Exit::code),
            [0, 1, 2, 3, 4, 5, 6, 7, 75, 124, 129, 130, 143]
        );
    }
}
