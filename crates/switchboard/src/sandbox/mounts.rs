//! A view of the files in which some are not there, for one thread and all it starts.
//!
//! Landlock can only grant whole folders, so with it alone nothing could be made in a folder that has something hidden
//! below it, such as the home. Where the process may mount (as root does), an empty file system is put over what is
//! hidden instead, in a mount namespace of the thread's own. Each folder on the way is made a mount point, so that none of
//! them can be moved away from above what is hidden.

#![expect(
    unsafe_code,
    reason = "leaving the mount namespace of the process is an unsafe call"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Hides folders from this thread, but for those in them that may be read, and makes `protected` unwritable.
///
/// Returns the protected files that are not there and so could not be covered; `None` where nothing can be mounted.
pub(super) fn hide(
    hidden: &[PathBuf],
    readable: &[PathBuf],
    protected: &[PathBuf],
) -> Option<Vec<PathBuf>> {
    // Our own folders are to be there before anybody else makes them.
    for folder in hidden {
        std::fs::create_dir_all(folder).ok()?;
    }
    // SAFETY: Only a shared table of descriptors makes this call unsafe, and that one stays shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.ok()?;
    cover(hidden, readable, protected).ok()
}

fn cover(
    hidden: &[PathBuf],
    readable: &[PathBuf],
    protected: &[PathBuf],
) -> Result<Vec<PathBuf>, Errno> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let real = |paths: &[PathBuf]| -> BTreeSet<PathBuf> {
        let real = paths.iter().filter_map(|path| path.canonicalize().ok());
        real.collect()
    };
    let (hidden, readable, files) = (real(hidden), real(readable), real(protected));
    let mut bound = BTreeSet::new();
    for path in hidden.iter().chain(&files) {
        hold(path, &mut bound)?;
    }
    for file in &files {
        mount_bind(file, file)?;
        mount_remount(file, MountFlags::BIND | MountFlags::RDONLY, c"")?;
    }
    for folder in &hidden {
        let kept: Vec<&PathBuf> = readable
            .iter()
            .filter(|kept| kept.starts_with(folder))
            .collect();
        empty(folder, &kept)?;
    }
    let missing = protected
        .iter()
        .filter(|path| path.symlink_metadata().is_err());
    Ok(missing
        .filter(|path| !guard_parent(path, &mut bound))
        .cloned()
        .collect())
}

/// Makes every folder above a path a mount point, which can be neither moved nor removed.
fn hold(path: &Path, bound: &mut BTreeSet<PathBuf>) -> Result<(), Errno> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.retain(|folder| folder.parent().is_some());
    for folder in above.into_iter().rev() {
        if bound.insert(folder.to_owned()) {
            mount_bind_recursive(folder, folder)?;
        }
    }
    Ok(())
}

/// Puts an empty folder over one, with some of its folders in their place.
fn empty(folder: &Path, kept: &[&PathBuf]) -> Result<(), Errno> {
    let mut trees = Vec::new();
    for kept in kept {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        trees.push((kept, open_tree(CWD, kept.as_path(), flags)?));
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("switchboard", folder, "tmpfs", flags, c"size=64k,mode=0555")?;
    for (kept, tree) in trees {
        std::fs::create_dir_all(kept).map_err(|_| Errno::IO)?;
        move_mount(
            tree,
            "",
            CWD,
            kept.as_path(),
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )?;
        mount_remount(kept.as_path(), MountFlags::BIND | MountFlags::RDONLY, c"")?;
    }
    mount_remount(folder, flags | MountFlags::RDONLY, c"")
}

/// Keeps a file from being made by making the folder read-only that it would be in, if nothing else is in that folder.
fn guard_parent(file: &Path, bound: &mut BTreeSet<PathBuf>) -> bool {
    let Some(parent) = file.parent().filter(|parent| parent.parent().is_some()) else {
        return false;
    };
    // One level is made for it; a machine without the folder above has no use for the file.
    let _ = std::fs::create_dir(parent);
    let is_empty = std::fs::read_dir(parent).is_ok_and(|mut entries| entries.next().is_none());
    let mut guard = || {
        hold(file, bound)?;
        mount_remount(parent, MountFlags::BIND | MountFlags::RDONLY, c"")
    };
    is_empty && guard().is_ok()
}
