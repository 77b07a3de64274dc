//! Creates files and folders with restricted permissions from the start.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use super::{Access, folder_of, platform};

/// Creates a folder with mode `0700`, and missing parents. An existing folder is unchanged.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    platform::create_private_folder(folder)
}

/// Creates a temporary file with a random name. It is deleted on drop unless persisted.
pub fn draft(
    folder: &Path,
    prefix: &str,
    suffix: &str,
    access: Access,
) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix).rand_bytes(16);
    if let Some(permissions) = platform::permissions(access) {
        builder.permissions(permissions);
    }
    builder.tempfile_in(folder)
}

/// Creates a file with mode `0600`, atomically and durably; fails if it exists. Missing parents are created with mode
/// `0700`.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    create_private_folder(folder)?;
    let mut file = draft(folder, DRAFT_PREFIX, DRAFT_SUFFIX, Access::Private)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    platform::sync_folder(folder)
}

pub(super) const DRAFT_PREFIX: &str = ".switchboard-";
pub(super) const DRAFT_SUFFIX: &str = ".tmp";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_whole_and_never_replaces_another() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("above/state");
        let path = folder.join("token");
        create_private(&path, b"first").unwrap();
        let again = create_private(&path, b"second").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        // The temporary file of the second attempt is gone.
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(
                [&path, &folder, &root.path().join("above")].map(|path| mode(path)),
                [0o600, 0o700, 0o700]
            );
        }
    }
}
