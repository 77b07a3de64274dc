//! SQL for record operations, each in one transaction.

use bytes::Bytes;
use rusqlite::{
    Connection, MAIN_DB, OptionalExtension as _, Row, Transaction, TransactionBehavior, params,
};

use super::failure::translate;
use crate::{
    Clock, ErrorKind, Expected, Key, Listing, MAX_VALUE_BYTES, PAGE_ENTRIES, Record, Revision,
    Space, StoreError, Summary, Timestamp, Write,
};

/// Reads records from one snapshot.
pub(super) fn get_many(
    connection: &mut Connection,
    clock: &dyn Clock,
    space: Space,
    keys: &[Key],
) -> Result<Vec<Option<Record>>, StoreError> {
    let transaction = connection.transaction().map_err(translate)?;
    let now = clock.now().as_millis();
    // The length of a value is known without reading it.
    let mut statement = transaction
        .prepare(
            "select rowid, length(value), revision, written_at, expires_at
             from record where space = ?1 and key = ?2 and (expires_at is null or expires_at > ?3)",
        )
        .map_err(translate)?;
    keys.iter()
        .map(|key| {
            let mut rows = statement
                .query(params![space.as_str(), key.as_str(), now])
                .map_err(translate)?;
            let row = rows.next().map_err(translate)?;
            row.map(|row| record(&transaction, row)).transpose()
        })
        .collect()
}

/// Lists a page of a space's records.
pub(super) fn list(
    connection: &mut Connection,
    clock: &dyn Clock,
    space: Space,
    after: Option<&Key>,
) -> Result<Listing, StoreError> {
    // The empty string sorts before every key.
    let after = after.map_or("", Key::as_str);
    let now = clock.now().as_millis();
    let mut statement = connection
        .prepare(
            "select key, length(value), revision, written_at, expires_at
             from record where space = ?1 and key > ?2 and (expires_at is null or expires_at > ?3)
             order by key limit ?4",
        )
        .map_err(translate)?;
    let mut rows = statement
        .query(params![space.as_str(), after, now, PAGE_ENTRIES as u64 + 1])
        .map_err(translate)?;
    let mut listing = Listing::default();
    while let Some(row) = rows.next().map_err(translate)? {
        if listing.entries.len() == PAGE_ENTRIES {
            listing.more = true;
            break;
        }
        listing.entries.push(summary(row)?);
    }
    Ok(listing)
}

pub(super) fn put(
    connection: &mut Connection,
    clock: &dyn Clock,
    space: Space,
    key: &Key,
    write: &Write,
) -> Result<Revision, StoreError> {
    let transaction = begin(connection)?;
    // Read under the write lock, so that later writes have later times.
    let now = clock.now();
    drop_expired(&transaction, now)?;
    write
        .expected
        .check(current(&transaction, space, key, now)?)?;
    let revision: i64 = transaction
        .query_row(
            "update revision set latest = latest + 1 returning latest",
            (),
            |row| row.get(0),
        )
        .map_err(translate)?;
    transaction
        .execute(
            "insert into record (space, key, revision, written_at, expires_at, value)
             values (?1, ?2, ?3, ?4, ?5, ?6)
             on conflict (space, key) do update set
                 revision = excluded.revision, written_at = excluded.written_at,
                 expires_at = excluded.expires_at, value = excluded.value",
            params![
                space.as_str(),
                key.as_str(),
                revision,
                now.as_millis(),
                write.expires_at.map(Timestamp::as_millis),
                &write.value[..],
            ],
        )
        .map_err(translate)?;
    transaction.commit().map_err(translate)?;
    Ok(Revision(revision))
}

pub(super) fn remove(
    connection: &mut Connection,
    clock: &dyn Clock,
    space: Space,
    key: &Key,
    expected: Expected,
) -> Result<bool, StoreError> {
    let transaction = begin(connection)?;
    let current = current(&transaction, space, key, clock.now())?;
    expected.check(current)?;
    transaction
        .execute(
            "delete from record where space = ?1 and key = ?2",
            params![space.as_str(), key.as_str()],
        )
        .map_err(translate)?;
    transaction.commit().map_err(translate)?;
    Ok(current.is_some())
}

pub(super) fn sweep(connection: &mut Connection, clock: &dyn Clock) -> Result<u64, StoreError> {
    let transaction = begin(connection)?;
    let swept = drop_expired(&transaction, clock.now())?;
    transaction.commit().map_err(translate)?;
    Ok(swept)
}

/// Begins a write transaction. It takes the lock at once and waits for other writers; upgrading from a read lock would
/// fail if another process has written in between.
pub(super) fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(translate)
}

fn drop_expired(transaction: &Transaction<'_>, now: Timestamp) -> Result<u64, StoreError> {
    transaction
        .execute(
            "delete from record where expires_at <= ?1",
            [now.as_millis()],
        )
        .map(|count| count as u64)
        .map_err(translate)
}

fn current(
    transaction: &Transaction<'_>,
    space: Space,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Revision>, StoreError> {
    transaction
        .query_row(
            "select revision from record
             where space = ?1 and key = ?2 and (expires_at is null or expires_at > ?3)",
            params![space.as_str(), key.as_str(), now.as_millis()],
            |row| row.get(0).map(Revision),
        )
        .optional()
        .map_err(translate)
}

fn record(transaction: &Transaction<'_>, row: &Row<'_>) -> Result<Record, StoreError> {
    let rowid = row.get(0).map_err(translate)?;
    let size = row.get(1).map_err(translate)?;
    Ok(Record {
        value: value(transaction, rowid, size)?,
        revision: Revision(row.get(2).map_err(translate)?),
        written_at: Timestamp::from_millis(row.get(3).map_err(translate)?),
        expires_at: row
            .get::<_, Option<i64>>(4)
            .map_err(translate)?
            .map(Timestamp::from_millis),
    })
}

/// Reads a value directly into its buffer through incremental blob I/O. As a column, SQLite would assemble and then
/// copy it, which takes 50 % longer.
fn value(transaction: &Transaction<'_>, rowid: i64, size: usize) -> Result<Bytes, StoreError> {
    if size > MAX_VALUE_BYTES {
        return Err(StoreError::new(
            ErrorKind::TooLarge { size: size as u64 },
            format!("the stored value has {size} bytes, over the limit of {MAX_VALUE_BYTES}"),
        ));
    }
    let mut value = vec![0; size];
    transaction
        .blob_open(MAIN_DB, "record", "value", rowid, true)
        .and_then(|blob| blob.read_at_exact(&mut value, 0))
        .map_err(translate)?;
    Ok(Bytes::from(value))
}

fn summary(row: &Row<'_>) -> Result<Summary, StoreError> {
    let key: String = row.get(0).map_err(translate)?;
    let key = Key::new(key).map_err(|error| StoreError::new(ErrorKind::Corrupt, error.message))?;
    Ok(Summary {
        key,
        size: row.get(1).map_err(translate)?,
        revision: Revision(row.get(2).map_err(translate)?),
        written_at: Timestamp::from_millis(row.get(3).map_err(translate)?),
        expires_at: row
            .get::<_, Option<i64>>(4)
            .map_err(translate)?
            .map(Timestamp::from_millis),
    })
}
