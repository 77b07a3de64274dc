//! Creates and opens the database file.
//!
//! Ensures that only the owner can read the file and that no process sees a half-written database. The file must be
//! opened through SQLite only: on Unix, closing any descriptor of a file drops all locks this process holds on it.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::translate;
use super::migrate::{MIGRATIONS, migrate};
use crate::{ErrorKind, StoreError};

/// Opens the file if it exists.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Option<Connection>, StoreError> {
    // Checked first: SQLite tries to open a file for writing, then for reading. If another process creates the file
    // between the two attempts, SQLite returns a read-only connection.
    if let Ok(false) = path.try_exists() {
        return Ok(None);
    }
    let mut connection = match connect(path, patience) {
        Ok(connection) => connection,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            return match path.try_exists() {
                Ok(false) => Ok(None),
                _ => Err(unopenable(path, error)),
            };
        }
        Err(error) => return Err(translate(error)),
    };
    match migrate(&mut connection, MIGRATIONS) {
        Ok(()) => Ok(Some(connection)),
        // In a read-only folder, SQLite fails only here, when it creates its side files.
        Err(error) if error.kind == ErrorKind::Unavailable && !is_writable(path) => {
            Err(StoreError {
                kind: ErrorKind::ReadOnly,
                ..error
            })
        }
        Err(error) => Err(error),
    }
}

/// Opens the file, creating it if necessary.
pub(super) fn open_or_create(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    if let Some(connection) = open(path, patience)? {
        return Ok(connection);
    }
    create(path, patience)?;
    open(path, patience)?.ok_or_else(|| {
        StoreError::new(
            ErrorKind::Unavailable,
            "the file was removed right after it was created",
        )
    })
}

/// Creates the database under a temporary name and moves it into place, unless another process was faster.
///
/// So a killed process leaves no half-written file, and the switch to write-ahead logging, which needs exclusive
/// access, cannot conflict with other processes.
fn create(path: &Path, patience: Duration) -> Result<(), StoreError> {
    let folder = folder_of(path);
    create_folder(folder).map_err(|error| system(&error, "cannot create the folder"))?;
    // The descriptor is closed at once; the file remains and is removed unless it is persisted.
    let draft = tempfile::Builder::new()
        .prefix(".new-")
        .suffix(".db")
        .tempfile_in(folder)
        .map_err(|error| system(&error, "cannot create the file"))?
        .into_temp_path();
    let mut connection = connect(&draft, patience).map_err(translate)?;
    connection
        .execute_batch("pragma journal_mode = wal;")
        .map_err(translate)?;
    migrate(&mut connection, MIGRATIONS)?;
    // SQLite checkpoints the write-ahead log into the file when its last connection closes.
    connection.close().map_err(|(_, error)| translate(error))?;
    match draft.persist_noclobber(path) {
        Ok(()) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(system(&error.error, "cannot create the file")),
    }
}

/// A connection with our settings. SQLite reads the file only on first use.
fn connect(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    connection.execute_batch(
        "pragma foreign_keys = on;
         pragma trusted_schema = off;
         pragma synchronous = normal;
         pragma journal_size_limit = 4194304;",
    )?;
    Ok(connection)
}

/// Creates the folder and its parents with access for this user only. An existing folder is left unchanged.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Finds out why SQLite could not open an existing file, which its error does not say.
fn unopenable(path: &Path, error: rusqlite::Error) -> StoreError {
    let error = translate(error);
    if path.is_dir() {
        return StoreError::new(ErrorKind::NotAFile, "the path is a folder");
    }
    // An existing file that cannot be opened is not accessible to this user, even if the folder is.
    if !path.is_file() && is_writable(path) {
        return error;
    }
    StoreError {
        kind: ErrorKind::ReadOnly,
        ..error
    }
}

/// Whether files can be created next to this one, tested by creating one.
fn is_writable(path: &Path) -> bool {
    match tempfile::tempfile_in(folder_of(path)) {
        Ok(_) => true,
        Err(error) => kind_of(&error) != ErrorKind::ReadOnly,
    }
}

fn system(error: &io::Error, what: &str) -> StoreError {
    StoreError::new(kind_of(error), format!("{what}: {error}"))
}

fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::Full
        }
        _ => ErrorKind::Unavailable,
    }
}
