//! Computes Landlock grants for a folder that contains excluded paths.
//!
//! Landlock adds rights and cannot remove any: a right on a folder covers everything below it, now and later. So if an
//! excluded path is below a folder, only the folder's other entries are granted, recursively down to the excluded path.
//! New entries in such a folder are not granted.
//!
//! Everything is opened relative to its opened parent, without following links, so that a link placed on the way cannot
//! have its target granted.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

/// The maximum number of entries granted one by one. Any beyond are not granted, which is safe.
const MAX_ENTRIES: usize = 20_000;

/// An open file or folder to grant.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) descriptor: OwnedFd,
    pub(super) is_folder: bool,
}

/// Opens everything at and below `root` that may be granted. A missing root yields no grants.
pub(super) fn without(root: &Path, kept_back: &[PathBuf]) -> Result<Vec<Grant>, Errno> {
    let mut grants = Vec::new();
    // The configured root itself may be a link.
    match open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(descriptor) => add(descriptor, root, kept_back, &mut grants)?,
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    Ok(grants)
}

fn add(
    descriptor: OwnedFd,
    path: &Path,
    kept_back: &[PathBuf],
    grants: &mut Vec<Grant>,
) -> Result<(), Errno> {
    if kept_back.iter().any(|kept| path.starts_with(kept)) || grants.len() >= MAX_ENTRIES {
        return Ok(());
    }
    let kind = FileType::from_raw_mode(fstat(&descriptor)?.st_mode);
    let within: Vec<&PathBuf> = kept_back
        .iter()
        .filter(|kept| kept.starts_with(path))
        .collect();
    if kind != FileType::Directory || within.is_empty() {
        // The target of a link is granted only if it is covered itself.
        if kind != FileType::Symlink {
            grants.push(Grant {
                descriptor,
                is_folder: kind == FileType::Directory,
            });
        }
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listed) = openat(descriptor.as_fd(), c".", flags, Mode::empty()) else {
        // We cannot list this folder, and so neither can the server.
        return Ok(());
    };
    for entry in Dir::read_from(listed)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // An entry can disappear at any time.
        let Ok(child) = openat(descriptor.as_fd(), name, flags, Mode::empty()) else {
            continue;
        };
        let child_path = path.join(OsStr::from_bytes(name.to_bytes()));
        add(child, &child_path, kept_back, grants)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn siblings_are_granted_and_what_is_kept_back_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for made in ["a/deep", "b/c/d", "b/e"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        symlink("/etc", root.join("link")).unwrap();
        let granted = |kept_back: &[&str]| {
            let kept_back: Vec<PathBuf> = kept_back.iter().map(|path| root.join(path)).collect();
            let grants = without(&root, &kept_back).unwrap();
            let mut names: Vec<String> = grants
                .iter()
                .map(|grant| {
                    use std::os::fd::AsRawFd as _;
                    let link = format!("/proc/self/fd/{}", grant.descriptor.as_raw_fd());
                    let path = fs::read_link(link).unwrap();
                    path.strip_prefix(&root).unwrap().display().to_string()
                })
                .collect();
            names.sort();
            names
        };
        assert_eq!(granted(&[]), [""]);
        assert_eq!(granted(&["/elsewhere"]), [""]);
        assert_eq!(granted(&["b/c"]), ["a", "b/e", "file"]);
        assert_eq!(granted(&["b/c/d"]), ["a", "b/e", "file"]);
        // Paths that do not exist yet are excluded, too.
        assert_eq!(granted(&["b/new"]), ["a", "b/c", "b/e", "file"]);
        assert_eq!(granted(&["new"]), ["a", "b", "file"]);
        assert_eq!(granted(&["."]), Vec::<String>::new());
        assert!(without(Path::new("/nothing/here"), &[]).unwrap().is_empty());
    }
    #[test]
    fn nothing_is_opened_for_reading_or_left_to_other_programs() {
        use rustix::io::{FdFlags, fcntl_getfd};
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // A socket cannot be opened for reading.
        let _listener = UnixListener::bind(root.join("socket")).unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        let alone = without(&root.join("socket"), &[]).unwrap();
        let within = without(root, &[root.join("kept")]).unwrap();
        assert_eq!((alone.len(), within.len()), (1, 2));
        for grant in alone.iter().chain(&within) {
            let flags = fcntl_getfd(&grant.descriptor).unwrap();
            assert_eq!(flags, FdFlags::CLOEXEC);
        }
        let folders = within.iter().filter(|grant| grant.is_folder);
        assert_eq!(folders.count(), 1);
    }
}
