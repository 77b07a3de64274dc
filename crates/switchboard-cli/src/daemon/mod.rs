//! The daemon of a user: its files, finding it and starting it.
//!
//! There is one daemon per user and configuration folder. It holds a lock for as long as it runs and listens on a socket
//! in a folder that no other user can enter. Commands and bridges find it by the folder's name alone.

mod activity;
mod board;
pub(crate) mod bridge;
mod connector;
mod views;

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use switchboard::internal::spec::ConnectionKey;
use switchboard_config::text::visible;
use switchboard_server::local::{DialError, Dialed, Hello, Wants, dial, is_newer};
use tokio::time::{Instant, sleep};

use crate::context::Context;
use crate::environment::Environment;
use crate::error::Failure;
use crate::{session, view};

pub(crate) use board::Board;
pub(crate) use connector::use_daemon;
pub(crate) use views::Views;

/// Longest path of a socket on every system.
const MAX_SOCKET_PATH: usize = 100;
/// How long a new daemon may take to listen.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// Interval between two attempts to reach a daemon that is starting.
const RETRY: Duration = Duration::from_millis(10);
/// Name of the file that says that the last daemon was ended on purpose.
const STOPPED: &str = "stopped";
/// Permission bits of the group and of others.
const OTHERS: u32 = 6;
/// The variable that names a folder for sockets, on most systems.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// The files of the daemon.
#[derive(Debug, Clone)]
pub(crate) struct DaemonFiles {
    folder: PathBuf,
    /// The socket that the daemon listens on.
    pub(crate) socket: PathBuf,
    /// What a daemon in the background prints.
    pub(crate) log: PathBuf,
}

/// The status of the running daemon; `None` if none runs.
pub(crate) fn status(context: &Context) -> Result<Option<Value>, Failure> {
    let files = DaemonFiles::of(&context.environment);
    if !files.socket.exists() {
        return Ok(None);
    }
    let ask = move || -> Result<Option<Value>, Failure> {
        let failed = |error: io::Error| Failure::failed("could not start").because(error);
        let runtime = session::runtime().map_err(failed)?;
        let dialed = runtime.block_on(files.dial(Wants::Status))?;
        Ok(dialed.map(|dialed| {
            let mut status = dialed.welcome.status;
            status["pid"] = dialed.welcome.process.into();
            status
        }))
    };
    // A thread of its own: the caller may run within a runtime.
    std::thread::scope(|scope| {
        let asked = scope.spawn(ask).join();
        asked.unwrap_or_else(|_| Err(Failure::failed("cannot read the daemon's status")))
    })
}

/// Whether a daemon was started by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    Before,
    Now,
}

/// Held by the only daemon.
#[derive(Debug)]
pub(crate) struct DaemonLock(
    #[expect(dead_code, reason = "closing the file releases the lock")] File,
);

impl DaemonFiles {
    /// The files for this user's folders. Creates nothing.
    pub(crate) fn of(environment: &Environment) -> Self {
        let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        let parts = [bytes(&environment.config), bytes(&environment.state)];
        // Stable across versions: another version of this program must find the same daemon.
        let key = ConnectionKey::of(&[&parts[0], &parts[1]]).to_hex();
        let short = key.get(..12).unwrap_or(&key);
        let name = format!("switchboard-{short}");
        let runtime = environment.folder_of(RUNTIME_DIR);
        let folder = runtime
            .unwrap_or_else(|| environment.state.clone())
            .join(&name);
        let folder = if folder.as_os_str().len() + "/socket".len() > MAX_SOCKET_PATH {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("{name}-{user}"))
        } else {
            folder
        };
        Self {
            socket: folder.join("socket"),
            log: environment.state.join("daemon.log"),
            folder,
        }
    }

    /// Creates the folder, or checks that no other user can change it.
    fn prepare(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            Failure::failed(format!("cannot use {}", self.folder.display())).because(error)
        };
        if let Some(parent) = self.folder.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        match std::fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let found = std::fs::symlink_metadata(&self.folder).map_err(failed)?;
        let is_ours = found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode().trailing_zeros() >= OTHERS;
        if is_ours {
            return Ok(());
        }
        let shown = self.folder.display();
        Err(
            Failure::failed(format!("{shown} is not a private folder of yours"))
                .hint(format!("remove it: rm -r {shown}")),
        )
    }

    /// Takes the lock of the daemon; `None` if a daemon runs.
    pub(crate) fn lock(&self) -> Result<Option<DaemonLock>, Failure> {
        self.take("lock").map(|file| file.map(DaemonLock))
    }

    fn take(&self, name: &str) -> Result<Option<File>, Failure> {
        self.prepare()?;
        let path = self.folder.join(name);
        let failed = |error: io::Error| {
            Failure::failed(format!("cannot lock {}", path.display())).because(error)
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Connects to the running daemon; `None` if none runs, or if it is ending.
    pub(crate) async fn dial(&self, wants: Wants) -> Result<Option<Dialed>, Failure> {
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            wants,
        };
        match dial(&self.socket, &hello).await {
            // It makes room for one of this version.
            Ok(dialed) if dialed.welcome.gives_way => Ok(None),
            Ok(dialed) => Ok(Some(dialed)),
            Err(DialError::NotRunning(_)) => Ok(None),
            Err(error) => Err(Failure::failed("the daemon cannot be used")
                .because(error)
                .hint("restart it: switchboard down, then switchboard up --detach")),
        }
    }

    /// Connects to the daemon, and starts it if none runs.
    pub(crate) async fn dial_or_start(
        &self,
        wants: Wants,
        context: &Context,
    ) -> Result<Dialed, Failure> {
        let home = context.environment.home.as_os_str().to_owned();
        let line = ["up".into(), "--on-demand".into(), "--cwd".into(), home];
        let (dialed, _) = self.dial_or_run(wants, &line, context).await?;
        note_version(&dialed, context);
        Ok(dialed)
    }

    /// Connects to the daemon; runs this program with these arguments if none runs. Also returns whether it did.
    pub(crate) async fn dial_or_run(
        &self,
        wants: Wants,
        arguments: &[OsString],
        context: &Context,
    ) -> Result<(Dialed, Started), Failure> {
        let end = Instant::now() + START_DEADLINE;
        let mut starting = None;
        let mut started = Started::Before;
        loop {
            if let Some(dialed) = self.dial(wants.clone()).await? {
                return Ok((dialed, started));
            }
            if starting.is_none() {
                // Only one of many that come at once starts it. The others wait. A daemon that has been started since
                // the last look holds the other lock, or listens.
                starting = self.take("starting")?;
            } else if started == Started::Before && self.lock()?.is_some() {
                self.start(arguments)?;
                started = Started::Now;
            }
            if Instant::now() >= end {
                let log = view::path(&self.log, &context.environment.home);
                return Err(Failure::failed("the daemon does not start").hint(format!(
                    "see {log}, or run `switchboard up` to see what is wrong"
                )));
            }
            sleep(RETRY).await;
        }
    }

    /// Whether the last daemon was ended on purpose. Nothing starts another one until it is needed.
    pub(crate) fn was_stopped(&self) -> bool {
        self.folder.join(STOPPED).exists()
    }

    /// Records whether a daemon was ended on purpose.
    pub(crate) fn set_stopped(&self, stopped: bool) {
        let file = self.folder.join(STOPPED);
        // Without the file, bridges only connect again sooner.
        let _ = if stopped {
            std::fs::write(file, "")
        } else {
            std::fs::remove_file(file)
        };
    }

    /// Starts this program in the background.
    pub(crate) fn start(&self, arguments: &[OsString]) -> Result<(), Failure> {
        self.prepare()?;
        let failed = |error: io::Error| Failure::failed("cannot start the daemon").because(error);
        if let Some(folder) = self.log.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let log = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&self.log)
            .map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // A client that kills its process group does not kill the daemon that others use.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(())
    }
}

/// Notes that the daemon has another version. It could not be replaced because clients use it, or because it is newer.
fn note_version(dialed: &Dialed, context: &Context) {
    let (own, other) = (env!("CARGO_PKG_VERSION"), &dialed.welcome.version);
    if other == own {
        return;
    }
    let other = visible(other);
    context.printer.note(if is_newer(own, &dialed.welcome.version) {
        format!(
            "the daemon is version {other}, this is {own}; it is replaced when no client uses it, or by `switchboard down`"
        )
    } else {
        format!("the daemon is version {other}, this is {own}; restart the client to use the new version")
    });
}
