//! The supervisor: a small process between the host and its servers, so that nothing outlives the host.
//!
//! The supervisor is the host's own program, started once for all servers with a hidden argument that calls [`run`]. As
//! their subreaper it owns the process trees. It ends the tree of a server when the host requests it, when that
//! server's control socket closes or when the main process exits; it ends all of them when the host goes away (their
//! socket closes) or on a signal. After an orderly exit of the host, servers still get their full grace period. Server
//! pipes are only passed on: data flows directly between host and server. On Linux a watchdog above the supervisor
//! covers the case that it is killed.
//!
//! | where | what |
//! |---|---|
//! | `watchdog` | the process above it, which kills everything if the supervisor is killed |
//! | `fork` | the fork that separates the two |
//! | `wire` | the protocol between host and supervisor |
//! | `server` | one server, from start to end |
//! | `confined` | spawning a server in its sandbox |
//! | `mains` | the main processes of all servers, and reaping |
//! | `descendants` | finding and killing the processes of a server |
//! | `activity` | whether an installation makes progress |
//! | `parent_death` | killing a child when its parent dies |

pub(crate) mod activity;
mod confined;
pub(crate) mod descendants;
#[cfg(target_os = "linux")]
mod fork;
mod mains;
pub(crate) mod parent_death;
mod server;
#[cfg(target_os = "linux")]
mod watchdog;
pub(crate) mod wire;

use std::future::pending;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use descendants::Children;
use mains::Mains;
use server::Server;
use wire::Descriptors;

use crate::transport::stdio::SupervisorCommand;

/// Grace period after SIGTERM once the host has gone or the server's main process has exited.
const SHORT_GRACE: Duration = Duration::from_millis(250);

/// How long to keep killing processes that do not die.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The argument that turns the program into a supervisor.
const ROLE: &str = "switchboard-supervisor";

/// The argument that turns the program `switchboard` into a supervisor.
pub const ARGUMENT: &str = "__supervisor";

/// Whether this program can be its own supervisor, that is, has called [`supervise`].
static IS_OWN: AtomicBool = AtomicBool::new(false);

/// Lets this program be its own supervisor. Call it first in `main`, before any thread is started.
///
/// The host then starts the program a second time, with one argument, to supervise its servers, so that they end with
/// the program however it ends. In that second process this function does not return. Without it, the servers of a
/// killed program end by process group and parent-death signal only, which their own child processes may survive.
///
/// It also works within a runtime, as in an async `main`, but then no watchdog covers the supervisor itself.
///
/// ```no_run
/// switchboard::supervise();
/// // … the rest of `main`
/// ```
pub fn supervise() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == ROLE) && arguments.next().is_none() {
        let code = if tokio::runtime::Handle::try_current().is_ok() {
            // A runtime cannot be started within another one.
            let supervisor = std::thread::spawn(run).join();
            supervisor.unwrap_or(ExitCode::FAILURE)
        } else {
            run()
        };
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
    IS_OWN.store(true, Ordering::Relaxed);
}

/// The command that starts this program as a supervisor, if it can be one.
pub(crate) fn own() -> Option<SupervisorCommand> {
    let program = IS_OWN.load(Ordering::Relaxed).then(std::env::current_exe)?;
    Some(SupervisorCommand {
        program: program.ok()?,
        args: vec![ROLE.into()],
    })
}

/// Runs the supervisor until the host is done with it and no process of any server is left.
///
/// Standard input must be the socket passed by the host.
pub fn run() -> ExitCode {
    match serve() {
        Ok(code) => code,
        Err(error) => {
            // A closed standard error is ignored.
            let _ = writeln!(
                io::stderr(),
                "the supervisor cannot run: {error} (it is started by the host, not by hand)"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<ExitCode> {
    // Without a socket, the process was not started by a host.
    rustix::net::sockopt::socket_type(io::stdin())?;
    #[cfg(target_os = "linux")]
    let watchdog = match watchdog::split()? {
        watchdog::Role::Supervisor(watchdog) => watchdog,
        watchdog::Role::Done(code) => return Ok(code),
    };
    #[cfg(not(target_os = "linux"))]
    let watchdog = None;
    let host = BlockingStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    host.set_nonblocking(true)?;
    // Runs on the main thread alone: the servers' parent-death signal is tied to the thread that spawns them, and a
    // single thread keeps the supervisor cheap.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let host = UnixStream::from_std(host)?;
        let signals = Signals::new(watchdog)?;
        watch_over(host, signals).await;
        Ok(ExitCode::SUCCESS)
    })
}

enum Event {
    /// The host requests a new server.
    Start(Descriptors),
    /// A child has exited.
    Child,
    HostGone,
    /// The supervisor is asked to exit, by a signal or because the watchdog is gone.
    EndAll,
}

async fn watch_over(host: UnixStream, mut signals: Signals) {
    let mains = Rc::new(Mains::default());
    let ending = watch::Sender::new(false);
    // Unbounded here: the host limits the number of servers.
    let mut servers = JoinSet::new();
    loop {
        let event = tokio::select! {
            event = next_server(&host) => event,
            event = signals.next() => event,
            Some(_) = servers.join_next() => continue,
        };
        match event {
            Event::Start(descriptors) => {
                let (mains, ending) = (Rc::clone(&mains), ending.subscribe());
                servers.spawn_local(serve_one(descriptors, mains, ending));
            }
            Event::Child => drop(mains.reap()),
            // Each server's task notices this itself. Servers the host has left get their grace period; all others end
            // now.
            Event::HostGone => {
                outlast(&mut servers, &mains, &mut signals).await;
                break;
            }
            Event::EndAll => break,
        }
    }
    // Makes a live host start another supervisor for its next server. Dropping the socket is not enough, because
    // standard input is the same socket.
    let _ = rustix::net::shutdown(&host, rustix::net::Shutdown::Both);
    ending.send_replace(true);
    descendants::terminate_all(mains.pids());
    let mut left = Vec::new();
    while let Some(server) = servers.join_next().await {
        left.extend(server.ok().flatten());
    }
    let until = Instant::now() + SHORT_GRACE;
    while mains.reap() != Children::None {
        tokio::select! {
            _ = signals.child.recv() => {}
            () = tokio::time::sleep_until(until) => break,
        }
    }
    descendants::kill_all(KILL_PATIENCE, || mains.reap());
    for mut server in left {
        server.farewell().await;
    }
}

/// Waits until every server has ended, or the supervisor is asked to exit.
async fn outlast(servers: &mut JoinSet<Option<Server>>, mains: &Mains, signals: &mut Signals) {
    loop {
        tokio::select! {
            server = servers.join_next() => if server.is_none() {
                return;
            },
            event = signals.next() => match event {
                Event::Child => drop(mains.reap()),
                Event::EndAll => return,
                Event::HostGone | Event::Start(_) => {}
            },
        }
    }
}

/// Supervises one server to its end. If the supervisor exits first, returns the server still running.
async fn serve_one(
    descriptors: Descriptors,
    mains: Rc<Mains>,
    mut ending: watch::Receiver<bool>,
) -> Option<Server> {
    let mut everything_ends = std::pin::pin!(ending.wait_for(|ending| *ending));
    let mut server = tokio::select! {
        biased;
        _ = &mut everything_ends => return None,
        server = Server::start(descriptors, mains) => server?,
    };
    tokio::select! {
        _ = &mut everything_ends => Some(server),
        () = server.watch() => None,
    }
}

/// Waits until the host requests a server or goes away.
async fn next_server(host: &UnixStream) -> Event {
    loop {
        if host.readable().await.is_err() {
            return Event::HostGone;
        }
        match host.try_io(Interest::READABLE, || Descriptors::receive(host)) {
            Ok(Some(descriptors)) => return Event::Start(descriptors),
            Err(error) if is_passing(&error) => {}
            Ok(None) | Err(_) => return Event::HostGone,
        }
    }
}

/// Whether the loop may continue. Descriptors of an incomplete message have been closed, which the host detects.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::InvalidData
    )
}

/// Events other than the host's requests.
struct Signals {
    child: Signal,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Pipe from the watchdog; `None` if there is no watchdog, or it is gone.
    watchdog: Option<pipe::Receiver>,
}

impl Signals {
    fn new(watchdog: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            watchdog: watchdog.map(pipe::Receiver::from_owned_fd).transpose()?,
        })
    }

    async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.child.recv() => Event::Child,
            _ = self.terminate.recv() => Event::EndAll,
            _ = self.interrupt.recv() => Event::EndAll,
            _ = self.hang_up.recv() => Event::EndAll,
            event = said_by(&mut self.watchdog) => event,
        }
    }
}

/// Waits until the watchdog reports that the host has gone, or is gone itself.
async fn said_by(watchdog: &mut Option<pipe::Receiver>) -> Event {
    let Some(pipe) = watchdog else {
        return pending().await;
    };
    if pipe.read_u8().await.is_ok() {
        return Event::HostGone;
    }
    *watchdog = None;
    Event::EndAll
}

/// Whether no process has that id. A host that is a zombie is detected by its closed socket instead.
fn host_has_gone(host: u32) -> bool {
    let host = i32::try_from(host).ok().and_then(Pid::from_raw);
    host.is_none_or(|host| rustix::process::test_kill_process(host) == Err(rustix::io::Errno::SRCH))
}

#[cfg(target_os = "linux")]
fn parent() -> Option<u32> {
    let parent = rustix::process::getppid().map(Pid::as_raw_pid);
    parent.and_then(|pid| u32::try_from(pid).ok())
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}
