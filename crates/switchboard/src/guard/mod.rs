//! The guard: a small process between the host and its servers, so that nothing outlives the host (CON-8).
//!
//! The guard is the same program as the host, started with a hidden subcommand that calls [`run`], once for all servers
//! of the host. It owns their process trees: it is their subreaper. It ends the tree of a server when the host asks for
//! it, when the socket about that server closes, or when the server's main process ends; and it ends everything when the
//! host goes away (the socket between them closes, whatever the reason) or when a signal tells it to. A host that ends in
//! order leaves its servers to it: they have the same time to end as if the host had waited. The servers' pipes
//! pass through it only in the sense that it hands them on: data goes directly between host and server. It must not
//! read or write them, and has no configuration of its own.
//!
//! | where | what |
//! |---|---|
//! | `wire` | what host and guard say to each other |
//! | `server` | one server, from its start to its end |
//! | `confined` | how a server gets into its sandbox |
//! | `mains` | the main processes of all servers, and the reaping |
//! | `descendants` | whose process is whose, and how they are ended |
//! | `activity` | whether a server that is being installed makes progress |
//! | `parent_death` | a child that does not outlive its parent |

pub(crate) mod activity;
mod confined;
pub(crate) mod descendants;
mod mains;
pub(crate) mod parent_death;
mod server;
pub(crate) mod wire;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use descendants::Children;
use mains::Mains;
use server::Server;
use wire::Descriptors;

/// How long a tree may take to end on a signal once nobody waits for it: the host has gone, or the server itself.
const SHORT_GRACE: Duration = Duration::from_millis(250);

/// How long to try to end what does not die.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Runs the guard until the host is done with it and nothing of any server is left.
///
/// Standard input has to be the socket that the host gave it.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(
                io::stderr(),
                "the guard of servers cannot work: {error} (it is started by the host, not by hand)"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let host_id = parent();
    let host = BlockingStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Whatever else it may be is no host.
    rustix::net::sockopt::socket_type(&host)?;
    host.set_nonblocking(true)?;
    become_subreaper()?;
    // One thread, the main one, for two reasons: the servers' parent-death signal depends on the thread that starts
    // them, and a guard should cost next to nothing.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let host = UnixStream::from_std(host)?;
        let signals = Signals::new(host_id)?;
        watch_over(host, signals).await;
        Ok(())
    })
}

/// What the guard as a whole waits for.
enum Event {
    /// The host wants a server.
    Start(Descriptors),
    /// A child has ended.
    Child,
    /// The host has gone.
    HostGone,
    /// Somebody tells the guard to end.
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
    // A host that is there sees that it needs another guard for its next server.
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

/// Waits until every server has ended by itself or was ended, or somebody tells the guard to end.
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

/// Guards one server to its end, or until everything ends: then it returns what it has not ended.
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

/// The signals that mean something to a guard.
struct Signals {
    child: Signal,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    parent_death: Signal,
    host: Option<u32>,
}

impl Signals {
    /// Listens from now on, and lets the system tell when the host ends.
    fn new(host: Option<u32>) -> io::Result<Self> {
        let signals = Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            parent_death: signal(SignalKind::user_defined1())?,
            host,
        };
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::USR1))?;
        Ok(signals)
    }

    async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.child.recv() => return Event::Child,
                _ = self.terminate.recv() => return Event::EndAll,
                _ = self.interrupt.recv() => return Event::EndAll,
                _ = self.hang_up.recv() => return Event::EndAll,
                // The system sends this when the *thread* that started the guard ends, and anybody else may send it.
                _ = self.parent_death.recv() => {
                    if parent() != self.host {
                        return Event::HostGone;
                    }
                }
            }
        }
    }
}

fn host_has_gone(host: u32) -> bool {
    parent() != Some(host)
}

fn parent() -> Option<u32> {
    let parent = rustix::process::getppid().map(Pid::as_raw_pid);
    parent.and_then(|pid| u32::try_from(pid).ok())
}

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    expect(
        clippy::unnecessary_wraps,
        reason = "it can fail where there is such a thing"
    )
)]
fn become_subreaper() -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}
