//! SQL for log operations, each in one transaction.

use bytes::Bytes;
use rusqlite::{Connection, Transaction, params};

use super::failure::translate;
use super::records::begin;
use crate::{Clock, LogEntry, LogQuery, Logged, Retention, Space, StoreError, Timestamp};

/// Number of entries examined per pass when the oldest are dropped.
const DROPPED_AT_ONCE: i64 = 1000;

/// Appends entries, then drops those over the retention limits.
pub(super) fn append(
    connection: &mut Connection,
    clock: &dyn Clock,
    space: Space,
    entries: &[LogEntry],
    keep: Retention,
) -> Result<(), StoreError> {
    let transaction = begin(connection)?;
    let mut added = 0;
    {
        let mut insert = transaction
            .prepare("insert into log (space, at, value) values (?1, ?2, ?3)")
            .map_err(translate)?;
        for entry in entries {
            insert
                .execute(params![
                    space.as_str(),
                    entry.at.as_millis(),
                    &entry.value[..]
                ])
                .map_err(translate)?;
            added += entry.value.len() as u64;
        }
    }
    resize(
        &transaction,
        space,
        i64::try_from(added).unwrap_or(i64::MAX),
    )?;
    let aged = drop_older(&transaction, space, clock.now().before(keep.max_age))?;
    let mut bytes = resize(&transaction, space, -aged)?;
    let most = i64::try_from(keep.max_bytes).unwrap_or(i64::MAX);
    while bytes > most {
        let dropped = drop_oldest(&transaction, space, bytes - most)?;
        if dropped == 0 {
            break;
        }
        bytes = resize(&transaction, space, -dropped)?;
    }
    transaction.commit().map_err(translate)
}

/// Reads a page of a log, newest entries first.
pub(super) fn read(
    connection: &mut Connection,
    space: Space,
    query: LogQuery,
) -> Result<Vec<Logged>, StoreError> {
    let mut statement = connection
        .prepare(
            "select number, at, value from log
             where space = ?1 and number < ?2 and at >= ?3
             order by number desc limit ?4",
        )
        .map_err(translate)?;
    let rows = statement
        .query_map(
            params![
                space.as_str(),
                query.before.unwrap_or(i64::MAX),
                query.since.map_or(i64::MIN, Timestamp::as_millis),
                query.page() as u64,
            ],
            |row| {
                Ok(Logged {
                    number: row.get(0)?,
                    at: Timestamp::from_millis(row.get(1)?),
                    value: Bytes::from(row.get::<_, Vec<u8>>(2)?),
                })
            },
        )
        .map_err(translate)?;
    rows.collect::<Result<_, _>>().map_err(translate)
}

/// Adds to the recorded size of a log and returns the new size.
fn resize(transaction: &Transaction<'_>, space: Space, by: i64) -> Result<i64, StoreError> {
    transaction
        .query_row(
            "insert into log_size (space, bytes) values (?1, max(?2, 0))
             on conflict (space) do update set bytes = max(bytes + ?2, 0)
             returning bytes",
            params![space.as_str(), by],
            |row| row.get(0),
        )
        .map_err(translate)
}

/// Drops entries older than a time and returns their total size.
fn drop_older(
    transaction: &Transaction<'_>,
    space: Space,
    oldest: Timestamp,
) -> Result<i64, StoreError> {
    let bounds = params![space.as_str(), oldest.as_millis()];
    let bytes: i64 = transaction
        .query_row(
            "select coalesce(sum(length(value)), 0) from log where space = ?1 and at < ?2",
            bounds,
            |row| row.get(0),
        )
        .map_err(translate)?;
    transaction
        .execute("delete from log where space = ?1 and at < ?2", bounds)
        .map_err(translate)?;
    Ok(bytes)
}

/// Drops the oldest entries until `bytes` are freed or one pass is complete; returns the bytes freed.
fn drop_oldest(transaction: &Transaction<'_>, space: Space, bytes: i64) -> Result<i64, StoreError> {
    let (mut dropped, mut last) = (0, None);
    {
        let mut statement = transaction
            .prepare(
                "select number, length(value) from log where space = ?1 order by number limit ?2",
            )
            .map_err(translate)?;
        let mut rows = statement
            .query(params![space.as_str(), DROPPED_AT_ONCE])
            .map_err(translate)?;
        while dropped < bytes
            && let Some(row) = rows.next().map_err(translate)?
        {
            last = Some(row.get::<_, i64>(0).map_err(translate)?);
            dropped += row.get::<_, i64>(1).map_err(translate)?;
        }
    }
    if let Some(last) = last {
        transaction
            .execute(
                "delete from log where space = ?1 and number <= ?2",
                params![space.as_str(), last],
            )
            .map_err(translate)?;
    }
    Ok(dropped)
}
