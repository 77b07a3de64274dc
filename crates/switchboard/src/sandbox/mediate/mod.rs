//! Mediation: the supervisor makes calls for a sandboxed process that Landlock has no rights for, such as changing the
//! mode, the owner and the times of a file, or watching folders.
//!
//! The kernel suspends the caller and notifies us. We open the named file once, check its real path, and act on the
//! open descriptor, so that concurrent changes by the caller have no effect. The original call is never continued. If
//! another listener is already installed, all of these calls are refused.
//!
//! Runs on its own thread, outside the sandbox, until the last sandboxed process has exited.

mod listener;
mod request;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, fstat, inotify, open, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

pub(super) use listener::{Listener, listen};
use request::{Change, Place, Request};

/// The files that the calls may act on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Folders whose files may be changed.
    pub(super) writable: Vec<PathBuf>,
    /// Paths in them that may not be changed.
    pub(super) kept_back: Vec<PathBuf>,
    /// Paths that may not be watched.
    pub(super) hidden: Vec<PathBuf>,
}

/// Answers the calls of one sandbox.
pub(crate) struct Mediator {
    pub(super) listener: Listener,
    pub(super) scope: Scope,
}

impl Mediator {
    /// Answers calls until no caller is left.
    pub(crate) fn serve(self) {
        while let Some(call) = self.listener.next() {
            let outcome = Request::of(&call).and_then(|request| {
                // The caller may have been killed and its ID reused.
                if !self.listener.is_waiting(&call) {
                    return Err(Errno::SRCH);
                }
                self.scope.carry_out(&request)
            });
            self.listener.answer(&call, outcome);
        }
    }
}

impl Scope {
    fn carry_out(&self, request: &Request) -> Result<i64, Errno> {
        // A caller with another user ID must not use our privileges.
        if request.caller.user()? != geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        let file = opened(request)?;
        let real = real_path(&file)?;
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        if let Change::Watch { queue, mask } = request.change {
            if is_in(&self.hidden, &real) {
                return Err(Errno::ACCESS);
            }
            let queue = descriptor_of(request.caller.process()?, queue)?;
            let flags =
                inotify::WatchFlags::from_bits_retain(mask) & !inotify::WatchFlags::DONT_FOLLOW;
            return inotify::add_watch(&queue, itself, flags).map(i64::from);
        }
        let stat = fstat(&file)?;
        // An unnamed or deleted file is accessible only to the caller.
        let is_nobody_elses = stat.st_nlink == 0 || !real.is_absolute();
        if !is_nobody_elses && !self.may_change(&real) {
            return Err(Errno::PERM);
        }
        match &request.change {
            Change::Mode(mode) => {
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                if is_file && mode & SET_ID != 0 {
                    return Err(Errno::PERM);
                }
                rustix::fs::chmod(itself, Mode::from_raw_mode(*mode))?;
            }
            Change::Owner(user, group) => {
                let user = (*user != UNCHANGED).then(|| Uid::from_raw(*user));
                let group = (*group != UNCHANGED).then(|| Gid::from_raw(*group));
                rustix::fs::chownat(&file, "", user, group, AtFlags::EMPTY_PATH)?;
            }
            Change::Times(times) => {
                if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                    rustix::fs::utimensat(&file, "", times, AtFlags::EMPTY_PATH)?;
                } else {
                    rustix::fs::utimensat(CWD, itself, times, AtFlags::empty())?;
                }
            }
            Change::Watch { .. } => {}
        }
        Ok(0)
    }

    fn may_change(&self, real: &Path) -> bool {
        is_in(&self.writable, real) && !is_in(&self.kept_back, real)
    }
}

const SET_ID: u32 = 0o6000;
/// The owner ID that means "unchanged".
const UNCHANGED: u32 = u32::MAX;

fn is_in(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Opens the file that a call names as its caller would resolve it, without read or write access.
fn opened(request: &Request) -> Result<OwnedFd, Errno> {
    let of_caller = |name: &str| format!("/proc/{}/{name}", request.caller.thread());
    let folder = |folder: i32| match folder {
        libc::AT_FDCWD => open(
            of_caller("cwd"),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        ),
        number => descriptor(&of_caller("fd"), number),
    };
    match &request.place {
        Place::Descriptor(number) => descriptor(&of_caller("fd"), *number),
        Place::Path {
            folder: start,
            path,
            follow,
        } => {
            let mut flags = OFlags::PATH | OFlags::CLOEXEC;
            if !follow {
                flags |= OFlags::NOFOLLOW;
            }
            // These refer to the calling process.
            for own in ["/proc/self/", "/proc/thread-self/"] {
                if let Ok(rest) = path.strip_prefix(own) {
                    return open(Path::new(&of_caller("")).join(rest), flags, Mode::empty());
                }
            }
            if path.is_absolute() {
                return open(path, flags, Mode::empty());
            }
            openat(folder(*start)?, path, flags, Mode::empty())
        }
    }
}

fn descriptor(folder: &str, number: i32) -> Result<OwnedFd, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    let opened = open(
        format!("{folder}/{number}"),
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    );
    opened.map_err(|error| match error {
        Errno::NOENT => Errno::BADF,
        other => other,
    })
}

/// Duplicates a descriptor of another process.
fn descriptor_of(process: Pid, number: i32) -> Result<OwnedFd, Errno> {
    let process = pidfd_open(process, PidfdFlags::empty())?;
    pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
}

/// The path of an open file, according to the kernel.
fn real_path(file: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).map_err(|error| errno(&error))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Reads the memory of a thread.
fn read_memory(thread: u32, address: u64, room: &mut [u8]) -> Result<usize, Errno> {
    use std::os::unix::fs::FileExt as _;
    let memory = File::open(format!("/proc/{thread}/mem")).map_err(|error| errno(&error))?;
    memory.read_at(room, address).map_err(|_| Errno::FAULT)
}
