//! Several processes on one file: no write is lost, even when a process is killed.

use std::io::{BufRead as _, BufReader, Write as _};

use crate::support::{SPACE, increment, key, number, role, run_workers, worker};
use std::time::Duration;

use switchboard_store::{
    Expected, LogEntry, LogQuery, Retention, SqliteStore, Store as _, Timestamp, Write,
};

const WORKERS: u64 = 8;
const WRITES: u64 = 50;

#[tokio::test]
async fn writers_in_many_processes_lose_nothing() {
    if let Some((role, path)) = role() {
        let store = SqliteStore::new(path);
        for _ in 0..WRITES {
            increment(&store, "shared").await;
            increment(&store, &role).await;
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/state.db");
    let roles = || (0..WORKERS).map(|worker| format!("worker-{worker}"));
    run_workers(
        "processes::writers_in_many_processes_lose_nothing",
        &path,
        roles(),
    );

    let store = SqliteStore::new(path);
    let shared = store.get(SPACE, &key("shared")).await.unwrap();
    assert_eq!(number(shared.as_ref()), WORKERS * WRITES);
    for role in roles() {
        let own = store.get(SPACE, &key(&role)).await.unwrap();
        assert_eq!(number(own.as_ref()), WRITES, "{role}");
    }
}

#[tokio::test]
async fn appends_of_many_processes_lose_nothing() {
    let keep = Retention {
        max_age: Duration::MAX,
        max_bytes: u64::MAX,
    };
    if let Some((role, path)) = role() {
        let store = SqliteStore::new(path);
        for number in 0..WRITES {
            let entries = (0..4).map(|part| LogEntry {
                at: Timestamp::from_millis(0),
                value: format!("{role} {number} {part}").into(),
            });
            store.append(SPACE, entries.collect(), keep).await.unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let roles = || (0..WORKERS).map(|worker| format!("worker-{worker}"));
    let test = "processes::appends_of_many_processes_lose_nothing";
    run_workers(test, &path, roles());
    let store = SqliteStore::new(path);
    let mut found = Vec::new();
    let mut query = LogQuery::default();
    loop {
        let page = store.read_log(SPACE, query).await.unwrap();
        let Some(last) = page.last() else { break };
        query.before = Some(last.number);
        let as_text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found.extend(page.iter().map(|entry| as_text(&entry.value)));
    }
    for role in roles() {
        let of_role = found.iter().rev().filter(|text| text.starts_with(&role));
        let wanted: Vec<String> = (0..WRITES)
            .flat_map(|number| (0..4).map(move |part| (number, part)))
            .map(|(number, part)| format!("{role} {number} {part}"))
            .collect();
        assert!(of_role.eq(wanted.iter()), "{role}");
    }
    assert_eq!(found.len() as u64, WORKERS * WRITES * 4);
}

#[tokio::test]
async fn processes_that_create_the_file_at_once_share_it() {
    if let Some((role, path)) = role() {
        let write = Write::new(role.clone()).expecting(Expected::Absent);
        SqliteStore::new(path)
            .put(SPACE, &key(&role), write)
            .await
            .unwrap();
        return;
    }
    let test = "processes::processes_that_create_the_file_at_once_share_it";
    let roles = || (0..WORKERS).map(|worker| format!("worker-{worker}"));
    let folder = tempfile::tempdir().unwrap();
    // Once without a file, and once with an empty one, which is migrated in place.
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    for path in [folder.path().join("new.db"), empty] {
        run_workers(test, &path, roles());
        let listing = SqliteStore::new(&path).list(SPACE, None).await.unwrap();
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| entry.key.to_string())
            .collect();
        assert_eq!(names, roles().collect::<Vec<_>>(), "{}", path.display());
    }
    let mut files: Vec<_> = folder
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["empty.db", "new.db"]);
}

#[tokio::test]
async fn a_killed_writer_loses_nothing_it_had_written() {
    if let Some((_, path)) = role() {
        let store = SqliteStore::new(path);
        // Each value is large enough that a kill can interrupt its write.
        for count in 1_u64.. {
            let mut value = count.to_string().into_bytes();
            value.resize(300_000, b' ');
            store
                .put(SPACE, &key("large"), Write::new(value))
                .await
                .unwrap();
            increment(&store, "count").await;
            println!("\nwritten {count}");
            std::io::stdout().flush().unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let program = std::env::current_exe().unwrap();
    let mut total = 0;
    for round in 1..=8 {
        let mut child = worker(
            &program,
            "processes::a_killed_writer_loses_nothing_it_had_written",
            "writer",
            &path,
        )
        .spawn()
        .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reported = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("written ")?.parse::<u64>().ok())
            .nth(round)
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let store = SqliteStore::new(&path);
        let count = number(store.get(SPACE, &key("count")).await.unwrap().as_ref());
        assert!(
            count >= total + reported,
            "{reported} more than {total} were written, {count} exist"
        );
        let large = store.get(SPACE, &key("large")).await.unwrap().unwrap();
        assert_eq!(large.value.len(), 300_000);
        total = count;
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    let verdict: String = connection
        .query_row("pragma integrity_check", (), |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}
