//! Opens regular files only: opening a device can have side effects, and opening a pipe can block.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use super::FileError;

/// The number of bytes checked to detect binary files.
const BEGINNING: u64 = 8192;

/// Opens a regular file by any path.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), FileError> {
    checked(path, || {
        let mut options = File::options();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            // Does not block, even if the file has become a pipe since.
            let flags = rustix::fs::OFlags::NONBLOCK.bits();
            options.custom_flags(i32::try_from(flags).unwrap_or_default());
        }
        options.open(path)
    })
}

/// Opens a file, and checks before and after that it is a regular one.
pub(super) fn checked(
    path: &Path,
    open: impl FnOnce() -> io::Result<File>,
) -> Result<(File, Metadata), FileError> {
    check_regular(&path.metadata()?)?;
    let file = open()?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

/// Rejects anything but a regular file.
pub fn check_regular(metadata: &Metadata) -> Result<(), FileError> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(FileError::Folder)
    } else {
        Err(FileError::Special)
    }
}

/// Reads the first bytes of a file, enough to detect its type, and rewinds.
pub fn beginning(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut *file).take(BEGINNING).read_to_end(&mut bytes)?;
    file.rewind()?;
    Ok(bytes)
}

/// Whether a file with these first bytes is binary: text has no NUL byte, and nearly all binary formats do.
pub fn is_binary(beginning: &[u8]) -> bool {
    memchr::memchr(0, beginning).is_some()
}

/// Reads a complete file of at most `max` bytes.
pub fn read_whole(file: File, max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    // One byte more reveals a file that is too large, even while it grows.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(FileError::TooLarge(max));
    }
    Ok(bytes)
}

/// Opens a file by its path within `root`. Fails if the path contains a symbolic link.
///
/// Never blocks, for example on a pipe without a writer.
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
            // An old kernel, or a sandbox that does not support the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(opened?.into()),
        }
    }
    // No system call checks the parent folders here: open them one by one.
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
