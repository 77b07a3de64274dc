//! The guard that all servers with the same guard command share: one process of its own for the whole host.
//!
//! Owns one thread for it, its keeper, which is started with the first server and lives until nobody holds the guard any
//! more. The keeper starts the guard, hands servers over to it, and reaps it: the guard's parent-death signal depends on
//! the thread that started it, looking up a program may block on a disk, and reaping must not depend on a runtime that
//! may be gone. A guard that has died or hangs is replaced for the servers that come after.

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
use crate::guard::descendants::{kill_marked, kill_with_all_below};
use crate::guard::wire::{Descriptors, Instructions, MARK, send_all, send_some};
use crate::transport::stdio::{GuardCommand, Recipe};
use crate::transport::{TransportError, TransportErrorKind};

/// How long a guard may take to end once it has nothing to do any more, or to read what it is sent.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long a guard that is being killed may take from closing one of its sockets to closing all of them.
const CLOSING: Duration = Duration::from_secs(1);

/// How long to look for what a guard has left that did not end well.
const SEARCH: Duration = Duration::from_secs(2);

/// How many orders may wait for the keeper. Whoever has more waits with them.
const ORDERS: usize = 64;

/// The guards of this process. Each is held by its servers alone.
static GUARDS: Mutex<Vec<(GuardCommand, Weak<SharedGuard>)>> = Mutex::new(Vec::new());

/// A guard, which lives as long as anybody holds this.
pub(super) struct SharedGuard {
    command: GuardCommand,
    orders: mpsc::Sender<Order>,
    /// Whether it takes no more servers.
    is_over: Arc<AtomicBool>,
}

/// A server that has been handed over to the guard.
pub(super) struct HandedOver {
    pub(super) guard: Arc<SharedGuard>,
    /// The socket about it, which does not block.
    pub(super) control: UnixStream,
    pub(super) pipes: Pipes,
    pub(super) program: PathBuf,
}

/// What is wrong with a guard, as one of its servers sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has closed the socket and not said that nothing is left.
    Silent,
    /// It has had all the time it needs.
    Hangs,
}

enum Order {
    Start(Box<Recipe>, oneshot::Sender<Result<Begun, Refused>>),
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
    /// The guard is no longer there; another one may take the server.
    Over(Box<Recipe>),
}

impl SharedGuard {
    /// Hands a server over to the guard of that command, starting it if there is none. What is dropped with the future
    /// tells the guard that nobody wants the server any more.
    pub(super) async fn hand_over(
        command: &GuardCommand,
        recipe: Recipe,
    ) -> Result<HandedOver, TransportError> {
        let mut recipe = Box::new(recipe);
        // A guard may have died without anybody noticing; a second one that is gone at once will not do better.
        for _ in 0..2 {
            let guard = Self::of(command).map_err(|error| no_guard(command, &error))?;
            let (reply, outcome) = oneshot::channel();
            let sent = guard.orders.send(Order::Start(recipe, reply)).await;
            let outcome = match sent {
                Ok(()) => outcome.await,
                Err(_) => break,
            };
            match outcome {
                Ok(Ok(begun)) => {
                    return Ok(HandedOver {
                        guard,
                        control: begun.control,
                        pipes: begun.pipes,
                        program: begun.program,
                    });
                }
                Ok(Err(Refused::Error(error))) => return Err(error),
                Ok(Err(Refused::Over(returned))) => recipe = returned,
                Err(_) => break,
            }
        }
        Err(no_guard(command, &io::Error::other("it has ended")))
    }

    /// Makes sure that nothing is left of the servers of a guard that does not do its work.
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

    /// The error of a server whose guard ended before it could tell how the start went.
    pub(super) fn ended_too_early(&self) -> TransportError {
        no_guard(
            &self.command,
            &io::Error::other("it ended before the server was started"),
        )
    }

    /// The guard of that command that this process has, or a new one.
    fn of(command: &GuardCommand) -> io::Result<Arc<Self>> {
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        guards.retain(|(_, guard)| guard.strong_count() > 0);
        let existing = guards.iter().find_map(|(of, guard)| {
            let guard = guard.upgrade().filter(|_| of == command)?;
            (!guard.is_over.load(Ordering::Acquire)).then_some(guard)
        });
        if let Some(guard) = existing {
            return Ok(guard);
        }
        let (orders, receiver) = mpsc::channel(ORDERS);
        let is_over = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            command: command.clone(),
            mark: mark(),
            servers: 0,
            guard: Guard::NotStarted,
            is_over: Arc::clone(&is_over),
        };
        thread::Builder::new()
            .name("guard-keeper".to_owned())
            .stack_size(STACK)
            .spawn(move || keeper.keep(receiver))?;
        let guard = Arc::new(Self {
            command: command.clone(),
            orders,
            is_over,
        });
        guards.push((command.clone(), Arc::downgrade(&guard)));
        Ok(guard)
    }
}

/// The thread that the guard belongs to.
struct Keeper {
    command: GuardCommand,
    /// What the marks of all servers begin with.
    mark: String,
    /// How many servers there have been.
    servers: u64,
    guard: Guard,
    is_over: Arc<AtomicBool>,
}

enum Guard {
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
                // If nobody waits by then, dropping what was begun tells the guard.
                Order::Start(recipe, reply) => drop(reply.send(self.start(recipe))),
                Order::MakeSure(trouble, reply) => {
                    self.make_sure(trouble);
                    let _ = reply.send(());
                }
            }
        }
        // The guard sees its socket close, and has nothing to do any more.
        self.finish(PATIENCE);
    }

    fn start(&mut self, recipe: Box<Recipe>) -> Result<Begun, Refused> {
        let refused = |error: io::Error| Refused::Error(no_process(&error));
        let program = recipe.find_program().map_err(Refused::Error)?;
        if let Guard::NotStarted = &self.guard {
            let spawned = self.spawn();
            self.guard = match spawned {
                Ok(guard) => guard,
                Err(error) => {
                    self.guard = Guard::Over;
                    self.is_over.store(true, Ordering::Release);
                    return Err(Refused::Error(no_guard(&self.command, &error)));
                }
            };
        }
        self.servers += 1;
        let Guard::Runs(_, guard) = &self.guard else {
            return Err(Refused::Over(recipe));
        };
        let (pipes, ends) = make_pipes().map_err(refused)?;
        let (control, guards_end) = UnixStream::pair().map_err(refused)?;
        let message = self.instructions(&recipe, program.clone());
        let message = message.message().map_err(refused)?;
        let descriptors = Descriptors {
            control: guards_end.into(),
            stdin: ends.stdin.into(),
            stdout: ends.stdout.into(),
            stderr: ends.stderr.into(),
        };
        // The guard is to find the instructions there when it looks, if they fit.
        let sent = send_some(&control, &message).and_then(|rest| {
            descriptors.send(guard)?;
            // So the guard alone has the server's ends, and a guard that has gone is noticed.
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
            return match self.guard {
                Guard::Over => Err(Refused::Over(recipe)),
                _ => Err(Refused::Error(no_guard(&self.command, &error))),
            };
        }
        Ok(Begun {
            control,
            pipes,
            program,
        })
    }

    fn instructions(&self, recipe: &Recipe, program: PathBuf) -> Instructions {
        let mark = format!("{}{}", self.mark, self.servers);
        let mut env = recipe.env.clone();
        env.push((MARK.into(), mark.into()));
        Instructions {
            host: std::process::id(),
            program,
            args: recipe.args.clone(),
            env,
            // The guard's own folder is the one that the host was in when the guard was started.
            cwd: recipe.cwd.clone().or_else(|| std::env::current_dir().ok()),
            sandbox: recipe.sandbox.clone(),
            after_close: recipe.grace.after_close,
            after_terminate: recipe.grace.after_terminate,
            to_finish: recipe.to_finish,
        }
    }

    fn spawn(&self) -> io::Result<Guard> {
        let (ours, guards_end) = UnixStream::pair()?;
        ours.set_write_timeout(Some(PATIENCE))?;
        ours.set_read_timeout(Some(CLOSING))?;
        let child = Command::new(&self.command.program)
            .args(&self.command.args)
            // What the environment of a host does to programs it must not do to the guard.
            .env_clear()
            .process_group(0)
            .stdin(OwnedFd::from(guards_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = pid_of(child.id()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Guard::Runs(pid, ours))
    }

    /// Ends a guard that has died or hangs. One that lives is left alone if all it did was to let go of one server.
    fn make_sure(&mut self, trouble: Trouble) {
        let Guard::Runs(_, socket) = &self.guard else {
            return;
        };
        let patience = match trouble {
            Trouble::Silent if !closes(socket) => return,
            Trouble::Silent => PATIENCE,
            Trouble::Hangs => Duration::ZERO,
        };
        self.finish(patience);
    }

    /// Waits for the end of the guard, reaps it, and ends what it may have left.
    fn finish(&mut self, patience: Duration) {
        self.is_over.store(true, Ordering::Release);
        let Guard::Runs(guard, socket) = std::mem::replace(&mut self.guard, Guard::Over) else {
            return;
        };
        drop(socket);
        // A guard that ended well has ended all others first. One that was killed has not, and one that hangs will not.
        match end_within(guard, patience) {
            End::Well => drop(reap(guard)),
            End::Badly => {
                reap(guard);
                kill_marked(&self.mark, SEARCH);
            }
            End::NotYet => {
                kill_with_all_below(guard);
                reap(guard);
                kill_marked(&self.mark, SEARCH);
            }
            End::Unknown => kill_marked(&self.mark, SEARCH),
        }
    }
}

/// How a guard has ended.
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

/// Waits that long for a guard to end. It is left to be reaped.
fn end_within(guard: Pid, patience: Duration) -> End {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(100);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(guard), options) {
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

/// What the marks of a guard's servers begin with. No other guard on this machine has the same.
fn mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}-{now:x}-", std::process::id())
}

/// Whether the other end of the socket is closed, or about to be: the system closes what a killed process had open one
/// by one, and in no order to rely on. The guard says nothing there.
fn closes(mut socket: &UnixStream) -> bool {
    loop {
        match socket.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            Ok(_) => return true,
        }
    }
}

fn no_guard(guard: &GuardCommand, error: &io::Error) -> TransportError {
    TransportError::new(
        TransportErrorKind::Spawn,
        format!(
            "the guard of the server could not be started ({}): {error}",
            guard.program.display()
        ),
    )
}
