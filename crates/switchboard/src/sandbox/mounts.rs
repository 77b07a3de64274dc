//! Hides files from a thread and its children with mounts.
//!
//! Landlock can only grant whole folders, so with Landlock alone no file could be created in a folder with a hidden
//! path below it, such as the home. If the process may mount (as root), an empty file system is mounted over each
//! hidden path instead, in a private mount namespace. Each parent folder becomes a mount point, so that none of them
//! can be moved to uncover a hidden path.

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

/// Hides folders from this thread, except for `readable` folders in them, and makes `protected` read-only.
///
/// Returns the protected files that do not exist and could not be covered; `None` if mounting is not possible.
pub(super) fn hide(
    hidden: &[PathBuf],
    readable: &[PathBuf],
    protected: &[PathBuf],
) -> Option<Vec<PathBuf>> {
    // Create our own folders before another process can.
    for folder in hidden {
        std::fs::create_dir_all(folder).ok()?;
    }
    // SAFETY: This call is unsafe only if it unshares the file descriptor table, which stays shared here.
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

/// Makes every parent of a path a mount point, which can be neither moved nor removed.
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

/// Mounts an empty folder over one, and binds some of its subfolders back.
fn empty(folder: &Path, kept: &[&PathBuf]) -> Result<(), Errno> {
    let mut trees = Vec::new();
    for kept in kept {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        trees.push((kept, open_tree(CWD, kept.as_path(), flags)?));
    }
    let flags = inert();
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

/// Flags for a file system without programs and devices.
fn inert() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC
}

/// Prevents a file from being created by making its parent folder read-only, if that is empty.
fn guard_parent(file: &Path, bound: &mut BTreeSet<PathBuf>) -> bool {
    let Some(parent) = file.parent().filter(|parent| parent.parent().is_some()) else {
        return false;
    };
    // Only one level is created; a machine without the grandparent does not use the file.
    let _ = std::fs::create_dir(parent);
    let is_empty = std::fs::read_dir(parent).is_ok_and(|mut entries| entries.next().is_none());
    let mut guard = || {
        hold(file, bound)?;
        mount_remount(parent, MountFlags::BIND | MountFlags::RDONLY, c"")
    };
    is_empty && guard().is_ok()
}
