//! Decodes a call from its arguments and its caller's memory, reading each value once.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::Pid;

use super::listener::Call;
use super::read_memory;

/// A decoded call.
pub(super) struct Request {
    pub(super) caller: Caller,
    pub(super) place: Place,
    pub(super) change: Change,
}

/// The file that a call names.
pub(super) enum Place {
    Descriptor(i32),
    Path {
        /// The base for a relative path.
        folder: i32,
        path: PathBuf,
        follow: bool,
    },
}

pub(super) enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Timestamps),
    Watch { queue: i32, mask: u32 },
}

/// The calling thread.
#[derive(Clone, Copy)]
pub(super) struct Caller(u32);

/// The maximum length of a path (`PATH_MAX`).
const LONGEST: usize = 4096;
const NOFOLLOW: u64 = 0x100;
const FOLLOW: u64 = 0x400;
const EMPTY_PATH: u64 = 0x1000;
const IN_DONT_FOLLOW: u64 = 0x0200_0000;

impl Request {
    #[expect(
        clippy::many_single_char_names,
        reason = "the arguments of a system call have no other names"
    )]
    pub(super) fn of(call: &Call) -> Result<Self, Errno> {
        let caller = Caller(call.thread);
        let [a, b, c, d, e, _] = call.arguments;
        let here = u64::from(libc::AT_FDCWD.cast_unsigned());
        let at = |folder, path, flags| caller.place(folder, path, flags);
        let (place, change) = match call.number {
            libc::SYS_fchmod => (Place::Descriptor(signed(a)), Change::Mode(mode(b))),
            libc::SYS_fchmodat => (at(a, b, 0)?, Change::Mode(mode(c))),
            FCHMODAT2 => (at(a, b, d)?, Change::Mode(mode(c))),
            libc::SYS_fchown => (Place::Descriptor(signed(a)), owner(b, c)),
            libc::SYS_fchownat => (at(a, b, e)?, owner(c, d)),
            libc::SYS_utimensat => {
                let times = caller.times(c, &Unit::Nanoseconds)?;
                (at(a, b, d)?, Change::Times(times))
            }
            libc::SYS_inotify_add_watch => {
                let flags = if c & IN_DONT_FOLLOW == 0 { 0 } else { NOFOLLOW };
                let watch = Change::Watch {
                    queue: signed(a),
                    mask: word(c),
                };
                (at(here, b, flags)?, watch)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => (at(here, a, 0)?, Change::Mode(mode(b))),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chown => (at(here, a, 0)?, owner(b, c)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lchown => (at(here, a, NOFOLLOW)?, owner(b, c)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime => {
                let times = caller.times(b, &Unit::Seconds)?;
                (at(here, a, 0)?, Change::Times(times))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes => {
                let times = caller.times(b, &Unit::Microseconds)?;
                (at(here, a, 0)?, Change::Times(times))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat => {
                let times = caller.times(c, &Unit::Microseconds)?;
                (at(a, b, 0)?, Change::Times(times))
            }
            _ => return Err(Errno::PERM),
        };
        Ok(Self {
            caller,
            place,
            change,
        })
    }
}

const FCHMODAT2: i64 = 452;

/// The unit of the fractional part of a time.
enum Unit {
    #[cfg(target_arch = "x86_64")]
    Seconds,
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    Nanoseconds,
}

impl Caller {
    pub(super) fn thread(self) -> u32 {
        self.0
    }

    /// The process of the thread.
    pub(super) fn process(self) -> Result<Pid, Errno> {
        let id = self.status("Tgid:", 0)?;
        i32::try_from(id)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Errno::SRCH)
    }

    /// The user ID that file access is checked against.
    pub(super) fn user(self) -> Result<u32, Errno> {
        self.status("Uid:", 3)
    }

    fn status(self, key: &str, column: usize) -> Result<u32, Errno> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0));
        let status = status.map_err(|_| Errno::SRCH)?;
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let number = line.and_then(|line| line.split_whitespace().nth(column)?.parse().ok());
        number.ok_or(Errno::SRCH)
    }

    fn place(self, folder: u64, path: u64, flags: u64) -> Result<Place, Errno> {
        if flags & !(NOFOLLOW | FOLLOW | EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let folder = signed(folder);
        // Calls that set times pass a null path for the descriptor itself.
        let path = match path {
            0 => None,
            address => Some(self.text(address)?),
        };
        match path {
            None if folder != libc::AT_FDCWD => Ok(Place::Descriptor(folder)),
            None => Err(Errno::FAULT),
            Some(path) if path.as_os_str().is_empty() => {
                if flags & EMPTY_PATH == 0 {
                    return Err(Errno::NOENT);
                }
                Ok(match folder {
                    libc::AT_FDCWD => Place::Path {
                        folder,
                        path: ".".into(),
                        follow: true,
                    },
                    folder => Place::Descriptor(folder),
                })
            }
            Some(path) => Ok(Place::Path {
                folder,
                path,
                follow: flags & NOFOLLOW == 0,
            }),
        }
    }

    /// Reads a path from the caller's memory.
    fn text(self, address: u64) -> Result<PathBuf, Errno> {
        let mut room = [0; LONGEST];
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            // The memory after the text may be unmapped, so read one page at a time.
            let page =
                LONGEST - usize::try_from((address + filled as u64) % LONGEST as u64).unwrap_or(0);
            let length = page.min(rest.len());
            let rest = rest.get_mut(..length).unwrap_or_default();
            let count = read_memory(self.0, address + filled as u64, rest)?;
            if count == 0 {
                return Err(Errno::FAULT);
            }
            let read = rest.get(..count).unwrap_or_default();
            if let Some(end) = memchr::memchr(0, read) {
                let text = room.get(..filled + end).unwrap_or_default();
                return Ok(PathBuf::from(OsStr::from_bytes(text)));
            }
            filled += count;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Reads two times from the caller's memory; null means now.
    fn times(self, address: u64, unit: &Unit) -> Result<Timestamps, Errno> {
        if address == 0 {
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: rustix::fs::UTIME_NOW,
            };
            return Ok(Timestamps {
                last_access: now,
                last_modification: now,
            });
        }
        let mut words = [0_i64; 4];
        let (scale, count) = match unit {
            #[cfg(target_arch = "x86_64")]
            Unit::Seconds => (0, 2),
            #[cfg(target_arch = "x86_64")]
            Unit::Microseconds => (1000, 4),
            Unit::Nanoseconds => (1, 4),
        };
        for (index, word) in words.iter_mut().take(count).enumerate() {
            let mut bytes = [0; 8];
            if read_memory(self.0, address + 8 * index as u64, &mut bytes)? != bytes.len() {
                return Err(Errno::FAULT);
            }
            *word = i64::from_ne_bytes(bytes);
        }
        let [a, b, c, d] = words;
        let time = |tv_sec, fraction: i64| {
            let tv_nsec = fraction.checked_mul(scale).ok_or(Errno::INVAL)?;
            Ok::<_, Errno>(Timespec { tv_sec, tv_nsec })
        };
        let (last_access, last_modification) = match count {
            2 => (time(a, 0)?, time(b, 0)?),
            _ => (time(a, b)?, time(c, d)?),
        };
        Ok(Timestamps {
            last_access,
            last_modification,
        })
    }
}

fn owner(user: u64, group: u64) -> Change {
    Change::Owner(word(user), word(group))
}

fn mode(argument: u64) -> u32 {
    word(argument) & 0o7777
}

/// The lower half of an argument, which is all the kernel uses.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper half means nothing"
)]
fn word(argument: u64) -> u32 {
    argument as u32
}

fn signed(argument: u64) -> i32 {
    word(argument).cast_signed()
}
