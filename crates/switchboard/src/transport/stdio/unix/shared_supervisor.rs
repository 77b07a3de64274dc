//! The supervisor shared by all servers with the same supervisor command: one process per host.
//!
//! One thread, its keeper, starts the supervisor with the first server, passes servers to it, and reaps it after the
//! last one. It is a thread because the parent-death signal is tied to the spawning thread, resolving a program may
//! block on a disk, and reaping must not depend on a runtime that may be gone. A supervisor that has died or hangs is
//! replaced for later servers.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::sync::{mpsc, oneshot};

use super::{Pipes, STACK, make_pipes, no_process, pid_of, reap};
use crate::supervisor::descendants::{kill_marked, kill_with_all_below};
use crate::supervisor::wire::{Descriptors, Instructions, MARK, send_all, send_some};
use crate::transport::stdio::{Launch, SupervisorCommand};
use crate::transport::{TransportError, TransportErrorKind};

/// How long a supervisor may take to exit once it is unused, or to read a message.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long a killed supervisor may take between closing the first and the last of its sockets.
const CLOSING: Duration = Duration::from_secs(1);

/// How long to search for processes left by a supervisor that did not exit cleanly.
const SEARCH: Duration = Duration::from_secs(2);

/// Maximum number of queued orders; further senders wait.
const ORDERS: usize = 64;

/// The supervisors of this process. Only their servers own them.
static GUARDS: Mutex<Vec<(SupervisorCommand, Weak<SharedSupervisor>)>> = Mutex::new(Vec::new());

/// A supervisor, which lives as long as a handle to it exists.
pub(super) struct SharedSupervisor {
    command: SupervisorCommand,
    orders: mpsc::Sender<Order>,
    /// Whether it accepts no more servers.
    is_over: Arc<AtomicBool>,
    /// The process with the keeper. A forked child inherits this value, but not the thread.
    process: u32,
}

/// A server that was passed to the supervisor.
pub(super) struct HandedOver {
    pub(super) supervisor: Arc<SharedSupervisor>,
    /// Its control socket, in non-blocking mode.
    pub(super) control: UnixStream,
    pub(super) pipes: Pipes,
    pub(super) program: PathBuf,
}

/// Problem with a supervisor, as detected by one of its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It closed the control socket without reporting that the server is gone.
    Silent,
    /// It exceeded its deadline.
    Hangs,
}

enum Order {
    Start(Box<Launch>, oneshot::Sender<Result<Started, Refused>>),
    MakeSure(Trouble, oneshot::Sender<()>),
}

struct Started {
    control: UnixStream,
    pipes: Pipes,
    program: PathBuf,
}

enum Refused {
    /// This server cannot be started.
    Error(TransportError),
    /// The supervisor is gone; another one may take the server.
    Over(Box<Launch>),
}

impl SharedSupervisor {
    /// Passes a server to the supervisor of that command, starting one if there is none. Dropping the future closes the
    /// control socket, by which the supervisor cancels the server.
    pub(super) async fn hand_over(
        command: &SupervisorCommand,
        launch: Launch,
    ) -> Result<HandedOver, TransportError> {
        let mut launch = Box::new(launch);
        // The supervisor may have died unnoticed; if the second one is gone at once too, a third will not help.
        for _ in 0..2 {
            let supervisor = Self::of(command).map_err(|error| no_supervisor(command, &error))?;
            let (reply, outcome) = oneshot::channel();
            let sent = supervisor.orders.send(Order::Start(launch, reply)).await;
            let outcome = match sent {
                Ok(()) => outcome.await,
                Err(_) => break,
            };
            match outcome {
                Ok(Ok(started)) => {
                    return Ok(HandedOver {
                        supervisor,
                        control: started.control,
                        pipes: started.pipes,
                        program: started.program,
                    });
                }
                Ok(Err(Refused::Error(error))) => return Err(error),
                Ok(Err(Refused::Over(returned))) => launch = returned,
                Err(_) => break,
            }
        }
        Err(no_supervisor(command, &io::Error::other("it has ended")))
    }

    /// Kills what is left of the servers of a supervisor that does not work.
    pub(super) async fn make_sure(&self, trouble: Trouble) {
        let (reply, done) = oneshot::channel();
        if self
            .orders
            .send(Order::MakeSure(trouble, reply))
            .await
            .is_ok()
        {
            // Every wait of the keeper has a timeout, so this ends.
            let _ = done.await;
        }
    }

    /// The error for a supervisor that ended before it reported the start.
    pub(super) fn ended_too_early(&self) -> TransportError {
        no_supervisor(
            &self.command,
            &io::Error::other("it ended before the server was started"),
        )
    }

    /// The supervisor of that command in this process, or a new one.
    fn of(command: &SupervisorCommand) -> io::Result<Arc<Self>> {
        let mut supervisors = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.retain(|(_, supervisor)| supervisor.strong_count() > 0);
        let existing = supervisors.iter().find_map(|(of, supervisor)| {
            let supervisor = supervisor.upgrade().filter(|_| of == command)?;
            let is_over = supervisor.is_over.load(Ordering::Acquire);
            (!is_over && supervisor.process == std::process::id()).then_some(supervisor)
        });
        if let Some(supervisor) = existing {
            return Ok(supervisor);
        }
        let (orders, receiver) = mpsc::channel(ORDERS);
        let is_over = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            command: command.clone(),
            mark: mark(),
            servers: 0,
            supervisor: Supervisor::NotStarted,
            is_over: Arc::clone(&is_over),
        };
        thread::Builder::new()
            .name("supervisor-keeper".to_owned())
            .stack_size(STACK)
            .spawn(move || keeper.keep(receiver))?;
        let supervisor = Arc::new(Self {
            command: command.clone(),
            orders,
            is_over,
            process: std::process::id(),
        });
        supervisors.push((command.clone(), Arc::downgrade(&supervisor)));
        Ok(supervisor)
    }
}

/// The thread that owns the supervisor.
struct Keeper {
    command: SupervisorCommand,
    /// Prefix of the marks of all servers.
    mark: String,
    /// Number of servers so far.
    servers: u64,
    supervisor: Supervisor,
    is_over: Arc<AtomicBool>,
}

enum Supervisor {
    NotStarted,
    /// It runs, as far as is known. It is not reaped, so its id is valid.
    Runs(Pid, UnixStream),
    Over,
}

impl Keeper {
    fn keep(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.blocking_recv() {
            match order {
                Order::Start(_, reply) if reply.is_closed() => {}
                // If the caller is gone, dropping the reply closes the control socket, which the supervisor detects.
                Order::Start(launch, reply) => drop(reply.send(self.start(launch))),
                Order::MakeSure(trouble, reply) => {
                    self.make_sure(trouble);
                    let _ = reply.send(());
                }
            }
        }
        // The closed socket makes the supervisor exit.
        self.finish(PATIENCE);
    }

    fn start(&mut self, launch: Box<Launch>) -> Result<Started, Refused> {
        let refused = |error: io::Error| Refused::Error(no_process(&error));
        let program = launch.find_program().map_err(Refused::Error)?;
        if let Supervisor::NotStarted = &self.supervisor {
            let spawned = self.spawn();
            self.supervisor = match spawned {
                Ok(supervisor) => supervisor,
                Err(error) => {
                    self.supervisor = Supervisor::Over;
                    self.is_over.store(true, Ordering::Release);
                    return Err(Refused::Error(no_supervisor(&self.command, &error)));
                }
            };
        }
        self.servers += 1;
        let Supervisor::Runs(_, supervisor) = &self.supervisor else {
            return Err(Refused::Over(launch));
        };
        let (pipes, ends) = make_pipes().map_err(refused)?;
        let (control, supervisors_end) = UnixStream::pair().map_err(refused)?;
        let message = self.instructions(&launch, program.clone());
        let message = message.message().map_err(refused)?;
        let descriptors = Descriptors {
            control: supervisors_end.into(),
            stdin: ends.stdin.into(),
            stdout: ends.stdout.into(),
            stderr: ends.stderr.into(),
        };
        // The instructions are sent first, as far as they fit, so that the supervisor finds them at once.
        let sent = send_some(&control, &message).and_then(|rest| {
            descriptors.send(supervisor)?;
            // Leaves the supervisor as the only owner of the server's ends, so that its end is detected.
            drop(descriptors);
            if !rest.is_empty() {
                control.set_write_timeout(Some(PATIENCE))?;
                send_all(&control, rest)?;
            }
            control.set_nonblocking(true)
        });
        if let Err(error) = sent {
            let hangs = error.kind() == io::ErrorKind::WouldBlock;
            self.make_sure(if hangs {
                Trouble::Hangs
            } else {
                Trouble::Silent
            });
            return match self.supervisor {
                Supervisor::Over => Err(Refused::Over(launch)),
                _ => Err(Refused::Error(no_supervisor(&self.command, &error))),
            };
        }
        Ok(Started {
            control,
            pipes,
            program,
        })
    }

    fn instructions(&self, launch: &Launch, program: PathBuf) -> Instructions {
        let mark = format!("{}{}", self.mark, self.servers);
        let mut env = launch.env.clone();
        env.push((MARK.into(), mark.into()));
        Instructions {
            host: std::process::id(),
            program,
            args: launch.args.clone(),
            env,
            // The supervisor's own working directory is the one the host had when it was started.
            cwd: launch.cwd.clone().or_else(|| std::env::current_dir().ok()),
            sandbox: launch.sandbox.clone(),
            after_close: launch.grace.after_close,
            after_terminate: launch.grace.after_terminate,
            to_finish: launch.to_finish,
        }
    }

    fn spawn(&self) -> io::Result<Supervisor> {
        let (ours, supervisors_end) = UnixStream::pair()?;
        ours.set_write_timeout(Some(PATIENCE))?;
        ours.set_read_timeout(Some(CLOSING))?;
        let child = Command::new(&self.command.program)
            .args(&self.command.args)
            // Variables of the host must not affect the supervisor.
            .env_clear()
            .process_group(0)
            .stdin(OwnedFd::from(supervisors_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = pid_of(child.id()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Supervisor::Runs(pid, ours))
    }

    /// Ends a supervisor that has died or hangs. A live one is left alone if it only closed one control socket.
    fn make_sure(&mut self, trouble: Trouble) {
        let Supervisor::Runs(_, socket) = &self.supervisor else {
            return;
        };
        let patience = match trouble {
            Trouble::Silent if !closes(socket) => return,
            Trouble::Silent => PATIENCE,
            Trouble::Hangs => Duration::ZERO,
        };
        self.finish(patience);
    }

    /// Waits for the supervisor to exit, reaps it, and kills what it may have left.
    fn finish(&mut self, patience: Duration) {
        self.is_over.store(true, Ordering::Release);
        let Supervisor::Runs(supervisor, socket) =
            std::mem::replace(&mut self.supervisor, Supervisor::Over)
        else {
            return;
        };
        drop(socket);
        // A clean exit means that all servers were ended first. A killed or hanging supervisor has not done that.
        match end_within(supervisor, patience) {
            End::Well => drop(reap(supervisor)),
            End::Badly => {
                reap(supervisor);
                kill_marked(&self.mark, SEARCH);
            }
            End::NotYet => {
                kill_with_all_below(supervisor);
                reap(supervisor);
                kill_marked(&self.mark, SEARCH);
            }
            End::Unknown => kill_marked(&self.mark, SEARCH),
        }
    }
}

enum End {
    /// It exited cleanly.
    Well,
    /// It failed or was killed.
    Badly,
    /// It still runs.
    NotYet,
    /// Other code in this program has reaped it, so its id may have been reused.
    Unknown,
}

/// Waits that long for a supervisor to exit, without reaping it.
fn end_within(supervisor: Pid, patience: Duration) -> End {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(100);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(supervisor), options) {
            Ok(Some(status)) if status.exit_status() == Some(0) => return End::Well,
            Ok(Some(_)) => return End::Badly,
            Ok(None) if Instant::now() >= until => return End::NotYet,
            Ok(None) | Err(rustix::io::Errno::INTR) => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            Err(_) => return End::Unknown,
        }
    }
}

/// Prefix for the marks of a supervisor's servers, unique on this machine.
fn mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}-{now:x}-", std::process::id())
}

/// Whether the other end of the socket is closed, or about to be: the kernel closes the descriptors of a killed process
/// one by one, in no defined order. The supervisor sends nothing on this socket.
fn closes(mut socket: &UnixStream) -> bool {
    loop {
        match socket.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            Ok(_) => return true,
        }
    }
}

fn no_supervisor(supervisor: &SupervisorCommand, error: &io::Error) -> TransportError {
    TransportError::new(
        TransportErrorKind::Spawn,
        format!(
            "cannot start the supervisor ({}): {error}",
            supervisor.program.display()
        ),
    )
}
