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

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::listener::Call;
    use super::*;

    const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;
    const NOFOLLOW: u64 = 0x100;

    /// A folder with `open`, in which files may be changed except for `open/kept`, and `closed`.
    struct Folders {
        _folder: tempfile::TempDir,
        root: PathBuf,
        scope: Scope,
    }

    impl Folders {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            for made in ["open/kept", "closed"] {
                fs::create_dir_all(root.join(made)).unwrap();
                fs::write(root.join(made).join("file"), "").unwrap();
            }
            fs::write(root.join("open/file"), "").unwrap();
            for file in ["open/kept/file", "closed/file", "open/file"] {
                fs::set_permissions(root.join(file), fs::Permissions::from_mode(0o600)).unwrap();
            }
            let scope = Scope {
                writable: vec![root.join("open")],
                kept_back: vec![root.join("open/kept")],
                hidden: vec![root.join("closed")],
            };
            Self {
                _folder: folder,
                root,
                scope,
            }
        }

        fn call(&self, number: i64, arguments: &[u64]) -> Result<i64, Errno> {
            let request = Request::of(&Call::of_this_thread(number, arguments))?;
            self.scope.carry_out(&request)
        }

        /// Makes a call about a path below the root: its folder, its path and more.
        fn at(&self, number: i64, path: &str, more: &[u64]) -> Result<i64, Errno> {
            self.at_path(number, &self.root.join(path), more)
        }

        fn at_path(&self, number: i64, path: &Path, more: &[u64]) -> Result<i64, Errno> {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            let mut arguments = vec![HERE, path.as_ptr().addr() as u64];
            arguments.extend(more);
            self.call(number, &arguments)
        }

        fn chmod(&self, path: &str, mode: u64) -> Result<i64, Errno> {
            self.at(libc::SYS_fchmodat, path, &[mode])
        }

        fn mode(&self, path: &str) -> u32 {
            fs::symlink_metadata(self.root.join(path)).unwrap().mode() & 0o7777
        }
    }

    fn number(of: &impl AsRawFd) -> u64 {
        u64::try_from(of.as_raw_fd()).unwrap()
    }

    #[test]
    fn the_mode_of_a_file_changes_where_the_policy_lets_it() {
        let folders = Folders::new();
        assert_eq!(folders.chmod("open/file", 0o640), Ok(0));
        assert_eq!(folders.mode("open/file"), 0o640);
        for refused in ["open/kept/file", "open/kept", "closed/file", "closed"] {
            let before = folders.mode(refused);
            assert_eq!(folders.chmod(refused, 0o777), Err(Errno::PERM), "{refused}");
            assert_eq!(folders.mode(refused), before, "{refused}");
        }
        assert_eq!(folders.chmod("open/none", 0o640), Err(Errno::NOENT));
        // Links are followed, and what counts is where they lead.
        symlink("../closed/file", folders.root.join("open/link")).unwrap();
        symlink("open/file", folders.root.join("link")).unwrap();
        assert_eq!(folders.chmod("open/link", 0o777), Err(Errno::PERM));
        assert_eq!(folders.chmod("link", 0o644), Ok(0));
        assert_eq!(folders.mode("open/file"), 0o644);
    }

    #[test]
    fn a_file_gets_no_set_id_bit_and_a_folder_may() {
        let folders = Folders::new();
        for bit in [0o4000, 0o2000, 0o6000] {
            let found = folders.chmod("open/file", 0o755 | bit);
            assert_eq!(found, Err(Errno::PERM), "{bit:o}");
        }
        assert_eq!(folders.mode("open/file"), 0o600);
        assert_eq!(folders.chmod("open/file", 0o1700), Ok(0));
        assert_eq!(folders.chmod("open", 0o2700), Ok(0));
        assert_eq!(folders.mode("open"), 0o2700);
    }

    #[test]
    fn nothing_is_opened_for_reading_or_writing() {
        let folders = Folders::new();
        // To open a pipe for reading would wait for a writer, and a socket cannot be opened at all.
        let pipe = folders.root.join("open/pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(folders.chmod("open/pipe", 0o644), Ok(0));
        assert_eq!(folders.mode("open/pipe"), 0o644);
        let (socket, _other) = UnixStream::pair().unwrap();
        let found = folders.call(libc::SYS_fchmod, &[number(&socket), 0o600]);
        assert_eq!(found, Ok(0));
    }

    #[test]
    fn a_descriptor_counts_by_the_file_behind_it() {
        let folders = Folders::new();
        let fchmod = |descriptor: u64| folders.call(libc::SYS_fchmod, &[descriptor, 0o640]);
        let open = File::open(folders.root.join("open/file")).unwrap();
        let closed = File::open(folders.root.join("closed/file")).unwrap();
        assert_eq!(fchmod(number(&open)), Ok(0));
        assert_eq!(folders.mode("open/file"), 0o640);
        assert_eq!(fchmod(number(&closed)), Err(Errno::PERM));
        // A file that has no name any more is the caller's own.
        fs::remove_file(folders.root.join("closed/file")).unwrap();
        assert_eq!(fchmod(number(&closed)), Ok(0));
        for missing in [u64::from((-5_i32).cast_unsigned()), 1_000_000] {
            assert_eq!(fchmod(missing), Err(Errno::BADF));
        }
        assert_eq!(descriptor("/proc/self/fd", 0).map(drop), Ok(()));
    }

    #[test]
    fn a_relative_path_starts_at_its_folder() {
        let folders = Folders::new();
        let name = c"file".as_ptr().addr() as u64;
        let chmod = |folder: u64| folders.call(libc::SYS_fchmodat, &[folder, name, 0o640]);
        let [open, closed] = ["open", "closed"].map(|path| folders.root.join(path));
        let (open, closed) = (File::open(open).unwrap(), File::open(closed).unwrap());
        assert_eq!(chmod(number(&open)), Ok(0));
        assert_eq!(folders.mode("open/file"), 0o640);
        assert_eq!(chmod(number(&closed)), Err(Errno::PERM));
        // The working folder of this test is the one of its package, outside of the scope.
        let manifest = folders.at_path(libc::SYS_fchmodat, Path::new("Cargo.toml"), &[0o777]);
        assert_eq!(manifest, Err(Errno::PERM));
        let missing = folders.at_path(libc::SYS_fchmodat, Path::new("none"), &[0o777]);
        assert_eq!(missing, Err(Errno::NOENT));
        let own = format!("/proc/self/fd/{}/file", open.as_raw_fd());
        let found = folders.at_path(libc::SYS_fchmodat, Path::new(&own), &[0o600]);
        assert_eq!(found, Ok(0));
        assert_eq!(folders.mode("open/file"), 0o600);
    }

    #[test]
    fn one_owner_can_be_left_as_it_is() {
        let folders = Folders::new();
        let path = folders.root.join("open/file");
        let owner = || {
            let metadata = fs::metadata(&path).unwrap();
            (metadata.uid(), metadata.gid())
        };
        let (user, group) = owner();
        // Only root can give files away.
        let (other_user, other_group) = if geteuid().is_root() {
            (user + 1, group + 2)
        } else {
            (user, group)
        };
        let chown = |user: u32, group: u32| {
            let ids = [u64::from(user), u64::from(group)];
            folders.at(libc::SYS_fchownat, "open/file", &ids)
        };
        assert_eq!(chown(other_user, UNCHANGED), Ok(0));
        assert_eq!(owner(), (other_user, group));
        assert_eq!(chown(UNCHANGED, other_group), Ok(0));
        assert_eq!(owner(), (other_user, other_group));
        assert_eq!(chown(UNCHANGED, UNCHANGED), Ok(0));
        assert_eq!(owner(), (other_user, other_group));
    }

    #[test]
    fn the_times_of_a_file_or_of_a_link_change() {
        let folders = Folders::new();
        symlink("file", folders.root.join("open/link")).unwrap();
        let changed = |path: &str| {
            let metadata = fs::symlink_metadata(folders.root.join(path)).unwrap();
            (metadata.mtime(), metadata.mtime_nsec())
        };
        let set = |path: &str, seconds: i64, flags: u64| {
            let times = [seconds, 1, seconds, 2];
            let address = times.as_ptr().addr() as u64;
            folders.at(libc::SYS_utimensat, path, &[address, flags])
        };
        assert_eq!(set("open/file", 1_000, 0), Ok(0));
        assert_eq!(changed("open/file"), (1_000, 2));
        assert_eq!(set("open/link", 2_000, NOFOLLOW), Ok(0));
        assert_eq!(changed("open/link"), (2_000, 2));
        assert_eq!(changed("open/file"), (1_000, 2));
        assert_eq!(set("open/link", 3_000, 0), Ok(0));
        assert_eq!(changed("open/file"), (3_000, 2));
        assert_eq!(changed("open/link"), (2_000, 2));
        assert_eq!(set("closed/file", 1_000, 0), Err(Errno::PERM));
    }

    #[test]
    fn a_hidden_folder_is_not_watched_and_others_are() {
        let folders = Folders::new();
        let queue = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let mask = inotify::WatchFlags::CREATE | inotify::WatchFlags::DONT_FOLLOW;
        let watch = |path: &str| {
            let path = CString::new(folders.root.join(path).as_os_str().as_bytes()).unwrap();
            let address = path.as_ptr().addr() as u64;
            let arguments = [number(&queue), address, u64::from(mask.bits())];
            folders.call(libc::SYS_inotify_add_watch, &arguments)
        };
        assert_eq!(watch("closed"), Err(Errno::ACCESS));
        assert_eq!(watch("closed/file"), Err(Errno::ACCESS));
        // Not in the scope of changes, and no secret either.
        assert_eq!(watch("open/kept"), Ok(1));
        fs::write(folders.root.join("open/kept/new"), "").unwrap();
        fs::write(folders.root.join("closed/new"), "").unwrap();
        let mut room = [std::mem::MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&queue, &mut room);
        let event = events.next().unwrap();
        assert_eq!(event.file_name(), Some(c"new"));
        assert_eq!(event.events(), inotify::ReadFlags::CREATE);
        assert_eq!(events.next().map(drop), Err(Errno::AGAIN));
    }

    #[test]
    fn a_caller_that_is_another_user_changes_nothing() {
        let folders = Folders::new();
        // Only root can start a process as another user; for others the first process is one.
        let mut child = geteuid().is_root().then(|| {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).uid(65_534);
            command.spawn().unwrap()
        });
        let thread = child.as_ref().map_or(1, std::process::Child::id);
        let mut call = Call::of_this_thread(libc::SYS_fchmod, &[0, 0o640]);
        call.thread = thread;
        let request = Request::of(&call).unwrap();
        let user = request.caller.user();
        let others = folders.scope.carry_out(&request);
        if let Some(child) = &mut child {
            drop(child.stdin.take());
            child.wait().unwrap();
            assert_eq!(user, Ok(65_534));
        }
        assert_ne!(user, Ok(geteuid().as_raw()));
        assert_eq!(others, Err(Errno::PERM));
    }
}
