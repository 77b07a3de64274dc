//! Writing a file whole or not at all.
//!
//! What was there stays until all of the new contents are on the disk, and keeps its mode. Links are followed, so that
//! a link stays one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use switchboard::internal::files::check_regular;

use super::files::reason;

/// A file to write: where it really is, and how it is now.
pub(super) struct Target {
    path: PathBuf,
    /// `None` where there is no such file yet.
    pub(super) metadata: Option<Metadata>,
}

impl Target {
    /// The file at that path. Nothing is changed yet.
    pub(super) fn at(path: &Path) -> Result<Self, String> {
        match path.canonicalize() {
            Ok(path) => {
                let metadata = path.metadata().map_err(|error| error.to_string())?;
                check_regular(&metadata).map_err(|error| reason(&error))?;
                // It may be in a folder that can be written without being writable itself.
                let writable = OpenOptions::new().append(true).open(&path);
                writable.map_err(|error| format!("it cannot be written: {error}"))?;
                Ok(Self {
                    path,
                    metadata: Some(metadata),
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err("it is a link to something that is not there".to_owned());
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

    /// Writes it, with the folders that it takes, and tells how it is now.
    pub(super) fn write(&self, contents: &[u8]) -> io::Result<Metadata> {
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
        // The system takes away from this what the user's mask says.
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

/// Whether a new file in its place would not be the same to others: it has other names, or another owner.
#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.nlink() > 1 || metadata.uid() != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_shared(_: &Metadata) -> bool {
    false
}
