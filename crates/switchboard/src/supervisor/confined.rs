//! Starts a server in its sandbox, from a thread that is in it.
//!
//! The sandbox is that of a thread and of all that it starts. So the supervisor has a thread for it, which starts the server
//! and then does nothing any more, while the supervisor itself stays as free as it has to be. The thread lives until the
//! server is gone: the server's parent-death signal depends on it.

use std::io;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::SyncSender;

#[cfg(target_os = "linux")]
use switchboard_config::entry::SandboxMode;
use tempfile::TempDir;

use crate::sandbox::{Policy, SandboxError};

/// What the sandbox of a server needs for as long as anything of the server is left.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "there are no sandboxes there")
)]
pub(super) struct Confined {
    /// The server's own folder for temporary files, if it has one.
    _temporary: Option<TempDir>,
    /// The thread ends when this is dropped.
    _thread: SyncSender<()>,
}

/// What came of starting it.
pub(super) type Started = (io::Result<Child>, Option<Confined>);

/// Starts the server within the policy, or not at all.
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
        // It holds the server's end of a pipe.
        drop(command);
        let _ = reply.send(outcome);
        if runs {
            // Nobody says anything: what comes is the end of the other side.
            let _ = server_is_gone.recv();
        }
    };
    let builder = thread::Builder::new().name("sandbox".to_owned());
    if let Err(error) = builder.spawn(confined) {
        return Ok((Err(error), None));
    }
    let (outcome, mediator) = outcome.recv().unwrap_or(Err(SandboxError::NotHere))?;
    if let Some(mediator) = mediator {
        // It ends with the last process in the sandbox. If there is no thread for it, what it would be asked fails.
        let builder = thread::Builder::new().name("mediator".to_owned());
        let _ = builder.spawn(move || mediator.serve());
    }
    let confined = Confined {
        _temporary: temporary,
        _thread: thread,
    };
    Ok((outcome, Some(confined)))
}

/// Where a program puts temporary files.
#[cfg(target_os = "linux")]
const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

#[cfg(target_os = "linux")]
fn usual_folder(command: &Command) -> PathBuf {
    let mut variables = command.get_envs();
    let stated = variables.find_map(|(name, value)| value.filter(|_| name == "TMPDIR"));
    stated.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// There are no sandboxes here.
#[cfg(not(target_os = "linux"))]
pub(super) fn start(_: &Policy, _: Command) -> Result<Started, SandboxError> {
    Err(SandboxError::NotHere)
}
