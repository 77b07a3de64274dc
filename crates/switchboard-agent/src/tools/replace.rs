//! Atomic file writes.
//!
//! The old contents stay until the new ones are on the disk, and the mode is preserved. Symlinks are followed, so a
//! link stays a link.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use switchboard::internal::files::check_regular;

use super::files::reason;

/// A file to write, with resolved symlinks.
pub(crate) struct Target {
    path: PathBuf,
    /// `None` if the file does not exist yet.
    pub(super) metadata: Option<Metadata>,
}

impl Target {
    /// Resolves the path and checks that it can be written. Changes nothing.
    pub(crate) fn at(path: &Path) -> Result<Self, String> {
        match path.canonicalize() {
            Ok(path) => {
                let metadata = path.metadata().map_err(|error| error.to_string())?;
                check_regular(&metadata).map_err(|error| reason(&error))?;
                // A read-only file could be replaced in a writable folder, so check the file itself.
                let writable = OpenOptions::new().append(true).open(&path);
                writable.map_err(|error| format!("it cannot be written: {error}"))?;
                Ok(Self {
                    path,
                    metadata: Some(metadata),
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err("it is a broken symlink".to_owned());
                }
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err("it names a folder".to_owned());
                }
                Ok(Self {
                    path: path.to_owned(),
                    metadata: None,
                })
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The path, with links followed.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file, creates missing folders, and returns the new metadata.
    pub(crate) fn write(&self, contents: &[u8]) -> io::Result<Metadata> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        if self.metadata.as_ref().is_some_and(is_shared) {
            let mut file = File::create(&self.path)?;
            file.write_all(contents)?;
            file.sync_all()?;
            return file.metadata();
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".writing-");
        #[cfg(unix)]
        let all = {
            use std::os::unix::fs::PermissionsExt as _;
            fs::Permissions::from_mode(0o666)
        };
        // The umask applies to this mode.
        #[cfg(unix)]
        builder.permissions(all);
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(contents)?;
        if let Some(metadata) = &self.metadata {
            file.as_file().set_permissions(metadata.permissions())?;
        }
        file.as_file().sync_all()?;
        let file = file.persist(&self.path).map_err(|error| error.error)?;
        file.metadata()
    }
}

/// Whether replacing the file would break hard links or change its owner.
#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.nlink() > 1 || metadata.uid() != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_shared(_: &Metadata) -> bool {
    false
}
