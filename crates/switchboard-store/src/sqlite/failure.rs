//! Maps SQLite's error codes to [`ErrorKind`].

use rusqlite::{Error, ErrorCode, ffi};

use crate::{ErrorKind, StoreError};

/// Classifies a SQLite error.
pub(super) fn translate(error: Error) -> StoreError {
    let kind = match &error {
        Error::SqliteFailure(failure, _) => kind_of(*failure),
        // A column type that the schema does not allow, or a missing row.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::BlobSizeError
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    let message = match error {
        Error::SqliteFailure(failure, message) => message.unwrap_or_else(|| failure.to_string()),
        other => other.to_string(),
    };
    StoreError::new(kind, message)
}

fn kind_of(failure: ffi::Error) -> ErrorKind {
    match failure.code {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Corrupt,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => ErrorKind::ReadOnly,
        ErrorCode::DiskFull => ErrorKind::Full,
        // SQLite reports "disk full" only for ENOSPC; a quota or file size limit is reported as an I/O error.
        ErrorCode::SystemIoFailure
            if matches!(
                failure.extended_code,
                ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_TRUNCATE
            ) =>
        {
            ErrorKind::Full
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Busy,
        _ => ErrorKind::Unavailable,
    }
}
