//! A server as a child process: newline-delimited JSON over its standard input and output.
//!
//! | where | what |
//! |---|---|
//! | `lookup`, `environment` | which file is started, and what it sees |
//! | `unix/`, `windows` | starting and ending the process, with a supervisor or without |
//! | `frames`, `intake` | lines out of what the server writes |
//! | `writer` | messages into what the server reads |
//! | `runner`, `npx` | programs that install a server before they start it; where npx puts it |
//! | `link` | the open link, and how it ends |
//! | `program` | a program that is no server, started and ended the same way |
//!
//! Nothing here reads the environment of this process, and no shell is involved. What a line says is no concern of
//! this module.

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

/// The launch for one stdio server.
#[derive(Clone)]
pub struct StdioConnector {
    /// The program: a name that is looked up in the server's `PATH`, or a path, from `cwd` if it is relative.
    pub program: PathBuf,
    /// Its arguments, passed as they are.
    pub args: Vec<OsString>,
    /// Variables of the entry, over all others.
    pub env: Vec<(String, Secret)>,
    /// Names of variables to pass on from `base_env`.
    pub env_vars: Vec<String>,
    /// Whether all of `base_env` is passed on, and not only the names every program needs.
    pub inherit_env: bool,
    /// The environment of the host.
    pub base_env: Arc<[(OsString, OsString)]>,
    /// The folder to start in; `None` is that of the host.
    pub cwd: Option<PathBuf>,
    /// The supervisor to start the server under. Without one, its process group and the parent-death signal have to do.
    pub supervisor: Option<SupervisorCommand>,
    /// What the server may do; `None` is everything the user may. Anything else needs a supervisor.
    pub sandbox: Option<Policy>,
    /// How large messages may be.
    pub limits: StdioLimits,
    /// How long the server may take to end.
    pub grace: Grace,
}

/// How a supervisor is started: a program that calls [`supervisor::run`](crate::supervisor::run) when it gets these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// The program, usually that of the host itself. An absolute path.
    pub program: PathBuf,
    /// The arguments that make it a supervisor.
    pub args: Vec<OsString>,
}

/// How large messages may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdioLimits {
    /// One message, in either direction.
    pub max_message_bytes: usize,
    /// All messages that wait because the server does not read. More are refused.
    pub max_queued_bytes: usize,
}

/// How long a server may take to end, in the steps of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// After its input was closed, before it is told to end.
    pub after_close: Duration,
    /// After it was told to end, before it is killed.
    pub after_terminate: Duration,
}

impl StdioConnector {
    /// A server with no arguments and an empty environment, unsupervised, within the default limits.
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

/// Arguments and values may hold secrets, so their number has to do.
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

/// All it takes to start the process, decided.
struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "there are no supervisors there")
    )]
    supervisor: Option<SupervisorCommand>,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no sandboxes there"))]
    sandbox: Option<Policy>,
    grace: Grace,
    /// How long a package runner may go on; zero for any other program.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "there are no supervisors there")
    )]
    to_finish: Duration,
    /// What the environment of everything that it starts is marked with, where that is how they are found.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody can look there"))]
    mark: Option<String>,
}

impl Launch {
    fn new(connector: &StdioConnector) -> Result<Self, TransportError> {
        if connector.sandbox.is_some() {
            // A host that confined a thread of its own could not set it free again, so it takes a supervisor.
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
                return invalid(format!("no variable can be named {:?}", name.display()));
            }
            if has_nul(value) {
                return invalid(format!(
                    "the variable {} holds a NUL character",
                    name.display()
                ));
            }
        }
        if let Some(index) = connector.args.iter().position(|arg| has_nul(arg)) {
            return invalid(format!("argument {} holds a NUL character", index + 1));
        }
        let paths = [Some(&connector.program), connector.cwd.as_ref()];
        if let Some(path) = paths
            .into_iter()
            .flatten()
            .find(|path| has_nul(path.as_os_str()))
        {
            return invalid(format!("no file can be named {:?}", path.display()));
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

    /// Looks the program up. This touches the disk.
    fn find_program(&self) -> Result<PathBuf, TransportError> {
        let path = self
            .env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_os_str());
        lookup::find(&self.program, path, self.cwd.as_deref())
    }
}

/// Systems end texts at a NUL, so none can be passed on.
fn has_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

/// How far the life of a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It runs, as far as anybody knows.
    Running,
    /// The server's main process has ended; others of its tree may not have.
    Ended(Exit),
    /// Nothing is left.
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

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Status(i32),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals there"))]
    Signal(i32),
    /// Whoever could have told has ended too.
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
