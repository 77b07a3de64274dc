//! Starts a server in its sandbox, from a thread that is in it.
//!
//! The sandbox is that of a thread and of all that it starts. So the guard has a thread for it, which starts the server
//! and then does nothing any more, while the guard itself stays as free as it has to be. The thread lives until the
//! server is gone: the server's parent-death signal depends on it.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::SyncSender;

use tempfile::TempDir;

use crate::sandbox::{Policy, SandboxError};

/// What the sandbox of a server needs for as long as anything of the server is left.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "there are no sandboxes there")
)]
pub(super) struct Confined {
    /// The server's own folder for temporary files.
    _temporary: TempDir,
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

    let temporary = tempfile::Builder::new()
        .prefix("switchboard-")
        .tempdir()
        .map_err(|_| SandboxError::NoTemporaryFolder)?;
    for variable in ["TMPDIR", "TMP", "TEMP"] {
        command.env(variable, temporary.path());
    }
    let (policy, folder) = (policy.clone(), temporary.path().to_owned());
    let (reply, outcome) = sync_channel(1);
    let (thread, server_is_gone) = sync_channel(0);
    let confined = move || {
        let outcome = crate::sandbox::confine(&policy, &folder).map(|()| command.spawn());
        let runs = matches!(outcome, Ok(Ok(_)));
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
    let outcome = outcome.recv().unwrap_or(Err(SandboxError::NotHere))?;
    let confined = Confined {
        _temporary: temporary,
        _thread: thread,
    };
    Ok((outcome, Some(confined)))
}

/// There are no sandboxes here.
#[cfg(not(target_os = "linux"))]
pub(super) fn start(_: &Policy, _: Command) -> Result<Started, SandboxError> {
    Err(SandboxError::NotHere)
}
