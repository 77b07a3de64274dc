//! One server under a supervisor, as the host sees it.
//!
//! Owns the server's control socket and one task that reads the supervisor's reports. The task lives until the server
//! is gone, even if the handle is dropped before; if the runtime ends, the socket closes and the supervisor ends the
//! server. This module must not touch processes: that is for the supervisor or, if it fails, `shared_supervisor`.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::shared_supervisor::{SharedSupervisor, Trouble};
use super::{Pipes, no_process};
use crate::sandbox::SandboxError;
use crate::supervisor::wire::{CLOSE, FINISH, LEAVE, Report, send_all};
use crate::transport::TransportError;
use crate::transport::stdio::{Exit, Launch, Life, SupervisorCommand, lookup};

/// How long after the server's grace period the supervisor may take: its time for killing, and a margin.
const GUARD_PATIENCE: Duration = Duration::from_secs(8);

/// Starts a server under the supervisor. Dropping the future undoes what was started.
pub(super) async fn start(
    command: SupervisorCommand,
    launch: Launch,
) -> Result<(Handle, Pipes), TransportError> {
    let longest_end = launch.grace.after_close + launch.grace.after_terminate + GUARD_PATIENCE;
    let to_finish = launch.to_finish;
    let handed = SharedSupervisor::hand_over(&command, launch).await?;
    let control = UnixStream::from_std(handed.control).map_err(|error| no_process(&error))?;
    let shared = Arc::new(Shared {
        control,
        supervisor: handed.supervisor,
        server: AtomicI32::new(0),
        overdue: watch::Sender::new(None),
        longest_end,
        to_finish,
        life: watch::Sender::new(Life::Running),
    });
    // From here on, dropping the handle ends what was started.
    let handle = Handle(Arc::clone(&shared));
    let (reply, started) = oneshot::channel();
    tokio::spawn(shared.keep(handed.program, reply));
    match started.await {
        Ok(Ok(())) => Ok((handle, handed.pipes)),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(no_process(&io::Error::other("its task has ended"))),
    }
}

/// The process of a server. Dropping it ends the process.
pub(in crate::transport::stdio) struct Handle(Arc<Shared>);

impl Handle {
    /// The process id of the server; 0 before it runs.
    pub(super) fn id(&self) -> i32 {
        self.0.server.load(Ordering::Relaxed)
    }

    pub(super) fn life(&self) -> &watch::Sender<Life> {
        &self.0.life
    }

    pub(super) fn end(&self) {
        self.end_by(CLOSE, self.0.longest_end);
    }

    /// Ends it like [`end`](Self::end); the supervisor completes that when this process is gone.
    pub(super) fn leave(&self) {
        self.end_by(LEAVE, self.0.longest_end);
    }

    /// Lets a package runner that is no longer wanted continue as long as it makes progress.
    pub(super) fn finish(&self) {
        self.end_by(FINISH, self.0.longest_end + self.0.to_finish);
    }

    fn end_by(&self, byte: u8, within: Duration) {
        let shared = &self.0;
        let is_first = shared.overdue.send_if_modified(|overdue| {
            let is_first = overdue.is_none();
            overdue.get_or_insert(Instant::now() + within);
            is_first
        });
        if !is_first {
            return;
        }
        // Errors are ignored: the supervisor may be gone. One byte always fits.
        let _ = match self.id() {
            // Cancels a start in progress: the supervisor detects the closed socket.
            0 => rustix::net::shutdown(shared.control.as_fd(), rustix::net::Shutdown::Write)
                .map_err(io::Error::from),
            _ => send_all(&shared.control, &[byte]),
        };
    }

    pub(super) fn kill(&self) {
        self.0.overdue.send_replace(Some(Instant::now()));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

/// State shared by the task and the handle.
struct Shared {
    /// Control socket of this server.
    control: UnixStream,
    /// Keeps the supervisor alive.
    supervisor: Arc<SharedSupervisor>,
    /// The process id of the server; 0 before it runs.
    server: AtomicI32,
    /// Deadline for the supervisor to end the server, once requested.
    overdue: watch::Sender<Option<Instant>>,
    longest_end: Duration,
    /// How long a package runner may continue.
    to_finish: Duration,
    life: watch::Sender<Life>,
}

type Reply = oneshot::Sender<Result<(), TransportError>>;

impl Shared {
    /// Processes the supervisor's reports until the server is gone.
    async fn keep(self: Arc<Self>, program: PathBuf, reply: Reply) {
        let mut exit = Exit::Unknown;
        let mut reply = Some(reply);
        let mut answer = |outcome| {
            if let Some(reply) = reply.take() {
                // A dropped receiver means that the handle has been dropped.
                let _ = reply.send(outcome);
            }
        };
        let trouble = loop {
            match self.next_report().await {
                Ok(Report::Started(pid)) => {
                    self.server.store(pid, Ordering::Relaxed);
                    answer(Ok(()));
                }
                Ok(Report::NoSandbox(code)) => {
                    answer(Err(SandboxError::from_code(code).into()));
                }
                Ok(Report::NotStarted(error)) => {
                    let error = io::Error::from_raw_os_error(error);
                    answer(Err(lookup::refused(&program, &error)));
                }
                Ok(Report::Exited(status)) => {
                    exit = Exit::Status(status);
                    self.life.send_replace(Life::Ended(exit));
                }
                Ok(Report::Signalled(signal)) => {
                    exit = Exit::Signal(signal);
                    self.life.send_replace(Life::Ended(exit));
                }
                Ok(Report::Gone) => break None,
                Err(trouble) => break Some(trouble),
            }
        };
        answer(Err(self.supervisor.ended_too_early()));
        if let Some(trouble) = trouble {
            self.supervisor.make_sure(trouble).await;
        }
        self.life.send_replace(Life::Gone(exit));
    }

    /// Waits for the next report, or for a sign that the supervisor does not work.
    async fn next_report(&self) -> Result<Report, Trouble> {
        tokio::select! {
            biased;
            report = self.read_report() => report.ok_or(Trouble::Silent),
            () = self.is_overdue() => Err(Trouble::Hangs),
        }
    }

    async fn read_report(&self) -> Option<Report> {
        let mut bytes = [0; 5];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            self.control.readable().await.ok()?;
            match self.control.try_read(rest) {
                Ok(0) => return None,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        Report::decode(bytes)
    }

    async fn is_overdue(&self) {
        let mut changes = self.overdue.subscribe();
        loop {
            let overdue = *changes.borrow_and_update();
            // The sender is in `self`, so waiting for a change does not fail.
            match overdue {
                Some(moment) => tokio::select! {
                    () = sleep_until(moment) => return,
                    _ = changes.changed() => {}
                },
                None => drop(changes.changed().await),
            }
        }
    }
}
