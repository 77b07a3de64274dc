//! The sandbox on Linux: Landlock and seccomp, applied to the calling thread and inherited by all its children.
//!
//! Defines the order of the steps and the file rules. System calls are in `syscalls` and `filter`, calls made by the
//! supervisor in `mediate`, and mounts that hide files in `mounts`.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use seccompiler::apply_filter;
use switchboard_config::entry::SandboxMode;

use super::filter::{self, Filters};
use super::mediate::{self, Mediator};
use super::mounts;
use super::walk::{self, Grant};
use super::{Policy, SandboxError};

/// The minimum version: from here on, truncating a file and moving it to another folder require rights.
const LEAST: ABI = ABI::V3;
/// The newest version used if available.
const NEWEST: ABI = ABI::V9;

/// Harmless devices that programs require.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Devices that expose the memory of the machine.
const MEMORY: [&str; 3] = ["/dev/mem", "/dev/kmem", "/dev/port"];

/// Writing here lets root have the kernel start a program outside the sandbox.
const KERNEL_SETTINGS: [&str; 3] = ["/proc/sys", "/proc/sysrq-trigger", "/sys"];

/// Confines the calling thread and all its future children, permanently. `temporary` is its private temporary folder,
/// if any. The returned mediator has to be served on an unconfined thread, which answers the calls that the kernel
/// forwards.
pub(crate) fn confine(
    policy: &Policy,
    temporary: Option<&Path>,
) -> Result<Option<Mediator>, SandboxError> {
    let filters = filter::of(policy).ok_or(SandboxError::NoSeccomp)?;
    let mut scope = None;
    if policy.files != SandboxMode::Off {
        scope = restrict_files(policy, temporary)?;
    } else if !policy.network {
        restrict_ports()?;
    }
    drop_capabilities(policy.files);
    apply(&filters, scope)
}

/// Whether the kernel supports the required Landlock version.
pub(super) fn is_available() -> bool {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST));
    ruleset.and_then(Ruleset::create).is_ok()
}

fn apply(
    filters: &Filters,
    scope: Option<mediate::Scope>,
) -> Result<Option<Mediator>, SandboxError> {
    for program in &filters.programs {
        apply_filter(program).map_err(|_| SandboxError::NoSeccomp)?;
    }
    let (Some(scope), Some(program)) = (scope, &filters.mediated) else {
        return Ok(None);
    };
    if let Ok(listener) = mediate::listen(program) {
        return Ok(Some(Mediator { listener, scope }));
    }
    // Another listener is already installed, as in some containers.
    let refused = filters.unmediated.as_ref().ok_or(SandboxError::NoSeccomp)?;
    apply_filter(refused).map_err(|_| SandboxError::NoSeccomp)?;
    Ok(None)
}

/// Applies the file rules. Returns the scope of changes that Landlock does not cover; `None` if mediation is not
/// needed, since hidden files cannot even be named.
fn restrict_files(
    policy: &Policy,
    temporary: Option<&Path>,
) -> Result<Option<mediate::Scope>, SandboxError> {
    let unable = |_| SandboxError::NoLandlock;
    // Must come first: a thread confined by Landlock cannot mount. Report a kernel without Landlock before that.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .map_err(unable)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(unable)?
        // Block signals and abstract Unix sockets to processes outside the sandbox.
        .scope(scopes(policy))
        .map_err(unable)?;
    if !policy.network {
        ruleset = ruleset
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)
            .map_err(unable)?;
    }
    let mut ruleset = ruleset.create().map_err(unable)?;

    let mut hidden = with_targets(&policy.hidden);
    let mut protected = with_targets(&policy.protected);
    let mut is_mounted = false;
    if policy.files == SandboxMode::OwnFiles {
        let missing = mounts::hide(&hidden, &policy.readable, &protected);
        if let Some(missing) = missing {
            is_mounted = true;
            hidden.clear();
            protected = missing;
        }
    }
    hidden.extend(disks());
    let unopened = |_| SandboxError::NoWorkspace;
    let readable = walk::without(Path::new("/"), &hidden).map_err(unopened)?;
    ruleset = grant(ruleset, readable, AccessFs::from_read(NEWEST))?;
    for folder in &policy.readable {
        let folder = walk::without(folder, &[]).map_err(unopened)?;
        ruleset = grant(ruleset, folder, AccessFs::ReadFile | AccessFs::ReadDir)?;
    }

    let mut scope = mediate::Scope {
        hidden: hidden.clone(),
        ..mediate::Scope::default()
    };
    let root = match policy.files {
        SandboxMode::Workspace => Some(policy.workspace.clone()),
        SandboxMode::OwnFiles => Some(PathBuf::from("/")),
        SandboxMode::ReadOnly | SandboxMode::Off => None,
    };
    if let Some(root) = root {
        let mut kept_back = protected;
        kept_back.extend(hidden);
        if policy.files == SandboxMode::OwnFiles {
            kept_back.extend(KERNEL_SETTINGS.map(PathBuf::from));
            // File names may be listed everywhere: without listing the home folder, few programs work.
            let names = walk::without(Path::new("/"), &[]).map_err(unopened)?;
            ruleset = grant(ruleset, names, AccessFs::ReadDir.into())?;
        }
        let writable = walk::without(&root, &kept_back).map_err(unopened)?;
        ruleset = grant(ruleset, writable, AccessFs::from_all(NEWEST))?;
        scope.kept_back = kept_back;
        scope.writable.extend(with_targets(&[root]));
    }
    for own in policy
        .writable
        .iter()
        .map(PathBuf::as_path)
        .chain(temporary)
    {
        let opened = walk::without(own, &[]).map_err(unopened)?;
        ruleset = grant(ruleset, opened, AccessFs::from_all(NEWEST))?;
        scope.writable.extend(with_targets(&[own.to_owned()]));
    }
    for device in DEVICES {
        let device = walk::without(Path::new(device), &[]).map_err(unopened)?;
        let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        ruleset = grant(ruleset, device, access)?;
    }
    let status = ruleset
        .restrict_self()
        .map_err(|_| SandboxError::NoLandlock)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(SandboxError::NoLandlock);
    }
    Ok((!is_mounted).then_some(scope))
}

/// In `own-files`, the sockets of the user's programs stay reachable.
fn scopes(policy: &Policy) -> BitFlags<Scope> {
    match policy.files {
        SandboxMode::OwnFiles if policy.network => Scope::Signal.into(),
        _ => Scope::from_all(NEWEST),
    }
}

/// A second barrier besides seccomp. Skipped on older kernels.
fn restrict_ports() -> Result<(), SandboxError> {
    let restrict = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
            .create()?
            .restrict_self()
    };
    restrict().map(drop).map_err(|_| SandboxError::NoLandlock)
}

fn grant(
    mut ruleset: RulesetCreated,
    grants: Vec<Grant>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    for grant in grants {
        let access = if grant.is_folder {
            access
        } else {
            access & AccessFs::from_file(NEWEST)
        };
        if access.is_empty() {
            continue;
        }
        ruleset = ruleset
            .add_rule(PathBeneath::new(&grant.descriptor, access))
            .map_err(|_| SandboxError::NoLandlock)?;
    }
    Ok(ruleset)
}

/// The paths, and their targets if they or a parent folder are links.
fn with_targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let targets = paths.iter().map(|path| {
        // A missing path will be below its nearest existing ancestor.
        let mut folders = path.ancestors();
        let real = folders.find_map(|folder| {
            let below = path.strip_prefix(folder).ok()?;
            Some(folder.canonicalize().ok()?.join(below))
        });
        real.unwrap_or_else(|| path.clone())
    });
    let mut all: Vec<PathBuf> = targets.collect();
    all.extend(paths.iter().cloned());
    all.sort();
    all.dedup();
    all
}

/// Devices through which root could read files regardless of path rules.
fn disks() -> Vec<PathBuf> {
    let mut disks: Vec<PathBuf> = MEMORY.map(PathBuf::from).to_vec();
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let blocks = entries.filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_block_device())
    });
    disks.extend(blocks.map(|entry| entry.path()));
    disks
}

/// Drops the capabilities by which a root process could bypass the rest. Other users have none of them.
fn drop_capabilities(mode: SandboxMode) {
    let confined: &[CapabilitySet] = match mode {
        // Everything else stays as the user has it.
        SandboxMode::OwnFiles => &[],
        _ => &CONFINED_CAPABILITIES,
    };
    for capability in CAPABILITIES.iter().chain(confined) {
        // Fails only without the right to drop capabilities; then there are none to drop.
        let _ = remove_capability_from_bounding_set(*capability);
    }
}

const CAPABILITIES: [CapabilitySet; 8] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::CHECKPOINT_RESTORE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::MKNOD,
];

const CONFINED_CAPABILITIES: [CapabilitySet; 9] = [
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYS_NICE,
    CapabilitySet::SYS_RESOURCE,
    CapabilitySet::LINUX_IMMUTABLE,
    CapabilitySet::IPC_OWNER,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::DAC_READ_SEARCH,
];
