//! Stdio transport: a server as a child process, with newline-delimited JSON over its standard input and output.
//!
//! | where | what |
//! |---|---|
//! | `lookup`, `environment` | resolving the program, and its environment |
//! | `unix/`, `windows` | starting and ending the process, with or without a supervisor |
//! | `frames`, `intake` | reading lines of output |
//! | `writer` | writing messages to its input |
//! | `runner`, `npx` | package runners, which install a server before they start it; the npx cache |
//! | `link` | the open link, and its shutdown |
//! | `program` | a program that is not a server, started and ended the same way |
//!
//! Nothing here reads the environment of this process, uses a shell or inspects messages.

mod environment;
pub(crate) mod frames;
mod intake;
mod link;
mod lookup;
mod npx;
mod program;
mod runner;
mod writer;

#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod system;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::entry::Transport;
use switchboard_config::secret::Secret;

use crate::sandbox::{Policy, SandboxError};
use crate::transport::{
    Closed, Connector, Destination, Inbound, InstalledPackage, Link, TransportError,
    TransportErrorKind, WithheldVariable,
};

pub use program::{Program, ProgramEnd};

/// Connector for a stdio server.
#[derive(Clone)]
pub struct StdioConnector {
    /// The program: a name looked up in the server's `PATH`, or a path, relative to `cwd` unless absolute.
    pub program: PathBuf,
    /// Its arguments, passed unchanged.
    pub args: Vec<OsString>,
    /// Variables set by the entry, which override all others.
    pub env: Vec<(String, Secret)>,
    /// Names of variables passed on from `base_env`.
    pub env_vars: Vec<String>,
    /// Whether all of `base_env` is passed on, not only what every program needs.
    pub inherit_env: bool,
    /// The environment of the host.
    pub base_env: Arc<[(OsString, OsString)]>,
    /// Working directory; `None` for that of the host.
    pub cwd: Option<PathBuf>,
    /// Supervisor to start the server under. Without one, process group and parent-death signal are the fallback.
    pub supervisor: Option<SupervisorCommand>,
    /// Sandbox policy, which requires a supervisor; `None` to run without a sandbox.
    pub sandbox: Option<Policy>,
    /// Size limits of messages.
    pub limits: StdioLimits,
    /// Grace periods of the shutdown.
    pub grace: Grace,
}

/// Command that starts a supervisor: a program that calls [`supervisor::run`](crate::supervisor::run) on these
/// arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// Absolute path of the program, usually the host itself.
    pub program: PathBuf,
    /// Arguments that turn it into a supervisor.
    pub args: Vec<OsString>,
}

/// Size limits of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdioLimits {
    /// Maximum size of one message, in either direction.
    pub max_message_bytes: usize,
    /// Maximum bytes queued while the server does not read. Further messages are rejected.
    pub max_queued_bytes: usize,
}

/// Grace periods of a shutdown, in the steps of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// From closing its input to SIGTERM.
    pub after_close: Duration,
    /// From SIGTERM to SIGKILL.
    pub after_terminate: Duration,
}

impl StdioConnector {
    /// A server without arguments, environment or supervisor, with default limits.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_vars: Vec::new(),
            inherit_env: false,
            base_env: Arc::new([]),
            cwd: None,
            supervisor: None,
            sandbox: None,
            limits: StdioLimits::default(),
            grace: Grace::default(),
        }
    }
}

impl Default for StdioLimits {
    fn default() -> Self {
        let max_message_bytes = 16 * 1024 * 1024;
        Self {
            max_message_bytes,
            max_queued_bytes: 4 * max_message_bytes,
        }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            after_close: Duration::from_secs(2),
            after_terminate: Duration::from_secs(2),
        }
    }
}

impl Connector for StdioConnector {
    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let started = system::start(Launch::new(self)?).await?;
            let link: Arc<dyn Link> = Arc::new(link::StdioLink::open(started, self, inbound));
            Ok(link)
        })
    }

    fn destination(&self) -> Destination {
        Destination::Program(self.program.display().to_string())
    }

    fn may_install(&self) -> bool {
        runner::is_runner(&self.program, &self.args)
    }

    fn installed_package(&self) -> Option<InstalledPackage> {
        npx::installed(self)
    }

    fn withheld_variables(&self) -> Vec<WithheldVariable> {
        environment::withheld(self)
    }

    fn listed_variables(&self) -> &[String] {
        &self.env_vars
    }
}

/// Arguments and values may be secrets, so only their number is printed.
impl fmt::Debug for StdioConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioConnector")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("supervisor", &self.supervisor)
            .field("sandbox", &self.sandbox)
            .field("limits", &self.limits)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Everything needed to start the process, validated.
struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "supervisors are Unix only"))]
    supervisor: Option<SupervisorCommand>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "sandboxes are Linux only"))]
    sandbox: Option<Policy>,
    grace: Grace,
    /// How long a package runner may continue; zero for any other program.
    #[cfg_attr(not(unix), expect(dead_code, reason = "supervisors are Unix only"))]
    to_finish: Duration,
    /// Mark in the environment of the process, by which its descendants are found; `None` for servers.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "process environments are readable on Unix only")
    )]
    mark: Option<String>,
}

impl Launch {
    fn new(connector: &StdioConnector) -> Result<Self, TransportError> {
        if connector.sandbox.is_some() {
            // A confined thread of the host could not be freed again, so a sandbox requires a supervisor.
            match &connector.supervisor {
                Some(_) if cfg!(target_os = "linux") => {}
                Some(_) => return Err(SandboxError::NotHere.into()),
                None => return Err(SandboxError::NoSupervisor.into()),
            }
        }
        let env = environment::of(connector);
        let invalid =
            |message: String| Err(TransportError::new(TransportErrorKind::Invalid, message));
        for (name, value) in &env {
            let bytes = name.as_encoded_bytes();
            if bytes.is_empty() || bytes.contains(&b'=') || has_nul(name) {
                return invalid(format!("invalid variable name {:?}", name.display()));
            }
            if has_nul(value) {
                return invalid(format!(
                    "the variable {} contains a NUL character",
                    name.display()
                ));
            }
        }
        if let Some(index) = connector.args.iter().position(|arg| has_nul(arg)) {
            return invalid(format!("argument {} contains a NUL character", index + 1));
        }
        let paths = [Some(&connector.program), connector.cwd.as_ref()];
        if let Some(path) = paths
            .into_iter()
            .flatten()
            .find(|path| has_nul(path.as_os_str()))
        {
            return invalid(format!("invalid file name {:?}", path.display()));
        }
        Ok(Self {
            program: connector.program.clone(),
            args: connector.args.clone(),
            env: env.into_iter().collect(),
            cwd: connector.cwd.clone(),
            supervisor: connector.supervisor.clone(),
            sandbox: connector.sandbox.clone(),
            grace: connector.grace,
            to_finish: if connector.may_install() {
                runner::TO_FINISH
            } else {
                Duration::ZERO
            },
            mark: None,
        })
    }

    /// Resolves the program. Blocks on disk access.
    fn find_program(&self) -> Result<PathBuf, TransportError> {
        let path = self
            .env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_os_str());
        lookup::find(&self.program, path, self.cwd.as_deref())
    }
}

/// Strings passed to the system end at a NUL, so none may contain one.
fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

/// Lifecycle of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It runs, as far as is known.
    Running,
    /// The main process has exited; descendants may still run.
    Ended(Exit),
    /// No process is left.
    Gone(Exit),
}

impl Life {
    fn exit(self) -> Option<Exit> {
        match self {
            Self::Running => None,
            Self::Ended(exit) | Self::Gone(exit) => Some(exit),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Status(i32),
    #[cfg_attr(not(unix), expect(dead_code, reason = "signals are Unix only"))]
    Signal(i32),
    /// The exit status was lost, for example with the supervisor.
    Unknown,
}

impl Exit {
    fn closed(self) -> Option<Closed> {
        match self {
            Self::Status(status) => Some(Closed::Exited(status)),
            Self::Signal(signal) => Some(Closed::Signalled(signal)),
            Self::Unknown => None,
        }
    }
}
