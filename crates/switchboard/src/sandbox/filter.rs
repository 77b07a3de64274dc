//! Compiles the system call table to seccomp filters.
//!
//! Decisions that depend on a call's arguments are here; the decision for each call is in `syscalls`.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use switchboard_config::entry::SandboxMode;

use super::Policy;
use super::syscalls::{ActsOn, Decision, Group, HIGHEST, TABLE};

/// The filter programs of a policy.
pub(super) struct Filters {
    /// Programs that refuse calls or report them as missing.
    pub(super) programs: Vec<BpfProgram>,
    /// The program for calls forwarded to the supervisor; `None` if there are none.
    pub(super) mediated: Option<BpfProgram>,
    /// The same calls, refused, for use without a supervisor.
    pub(super) unmediated: Option<BpfProgram>,
}

/// Compiles the programs of a policy; `None` if this architecture is not supported.
pub(super) fn of(policy: &Policy) -> Option<Filters> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut absent = BTreeMap::new();
    let mut unsupported = BTreeMap::new();
    let mut mediated = BTreeMap::new();
    for group in TABLE {
        let decision = decision(group, policy.files);
        for (_, number) in group.calls() {
            let number = *number;
            match decision {
                Decision::Allow => {}
                Decision::Refuse => drop(refused.insert(number, Vec::new())),
                Decision::Absent => drop(absent.insert(number, Vec::new())),
                Decision::Unsupported => drop(unsupported.insert(number, Vec::new())),
                Decision::Mediate => drop(mediated.insert(number, Vec::new())),
                Decision::OnlyItself => {
                    let others = rule(&[(0, SeccompCmpOp::Ne, 0)])?;
                    refused.insert(number, vec![others]);
                }
                Decision::Arguments => match by_arguments(number, policy)? {
                    Refusal::Never => {}
                    Refusal::Always => drop(refused.insert(number, Vec::new())),
                    Refusal::If(rules) => drop(refused.insert(number, rules)),
                },
            }
        }
    }
    let numbers: Vec<i64> = mediated.keys().copied().collect();
    let mut programs = vec![unknown_numbers()];
    let by_error = [
        (refused, libc::EPERM),
        (absent, libc::ENOSYS),
        (unsupported, libc::EOPNOTSUPP),
    ];
    for (rules, error) in by_error {
        if !rules.is_empty() {
            programs.push(compiled(rules, error)?);
        }
    }
    let unmediated = (!numbers.is_empty()).then(|| compiled(mediated, libc::EPERM));
    Some(Filters {
        programs,
        mediated: (!numbers.is_empty()).then(|| asked(&numbers)),
        unmediated: match unmediated {
            Some(program) => Some(program?),
            None => None,
        },
    })
}

fn decision(group: &Group, mode: SandboxMode) -> Decision {
    match mode {
        SandboxMode::OwnFiles => group.own_files,
        // Only the network is blocked: files stay accessible, but not other processes, which have network access.
        SandboxMode::Off if group.acts_on == ActsOn::Files => match group.confined {
            Decision::Arguments => Decision::Arguments,
            _ => Decision::Allow,
        },
        SandboxMode::Off | SandboxMode::ReadOnly | SandboxMode::Workspace => group.confined,
    }
}

/// The condition under which a call is refused.
enum Refusal {
    Never,
    Always,
    /// If one of these rules matches.
    If(Vec<SeccompRule>),
}

fn by_arguments(number: i64, policy: &Policy) -> Option<Refusal> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};

    let equals = |argument: u8, values: &[u64]| {
        let rules = values.iter().map(|value| rule(&[(argument, Eq, *value)]));
        rules.collect::<Option<Vec<_>>>().map(Refusal::If)
    };
    let is_off = policy.files == SandboxMode::Off;
    match number {
        libc::SYS_socket => sockets(policy),
        libc::SYS_socketpair => pairs(policy),
        libc::SYS_clone => {
            let bits = NAMESPACES.iter();
            let rules = bits.map(|bit| rule(&[(0, MaskedEq(*bit), *bit)]));
            rules.collect::<Option<Vec<_>>>().map(Refusal::If)
        }
        libc::SYS_setpriority => Some(Refusal::If(vec![
            rule(&[(0, Ne, PRIO_PROCESS)])?,
            rule(&[(1, Ne, 0)])?,
        ])),
        libc::SYS_ioprio_set => Some(Refusal::If(vec![
            rule(&[(0, Ne, IOPRIO_WHO_PROCESS)])?,
            rule(&[(1, Ne, 0)])?,
        ])),
        libc::SYS_prctl => equals(0, &[PR_SCHED_CORE]),
        libc::SYS_fcntl if is_off => Some(Refusal::Never),
        libc::SYS_fcntl => equals(1, &[F_SETLEASE, F_NOTIFY]),
        libc::SYS_ioctl if is_off => equals(1, &[TIOCSTI, TIOCLINUX]),
        libc::SYS_ioctl => equals(1, &IOCTLS),
        _ if is_off => Some(Refusal::Never),
        libc::SYS_openat => set_id_on_open(2, 3).map(Refusal::If),
        libc::SYS_mknodat => set_id(2).map(Refusal::If),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => set_id_on_open(1, 2).map(Refusal::If),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat | libc::SYS_mknod => set_id(1).map(Refusal::If),
        // A call marked `Arguments` in the table but not handled here is refused.
        _ => Some(Refusal::Always),
    }
}

fn sockets(policy: &Policy) -> Option<Refusal> {
    let families: &[i32] = match (policy.files, policy.network) {
        // A Unix socket could reach processes with network access.
        (_, false) => return Some(Refusal::Always),
        (SandboxMode::Off | SandboxMode::OwnFiles, true) => return Some(Refusal::Never),
        // The process behind a Unix socket could be asked to access files.
        (_, true) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let others = families.iter().map(|family| {
        let family = u64::from(family.cast_unsigned());
        (0, SeccompCmpOp::Ne, family)
    });
    let others: Vec<_> = others.collect();
    Some(Refusal::If(vec![rule(&others)?]))
}

/// Socket pairs connect a process and its children. A datagram socket of a pair could still send to any socket path;
/// stream and packet sockets cannot.
fn pairs(policy: &Policy) -> Option<Refusal> {
    if policy.network && matches!(policy.files, SandboxMode::Off | SandboxMode::OwnFiles) {
        return Some(Refusal::Never);
    }
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    let mut rules = vec![rule(&[(0, SeccompCmpOp::Ne, unix)])?];
    let connected =
        [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| u64::from(kind.cast_unsigned()));
    for kind in (0..=SOCK_TYPE_MASK).filter(|kind| !connected.contains(kind)) {
        rules.push(rule(&[(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), kind)])?);
    }
    Some(Refusal::If(rules))
}

/// Matches a mode with a set-user-ID or set-group-ID bit.
fn set_id(mode: u8) -> Option<Vec<SeccompRule>> {
    let rules = SET_ID.map(|bit| rule(&[(mode, SeccompCmpOp::MaskedEq(bit), bit)]));
    rules.into_iter().collect()
}

/// The same for calls whose mode applies only if the flags allow creating a file.
fn set_id_on_open(flags: u8, mode: u8) -> Option<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for making in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
        let making = u64::from(making.cast_unsigned());
        for bit in SET_ID {
            rules.push(rule(&[
                (flags, SeccompCmpOp::MaskedEq(making), making),
                (mode, SeccompCmpOp::MaskedEq(bit), bit),
            ])?);
        }
    }
    Some(rules)
}

fn compiled(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Option<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into().ok()?;
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
        .ok()?
        .try_into()
        .ok()
}

/// Returns `ENOSYS` for numbers missing from the table: those of newer kernels and, on x86-64, of the x32 ABI. The
/// filters compiled from rules kill a process that calls from a foreign architecture.
fn unknown_numbers() -> BpfProgram {
    let highest = u32::try_from(HIGHEST).unwrap_or_default();
    vec![
        statement(LOAD, NUMBER_OFFSET),
        jump(JUMP_IF_GREATER, highest, 0, 1),
        statement(
            RETURN,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        ),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Forwards these calls to the supervisor.
pub(super) fn asked(numbers: &[i64]) -> BpfProgram {
    let mut program = vec![statement(LOAD, NUMBER_OFFSET)];
    for number in numbers {
        let number = u32::try_from(*number).unwrap_or(u32::MAX);
        program.push(jump(JUMP_IF_EQUAL, number, 0, 1));
        program.push(statement(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    program
}

// BPF instructions, and the offset of the call number.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;
const RETURN: u16 = 0x06;
const NUMBER_OFFSET: u32 = 0;

fn statement(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Option<SeccompRule> {
    let conditions = conditions
        .iter()
        .map(|(argument, operator, value)| condition(*argument, operator.clone(), *value));
    SeccompRule::new(conditions.collect::<Option<_>>()?).ok()
}

/// The kernel treats all checked arguments as 32 bits wide.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Option<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).ok()
}

/// The `clone` flags that create namespaces.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWCGROUP as u64,
];

// The values are the same on all supported architectures; C libraries differ only in their types.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;
/// The first two inject terminal input as if the user had typed it; the others change attributes of files opened for
/// reading.
const IOCTLS: [u64; 6] = [
    TIOCSTI,
    TIOCLINUX,
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401C_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
];
const F_SETLEASE: u64 = 1024;
const F_NOTIFY: u64 = 1026;
const PR_SCHED_CORE: u64 = 62;
const PRIO_PROCESS: u64 = 0;
const IOPRIO_WHO_PROCESS: u64 = 1;
const SOCK_TYPE_MASK: u64 = 0xf;
const SET_ID: [u64; 2] = [0o4000, 0o2000];

#[cfg(test)]
mod tests {
    #![expect(unsafe_code, reason = "a system call by its number is an unsafe call")]

    use std::thread;

    use super::*;
    use crate::sandbox::linux;

    fn policy(files: SandboxMode, network: bool) -> Policy {
        Policy {
            files,
            network,
            workspace: std::env::temp_dir(),
            hidden: vec!["/etc/switchboard-hidden".into()],
            protected: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
        }
    }

    /// The errno of each of these calls in a sandbox, with all arguments set to 1.
    fn errors(policy: Policy, numbers: Vec<i64>) -> Vec<i32> {
        let confined = move || {
            let mediator = linux::confine(&policy, None).unwrap();
            if let Some(mediator) = mediator {
                // The mediator thread is confined as well, which does not matter: none of the calls succeed.
                thread::spawn(move || mediator.serve());
            }
            let errors = numbers.into_iter().map(|number| {
                // SAFETY: Every call here is refused before it does anything, which is what is tested; if it were not,
                // 1 is not a readable or writable address.
                let outcome = unsafe { libc::syscall(number, 1, 1, 1, 1, 1, 1) };
                let error = std::io::Error::last_os_error().raw_os_error();
                if outcome < 0 { error.unwrap_or(0) } else { 0 }
            });
            errors.collect()
        };
        thread::spawn(confined).join().unwrap()
    }

    #[test]
    fn the_kernel_answers_as_the_table_says() {
        let modes = [
            (SandboxMode::ReadOnly, true),
            (SandboxMode::Workspace, false),
            (SandboxMode::OwnFiles, true),
            (SandboxMode::Off, false),
        ];
        let has_landlock = crate::sandbox::is_available();
        for (mode, network) in modes {
            if mode != SandboxMode::Off && !has_landlock {
                continue;
            }
            let mut expected = Vec::new();
            for group in TABLE {
                let error = match decision(group, mode) {
                    Decision::Refuse | Decision::OnlyItself => libc::EPERM,
                    Decision::Absent => libc::ENOSYS,
                    Decision::Unsupported => libc::EOPNOTSUPP,
                    Decision::Allow | Decision::Arguments | Decision::Mediate => continue,
                };
                expected.extend(group.calls().map(|(name, number)| (*name, *number, error)));
            }
            assert!(expected.len() > 40, "{mode:?}");
            let numbers = expected.iter().map(|(_, number, _)| *number).collect();
            let found = errors(policy(mode, network), numbers);
            for ((name, _, expected), found) in expected.into_iter().zip(found) {
                assert_eq!(found, expected, "{name} in {mode:?}");
            }
        }
    }

    #[test]
    fn sockets_are_refused_by_what_they_reach() {
        let kinds = |files, network| {
            let policy = policy(files, network);
            let refusal = |refusal: Option<Refusal>| match refusal.unwrap() {
                Refusal::Never => "never",
                Refusal::Always => "always",
                Refusal::If(_) => "some",
            };
            (refusal(sockets(&policy)), refusal(pairs(&policy)))
        };
        for mode in SandboxMode::ALL {
            assert_eq!(kinds(mode, false), ("always", "some"), "{mode:?}");
        }
        assert_eq!(kinds(SandboxMode::ReadOnly, true), ("some", "some"));
        assert_eq!(kinds(SandboxMode::OwnFiles, true), ("never", "never"));
    }
    /// The action of a program for a call: evaluates the instructions that seccomp filters consist of.
    fn action(program: &[sock_filter], number: i64, arguments: &[u64]) -> u32 {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => 0xC000_003E,
            "aarch64" => 0xC000_00B7,
            other => panic!("{other}"),
        };
        // `struct seccomp_data`: number, architecture, instruction pointer, six arguments.
        let mut data = Vec::new();
        data.extend(u32::try_from(number).unwrap().to_ne_bytes());
        data.extend(u32::to_ne_bytes(architecture));
        data.extend(0_u64.to_ne_bytes());
        for index in 0..6 {
            data.extend(arguments.get(index).unwrap_or(&0).to_ne_bytes());
        }
        let (mut accumulator, mut at) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
            match code {
                0x20 => {
                    let offset = usize::try_from(k).unwrap();
                    let word = data[offset..offset + 4].try_into().unwrap();
                    accumulator = u32::from_ne_bytes(word);
                }
                0x54 => accumulator &= k,
                0x05 => at += usize::try_from(k).unwrap(),
                0x15 => jump(accumulator == k),
                0x25 => jump(accumulator > k),
                0x35 => jump(accumulator >= k),
                0x45 => jump(accumulator & k != 0),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    /// The errno that the filters of a policy return for a call; 0 if they let it through.
    fn refused_with(files: SandboxMode, network: bool, number: i64, arguments: &[u64]) -> i32 {
        let filters = of(&policy(files, network)).unwrap();
        let actions = filters.programs.iter();
        let actions: Vec<u32> = actions
            .map(|program| action(program, number, arguments))
            .filter(|action| *action != libc::SECCOMP_RET_ALLOW)
            .collect();
        match actions[..] {
            [] => 0,
            [action] => {
                assert_eq!(
                    action & libc::SECCOMP_RET_ACTION_FULL,
                    libc::SECCOMP_RET_ERRNO
                );
                (action & libc::SECCOMP_RET_DATA).cast_signed()
            }
            _ => panic!("several filters refuse {number}: {actions:?}"),
        }
    }

    fn unsigned(value: i32) -> u64 {
        u64::from(value.cast_unsigned())
    }

    const CONFINED: [SandboxMode; 2] = [SandboxMode::ReadOnly, SandboxMode::Workspace];

    #[test]
    fn files_are_not_confined_where_only_the_network_is_off() {
        for group in TABLE.iter().filter(|group| group.acts_on == ActsOn::Files) {
            for (name, number) in group.calls() {
                let found = refused_with(SandboxMode::Off, false, *number, &[]);
                assert_eq!(found, 0, "{name}");
            }
        }
        let set_id = [unsigned(libc::AT_FDCWD), 0, unsigned(libc::O_CREAT), 0o4755];
        let open = refused_with(SandboxMode::Off, false, libc::SYS_openat, &set_id);
        assert_eq!(open, 0);
        let lease = refused_with(SandboxMode::Off, false, libc::SYS_fcntl, &[0, F_SETLEASE]);
        assert_eq!(lease, 0);
        let filters = of(&policy(SandboxMode::Off, false)).unwrap();
        assert!(filters.mediated.is_none() && filters.unmediated.is_none());
    }

    #[test]
    fn no_input_is_pushed_into_a_terminal_in_any_mode() {
        for mode in SandboxMode::ALL {
            for request in [TIOCSTI, TIOCLINUX] {
                let found = refused_with(mode, false, libc::SYS_ioctl, &[0, request]);
                assert_eq!(found, libc::EPERM, "{mode:?}");
            }
            // TCGETS, which every program asks for.
            let other = refused_with(mode, false, libc::SYS_ioctl, &[0, 0x5401]);
            assert_eq!(other, 0, "{mode:?}");
            // FS_IOC_SETFLAGS
            let flags = refused_with(mode, false, libc::SYS_ioctl, &[0, 0x4008_6602]);
            let is_off = mode == SandboxMode::Off;
            assert_eq!(flags, if is_off { 0 } else { libc::EPERM }, "{mode:?}");
            // A pipe's size, which is harmless, has a number beside those of leases and notices.
            let size = refused_with(mode, false, libc::SYS_fcntl, &[0, 1031]);
            assert_eq!(size, 0, "{mode:?}");
            for command in [F_SETLEASE, F_NOTIFY] {
                let found = refused_with(mode, false, libc::SYS_fcntl, &[0, command]);
                assert_eq!(found, if is_off { 0 } else { libc::EPERM }, "{mode:?}");
            }
        }
    }

    #[test]
    fn no_file_is_created_with_a_set_id_bit() {
        let create = unsigned(libc::O_CREAT | libc::O_WRONLY);
        let unnamed = unsigned(libc::O_TMPFILE | libc::O_RDWR);
        let folder = unsigned(libc::O_DIRECTORY);
        for mode in CONFINED {
            let check = |number: i64, arguments: &[u64], expected: i32| {
                let found = refused_with(mode, true, number, arguments);
                assert_eq!(found, expected, "{mode:?} {number} {arguments:?}");
                let own_files = refused_with(SandboxMode::OwnFiles, true, number, arguments);
                assert_eq!(own_files, 0, "{number} {arguments:?}");
            };
            for (bits, expected) in [(0o755, 0), (0o4755, libc::EPERM), (0o2755, libc::EPERM)] {
                check(libc::SYS_openat, &[0, 0, create, bits], expected);
                check(libc::SYS_openat, &[0, 0, unnamed, bits], expected);
                // The mode means nothing if no file is created.
                check(libc::SYS_openat, &[0, 0, 0, bits], 0);
                check(libc::SYS_openat, &[0, 0, folder, bits], 0);
                check(libc::SYS_mknodat, &[0, 0, bits], expected);
                #[cfg(target_arch = "x86_64")]
                {
                    check(libc::SYS_open, &[0, create, bits], expected);
                    check(libc::SYS_open, &[0, unnamed, bits], expected);
                    check(libc::SYS_open, &[0, folder, bits], 0);
                    check(libc::SYS_creat, &[0, bits], expected);
                    check(libc::SYS_mknod, &[0, bits], expected);
                }
            }
        }
    }

    #[test]
    fn threads_can_be_made_and_namespaces_cannot() {
        let thread = unsigned(libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_THREAD);
        for mode in CONFINED {
            assert_eq!(refused_with(mode, true, libc::SYS_clone, &[thread]), 0);
            for bit in NAMESPACES {
                let found = refused_with(mode, true, libc::SYS_clone, &[thread | bit]);
                assert_eq!(found, libc::EPERM, "{mode:?} {bit:#x}");
            }
        }
        let user = [NAMESPACES[0]];
        let own_files = refused_with(SandboxMode::OwnFiles, true, libc::SYS_clone, &user);
        assert_eq!(own_files, 0);
    }

    #[test]
    fn a_process_changes_only_its_own_priority_and_limits() {
        let refused = libc::EPERM;
        for mode in SandboxMode::ALL {
            for (number, arguments, expected) in [
                (libc::SYS_setpriority, [PRIO_PROCESS, 0], 0),
                (libc::SYS_setpriority, [PRIO_PROCESS, 7], refused),
                (libc::SYS_setpriority, [1, 0], refused),
                (libc::SYS_ioprio_set, [IOPRIO_WHO_PROCESS, 0], 0),
                (libc::SYS_ioprio_set, [IOPRIO_WHO_PROCESS, 7], refused),
                (libc::SYS_ioprio_set, [2, 0], refused),
                (libc::SYS_prctl, [PR_SCHED_CORE, 0], refused),
                (libc::SYS_prctl, [unsigned(libc::PR_SET_NO_NEW_PRIVS), 1], 0),
                (libc::SYS_prlimit64, [0, 0], 0),
                (libc::SYS_prlimit64, [7, 0], refused),
            ] {
                let found = refused_with(mode, false, number, &arguments);
                assert_eq!(found, expected, "{mode:?} {number} {arguments:?}");
            }
        }
    }

    #[test]
    fn sockets_are_of_the_families_that_the_policy_allows() {
        let [unix, inet, inet6, netlink, packet] = [
            libc::AF_UNIX,
            libc::AF_INET,
            libc::AF_INET6,
            libc::AF_NETLINK,
            libc::AF_PACKET,
        ]
        .map(unsigned);
        let socket = |mode, network, family| {
            refused_with(mode, network, libc::SYS_socket, &[family, 1]) == libc::EPERM
        };
        for family in [unix, inet, inet6, netlink, packet] {
            for mode in SandboxMode::ALL {
                assert!(socket(mode, false, family), "{mode:?} {family}");
            }
            assert!(!socket(SandboxMode::OwnFiles, true, family), "{family}");
            for mode in CONFINED {
                let is_refused = family == unix || family == packet;
                assert_eq!(socket(mode, true, family), is_refused, "{mode:?} {family}");
            }
        }
        let cloexec = unsigned(libc::SOCK_CLOEXEC);
        let pair = |mode, network, family, kind: i32| {
            let arguments = [family, unsigned(kind) | cloexec];
            refused_with(mode, network, libc::SYS_socketpair, &arguments) == libc::EPERM
        };
        for mode in SandboxMode::ALL {
            for network in [true, false] {
                let is_free = network && matches!(mode, SandboxMode::Off | SandboxMode::OwnFiles);
                assert!(!pair(mode, network, unix, libc::SOCK_STREAM), "{mode:?}");
                assert!(!pair(mode, network, unix, libc::SOCK_SEQPACKET), "{mode:?}");
                let datagram = pair(mode, network, unix, libc::SOCK_DGRAM);
                assert_eq!(datagram, !is_free, "{mode:?} {network}");
                let other = pair(mode, network, inet, libc::SOCK_STREAM);
                assert_eq!(other, !is_free, "{mode:?} {network}");
            }
        }
    }

    #[test]
    fn calls_beyond_the_table_do_not_exist() {
        for mode in SandboxMode::ALL {
            assert_eq!(refused_with(mode, false, HIGHEST + 1, &[]), libc::ENOSYS);
            // `listns`, the last of the table, is allowed.
            assert_eq!(refused_with(mode, false, HIGHEST, &[]), 0);
        }
    }

    #[test]
    fn what_the_supervisor_would_do_is_refused_without_one() {
        for mode in [
            SandboxMode::ReadOnly,
            SandboxMode::Workspace,
            SandboxMode::OwnFiles,
        ] {
            let filters = of(&policy(mode, true)).unwrap();
            let (mediated, unmediated) = (filters.mediated.unwrap(), filters.unmediated.unwrap());
            let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            for number in [libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_utimensat] {
                assert_eq!(refused_with(mode, true, number, &[]), 0);
                let asked = action(&mediated, number, &[]);
                assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF);
                assert_eq!(action(&unmediated, number, &[]), refused);
            }
            for program in [&mediated, &unmediated] {
                let other = action(program, libc::SYS_read, &[]);
                assert_eq!(other, libc::SECCOMP_RET_ALLOW);
            }
        }
    }
}
