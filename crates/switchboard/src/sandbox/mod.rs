//! The sandbox of a stdio server: which files it may write, and whether it may use the network.
//!
//! Owns the policy and the means to keep it. Whoever starts a server's process applies the policy to the *thread* that
//! starts it, and the process inherits it, with all that it ever starts: nothing has to run between fork and exec, and
//! the rest of the supervisor, which has to end the server, stays as free as it was. What cannot be kept is an error, and
//! then nothing is started.
//!
//! | where | what |
//! |---|---|
//! | `linux` | the steps, and Landlock: files, ports, signals and abstract sockets |
//! | `syscalls`, `filter` | every system call with what is decided about it; the seccomp filters made from that |
//! | `mediate` | calls that the supervisor makes for a process in the sandbox, such as `chmod` |
//! | `mounts` | a view of the files without the hidden ones, for `own-files` where mounts are possible |
//! | `walk` | what may be granted where something within must not be |
//!
//! The reasons are in `docs/sandbox.md`.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod mediate;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod walk;

use std::path::PathBuf;

use serde_json::{Value, json};
use switchboard_config::entry::{Sandbox, SandboxMode};

#[cfg(target_os = "linux")]
pub(crate) use linux::confine;

/// Whether this system can keep rules about files. Asks the kernel.
pub fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    return linux::is_available();
    #[cfg(not(target_os = "linux"))]
    false
}

/// What a server's process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which files it may read and write.
    pub files: SandboxMode,
    /// Whether it may use the network.
    pub network: bool,
    /// The folder that it may write in, in [`SandboxMode::Workspace`].
    pub workspace: PathBuf,
    /// What it may neither read nor write, wherever it lies: folders with secrets, and Switchboard's own.
    pub hidden: Vec<PathBuf>,
    /// What it may not write, wherever it lies.
    pub protected: Vec<PathBuf>,
    /// Folders in hidden ones that it may read all the same.
    pub readable: Vec<PathBuf>,
    /// Files and folders that it may write in any mode.
    pub writable: Vec<PathBuf>,
}

/// Why a policy cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kernel has no Landlock, or one that is too old.
    #[error(
        "the sandbox cannot be kept: this kernel has no Landlock (Linux 6.2 or newer, switched on at boot)"
    )]
    NoLandlock,
    /// The kernel has no seccomp filters, or does not let us have them.
    #[error("the sandbox cannot be kept: this kernel takes no seccomp filter")]
    NoSeccomp,
    /// The folders that the policy is about cannot be opened.
    #[error("the sandbox cannot be kept: the workspace cannot be opened")]
    NoWorkspace,
    /// There is no place for temporary files.
    #[error("the sandbox cannot be kept: no folder for temporary files could be made")]
    NoTemporaryFolder,
    /// There is no supervisor, which is what keeps it.
    #[error("the sandbox cannot be kept: it needs the supervisor process")]
    NoSupervisor,
    /// There is no such thing on this system.
    #[error("the sandbox cannot be kept: there is none on this system")]
    NotHere,
}

#[cfg(unix)]
impl SandboxError {
    const ALL: [Self; 6] = [
        Self::NoLandlock,
        Self::NoSeccomp,
        Self::NoWorkspace,
        Self::NoTemporaryFolder,
        Self::NoSupervisor,
        Self::NotHere,
    ];

    /// A number for it, for the wire between supervisor and host.
    pub(crate) fn code(self) -> i32 {
        self as i32
    }

    /// The error of a number.
    pub(crate) fn from_code(code: i32) -> Self {
        let found = Self::ALL.into_iter().find(|error| error.code() == code);
        found.unwrap_or(Self::NotHere)
    }
}

impl Policy {
    /// The policy of an entry; `None` if it asks for none. Unless it is stated, the network may be used.
    pub fn of(sandbox: Option<Sandbox>, workspace: PathBuf) -> Option<Self> {
        let sandbox = sandbox?;
        let network = sandbox.network.unwrap_or(true);
        (sandbox.mode != SandboxMode::Off || !network).then(|| Self {
            files: sandbox.mode,
            network,
            workspace,
            hidden: Vec::new(),
            protected: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
        })
    }

    /// Whether new files in this folder could not be written, since something in it is hidden.
    #[cfg(target_os = "linux")]
    pub(crate) fn splits(&self, folder: &std::path::Path) -> bool {
        let real = folder.canonicalize();
        let folder = real.as_deref().unwrap_or(folder);
        let kept_back = self.hidden.iter().chain(&self.protected);
        kept_back
            .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
            .any(|path| path.starts_with(folder))
    }
}

/// The capability of servers that want to know the policy, among the experimental ones.
pub(crate) const STATE_CAPABILITY: &str = "codex/sandbox-state";

/// The notification by which they are told.
pub(crate) const STATE_UPDATE: &str = "codex/sandbox-state/update";

/// What a server that declares `codex/sandbox-state` is told: the policy it is under, or is to keep to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxState {
    /// The policy; `None` is everything the user may.
    pub policy: Option<Policy>,
    /// The folder that it is about. Without one nobody is told anything.
    pub folder: PathBuf,
}

impl SandboxState {
    /// The params of `codex/sandbox-state/update`, in the form that Codex gave them.
    pub(crate) fn params(&self) -> Option<Value> {
        if self.folder.as_os_str().is_empty() {
            return None;
        }
        let policy = match &self.policy {
            None => json!({"type": "danger-full-access"}),
            Some(policy) => match policy.files {
                SandboxMode::Off | SandboxMode::OwnFiles => json!({
                    "type": "external-sandbox",
                    "network_access": if policy.network { "enabled" } else { "restricted" },
                }),
                SandboxMode::ReadOnly => json!({"type": "read-only"}),
                SandboxMode::Workspace => json!({
                    "type": "workspace-write",
                    "writable_roots": [policy.workspace.display().to_string()],
                    "network_access": policy.network,
                    "exclude_tmpdir_env_var": false,
                    "exclude_slash_tmp": true,
                }),
            },
        };
        Some(json!({
            "sandboxPolicy": policy,
            "codexLinuxSandboxExe": null,
            "sandboxCwd": self.folder.display().to_string(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn errors_keep_their_numbers() {
        for error in SandboxError::ALL {
            assert_eq!(SandboxError::from_code(error.code()), error);
        }
        assert_eq!(SandboxError::from_code(-1), SandboxError::NotHere);
    }

    #[test]
    fn an_entry_that_asks_for_nothing_has_no_policy() {
        let policy = |mode, network| {
            let policy = Policy::of(Some(Sandbox { mode, network }), "/w".into());
            policy.map(|policy| (policy.files, policy.network))
        };
        assert_eq!(Policy::of(None, "/w".into()), None);
        assert_eq!(policy(SandboxMode::Off, None), None);
        assert_eq!(policy(SandboxMode::Off, Some(true)), None);
        assert_eq!(
            policy(SandboxMode::Off, Some(false)),
            Some((SandboxMode::Off, false))
        );
        assert_eq!(
            policy(SandboxMode::ReadOnly, None),
            Some((SandboxMode::ReadOnly, true))
        );
    }
}
