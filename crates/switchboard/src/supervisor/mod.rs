//! The supervisor: a small process between the host and its servers, so that nothing outlives the host.
//!
//! The supervisor is the same program as the host, started with a hidden subcommand that calls [`run`], once for all servers
//! of the host. It owns their process trees: it is their subreaper. It ends the tree of a server when the host asks for
//! it, when the socket about that server closes, or when the server's main process ends; and it ends everything when the
//! host goes away (the socket between them closes, whatever the reason) or when a signal tells it to. A host that ends in
//! order leaves its servers to it: they have the same time to end as if the host had waited. The servers' pipes
//! pass through it only in the sense that it hands them on: data goes directly between host and server. It must not
//! read or write them, and has no configuration of its own. On Linux a watchdog runs above it, for the case that it is
//! killed.
//!
//! | where | what |
//! |---|---|
//! | `watchdog` | the process above it, which ends everything if it is killed |
//! | `fork` | how the two become two |
//! | `wire` | what host and supervisor say to each other |
//! | `server` | one server, from its start to its end |
//! | `confined` | how a server gets into its sandbox |
//! | `mains` | the main processes of all servers, and the reaping |
//! | `descendants` | whose process is whose, and how they are ended |
//! | `activity` | whether a server that is being installed makes progress |
//! | `parent_death` | a child that does not outlive its parent |

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

/// How long a tree may take to end on a signal once nobody waits for it: the host has gone, or the server itself.
const SHORT_GRACE: Duration = Duration::from_millis(250);

/// How long to try to end what does not die.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The argument that makes a program a supervisor.
const ROLE: &str = "switchboard-supervisor";

/// Whether this program has said that it can be its own supervisor.
static IS_OWN: AtomicBool = AtomicBool::new(false);

/// Lets this program be its own supervisor: call it first thing in `main`, before there are threads.
///
/// The host then starts the program a second time, with one argument, to supervise its servers: they end with the
/// program, however it ends. This function does not return in that second process. Without it, servers of a killed
/// program end by their process group and the parent-death signal, which what they started in turn may outlive.
///
/// It works within a runtime too, as in an async `main`, but then a supervisor that is killed itself is not watched over.
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

/// This program as a supervisor, if it can be one.
pub(crate) fn own() -> Option<SupervisorCommand> {
    let program = IS_OWN.load(Ordering::Relaxed).then(std::env::current_exe)?;
    Some(SupervisorCommand {
        program: program.ok()?,
        args: vec![ROLE.into()],
    })
}

/// Runs the supervisor until the host is done with it and nothing of any server is left.
///
/// Standard input has to be the socket that the host gave it.
pub fn run() -> ExitCode {
    match serve() {
        Ok(code) => code,
        Err(error) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(
                io::stderr(),
                "the supervisor of servers cannot work: {error} (it is started by the host, not by hand)"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<ExitCode> {
    // Anything but a socket is not from a host.
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
    // One thread, the main one, for two reasons: the servers' parent-death signal depends on the thread that starts
    // them, and a supervisor should cost next to nothing.
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

/// What the supervisor as a whole waits for.
enum Event {
    /// The host wants a server.
    Start(Descriptors),
    /// A child has ended.
    Child,
    /// The host has gone.
    HostGone,
    /// Somebody tells the supervisor to end.
    EndAll,
}

async fn watch_over(host: UnixStream, mut signals: Signals) {
    let mains = Rc::new(Mains::default());
    let ending = watch::Sender::new(false);
    // As many as the host wants, which bounds them.
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
            // Each server sees that for itself. One that the host has left has its time, all others end now.
            Event::HostGone => {
                outlast(&mut servers, &mains, &mut signals).await;
                break;
            }
            Event::EndAll => break,
        }
    }
    // A host that is there sees that it needs another supervisor for its next server.
    // Standard input is the same socket, so it is not closed by closing it here.
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

/// Waits until every server has ended by itself or was ended, or somebody tells the supervisor to end.
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

/// Supervisors one server to its end, or until everything ends: then it returns what it has not ended.
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

/// Waits until the host wants a server, or has gone.
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

/// Whether it makes sense to go on. What did not arrive whole has been closed, which tells the host.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::InvalidData
    )
}

/// What reaches the supervisor besides the host's requests.
struct Signals {
    child: Signal,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// What the watchdog has to say; `None` if there is none, or no longer.
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

/// Waits for the watchdog: it says that the host has gone, or is gone itself.
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

/// Whether no process has that id. A host that has ended and is not reaped is told by its socket.
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
