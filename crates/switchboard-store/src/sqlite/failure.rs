//! SQLite's error codes in the words of this crate.

use rusqlite::{Error, ErrorCode, ffi};

use crate::{ErrorKind, StoreError};

/// What SQLite reports, by what somebody can do about it.
pub(super) fn translate(error: Error) -> StoreError {
    let kind = match &error {
        Error::SqliteFailure(failure, _) => kind_of(*failure),
        // A column of another type than the schema allows, or a missing row of ours.
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
        // SQLite says "disk full" only where the system does; a quota or a limit on file sizes looks like this.
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
