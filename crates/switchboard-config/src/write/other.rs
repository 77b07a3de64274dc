//! Permissions and folders on systems without Unix permissions, where folders cannot be synced.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::path::Path;

use super::Access;

/// The permissions of a new file: those that the folder gives.
pub(super) fn permissions(_access: Access) -> Option<Permissions> {
    None
}

/// Opens a file as the folder allows.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Creates a folder and those above it.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Nothing: a rename is as durable as the system makes it.
#[expect(clippy::unnecessary_wraps, reason = "Unix can fail")]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
