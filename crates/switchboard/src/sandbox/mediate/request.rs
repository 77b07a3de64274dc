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

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

    fn address<T: ?Sized>(of: &T) -> u64 {
        (&raw const *of).addr() as u64
    }

    /// What a call of this thread asks for, in words.
    fn decoded(number: i64, arguments: &[u64]) -> Result<String, Errno> {
        let request = Request::of(&Call::of_this_thread(number, arguments))?;
        let place = match request.place {
            Place::Descriptor(number) => format!("{number}"),
            Place::Path {
                folder,
                path,
                follow,
            } => {
                let folder = match folder {
                    libc::AT_FDCWD => "here".to_owned(),
                    number => number.to_string(),
                };
                let end = if follow { "" } else { " itself" };
                format!("{folder}/{}{end}", path.display())
            }
        };
        let change = match request.change {
            Change::Mode(mode) => format!("mode {mode:o}"),
            Change::Owner(user, group) => format!("owner {} {}", signed(user.into()), group),
            Change::Times(times) => {
                let time = |time: Timespec| match time.tv_nsec {
                    rustix::fs::UTIME_NOW => "now".to_owned(),
                    fraction => format!("{}+{fraction}", time.tv_sec),
                };
                let (access, change) = (times.last_access, times.last_modification);
                format!("times {} {}", time(access), time(change))
            }
            Change::Watch { queue, mask } => format!("watch {queue} {mask:x}"),
        };
        Ok(format!("{place}: {change}"))
    }

    #[test]
    fn each_call_is_decoded_by_its_own_arguments() {
        let name = CString::new("some/file").unwrap();
        let path = address(name.as_c_str().to_bytes_with_nul());
        let times: [i64; 4] = [1, 2, 3, 4];
        let times = address(&times);
        let unchanged = u64::from(u32::MAX);
        let cases: &[(i64, &[u64], &str)] = &[
            (libc::SYS_fchmod, &[5, 0o644], "5: mode 644"),
            // The type bits mean nothing, and neither does the upper half of an argument.
            (
                libc::SYS_fchmod,
                &[5 | 1 << 32, 0o104_755 | 1 << 32],
                "5: mode 4755",
            ),
            (
                libc::SYS_fchmodat,
                &[HERE, path, 0o600, 0x100],
                "here/some/file: mode 600",
            ),
            (FCHMODAT2, &[6, path, 0o600, 0], "6/some/file: mode 600"),
            (
                FCHMODAT2,
                &[6, path, 0o600, NOFOLLOW],
                "6/some/file itself: mode 600",
            ),
            (libc::SYS_fchown, &[5, 1, 2], "5: owner 1 2"),
            (
                libc::SYS_fchownat,
                &[HERE, path, unchanged, 2, FOLLOW],
                "here/some/file: owner -1 2",
            ),
            (
                libc::SYS_utimensat,
                &[6, path, times, NOFOLLOW],
                "6/some/file itself: times 1+2 3+4",
            ),
            (
                libc::SYS_utimensat,
                &[6, path, 0, 0],
                "6/some/file: times now now",
            ),
            // A null path means the descriptor.
            (libc::SYS_utimensat, &[6, 0, times, 0], "6: times 1+2 3+4"),
            (
                libc::SYS_inotify_add_watch,
                &[7, path, 0x100],
                "here/some/file: watch 7 100",
            ),
            (
                libc::SYS_inotify_add_watch,
                &[7, path, 0x100 | IN_DONT_FOLLOW],
                "here/some/file itself: watch 7 2000100",
            ),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chmod, &[path, 0o600], "here/some/file: mode 600"),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chown, &[path, 1, 2], "here/some/file: owner 1 2"),
            #[cfg(target_arch = "x86_64")]
            (
                libc::SYS_lchown,
                &[path, 1, 2],
                "here/some/file itself: owner 1 2",
            ),
            #[cfg(target_arch = "x86_64")]
            (
                libc::SYS_utime,
                &[path, times],
                "here/some/file: times 1+0 2+0",
            ),
            #[cfg(target_arch = "x86_64")]
            (
                libc::SYS_utimes,
                &[path, times],
                "here/some/file: times 1+2000 3+4000",
            ),
            #[cfg(target_arch = "x86_64")]
            (
                libc::SYS_futimesat,
                &[6, path, times],
                "6/some/file: times 1+2000 3+4000",
            ),
        ];
        for (number, arguments, expected) in cases {
            let found = decoded(*number, arguments);
            assert_eq!(found.as_deref(), Ok(*expected), "{number} {arguments:x?}");
        }
        assert_eq!(decoded(libc::SYS_read, &[5, path, 1]), Err(Errno::PERM));
    }

    #[test]
    fn an_empty_path_is_the_descriptor_only_with_the_flag_for_it() {
        let empty = address(&[0_u8]);
        let owner = |folder, path, flags| decoded(libc::SYS_fchownat, &[folder, path, 1, 2, flags]);
        let found = owner(6, empty, EMPTY_PATH | NOFOLLOW);
        assert_eq!(found.as_deref(), Ok("6: owner 1 2"));
        let found = owner(HERE, empty, EMPTY_PATH);
        assert_eq!(found.as_deref(), Ok("here/.: owner 1 2"));
        assert_eq!(owner(6, empty, 0), Err(Errno::NOENT));
        assert_eq!(owner(6, empty, NOFOLLOW | FOLLOW), Err(Errno::NOENT));
        assert_eq!(owner(HERE, 0, EMPTY_PATH), Err(Errno::FAULT));
        for unknown in [0x200, 0x800, 0x2000, 0x100 | 0x2000] {
            assert_eq!(owner(6, empty, unknown), Err(Errno::INVAL), "{unknown:x}");
        }
    }

    #[test]
    fn a_path_is_read_across_pages_up_to_the_longest() {
        let caller = Caller(Call::of_this_thread(0, &[]).thread);
        let mut memory = vec![0_u8; 4 * LONGEST];
        let skipped = LONGEST - usize::try_from(address(&memory[..]) % LONGEST as u64).unwrap();
        let mut read = |start: usize, length: usize| {
            memory.fill(0);
            // A letter that depends on its place, so that no part can be mistaken for another.
            for (index, byte) in memory[start..][..length].iter_mut().enumerate() {
                *byte = b'a' + u8::try_from(index % 23).unwrap();
            }
            let expected = String::from_utf8(memory[start..][..length].to_vec()).unwrap();
            (caller.text(address(&memory[start..])), expected)
        };
        for (start, length) in [
            (skipped, 5),
            (skipped + 100, 5),
            (skipped + LONGEST - 3, 10),
            (skipped + 7, LONGEST - 1),
            (skipped, LONGEST - 1),
        ] {
            let (found, expected) = read(start, length);
            assert_eq!(found, Ok(PathBuf::from(expected)), "{start} {length}");
        }
        for start in [skipped, skipped + 7] {
            let (found, _) = read(start, LONGEST);
            assert_eq!(found, Err(Errno::NAMETOOLONG), "{start}");
        }
        assert_eq!(caller.text(8), Err(Errno::FAULT));
        let broken = decoded(libc::SYS_utimensat, &[6, address(&[0_u8]), 8, EMPTY_PATH]);
        assert_eq!(broken, Err(Errno::FAULT));
    }

    #[test]
    fn a_caller_is_a_thread_with_a_process_and_a_user() {
        let own = Caller(Call::of_this_thread(0, &[]).thread);
        assert_ne!(own.thread(), std::process::id(), "a thread of its own");
        assert_eq!(own.process(), Ok(rustix::process::getpid()));
        assert_eq!(own.user(), Ok(rustix::process::geteuid().as_raw()));
        assert_eq!(Caller(u32::MAX).user(), Err(Errno::SRCH));
    }
}
