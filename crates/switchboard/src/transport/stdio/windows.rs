//! A server's process where there are neither supervisors nor process groups: it is killed when the link ends.
//!
//! Owns the child through tokio. Descendants of the server are out of its reach.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;

use super::{Exit, Grace, Launch, Life, lookup};
use crate::transport::{TransportError, TransportErrorKind};

/// A process that runs, and the ends of its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: Outlet,
    pub(super) stdout: Inlet,
    pub(super) stderr: ChildStderr,
}

/// Starts a server.
pub(super) async fn start(launch: Launch) -> Result<Started, TransportError> {
    let program = launch.find_program()?;
    let mut command = Command::new(&program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    let mut child = command
        .spawn()
        .map_err(|error| lookup::refused(&program, &error))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(TransportError::new(
            TransportErrorKind::Spawn,
            "the server's process could not be started: it has no pipes",
        ));
    };
    let (orders, receiver) = mpsc::channel(2);
    let life = watch::Sender::new(Life::Running);
    let process = Process {
        id: child.id(),
        orders,
        life: life.clone(),
    };
    tokio::spawn(keep(child, receiver, life, launch.grace));
    Ok(Started {
        process,
        stdin: Outlet(Mutex::new(stdin)),
        stdout: Inlet(stdout),
        stderr,
    })
}

/// The way into the server's input.
#[derive(Debug)]
pub(super) struct Outlet(Mutex<ChildStdin>);

impl Outlet {
    /// Such a pipe cannot be asked what it takes at once, so everything goes through the task.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "other systems can"
    )]
    pub(super) fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Nobody can tell.
    #[expect(clippy::unused_self, reason = "other systems can")]
    pub(super) fn unread(&self) -> u64 {
        0
    }

    /// Waits until the pipe takes something, and writes it.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().await.write(bytes).await
    }
}

/// The way out of the server's output.
#[derive(Debug)]
pub(super) struct Inlet(pub(super) ChildStdout);

impl Inlet {
    /// Such a pipe cannot be asked what is there, so everything goes through the task.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "other systems can"
    )]
    pub(super) fn read_now(&self, _buffer: &mut Vec<u8>) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// The process of a server. Dropping it ends the process.
pub(super) struct Process {
    id: Option<u32>,
    orders: mpsc::Sender<Order>,
    life: watch::Sender<Life>,
}

enum Order {
    End,
    Kill,
}

impl Process {
    /// The process id of the server itself.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// How far it has come.
    pub(super) fn life(&self) -> Life {
        *self.life.borrow()
    }

    /// Waits until the main process has ended.
    pub(super) async fn ended(&self) {
        self.gone().await;
    }

    /// Waits until it is gone.
    pub(super) async fn gone(&self) {
        // The sender is in `self`, so this does not fail.
        let _ = self
            .life
            .subscribe()
            .wait_for(|life| matches!(life, Life::Gone(_)))
            .await;
    }

    /// Begins the orderly end: its input is about to be closed; after a while it is killed.
    pub(super) fn end(&self) {
        // If there is no room, somebody has said so before.
        let _ = self.orders.try_send(Order::End);
    }

    /// There is no supervisor that could see to it.
    #[expect(clippy::unused_self, reason = "other systems have supervisors")]
    pub(super) fn leave(&self) -> bool {
        false
    }

    /// There is no supervisor that could see to it, so it ends like any other.
    pub(super) fn finish(&self) {
        self.end();
    }

    pub(super) fn kill(&self) {
        let _ = self.orders.try_send(Order::Kill);
    }
}

/// Owns the child until it is gone. When the process handle is dropped, so is the sender of orders, and the end begins.
async fn keep(
    mut child: Child,
    mut orders: mpsc::Receiver<Order>,
    life: watch::Sender<Life>,
    grace: Grace,
) {
    let order = tokio::select! {
        _ = child.wait() => None,
        order = orders.recv() => Some(order),
    };
    if let Some(Some(Order::End) | None) = order {
        tokio::select! {
            _ = timeout(grace.after_close, child.wait()) => {}
            Some(Order::Kill) = orders.recv() => {}
        }
    }
    // What has ended cannot be killed, and that is no error here.
    let _ = child.kill().await;
    let exit = match child.wait().await {
        Ok(status) => status.code().map_or(Exit::Unknown, Exit::Status),
        Err(_) => Exit::Unknown,
    };
    life.send_replace(Life::Gone(exit));
}
