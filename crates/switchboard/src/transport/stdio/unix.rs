//! A server's process on Unix: started, watched and ended, under a guard or alone.
//!
//! Every server has one thread here, its keeper. It starts the process, waits for it and reaps it, and lives exactly as
//! long: parent-death signals depend on the thread that started a process, reaping must not depend on a runtime that
//! may be gone, and nobody else may learn that a process id is free before the last signal to it is sent. Everything
//! else asks through [`Process`].

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use super::{Exit, Grace, GuardCommand, Life, Recipe, lookup};
use crate::guard::parent_death::kill_with_parent;
use crate::guard::wire::{CLOSE, Instructions, Report, send_all};
use crate::sandbox::SandboxError;
use crate::transport::{TransportError, TransportErrorKind};

/// How long a guard may take to end once it has nothing to say any more: as long as it tries to kill, and some.
const GUARD_PATIENCE: Duration = Duration::from_secs(8);

/// What a keeper thread needs of a stack is little.
const STACK: usize = 128 * 1024;

/// A process that runs, and the ends of its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: Outlet,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// Starts a server. Dropping the future ends whatever was begun.
pub(super) async fn start(recipe: Recipe) -> Result<Started, TransportError> {
    let (control, guards_end) = match &recipe.guard {
        Some(_) => {
            let (ours, theirs) = UnixStream::pair().map_err(|error| no_process(&error))?;
            (Some(ours), Some(theirs))
        }
        None => (None, None),
    };
    let process = Process(Arc::new(Kept {
        control,
        leader: Mutex::new(None),
        leader_gone: Condvar::new(),
        server: AtomicI32::new(0),
        ending: AtomicBool::new(false),
        life: watch::Sender::new(Life::Running),
        grace: recipe.grace,
    }));
    let (reply, started) = oneshot::channel();
    let kept = Arc::clone(&process.0);
    thread::Builder::new()
        .name("stdio-keeper".to_owned())
        .stack_size(STACK)
        .spawn(move || match guards_end {
            Some(guards_end) => kept.keep_guarded(&recipe, guards_end, reply),
            None => kept.keep_alone(&recipe, reply),
        })
        .map_err(|error| no_process(&error))?;
    let pipes = started
        .await
        .unwrap_or_else(|_| Err(no_process(&io::Error::other("its keeper has ended"))))?;
    let broken = |error: io::Error| no_process(&error);
    Ok(Started {
        process,
        stdin: Outlet(pipe::Sender::from_owned_fd(pipes.stdin.into()).map_err(broken)?),
        stdout: pipe::Receiver::from_owned_fd(pipes.stdout.into()).map_err(broken)?,
        stderr: pipe::Receiver::from_owned_fd(pipes.stderr.into()).map_err(broken)?,
    })
}

/// The way into the server's input.
#[derive(Debug)]
pub(super) struct Outlet(pipe::Sender);

impl Outlet {
    /// Writes what the pipe takes at once.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    /// Waits until the pipe takes something, and writes it.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// The process of a server. Dropping it ends the process as [`end`](Process::end) does.
pub(super) struct Process(Arc<Kept>);

impl Process {
    /// The process id of the server itself.
    pub(super) fn id(&self) -> Option<u32> {
        u32::try_from(self.0.server.load(Ordering::Relaxed))
            .ok()
            .filter(|id| *id != 0)
    }

    /// How far it has come.
    pub(super) fn life(&self) -> Life {
        *self.0.life.borrow()
    }

    /// Waits until the main process has ended.
    pub(super) async fn ended(&self) {
        self.reached(|life| *life != Life::Running).await;
    }

    /// Waits until nothing of it is left.
    pub(super) async fn gone(&self) {
        self.reached(|life| matches!(life, Life::Gone(_))).await;
    }

    async fn reached(&self, condition: impl FnMut(&Life) -> bool) {
        // The sender is in `self`, so this does not fail.
        let _ = self.0.life.subscribe().wait_for(condition).await;
    }

    /// Begins the orderly end: its input is about to be closed; after a while it is told to end, then killed.
    pub(super) fn end(&self) {
        self.0.end();
    }

    /// Kills it, and all that are still in its process group.
    pub(super) fn kill(&self) {
        self.0.signal_group(Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What the keeper shares with everybody else.
struct Kept {
    /// The socket to the guard, if there is one.
    control: Option<UnixStream>,
    /// The leader of the process group, guard or server, as long as it is not reaped: so long its id is its own.
    leader: Mutex<Option<Pid>>,
    leader_gone: Condvar,
    /// The process id of the server itself, 0 before it runs.
    server: AtomicI32,
    ending: AtomicBool,
    life: watch::Sender<Life>,
    grace: Grace,
}

struct Pipes {
    stdin: PipeWriter,
    stdout: PipeReader,
    stderr: PipeReader,
}

type Reply = oneshot::Sender<Result<Pipes, TransportError>>;

impl Kept {
    /// Keeps a server that runs under a guard.
    fn keep_guarded(self: Arc<Self>, recipe: &Recipe, guards_end: UnixStream, reply: Reply) {
        let exit = match self.start_guarded(recipe, guards_end) {
            Ok(pipes) => {
                self.answer(reply, pipes);
                let exit = match self.next_report() {
                    Some(Report::Exited(status)) => Exit::Status(status),
                    Some(Report::Signalled(signal)) => Exit::Signal(signal),
                    _ => Exit::Unknown,
                };
                if exit != Exit::Unknown {
                    self.life.send_replace(Life::Ended(exit));
                }
                // The guard has one thing to say after that: its own end.
                while self.next_report().is_some() {}
                exit
            }
            Err(error) => {
                // If nobody waits for the answer any more, the error is nobody's.
                let _ = reply.send(Err(error));
                Exit::Unknown
            }
        };
        self.reap_guard();
        self.life.send_replace(Life::Gone(exit));
    }

    fn start_guarded(
        &self,
        recipe: &Recipe,
        guards_end: UnixStream,
    ) -> Result<Pipes, TransportError> {
        let (Some(control), Some(guard)) = (&self.control, &recipe.guard) else {
            return Err(no_process(&io::ErrorKind::NotFound.into()));
        };
        let program = recipe.find_program()?;
        let instructions = Instructions {
            host: std::process::id(),
            program: program.clone(),
            args: recipe.args.clone(),
            env: recipe.env.clone(),
            cwd: recipe.cwd.clone(),
            sandbox: recipe.sandbox.clone(),
            after_close: recipe.grace.after_close,
            after_terminate: recipe.grace.after_terminate,
        };
        let (pipes, ends) = make_pipes().map_err(|error| no_process(&error))?;
        let stdin = self
            .spawn_guard(guard, guards_end, ends)
            .map_err(|error| no_guard(guard, &error))?;
        // A guard that does not listen says nothing either, which the next lines notice.
        let _ = instructions.send(control, stdin.as_fd());
        drop(stdin);
        match self.next_report() {
            Some(Report::Started(pid)) => {
                self.server.store(pid, Ordering::Relaxed);
                Ok(pipes)
            }
            Some(Report::NoSandbox(code)) => Err(SandboxError::from_code(code).into()),
            Some(Report::NotStarted(error)) => Err(lookup::refused(
                &program,
                &io::Error::from_raw_os_error(error),
            )),
            _ => Err(no_guard(
                guard,
                &io::Error::other("it ended before the server was started"),
            )),
        }
    }

    /// Starts the guard and returns the end of the server's input, which the guard gets by message: so there are no
    /// descriptors to open up for it, and the system can start it without copying this process first.
    fn spawn_guard(
        &self,
        guard: &GuardCommand,
        guards_end: UnixStream,
        ends: ServerEnds,
    ) -> io::Result<PipeReader> {
        let child = Command::new(&guard.program)
            .args(&guard.args)
            // What the server's environment does to programs it must not do to the guard.
            .env_clear()
            .process_group(0)
            .stdin(OwnedFd::from(guards_end))
            .stdout(ends.stdout)
            .stderr(ends.stderr)
            .spawn()?;
        *self.leader() = pid_of(child.id());
        Ok(ends.stdin)
    }

    fn next_report(&self) -> Option<Report> {
        self.control.as_ref().and_then(Report::receive)
    }

    /// Waits for the end of a guard that has nothing more to say.
    fn reap_guard(&self) {
        let Some(guard) = *self.leader() else {
            return;
        };
        // A guard that ended well has ended all others first. One that was killed has not, and one that hangs will not.
        let ended_well = ended_within(guard, GUARD_PATIENCE);
        let mut leader = self.leader();
        if !ended_well {
            let _ = kill_process_group(guard, Signal::KILL);
        }
        reap(guard);
        *leader = None;
    }

    /// Keeps a server that runs with no guard.
    fn keep_alone(self: Arc<Self>, recipe: &Recipe, reply: Reply) {
        let (server, pipes) = match start_alone(recipe) {
            Ok(started) => started,
            Err(error) => {
                let _ = reply.send(Err(error));
                self.life.send_replace(Life::Gone(Exit::Unknown));
                return;
            }
        };
        *self.leader() = Some(server);
        self.server.store(server.as_raw_pid(), Ordering::Relaxed);
        self.answer(reply, pipes);
        // It stays a zombie for now, so that its id, which is the group's, stays its own.
        wait_for_end(server);
        let exit = {
            let mut leader = self.leader();
            let _ = kill_process_group(server, Signal::KILL);
            let exit = reap(server);
            *leader = None;
            exit
        };
        self.leader_gone.notify_all();
        self.life.send_replace(Life::Gone(exit));
    }

    /// Hands the pipes over; if nobody wants them any more, the server ends.
    fn answer(self: &Arc<Self>, reply: Reply, pipes: Pipes) {
        if reply.send(Ok(pipes)).is_err() {
            // Whoever gave up has asked for the end, possibly before there was anything to end.
            match &self.control {
                Some(_) => self.end(),
                None => self.end_alone(),
            }
        }
    }

    fn end(self: &Arc<Self>) {
        if self.ending.swap(true, Ordering::Relaxed) {
            return;
        }
        match &self.control {
            Some(control) if self.server.load(Ordering::Relaxed) == 0 => {
                // Nobody wants what is being started: the guard, or whatever was taken for one, sees us go.
                let _ = control.shutdown(std::net::Shutdown::Both);
            }
            Some(control) => {
                // A guard that is no longer there needs no telling.
                let _ = send_all(control, &[CLOSE]);
            }
            None => self.end_alone(),
        }
    }

    /// Does what a guard would do, for the process group.
    fn end_alone(self: &Arc<Self>) {
        if self.leader().is_none() {
            return;
        }
        let kept = Arc::clone(self);
        let steps = move || {
            kept.wait_for_leader(kept.grace.after_close);
            kept.signal_group(Signal::TERM);
            kept.wait_for_leader(kept.grace.after_terminate);
            kept.signal_group(Signal::KILL);
        };
        let thread = thread::Builder::new()
            .name("stdio-ending".to_owned())
            .stack_size(STACK);
        if thread.spawn(steps).is_err() {
            self.signal_group(Signal::KILL);
        }
    }

    fn wait_for_leader(&self, at_most: Duration) {
        // Who is there is looked at again by whoever signals, so the outcome does not matter.
        let _ = self
            .leader_gone
            .wait_timeout_while(self.leader(), at_most, |leader| leader.is_some());
    }

    fn signal_group(&self, signal: Signal) {
        // The lock is held, so that the leader is not reaped and its id not given away in between.
        let leader = self.leader();
        if let Some(pid) = *leader {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn leader(&self) -> MutexGuard<'_, Option<Pid>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ends of the pipes that the server gets.
struct ServerEnds {
    stdin: PipeReader,
    stdout: PipeWriter,
    stderr: PipeWriter,
}

fn make_pipes() -> io::Result<(Pipes, ServerEnds)> {
    let (server_stdin, stdin) = io::pipe()?;
    let (stdout, server_stdout) = io::pipe()?;
    let (stderr, server_stderr) = io::pipe()?;
    Ok((
        Pipes {
            stdin,
            stdout,
            stderr,
        },
        ServerEnds {
            stdin: server_stdin,
            stdout: server_stdout,
            stderr: server_stderr,
        },
    ))
}

fn start_alone(recipe: &Recipe) -> Result<(Pid, Pipes), TransportError> {
    let program = recipe.find_program()?;
    let (pipes, ends) = make_pipes().map_err(|error| no_process(&error))?;
    let mut command = Command::new(&program);
    command
        .args(&recipe.args)
        .env_clear()
        .envs(recipe.env.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(ends.stdin)
        .stdout(ends.stdout)
        .stderr(ends.stderr);
    if let Some(cwd) = &recipe.cwd {
        command.current_dir(cwd);
    }
    kill_with_parent(&mut command);
    let child = command
        .spawn()
        .map_err(|error| lookup::refused(&program, &error))?;
    match pid_of(child.id()) {
        Some(pid) => Ok((pid, pipes)),
        None => Err(no_process(&io::ErrorKind::InvalidData.into())),
    }
}

/// Waits until the process has ended, and leaves it to be reaped.
fn wait_for_end(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
}

/// Waits that long for the process to end, and says whether it did so well. It is left to be reaped.
fn ended_within(pid: Pid, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(100);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) => return status.exit_status() == Some(0),
            Ok(None) | Err(rustix::io::Errno::INTR) if Instant::now() < until => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            _ => return false,
        }
    }
}

fn reap(pid: Pid) -> Exit {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some((_, status))) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(status), _) => Exit::Status(status),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                };
            }
            // Somebody else reaps the children of this program.
            _ => return Exit::Unknown,
        }
    }
}

fn pid_of(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

fn no_process(error: &io::Error) -> TransportError {
    TransportError::new(
        TransportErrorKind::Spawn,
        format!("the server's process could not be started: {error}"),
    )
}

fn no_guard(guard: &GuardCommand, error: &io::Error) -> TransportError {
    let program: &Path = &guard.program;
    TransportError::new(
        TransportErrorKind::Spawn,
        format!(
            "the guard of the server could not be started ({}): {error}",
            program.display()
        ),
    )
}
