//! The sandbox of a stdio server: which files it may write, and whether it may use the network.
//!
//! Defines the policy and enforces it. The supervisor applies the policy to the *thread* that spawns a server; the
//! process and all its descendants inherit it. So no code runs between fork and exec, and the rest of the supervisor,
//! which has to kill the server, stays unrestricted. If the policy cannot be enforced, nothing is started.
//!
//! | module | content |
//! |---|---|
//! | `linux` | the steps, and Landlock: files, ports, signals and abstract sockets |
//! | `syscalls`, `filter` | the decision for every system call; the seccomp filters built from it |
//! | `mediate` | calls that the supervisor makes for a process in the sandbox, such as `chmod` |
//! | `mounts` | a view of the files without the hidden ones, for `own-files` where mounts are possible |
//! | `walk` | computes grants for a folder that contains excluded paths |
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

/// Whether this system can enforce file rules. Queries the kernel.
pub fn is_available() -> bool {
    #[cfg(target_os = "linux")]
    return linux::is_available();
    #[cfg(not(target_os = "linux"))]
    false
}

/// The permissions of a server's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which files it may read and write.
    pub files: SandboxMode,
    /// Whether it may use the network.
    pub network: bool,
    /// The folder it may write to in [`SandboxMode::Workspace`].
    pub workspace: PathBuf,
    /// Paths it may neither read nor write: folders with secrets, and Switchboard's own.
    pub hidden: Vec<PathBuf>,
    /// Paths it may not write.
    pub protected: Vec<PathBuf>,
    /// Folders within hidden ones that it may read.
    pub readable: Vec<PathBuf>,
    /// Files and folders that it may write in every mode.
    pub writable: Vec<PathBuf>,
}

/// The reason a policy cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kernel does not support Landlock, or only too old a version.
    #[error(
        "cannot enforce the sandbox: this kernel does not support Landlock (requires Linux 6.2 or newer with Landlock enabled at boot)"
    )]
    NoLandlock,
    /// The kernel does not support seccomp filters, or does not permit them.
    #[error("cannot enforce the sandbox: this kernel does not support seccomp filters")]
    NoSeccomp,
    /// The folders of the policy cannot be opened.
    #[error("cannot enforce the sandbox: the workspace cannot be opened")]
    NoWorkspace,
    /// The folder for temporary files cannot be created.
    #[error("cannot enforce the sandbox: cannot create a temporary folder")]
    NoTemporaryFolder,
    /// No supervisor is running, which would enforce the policy.
    #[error("cannot enforce the sandbox: it needs the supervisor process")]
    NoSupervisor,
    /// The platform has no sandbox.
    #[error("cannot enforce the sandbox: not supported on this system")]
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

    /// The code of the error in the protocol between supervisor and host.
    pub(crate) fn code(self) -> i32 {
        self as i32
    }

    /// The error with this code.
    pub(crate) fn from_code(code: i32) -> Self {
        let found = Self::ALL.into_iter().find(|error| error.code() == code);
        found.unwrap_or(Self::NotHere)
    }
}

impl Policy {
    /// The policy of an entry; `None` if the entry has no sandbox. The network defaults to allowed.
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

    /// Whether new files in this folder could not be written because it contains a hidden or protected path.
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

/// The experimental capability of servers that want to know the policy.
pub(crate) const STATE_CAPABILITY: &str = "codex/sandbox-state";

/// The notification that announces the policy.
pub(crate) const STATE_UPDATE: &str = "codex/sandbox-state/update";

/// The policy announced to a server that declares `codex/sandbox-state`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxState {
    /// The policy; `None` means unrestricted.
    pub policy: Option<Policy>,
    /// The folder the policy applies to. If empty, no notification is sent.
    pub folder: PathBuf,
}

impl SandboxState {
    /// The params of `codex/sandbox-state/update`, in the format defined by Codex.
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
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_is_split_by_a_hidden_or_protected_path_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("home/hidden")).unwrap();
        std::fs::create_dir_all(root.join("home/work")).unwrap();
        std::os::unix::fs::symlink(root.join("home"), root.join("link")).unwrap();
        let of = |hidden: &str, protected: &str| {
            let sandbox = Sandbox {
                mode: SandboxMode::OwnFiles,
                network: None,
            };
            let mut policy = Policy::of(Some(sandbox), root.into()).unwrap();
            policy.hidden.push(root.join(hidden));
            policy.protected.push(root.join(protected));
            policy
        };
        for policy in [
            of("home/hidden", "elsewhere"),
            of("elsewhere", "link/hidden"),
        ] {
            assert!(policy.splits(&root.join("home")));
            assert!(policy.splits(&root.join("link")));
            assert!(policy.splits(&root.join("home/hidden")));
            assert!(!policy.splits(&root.join("home/work")));
        }
    }
}
