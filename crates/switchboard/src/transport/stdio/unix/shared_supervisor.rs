//! The supervisor that all servers with the same supervisor command share: one process of its own for the whole host.
//!
//! Owns one thread for it, its keeper, which is started with the first server and lives until nobody holds the supervisor any
//! more. The keeper starts the supervisor, hands servers over to it, and reaps it: the supervisor's parent-death signal depends on
//! the thread that started it, looking up a program may block on a disk, and reaping must not depend on a runtime that
//! may be gone. A supervisor that has died or hangs is replaced for the servers that come after.

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

/// How long a supervisor may take to end once it has nothing to do any more, or to read what it is sent.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long a supervisor that is being killed may take from closing one of its sockets to closing all of them.
const CLOSING: Duration = Duration::from_secs(1);

/// How long to look for what a supervisor has left that did not end well.
const SEARCH: Duration = Duration::from_secs(2);

/// How many orders may wait for the keeper. Whoever has more waits with them.
const ORDERS: usize = 64;

/// The supervisors of this process. Each is held by its servers alone.
static GUARDS: Mutex<Vec<(SupervisorCommand, Weak<SharedSupervisor>)>> = Mutex::new(Vec::new());

/// A supervisor, which lives as long as anybody holds this.
pub(super) struct SharedSupervisor {
    command: SupervisorCommand,
    orders: mpsc::Sender<Order>,
    /// Whether it takes no more servers.
    is_over: Arc<AtomicBool>,
}

/// A server that has been handed over to the supervisor.
pub(super) struct HandedOver {
    pub(super) supervisor: Arc<SharedSupervisor>,
    /// The socket about it, which does not block.
    pub(super) control: UnixStream,
    pub(super) pipes: Pipes,
    pub(super) program: PathBuf,
}

/// What is wrong with a supervisor, as one of its servers sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has closed the socket and not said that nothing is left.
    Silent,
    /// It has had all the time it needs.
    Hangs,
}

enum Order {
    Start(Box<Launch>, oneshot::Sender<Result<Begun, Refused>>),
    MakeSure(Trouble, oneshot::Sender<()>),
}

struct Begun {
    control: UnixStream,
    pipes: Pipes,
    program: PathBuf,
}

enum Refused {
    /// This server cannot be started.
    Error(TransportError),
    /// The supervisor is no longer there; another one may take the server.
    Over(Box<Launch>),
}

impl SharedSupervisor {
    /// Hands a server over to the supervisor of that command, starting it if there is none. What is dropped with the future
    /// tells the supervisor that nobody wants the server any more.
    pub(super) async fn hand_over(
        command: &SupervisorCommand,
        launch: Launch,
    ) -> Result<HandedOver, TransportError> {
        let mut launch = Box::new(launch);
        // A supervisor may have died without anybody noticing; a second one that is gone at once will not do better.
        for _ in 0..2 {
            let supervisor = Self::of(command).map_err(|error| no_supervisor(command, &error))?;
            let (reply, outcome) = oneshot::channel();
            let sent = supervisor.orders.send(Order::Start(launch, reply)).await;
            let outcome = match sent {
                Ok(()) => outcome.await,
                Err(_) => break,
            };
            match outcome {
                Ok(Ok(begun)) => {
                    return Ok(HandedOver {
                        supervisor,
                        control: begun.control,
                        pipes: begun.pipes,
                        program: begun.program,
                    });
                }
                Ok(Err(Refused::Error(error))) => return Err(error),
                Ok(Err(Refused::Over(returned))) => launch = returned,
                Err(_) => break,
            }
        }
        Err(no_supervisor(command, &io::Error::other("it has ended")))
    }

    /// Makes sure that nothing is left of the servers of a supervisor that does not do its work.
    pub(super) async fn make_sure(&self, trouble: Trouble) {
        let (reply, done) = oneshot::channel();
        if self
            .orders
            .send(Order::MakeSure(trouble, reply))
            .await
            .is_ok()
        {
            // The keeper's patience has limits everywhere, and so has this.
            let _ = done.await;
        }
    }

    /// The error of a server whose supervisor ended before it could tell how the start went.
    pub(super) fn ended_too_early(&self) -> TransportError {
        no_supervisor(
            &self.command,
            &io::Error::other("it ended before the server was started"),
        )
    }

    /// The supervisor of that command that this process has, or a new one.
    fn of(command: &SupervisorCommand) -> io::Result<Arc<Self>> {
        let mut supervisors = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.retain(|(_, supervisor)| supervisor.strong_count() > 0);
        let existing = supervisors.iter().find_map(|(of, supervisor)| {
            let supervisor = supervisor.upgrade().filter(|_| of == command)?;
            (!supervisor.is_over.load(Ordering::Acquire)).then_some(supervisor)
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
        });
        supervisors.push((command.clone(), Arc::downgrade(&supervisor)));
        Ok(supervisor)
    }
}

/// The thread that the supervisor belongs to.
struct Keeper {
    command: SupervisorCommand,
    /// What the marks of all servers begin with.
    mark: String,
    /// How many servers there have been.
    servers: u64,
    supervisor: Supervisor,
    is_over: Arc<AtomicBool>,
}

enum Supervisor {
    NotStarted,
    /// It runs, as far as anybody knows. It is not reaped, so its id is its own.
    Runs(Pid, UnixStream),
    Over,
}

impl Keeper {
    fn keep(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.blocking_recv() {
            match order {
                Order::Start(_, reply) if reply.is_closed() => {}
                // If nobody waits by then, dropping what was begun tells the supervisor.
                Order::Start(launch, reply) => drop(reply.send(self.start(launch))),
                Order::MakeSure(trouble, reply) => {
                    self.make_sure(trouble);
                    let _ = reply.send(());
                }
            }
        }
        // The supervisor sees its socket close, and has nothing to do any more.
        self.finish(PATIENCE);
    }

    fn start(&mut self, launch: Box<Launch>) -> Result<Begun, Refused> {
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
        // The supervisor is to find the instructions there when it looks, if they fit.
        let sent = send_some(&control, &message).and_then(|rest| {
            descriptors.send(supervisor)?;
            // So the supervisor alone has the server's ends, and a supervisor that has gone is noticed.
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
        Ok(Begun {
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
            // The supervisor's own folder is the one that the host was in when the supervisor was started.
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
            // What the environment of a host does to programs it must not do to the supervisor.
            .env_clear()
            .process_group(0)
            .stdin(OwnedFd::from(supervisors_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = pid_of(child.id()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Supervisor::Runs(pid, ours))
    }

    /// Ends a supervisor that has died or hangs. One that lives is left alone if all it did was to let go of one server.
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

    /// Waits for the end of the supervisor, reaps it, and ends what it may have left.
    fn finish(&mut self, patience: Duration) {
        self.is_over.store(true, Ordering::Release);
        let Supervisor::Runs(supervisor, socket) =
            std::mem::replace(&mut self.supervisor, Supervisor::Over)
        else {
            return;
        };
        drop(socket);
        // A supervisor that ended well has ended all others first. One that was killed has not, and one that hangs will not.
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

/// How a supervisor has ended.
enum End {
    /// As it should.
    Well,
    /// Otherwise.
    Badly,
    /// It has not.
    NotYet,
    /// Somebody else reaps the children of this program, so its id may be another's by now.
    Unknown,
}

/// Waits that long for a supervisor to end. It is left to be reaped.
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

/// What the marks of a supervisor's servers begin with. No other supervisor on this machine has the same.
fn mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}-{now:x}-", std::process::id())
}

/// Whether the other end of the socket is closed, or about to be: the system closes what a killed process had open one
/// by one, and in no order to rely on. The supervisor says nothing there.
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
            "the supervisor of the server could not be started ({}): {error}",
            supervisor.program.display()
        ),
    )
}
