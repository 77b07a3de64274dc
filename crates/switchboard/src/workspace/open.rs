//! Opening a file so that nothing leads out of the folder, whatever others do to it meanwhile.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file by its path within `root`; neither is or leads through a symbolic link, or it is refused.
///
/// Opening never waits, as it would for a pipe that nobody writes to.
#[cfg(unix)]
pub(super) fn open_within(root: &Path, path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, open, openat};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let folder = open(
        root,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};

        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(&folder, path, flags, Mode::empty(), resolve) {
            // An old kernel, or a sandbox that does not know the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(opened?.into()),
        }
    }
    // Elsewhere the system has no such promise for the folders on the way: go through them one by one.
    let mut folder = folder;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let part = part.as_os_str();
        if parts.peek().is_none() {
            return Ok(openat(&folder, part, flags, Mode::empty())?.into());
        }
        folder = openat(&folder, part, flags | OFlags::DIRECTORY, Mode::empty())?;
    }
    Ok(openat(CWD, root, flags, Mode::empty())?.into())
}

/// Opens a file by its path within `root`.
#[cfg(not(unix))]
pub(super) fn open_within(root: &Path, path: &Path) -> io::Result<File> {
    File::open(root.join(path))
}
