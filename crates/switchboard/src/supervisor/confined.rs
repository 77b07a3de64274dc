//! Spawns a server inside its sandbox, from a thread that is already confined.
//!
//! A sandbox applies to a thread and everything the thread spawns. The supervisor therefore dedicates a thread to each
//! sandboxed server and stays unconfined itself. The thread blocks until the server is gone, because the server's
//! parent-death signal is tied to the thread that spawned it.

use std::io;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::SyncSender;

#[cfg(target_os = "linux")]
use switchboard_config::entry::SandboxMode;
use tempfile::TempDir;

use crate::sandbox::{Policy, SandboxError};

/// Resources of a server's sandbox, held until every process of the server is gone.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "sandboxes are Linux only")
)]
pub(super) struct Confined {
    /// The server's private folder for temporary files, if it has one.
    _temporary: Option<TempDir>,
    /// Dropping this ends the thread.
    _thread: SyncSender<()>,
}

pub(super) type Started = (io::Result<Child>, Option<Confined>);

/// Spawns the server under the policy; if the policy cannot be enforced, fails without spawning.
#[cfg(target_os = "linux")]
pub(super) fn start(policy: &Policy, mut command: Command) -> Result<Started, SandboxError> {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    let mut temporary = None;
    if policy.files != SandboxMode::OwnFiles || policy.splits(&usual_folder(&command)) {
        let made = tempfile::Builder::new().prefix("switchboard-").tempdir();
        let made = made.map_err(|_| SandboxError::NoTemporaryFolder)?;
        for variable in TEMPORARY {
            command.env(variable, made.path());
        }
        temporary = Some(made);
    }
    let folder = temporary.as_ref().map(|made| made.path().to_owned());
    let policy = policy.clone();
    let (reply, outcome) = sync_channel(1);
    let (thread, server_is_gone) = sync_channel(0);
    let confined = move || {
        let outcome = crate::sandbox::confine(&policy, folder.as_deref())
            .map(|mediator| (command.spawn(), mediator));
        let runs = matches!(outcome, Ok((Ok(_), _)));
        // The command holds the server's end of a pipe.
        drop(command);
        let _ = reply.send(outcome);
        if runs {
            // Nothing is ever sent: `recv` returns when the sender is dropped.
            let _ = server_is_gone.recv();
        }
    };
    let builder = thread::Builder::new().name("sandbox".to_owned());
    if let Err(error) = builder.spawn(confined) {
        return Ok((Err(error), None));
    }
    let (outcome, mediator) = outcome.recv().unwrap_or(Err(SandboxError::NotHere))?;
    if let Some(mediator) = mediator {
        // Ends with the last process in the sandbox. Without the thread, requests to the mediator fail.
        let builder = thread::Builder::new().name("mediator".to_owned());
        let _ = builder.spawn(move || mediator.serve());
    }
    let confined = Confined {
        _temporary: temporary,
        _thread: thread,
    };
    Ok((outcome, Some(confined)))
}

/// Variables that name the folder for temporary files.
#[cfg(target_os = "linux")]
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

#[cfg(target_os = "linux")]
fn usual_folder(command: &Command) -> PathBuf {
    let mut variables = command.get_envs();
    let stated = variables.find_map(|(name, value)| value.filter(|_| name == "TMPDIR"));
    stated.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Sandboxes are not supported on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn start(_: &Policy, _: Command) -> Result<Started, SandboxError> {
    Err(SandboxError::NotHere)
}
