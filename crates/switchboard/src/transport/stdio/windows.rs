//! A server's process on systems without supervisors and process groups: it is killed when the link ends.
//!
//! Owns the child through tokio. Descendants of the server are not tracked.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;

use super::{Exit, Grace, Launch, Life, lookup};
use crate::transport::{TransportError, TransportErrorKind};

/// A running process and its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: Outlet,
    pub(super) stdout: Inlet,
    pub(super) stderr: ChildStderr,
}

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
            "cannot start the server's process: it has no pipes",
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

/// The server's input.
#[derive(Debug)]
pub(super) struct Outlet(Mutex<ChildStdin>);

impl Outlet {
    /// Such a pipe has no non-blocking write, so everything goes through the task.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "other systems can"
    )]
    pub(super) fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Not available for such a pipe.
    #[expect(clippy::unused_self, reason = "other systems can")]
    pub(super) fn unread(&self) -> u64 {
        0
    }

    /// Waits until the pipe is writable, and writes.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().await.write(bytes).await
    }
}

/// The server's output.
#[derive(Debug)]
pub(super) struct Inlet(pub(super) ChildStdout);

impl Inlet {
    /// Such a pipe has no non-blocking read, so everything goes through the task.
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
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    pub(super) fn life(&self) -> Life {
        *self.life.borrow()
    }

    pub(super) async fn ended(&self) {
        self.gone().await;
    }

    pub(super) async fn gone(&self) {
        // The sender is in `self`, so this does not fail.
        let _ = self
            .life
            .subscribe()
            .wait_for(|life| matches!(life, Life::Gone(_)))
            .await;
    }

    /// Starts an orderly shutdown: its input is about to be closed; after the grace period it is killed.
    pub(super) fn end(&self) {
        // A full channel means that the order was given before.
        let _ = self.orders.try_send(Order::End);
    }

    /// Always `false`: there is no supervisor that could complete the shutdown.
    #[expect(clippy::unused_self, reason = "other systems have supervisors")]
    pub(super) fn leave(&self) -> bool {
        false
    }

    /// There is no supervisor that could wait for it, so it ends like any other.
    pub(super) fn finish(&self) {
        self.end();
    }

    pub(super) fn kill(&self) {
        let _ = self.orders.try_send(Order::Kill);
    }
}

/// Owns the child until it is gone. Dropping the process handle closes the channel of orders, which starts the
/// shutdown.
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
    // Fails if the process has exited already, which is fine here.
    let _ = child.kill().await;
    let exit = match child.wait().await {
        Ok(status) => status.code().map_or(Exit::Unknown, Exit::Status),
        Err(_) => Exit::Unknown,
    };
    life.send_replace(Life::Gone(exit));
}
