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
            let real = folder.canonicalize().ok()?;
            // Joining nothing would add a slash, and a file has no path that ends with one.
            Some(if below.as_os_str().is_empty() {
                real
            } else {
                real.join(below)
            })
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::symlink;
    use std::thread;

    use rustix::thread::capability_is_in_bounding_set;

    use super::*;

    /// A folder with a workspace and others, and the policy for it.
    fn machine(files: SandboxMode) -> (tempfile::TempDir, PathBuf, Policy) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for made in [
            "workspace/kept",
            "hidden/shown",
            "elsewhere",
            "own",
            "temporary",
        ] {
            fs::create_dir_all(root.join(made)).unwrap();
            fs::write(root.join(made).join("file"), "text").unwrap();
        }
        let policy = Policy {
            files,
            network: true,
            workspace: root.join("workspace"),
            hidden: vec![root.join("hidden")],
            protected: vec![root.join("workspace/kept")],
            readable: vec![root.join("hidden/shown")],
            writable: vec![root.join("own")],
        };
        (folder, root, policy)
    }

    /// Runs something in a sandbox.
    fn confined<R: Send + 'static>(
        policy: Policy,
        temporary: Option<PathBuf>,
        run: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let confined = move || {
            let mediator = confine(&policy, temporary.as_deref()).unwrap();
            let result = run();
            drop(mediator);
            result
        };
        thread::spawn(confined).join().unwrap()
    }

    /// Which of the folders can be read, and in which a file can be written and another created, by their first letters.
    fn accessible(root: &Path) -> String {
        let mut found = Vec::new();
        for name in [
            "workspace",
            "workspace/kept",
            "hidden",
            "hidden/shown",
            "elsewhere",
            "own",
            "temporary",
        ] {
            let folder = root.join(name);
            let mut access = String::new();
            let mut note = |letter: char, is_possible: bool| {
                access.push(if is_possible { letter } else { '-' });
            };
            note('r', fs::read(folder.join("file")).is_ok());
            note('l', fs::read_dir(&folder).is_ok());
            note('w', fs::write(folder.join("file"), "").is_ok());
            note('c', fs::write(folder.join("new"), "").is_ok());
            found.push(format!("{name} {access}"));
        }
        found.join("\n")
    }

    fn checked(files: SandboxMode) -> String {
        let (_folder, root, policy) = machine(files);
        fs::write(root.join("workspace/file"), "text").unwrap();
        fs::write(root.join("hidden/file"), "text").unwrap();
        let temporary = root.join("temporary");
        let tried = root.clone();
        confined(policy, Some(temporary), move || accessible(&tried))
    }

    #[test]
    fn each_mode_grants_its_folders() {
        if !is_available() {
            return;
        }
        assert_eq!(
            checked(SandboxMode::ReadOnly),
            "workspace rl--\nworkspace/kept rl--\nhidden ----\nhidden/shown rl--\nelsewhere rl--\nown rlwc\ntemporary rlwc"
        );
        // No new file can be made beside a protected folder: Landlock grants entries that exist.
        assert_eq!(
            checked(SandboxMode::Workspace),
            "workspace rlw-\nworkspace/kept rl--\nhidden ----\nhidden/shown rl--\nelsewhere rl--\nown rlwc\ntemporary rlwc"
        );
    }

    #[test]
    fn harmless_devices_work_and_programs_run() {
        if !is_available() {
            return;
        }
        for files in [SandboxMode::ReadOnly, SandboxMode::Workspace] {
            let (_folder, _, policy) = machine(files);
            let (written, read, ran) = confined(policy, None, || {
                let mut byte = [1];
                let read = fs::File::open("/dev/zero")
                    .and_then(|mut zero| io::Read::read_exact(&mut zero, &mut byte));
                let ran = std::process::Command::new("true").status();
                let written = fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/null")
                    .and_then(|mut null| io::Write::write_all(&mut null, b"text"));
                (written.is_ok(), read.is_ok(), ran.is_ok())
            });
            assert!(written && read && ran, "{files:?}");
        }
    }

    #[test]
    fn without_a_network_no_port_can_be_bound_or_reached() {
        if !is_available() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (bound, reached) = thread::spawn(move || {
            restrict_ports().unwrap();
            (
                TcpListener::bind("127.0.0.1:0").map(drop),
                TcpStream::connect(address).map(drop),
            )
        })
        .join()
        .unwrap();
        for refused in [bound, reached] {
            let kind = refused.map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::PermissionDenied));
        }
    }

    #[test]
    fn only_own_files_with_a_network_reaches_the_sockets_of_others() {
        for files in SandboxMode::ALL {
            for network in [true, false] {
                let (_folder, _, mut policy) = machine(files);
                policy.network = network;
                let is_open = network && files == SandboxMode::OwnFiles;
                let found = scopes(&policy);
                assert!(found.contains(Scope::Signal), "{files:?}");
                let has_sockets = found.contains(Scope::AbstractUnixSocket);
                assert_eq!(has_sockets, !is_open, "{files:?} {network}");
            }
        }
    }

    #[test]
    fn links_are_resolved_as_far_as_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        let paths =
            |names: &[&str]| -> Vec<PathBuf> { names.iter().map(|name| root.join(name)).collect() };
        let check = |of: &[&str], expected: &[&str]| {
            assert_eq!(with_targets(&paths(of)), paths(expected));
        };
        check(&["real"], &["real"]);
        check(&["link"], &["link", "real"]);
        check(&["link/new/deep"], &["link/new/deep", "real/new/deep"]);
        check(&["real", "link"], &["link", "real"]);
        check(&[], &[]);
    }

    #[test]
    fn every_disk_and_the_memory_are_kept_back() {
        let disks = disks();
        for memory in MEMORY {
            assert!(disks.contains(&PathBuf::from(memory)), "{memory}");
        }
        for entry in fs::read_dir("/dev").unwrap().flatten() {
            let is_disk = entry.file_type().unwrap().is_block_device();
            let path = entry.path();
            let is_memory = MEMORY.iter().any(|memory| path == Path::new(memory));
            assert_eq!(disks.contains(&path), is_disk || is_memory, "{path:?}");
        }
    }

    #[test]
    fn capabilities_that_would_get_around_the_rest_are_dropped() {
        // Another user has no capabilities, and none to drop.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for mode in SandboxMode::ALL {
            let (general, confined) = thread::spawn(move || {
                drop_capabilities(mode);
                let has = |capability: &CapabilitySet| {
                    capability_is_in_bounding_set(*capability).unwrap()
                };
                (
                    CAPABILITIES.iter().any(has),
                    CONFINED_CAPABILITIES.iter().any(has),
                )
            })
            .join()
            .unwrap();
            assert!(!general, "{mode:?}");
            let keeps = CONFINED_CAPABILITIES
                .iter()
                .any(|capability| capability_is_in_bounding_set(*capability).unwrap());
            assert_eq!(confined, keeps && mode == SandboxMode::OwnFiles, "{mode:?}");
        }
    }
    #[test]
    fn a_socket_from_before_the_sandbox_is_of_no_use_without_a_network() {
        use rustix::net::{AddressFamily, SocketType, bind, socket};

        if !is_available() {
            return;
        }
        for files in SandboxMode::ALL {
            let (_folder, _, mut policy) = machine(files);
            policy.network = false;
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            let address = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
            let bound = confined(policy, None, move || bind(&socket, &address));
            assert_eq!(bound, Err(rustix::io::Errno::ACCESS), "{files:?}");
        }
    }
    #[test]
    fn the_mediator_changes_the_mode_for_a_confined_process() {
        use std::os::unix::fs::PermissionsExt as _;

        if !is_available() {
            return;
        }
        let (_folder, root, policy) = machine(SandboxMode::Workspace);
        let [own, other] = ["own/file", "elsewhere/file"].map(|path| root.join(path));
        let (sender, receiver) = std::sync::mpsc::channel();
        let tried = [own.clone(), other];
        let caller = thread::spawn(move || {
            let mediator = confine(&policy, None).unwrap();
            sender.send(mediator.unwrap()).unwrap();
            tried.map(|path| {
                let changed = fs::set_permissions(path, fs::Permissions::from_mode(0o640));
                changed.map_err(|error| error.kind())
            })
        });
        // Ends when the caller has.
        receiver.recv().unwrap().serve();
        let refused = Err(io::ErrorKind::PermissionDenied);
        assert_eq!(caller.join().unwrap(), [Ok(()), refused]);
        let mode = fs::metadata(own).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
    #[test]
    fn own_files_hides_with_mounts_or_with_landlock_alone() {
        if !is_available() {
            return;
        }
        let (_folder, root, mut policy) = machine(SandboxMode::OwnFiles);
        fs::write(root.join("workspace/file"), "text").unwrap();
        fs::write(root.join("hidden/file"), "text").unwrap();
        // A protected file that does not exist must not be made.
        fs::create_dir(root.join("empty")).unwrap();
        policy.protected.push(root.join("empty/file"));
        let tried = root.clone();
        let (is_mounted, found, made) = thread::spawn(move || {
            let mediator = confine(&policy, None).unwrap();
            let found = accessible(&tried);
            let made = fs::write(tried.join("empty/file"), "").is_ok();
            (mediator.is_none(), found, made)
        })
        .join()
        .unwrap();
        assert!(!made);
        let workspace = if is_mounted { "rlwc" } else { "rlw-" };
        assert_eq!(
            found,
            format!(
                "workspace {workspace}\nworkspace/kept rl--\nhidden -l--\nhidden/shown rl--\nelsewhere rlwc\nown rlwc\ntemporary rlwc"
            )
        );
    }
}
