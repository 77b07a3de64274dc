//! The sandbox on Linux: Landlock and seccomp, for the thread that asks for them and all it starts from then on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use switchboard_config::entry::SandboxMode;

use super::walk::{self, Grant};
use super::{Policy, SandboxError};

/// What must be had: from this version on a file cannot be truncated, nor moved out of its folder, without a right.
const LEAST: ABI = ABI::V3;
/// What is used where it is there.
const NEWEST: ABI = ABI::V9;

/// Devices that are no way out and that programs cannot do without.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Confines the calling thread, and everything it starts from now on, for good. `temporary` is a folder of the
/// server's own.
pub(crate) fn confine(policy: &Policy, temporary: &Path) -> Result<(), SandboxError> {
    if policy.files != SandboxMode::Off {
        restrict_files(policy, temporary)?;
    } else if !policy.network {
        restrict_ports()?;
    }
    drop_capabilities();
    for program in filters(policy).ok_or(SandboxError::NoSeccomp)? {
        apply_filter(&program).map_err(|_| SandboxError::NoSeccomp)?;
    }
    Ok(())
}

fn restrict_files(policy: &Policy, temporary: &Path) -> Result<(), SandboxError> {
    let unable = |_| SandboxError::NoLandlock;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .map_err(unable)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(unable)?
        // Nobody outside may be signalled, nor reached through a socket without a file.
        .scope(Scope::from_all(NEWEST))
        .map_err(unable)?;
    if !policy.network {
        ruleset = ruleset
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)
            .map_err(unable)?;
    }
    let mut ruleset = ruleset.create().map_err(unable)?;

    let hidden = with_targets(&policy.hidden);
    let unopened = |_| SandboxError::NoWorkspace;
    // The names of files may be read everywhere, their contents where nothing is hidden.
    let root = walk::without(Path::new("/"), &[]).map_err(unopened)?;
    ruleset = grant(ruleset, root, AccessFs::ReadDir | AccessFs::Execute)?;
    let readable = walk::without(Path::new("/"), &hidden).map_err(unopened)?;
    ruleset = grant(ruleset, readable, AccessFs::from_read(NEWEST))?;

    if policy.files == SandboxMode::Workspace {
        let mut kept_back = with_targets(&policy.protected);
        kept_back.extend(hidden);
        let writable = walk::without(&policy.workspace, &kept_back).map_err(unopened)?;
        ruleset = grant(ruleset, writable, AccessFs::from_all(NEWEST))?;
    }
    let own = walk::without(temporary, &[]).map_err(unopened)?;
    ruleset = grant(ruleset, own, AccessFs::from_all(NEWEST))?;
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
    Ok(())
}

/// A second lock on the door that seccomp closes. Older kernels do without.
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

/// The paths, and where they lead where they or a folder on the way are links.
fn with_targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let targets = paths.iter().map(|path| {
        // What is not there yet will be below the nearest folder that is.
        let mut folders = path.ancestors();
        let real = folders.find_map(|folder| {
            let below = path.strip_prefix(folder).ok()?;
            Some(folder.canonicalize().ok()?.join(below))
        });
        real.unwrap_or_else(|| path.clone())
    });
    let mut all: Vec<PathBuf> = targets.collect();
    all.extend(paths.iter().cloned());
    all
}

/// Takes from a server that runs as root what would lead around the rest. Who is not root has none of it.
fn drop_capabilities() {
    for capability in CAPABILITIES {
        // Without the right to drop it, there is none to be had either.
        let _ = remove_capability_from_bounding_set(capability);
    }
}

const CAPABILITIES: [CapabilitySet; 13] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::CHECKPOINT_RESTORE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::MKNOD,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::DAC_READ_SEARCH,
];

/// The filters: what is refused, and what is said not to exist, so that libraries do it the other way.
fn filters(policy: &Policy) -> Option<Vec<BpfProgram>> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for number in REFUSED {
        refused.insert(*number, Vec::new());
    }
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let bits = (0..32).map(|bit| 1_u64 << bit);
    let wanted = u64::from(namespaces.cast_unsigned());
    let rules = bits.filter(|bit| wanted & bit != 0).map(|bit| {
        let condition = SeccompCmpOp::MaskedEq(bit);
        rule(&[(0, condition, bit)])
    });
    refused.insert(libc::SYS_clone, rules.collect::<Option<_>>()?);
    // A terminal takes what is pushed into its input for what its user has typed.
    let pushes = [libc::TIOCSTI, libc::TIOCLINUX].into_iter();
    let pushes = pushes.map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    refused.insert(libc::SYS_ioctl, pushes.collect::<Option<_>>()?);
    let families: &[i32] = match (policy.files, policy.network) {
        (SandboxMode::Off, true) => return Some(Vec::new()),
        (SandboxMode::Off, false) => &[libc::AF_UNIX],
        // Behind a socket in a file there may be somebody who does what is asked, files and all.
        (_, true) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (_, false) => &[],
    };
    let other_families: Option<Vec<_>> = families
        .iter()
        .map(|family| {
            let family = u64::from(family.cast_unsigned());
            condition(0, SeccompCmpOp::Ne, family)
        })
        .collect();
    let sockets = match other_families? {
        none if none.is_empty() => Vec::new(),
        conditions => vec![SeccompRule::new(conditions).ok()?],
    };
    refused.insert(libc::SYS_socket, sockets);

    let absent = [(libc::SYS_clone3, Vec::new())].into_iter().collect();
    Some(vec![
        compiled(with_other_numbers(refused), libc::EPERM)?,
        compiled(with_other_numbers(absent), libc::ENOSYS)?,
    ])
}

/// On `x86_64` every call has a second number, of an interface that hardly a kernel has switched on.
fn with_other_numbers(rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    #[cfg(target_arch = "x86_64")]
    {
        const X32: i64 = 0x4000_0000;
        let others: Vec<(i64, Vec<SeccompRule>)> = rules
            .iter()
            .map(|(number, rules)| (number | X32, rules.clone()))
            .collect();
        rules.into_iter().chain(others).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    rules
}

fn compiled(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Option<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into().ok()?;
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
        .ok()?
        .try_into()
        .ok()
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Option<SeccompRule> {
    let conditions = conditions
        .iter()
        .map(|(argument, operator, value)| condition(*argument, operator.clone(), *value));
    SeccompRule::new(conditions.collect::<Option<_>>()?).ok()
}

/// All arguments that are looked at are 32 bits wide to the kernel.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Option<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).ok()
}

/// Calls that no server needs and that lead around a sandbox, or into the kernel.
const REFUSED: &[i64] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // another view of the files
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_unshare,
    libc::SYS_setns,
    // work that is done where no filter looks
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // the keys of the user
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // the machine
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
];
