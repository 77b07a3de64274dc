//! Permissions and folders on non-Unix systems, where folders cannot be synced.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::path::Path;

use super::Access;

/// Inherited from the folder.
pub(super) fn permissions(_access: Access) -> Option<Permissions> {
    None
}

/// Permissions are inherited from the folder.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Does nothing: a rename is as durable as the system makes it.
#[expect(clippy::unnecessary_wraps, reason = "Unix can fail")]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
