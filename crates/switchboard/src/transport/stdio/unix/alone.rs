//! A server without a supervisor, ended by process group and parent-death signal.
//!
//! Each such server has one thread that spawns, waits for and reaps its process and lives exactly as long: the
//! parent-death signal is tied to the spawning thread, reaping must not depend on a runtime that may be gone, and the
//! process id must not be freed before the last signal is sent.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{oneshot, watch};

use super::{Pipes, STACK, make_pipes, no_process, pid_of, reap};
use crate::supervisor::descendants::kill_marked;
use crate::supervisor::parent_death::{kill_with_parent, lead_session};
use crate::transport::TransportError;
use crate::transport::stdio::{Exit, Grace, Launch, Life, lookup};

/// How long to keep killing descendants that left the group.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Starts a server. Dropping the future undoes what was started.
pub(super) async fn start(launch: Launch) -> Result<(Handle, Pipes), TransportError> {
    let handle = Handle(Arc::new(Shared {
        leader: Mutex::new(None),
        leader_gone: Condvar::new(),
        server: AtomicI32::new(0),
        ending: AtomicBool::new(false),
        life: watch::Sender::new(Life::Running),
        grace: launch.grace,
    }));
    let (reply, started) = oneshot::channel();
    let shared = Arc::clone(&handle.0);
    thread::Builder::new()
        .name("stdio-keeper".to_owned())
        .stack_size(STACK)
        .spawn(move || shared.keep(&launch, reply))
        .map_err(|error| no_process(&error))?;
    let pipes = started
        .await
        .unwrap_or_else(|_| Err(no_process(&io::Error::other("its thread has ended"))))?;
    Ok((handle, pipes))
}

/// The process of a server. Dropping it ends the process.
pub(in crate::transport::stdio) struct Handle(Arc<Shared>);

impl Handle {
    /// The process id; 0 before it runs.
    pub(super) fn id(&self) -> i32 {
        self.0.server.load(Ordering::Relaxed)
    }

    pub(super) fn life(&self) -> &watch::Sender<Life> {
        &self.0.life
    }

    pub(super) fn end(&self) {
        if !self.0.ending.swap(true, Ordering::Relaxed) {
            self.0.end();
        }
    }

    pub(super) fn kill(&self) {
        self.0.signal_group(Signal::KILL);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

/// State shared by the thread and the handle.
struct Shared {
    /// The group leader, which is the server; `None` once it is reaped, since the id may then be reused.
    leader: Mutex<Option<Pid>>,
    leader_gone: Condvar,
    /// The process id of the server; 0 before it runs.
    server: AtomicI32,
    ending: AtomicBool,
    life: watch::Sender<Life>,
    grace: Grace,
}

impl Shared {
    fn keep(
        self: Arc<Self>,
        launch: &Launch,
        reply: oneshot::Sender<Result<Pipes, TransportError>>,
    ) {
        let (server, pipes) = match spawn(launch) {
            Ok(started) => started,
            Err(error) => {
                let _ = reply.send(Err(error));
                self.life.send_replace(Life::Gone(Exit::Unknown));
                return;
            }
        };
        *self.leader() = Some(server);
        self.server.store(server.as_raw_pid(), Ordering::Relaxed);
        if reply.send(Ok(pipes)).is_err() {
            // The caller gave up and requested the end, possibly before there was a process.
            self.end();
        }
        // It stays a zombie for now, so that its id, which is also the group's, stays valid.
        wait_for_end(server);
        let exit = {
            let mut leader = self.leader();
            let _ = kill_process_group(server, Signal::KILL);
            let exit = reap(server);
            *leader = None;
            exit
        };
        self.leader_gone.notify_all();
        if let Some(mark) = &launch.mark {
            self.life.send_replace(Life::Ended(exit));
            kill_marked(mark, KILL_PATIENCE);
        }
        self.life.send_replace(Life::Gone(exit));
    }

    /// Shuts down the process group, in the same steps as a supervisor.
    fn end(self: &Arc<Self>) {
        if self.leader().is_none() {
            return;
        }
        let shared = Arc::clone(self);
        let steps = move || {
            shared.wait_for_leader(shared.grace.after_close);
            shared.signal_group(Signal::TERM);
            shared.wait_for_leader(shared.grace.after_terminate);
            shared.signal_group(Signal::KILL);
        };
        let thread = thread::Builder::new()
            .name("stdio-ending".to_owned())
            .stack_size(STACK);
        if thread.spawn(steps).is_err() {
            self.signal_group(Signal::KILL);
        }
    }

    fn wait_for_leader(&self, at_most: Duration) {
        // The result does not matter: `signal_group` checks the leader again.
        let _ = self
            .leader_gone
            .wait_timeout_while(self.leader(), at_most, |leader| leader.is_some());
    }

    fn signal_group(&self, signal: Signal) {
        // The lock is held, so that the leader is not reaped and its id not reused in between.
        let leader = self.leader();
        if let Some(pid) = *leader {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn leader(&self) -> MutexGuard<'_, Option<Pid>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(launch: &Launch) -> Result<(Pid, Pipes), TransportError> {
    let program = launch.find_program()?;
    let (pipes, ends) = make_pipes().map_err(|error| no_process(&error))?;
    let mut command = Command::new(&program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(ends.stdin)
        .stdout(ends.stdout)
        .stderr(ends.stderr);
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    lead_session(&mut command);
    kill_with_parent(&mut command);
    let child = command
        .spawn()
        .map_err(|error| lookup::refused(&program, &error))?;
    match pid_of(child.id()) {
        Some(pid) => Ok((pid, pipes)),
        None => Err(no_process(&io::ErrorKind::InvalidData.into())),
    }
}

/// Waits until the process has exited, without reaping it.
fn wait_for_end(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
}
