//! The table of all system calls: what each acts on, and the sandbox's decision.
//!
//! `filter` compiles the decisions to seccomp programs. A test checks that every number of the kernel is in the table
//! once. A number above [`HIGHEST`] gets `ENOSYS`, so calls added by newer kernels are blocked until they are in the
//! table. `docs/sandbox.md` explains the decisions to users.

/// The object of a call besides the calling process itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActsOn {
    /// Only the caller: its memory, its threads, its timers.
    Itself,
    /// Files, by path or by descriptor.
    Files,
    /// Mounts and namespaces: another view of the files.
    Mounts,
    /// Other processes, or channels to them.
    Processes,
    /// Sockets.
    Sockets,
    /// The machine: modules, clocks, keys, tracing.
    Kernel,
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Allowed. If the call acts on more than the caller, the reason names what else limits it.
    Allow,
    /// Fails with `EPERM`.
    Refuse,
    /// Fails with `ENOSYS`, so that libraries use the older call.
    Absent,
    /// Fails with `EOPNOTSUPP`, which programs take for a file system without this feature.
    Unsupported,
    /// Fails with `EPERM` unless its first argument, a PID, is 0: the caller.
    OnlyItself,
    /// Depends on the arguments; see `filter`.
    Arguments,
    /// The supervisor makes the call for the caller, on files that the policy lets it change; otherwise `EPERM`.
    Mediate,
}

/// Calls with the same decision.
pub(super) struct Group {
    pub(super) acts_on: ActsOn,
    /// In `read-only` and `workspace`.
    pub(super) confined: Decision,
    /// In `own-files`.
    pub(super) own_files: Decision,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test and for readers"))]
    pub(super) reason: &'static str,
    calls: &'static [Call],
    /// Calls that only x86-64 has.
    legacy: &'static [Call],
    /// Calls missing from the C library's headers, by their number, which is the same on every architecture.
    numbered: &'static [Call],
}

/// A call by its name and number.
pub(super) type Call = (&'static str, i64);

/// The highest number in the table.
pub(super) const HIGHEST: i64 = 470;

impl Group {
    /// The calls of the group on this architecture.
    pub(super) fn calls(&self) -> impl Iterator<Item = &'static Call> {
        let parts = [self.calls, self.legacy, self.numbered];
        parts.into_iter().flatten()
    }

    const fn new(
        acts_on: ActsOn,
        confined: Decision,
        own_files: Decision,
        reason: &'static str,
        calls: &'static [Call],
    ) -> Self {
        Self {
            acts_on,
            confined,
            own_files,
            reason,
            calls,
            legacy: &[],
            numbered: &[],
        }
    }

    const fn legacy(mut self, legacy: &'static [Call]) -> Self {
        self.legacy = legacy;
        self
    }

    const fn numbered(mut self, numbered: &'static [Call]) -> Self {
        self.numbered = numbered;
        self
    }
}

macro_rules! calls {
    ($($name:ident)*) => {
        &[$((stringify!($name), libc::$name)),*]
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! legacy {
    ($($name:ident)*; $(($unnamed:literal, $number:literal)),*) => {
        &[$((stringify!($name), libc::$name),)* $(($unnamed, $number),)*]
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! legacy {
    ($($name:ident)*; $(($unnamed:literal, $number:literal)),*) => {
        &[]
    };
}

use ActsOn::{Files, Itself, Kernel, Mounts, Processes, Sockets};
use Decision::{Absent, Allow, Arguments, Mediate, OnlyItself, Refuse, Unsupported};

#[rustfmt::skip]
pub(super) const TABLE: &[Group] = &[
    Group::new(Files, Allow, Allow,
        "Landlock decides by the path and the access that is asked for.",
        calls!(
            SYS_execve SYS_execveat SYS_truncate SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_linkat SYS_symlinkat
            SYS_getdents64 SYS_fallocate SYS_copy_file_range
        ))
        .legacy(legacy!(
            SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_renameat SYS_link SYS_symlink SYS_getdents
        ; )),
    Group::new(Files, Arguments, Allow,
        "Landlock decides by the path; a new file with a set-user-id or set-group-id bit is refused.",
        calls!(SYS_openat SYS_mknodat))
        .legacy(legacy!(SYS_open SYS_creat SYS_mknod; )),
    Group::new(Files, Absent, Allow,
        "The mode of a new file is in memory, where no filter can look for a set-user-id bit; everything that calls it falls back to openat.",
        calls!(SYS_openat2)),
    Group::new(Files, Mediate, Mediate,
        "Landlock has no right for the mode, the owner and the times of a file: anything that can be named could be changed.",
        calls!(SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_utimensat))
        .legacy(legacy!(SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat; ))
        .numbered(&[("fchmodat2", 452)]),
    Group::new(Files, Mediate, Mediate,
        "Landlock has no right for watches: one on a hidden folder reveals the names of its entries.",
        calls!(SYS_inotify_add_watch)),
    Group::new(Files, Unsupported, Unsupported,
        "Landlock has no right for extended attributes, and an access control list is one: they could change who may read a file.",
        calls!(
            SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_removexattr SYS_lremovexattr SYS_fremovexattr
        ))
        .numbered(&[("setxattrat", 463), ("removexattrat", 466)]),
    Group::new(Files, Refuse, Refuse,
        "Attributes of files that cannot be written; a newer form of an ioctl that is refused as well.",
        calls!())
        .numbered(&[("file_setattr", 469)]),
    Group::new(Files, Refuse, Refuse,
        "Watches on whole mounts, past Landlock.",
        calls!(SYS_fanotify_init SYS_fanotify_mark)),
    Group::new(Files, Allow, Allow,
        "Returns metadata, not content; the names in a hidden folder cannot be listed.",
        calls!(
            SYS_fstat SYS_newfstatat SYS_statx SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_statfs
            SYS_fstatfs SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr SYS_llistxattr SYS_flistxattr
            SYS_name_to_handle_at SYS_chdir SYS_fchdir SYS_getcwd
        ))
        .legacy(legacy!(SYS_stat SYS_lstat SYS_access SYS_readlink SYS_ustat; ))
        .numbered(&[("getxattrat", 464), ("listxattrat", 465), ("file_getattr", 468)]),
    Group::new(Files, Allow, Allow,
        "Acts on a descriptor, with the rights that it was opened with.",
        calls!(
            SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2
            SYS_pwritev2 SYS_lseek SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_ftruncate SYS_sendfile
            SYS_splice SYS_tee SYS_vmsplice SYS_fsync SYS_fdatasync SYS_readahead SYS_fadvise64 SYS_flock
            SYS_sync SYS_syncfs SYS_inotify_init1 SYS_inotify_rm_watch SYS_io_setup SYS_io_destroy
            SYS_io_getevents SYS_io_submit SYS_io_cancel
        ))
        .legacy(legacy!(SYS_dup2 SYS_sync_file_range SYS_inotify_init; ("io_pgetevents", 333)))
        .numbered(&[("cachestat", 451)]),
    Group::new(Files, Arguments, Arguments,
        "Leases and directory notices (fcntl), input pushed into a terminal and attributes of files (ioctl) are refused; the rest acts on a descriptor.",
        calls!(SYS_fcntl SYS_ioctl)),
    Group::new(Mounts, Refuse, Refuse,
        "Another view of the files, in which rules about paths mean something else.",
        calls!(
            SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_move_mount SYS_open_tree SYS_fsopen SYS_fsconfig
            SYS_fsmount SYS_fspick SYS_mount_setattr SYS_open_by_handle_at
        ))
        .numbered(&[("open_tree_attr", 467)]),
    Group::new(Mounts, Refuse, Allow,
        "New namespaces give a process capabilities; Landlock stays in force in them, and refuses mounts.",
        calls!(SYS_unshare)),
    Group::new(Mounts, Refuse, Refuse,
        "Enters the namespaces of a process outside.",
        calls!(SYS_setns)),
    Group::new(Mounts, Allow, Allow,
        "Lists mounts and namespaces.",
        calls!())
        .numbered(&[("statmount", 457), ("listmount", 458), ("listns", 470)]),
    Group::new(Processes, Arguments, Allow,
        "New namespaces are refused.",
        calls!(SYS_clone)),
    Group::new(Processes, Absent, Allow,
        "Its flags are in memory, where no filter can look; libraries fall back to clone.",
        calls!(SYS_clone3)),
    Group::new(Processes, Allow, Allow,
        "Landlock refuses signals to processes outside the sandbox (kernel 6.12 or newer).",
        calls!(
            SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_pidfd_send_signal
        )),
    Group::new(Processes, Refuse, Allow,
        "Reads and changes another process; in own-files Landlock refuses that outside the sandbox, and debuggers work within it.",
        calls!(
            SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_kcmp SYS_process_madvise
            SYS_perf_event_open
        )),
    Group::new(Processes, Refuse, Refuse,
        "Takes the memory of a dying process.",
        calls!(SYS_process_mrelease)),
    Group::new(Processes, OnlyItself, OnlyItself,
        "A limit, a priority or a processor set of a process outside, such as the supervisor, could disrupt it.",
        calls!(
            SYS_prlimit64 SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setparam SYS_sched_setattr
            SYS_migrate_pages SYS_move_pages
        )),
    Group::new(Processes, Arguments, Arguments,
        "Only the priority of the caller: not that of other processes, groups or users.",
        calls!(SYS_setpriority SYS_ioprio_set)),
    Group::new(Processes, Arguments, Arguments,
        "Core scheduling acts on other processes (PR_SCHED_CORE); the rest of prctl acts on the caller.",
        calls!(SYS_prctl)),
    Group::new(Processes, Refuse, Allow,
        "Shared memory, semaphores and queues of other processes, found by number and bound to no path.",
        calls!(
            SYS_shmget SYS_shmat SYS_shmctl SYS_semget SYS_semop SYS_semtimedop SYS_semctl SYS_msgget SYS_msgsnd
            SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink
        )),
    Group::new(Processes, Allow, Allow,
        "Acts on what mq_open or shmat returned.",
        calls!(SYS_shmdt SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr)),
    Group::new(Processes, Allow, Allow,
        "Returns information about a process, waits for a child, or moves a child to another group.",
        calls!(
            SYS_getpgid SYS_getsid SYS_getpriority SYS_ioprio_get SYS_sched_getaffinity SYS_sched_getattr
            SYS_sched_getparam SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_get_robust_list SYS_capget
            SYS_pidfd_open SYS_wait4 SYS_waitid SYS_setpgid
        )),
    Group::new(Sockets, Arguments, Arguments,
        "The kind of socket determines which peers it reaches; a datagram pair of Unix sockets can send to any path.",
        calls!(SYS_socket SYS_socketpair)),
    Group::new(Sockets, Allow, Allow,
        "Acts on a socket that could be made. Landlock refuses TCP where the network is off.",
        calls!(
            SYS_connect SYS_accept SYS_accept4 SYS_bind SYS_listen SYS_sendto SYS_recvfrom SYS_sendmsg
            SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_shutdown SYS_getsockname SYS_getpeername SYS_setsockopt
            SYS_getsockopt
        )),
    Group::new(Kernel, Refuse, Refuse,
        "Work that is done where no filter looks, or programs in the kernel.",
        calls!(SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_bpf SYS_userfaultfd)),
    Group::new(Kernel, Refuse, Refuse,
        "The keys of the user.",
        calls!(SYS_keyctl SYS_add_key SYS_request_key)),
    Group::new(Kernel, Refuse, Refuse,
        "The machine: modules, clocks, names, power, quotas, swap.",
        calls!(
            SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module SYS_reboot SYS_swapon SYS_swapoff
            SYS_acct SYS_quotactl SYS_quotactl_fd SYS_syslog SYS_settimeofday SYS_clock_settime SYS_adjtimex
            SYS_clock_adjtime SYS_sethostname SYS_setdomainname SYS_vhangup
        ))
        .legacy(legacy!(SYS_kexec_file_load SYS_iopl SYS_ioperm; ("create_module", 174), ("query_module", 178), ("get_kernel_syms", 177)))
        .numbered(&[("lsm_set_self_attr", 460)]),
    Group::new(Kernel, Refuse, Refuse,
        "Removed from the kernel, or never implemented.",
        calls!(SYS_nfsservctl SYS_lookup_dcookie))
        .legacy(legacy!(
            SYS_uselib SYS__sysctl SYS_getpmsg SYS_putpmsg SYS_afs_syscall SYS_tuxcall SYS_security SYS_vserver
            SYS_epoll_ctl_old SYS_epoll_wait_old SYS_sysfs
        ; )),
    Group::new(Itself, Allow, Allow,
        "Acts on the caller alone: its memory, threads, descriptors, timers and credentials, or returns public information.",
        calls!(
            SYS_mmap SYS_mprotect SYS_munmap SYS_brk SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn
            SYS_sched_yield SYS_mremap SYS_msync SYS_mincore SYS_madvise SYS_nanosleep SYS_getitimer
            SYS_setitimer SYS_getpid SYS_exit SYS_uname SYS_umask SYS_gettimeofday SYS_getrusage SYS_sysinfo
            SYS_times SYS_getuid SYS_getgid SYS_setuid SYS_setgid SYS_geteuid SYS_getegid SYS_getppid SYS_setsid
            SYS_setreuid SYS_setregid SYS_getgroups SYS_setgroups SYS_setresuid SYS_getresuid SYS_setresgid
            SYS_getresgid SYS_setfsuid SYS_setfsgid SYS_capset SYS_rt_sigpending SYS_rt_sigtimedwait
            SYS_rt_sigsuspend SYS_sigaltstack SYS_personality SYS_sched_get_priority_max
            SYS_sched_get_priority_min SYS_mlock SYS_munlock SYS_mlockall SYS_munlockall SYS_gettid SYS_futex
            SYS_remap_file_pages SYS_set_tid_address SYS_restart_syscall SYS_timer_create SYS_timer_settime
            SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete SYS_clock_gettime SYS_clock_getres
            SYS_clock_nanosleep SYS_exit_group SYS_epoll_ctl SYS_mbind SYS_set_mempolicy SYS_get_mempolicy
            SYS_pselect6 SYS_ppoll SYS_set_robust_list SYS_epoll_pwait SYS_timerfd_create SYS_timerfd_settime
            SYS_timerfd_gettime SYS_signalfd4 SYS_eventfd2 SYS_epoll_create1 SYS_pipe2 SYS_getcpu SYS_seccomp
            SYS_getrandom SYS_memfd_create SYS_membarrier SYS_mlock2 SYS_pkey_mprotect SYS_pkey_alloc
            SYS_pkey_free SYS_rseq SYS_epoll_pwait2 SYS_landlock_create_ruleset SYS_landlock_add_rule
            SYS_landlock_restrict_self SYS_memfd_secret SYS_futex_waitv SYS_set_mempolicy_home_node
        ))
        .legacy(legacy!(
            SYS_poll SYS_pipe SYS_select SYS_pause SYS_alarm SYS_fork SYS_vfork SYS_getrlimit SYS_getpgrp
            SYS_modify_ldt SYS_arch_prctl SYS_setrlimit SYS_time SYS_set_thread_area SYS_get_thread_area
            SYS_epoll_create SYS_epoll_wait SYS_signalfd SYS_eventfd
        ; ("uretprobe", 335), ("uprobe", 336)))
        .numbered(&[("map_shadow_stack", 453), ("futex_wake", 454), ("futex_wait", 455), ("futex_requeue", 456), ("lsm_get_self_attr", 459), ("lsm_list_modules", 461), ("mseal", 462)]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn by_number() -> BTreeMap<i64, (&'static str, &'static Group)> {
        let mut seen = BTreeMap::new();
        for group in TABLE {
            for (name, number) in group.calls() {
                let twice = seen.insert(*number, (*name, group));
                assert!(twice.is_none(), "{name} is in the table twice");
            }
        }
        seen
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_number_of_the_kernel_is_in_the_table_once() {
        let table = by_number();
        // Linux 6.18 defines all of these numbers on this architecture; 337 to 423 are unused.
        let missing = (0..=336)
            .chain(424..=HIGHEST)
            .find(|number| !table.contains_key(number));
        assert_eq!(missing, None, "a system call without a decision");
        let beyond = table.keys().find(|number| **number > HIGHEST);
        assert_eq!(beyond, None, "raise HIGHEST");
        assert_eq!(table.len(), 337 + 47);
    }

    #[test]
    fn what_acts_on_more_than_the_caller_has_a_reason() {
        for group in TABLE {
            assert!(group.reason.ends_with('.'), "{}", group.reason);
            if group.acts_on == Itself {
                assert_eq!((group.confined, group.own_files), (Allow, Allow));
            }
            // The stricter modes refuse everything that own-files refuses.
            if group.own_files != Allow {
                assert_eq!(group.confined, group.own_files, "{}", group.reason);
            }
        }
    }
}
