//! Permissions and folders on Unix.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::Access;

/// Permissions of a new file, before the umask.
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
pub(super) fn permissions(access: Access) -> Option<Permissions> {
    Some(Permissions::from_mode(match access {
        Access::Private => 0o600,
        Access::Shared => 0o644,
    }))
}

/// Restricts access to the owner.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Creates a folder with access for the owner only, and missing parents.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a rename in a folder survive a power failure.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
