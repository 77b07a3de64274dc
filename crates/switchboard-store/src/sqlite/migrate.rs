//! Schema versions and migrations.
//!
//! The version is in the file's header (`user_version`), next to the `application_id` that identifies our files, so one
//! query without a table reads both. A released migration is never edited: a change is a new one at the end of the
//! list.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::failure::translate;
use crate::{ErrorKind, StoreError};

/// All migrations; the first creates version 1.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_records.sql"),
    include_str!("migrations/0002_log.sql"),
];

/// "SWBD", the application id of our files.
const APPLICATION_ID: i64 = 0x5357_4244;

/// Migrates the file to the newest schema, or rejects it and leaves it unchanged.
///
/// Safe to run in several processes at once: one migrates, the others wait and find nothing to do.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), StoreError> {
    if pending(connection, migrations)?.is_empty() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(translate)?;
    for migration in pending(&transaction, migrations)? {
        transaction.execute_batch(migration).map_err(translate)?;
    }
    mark(&transaction, migrations.len())?;
    transaction.commit().map_err(translate)
}

/// The migrations not applied yet.
fn pending<'list, 'sql>(
    connection: &Connection,
    migrations: &'list [&'sql str],
) -> Result<&'list [&'sql str], StoreError> {
    let (owner, version, used): (i64, i64, bool) = connection
        .query_row(
            "select application_id, user_version, exists (select 1 from sqlite_schema)
             from pragma_application_id, pragma_user_version",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(translate)?;
    if owner != APPLICATION_ID && (owner != 0 || version != 0 || used) {
        return Err(StoreError::new(
            ErrorKind::Foreign,
            "the file is a database of another program",
        ));
    }
    let done = usize::try_from(version).ok();
    done.and_then(|done| migrations.get(done..)).ok_or_else(|| {
        let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
        StoreError::new(
            ErrorKind::NewerSchema {
                found: version,
                known,
            },
            format!("the file has schema version {version}; this program supports versions up to {known}"),
        )
    })
}

fn mark(transaction: &Transaction<'_>, version: usize) -> Result<(), StoreError> {
    // Pragmas take no parameters; both values are our own numbers.
    transaction
        .execute_batch(&format!(
            "pragma application_id = {APPLICATION_ID}; pragma user_version = {version};"
        ))
        .map_err(translate)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    const GROWN: &[&str] = &[
        "create table fruit (name text) strict; insert into fruit values ('apple');",
        "alter table fruit add column colour text; update fruit set colour = 'red';",
    ];

    fn fruits(connection: &Connection) -> Vec<(String, String)> {
        let mut statement = connection
            .prepare("select name, colour from fruit")
            .unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn an_older_file_is_migrated_without_data_loss() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &GROWN[..1]).unwrap();
        migrate(&mut connection, GROWN).unwrap();
        migrate(&mut connection, GROWN).unwrap();
        assert_eq!(
            fruits(&connection),
            [("apple".to_owned(), "red".to_owned())]
        );
    }

    #[test]
    fn a_failing_migration_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &GROWN[..1]).unwrap();
        let broken = [GROWN[0], "delete from fruit; nonsense;"];
        migrate(&mut connection, &broken).unwrap_err();
        migrate(&mut connection, GROWN).unwrap();
        assert_eq!(
            fruits(&connection),
            [("apple".to_owned(), "red".to_owned())]
        );
    }

    #[test]
    fn concurrent_migrations_run_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        migrate(&mut Connection::open(&path).unwrap(), &GROWN[..1]).unwrap();
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut connection = Connection::open(&path).unwrap();
                    connection.busy_timeout(Duration::from_secs(60)).unwrap();
                    barrier.wait();
                    migrate(&mut connection, GROWN).unwrap();
                });
            }
        });
        let connection = Connection::open(&path).unwrap();
        assert_eq!(
            fruits(&connection),
            [("apple".to_owned(), "red".to_owned())]
        );
    }
}
