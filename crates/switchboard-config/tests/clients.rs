//! The entry for Switchboard in every fixture of `tests/foreign`: added and removed, and nothing else changes.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails the test"
)]

use std::path::{Path, PathBuf};

use switchboard_config::clients::{
    Bridge, ClientError, ClientFile, ClientStore, FileContent, MovedServer, Record, StoreError,
};
use switchboard_config::foreign::Tool;
use switchboard_config::format::Format;

const PROGRAM: &str = "/usr/bin/switchboard";

fn fixtures() -> Vec<(Tool, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
    let mut found = Vec::new();
    for tool in Tool::ALL {
        let files = std::fs::read_dir(folder.join(tool.name())).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let files = files.filter(|path| Format::of_path(path).is_some());
        found.extend(files.map(|path| (tool, path)));
    }
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found
}

fn bridge(profile: Option<&str>) -> Bridge {
    Bridge {
        command: "switchboard".to_owned(),
        profile: profile.map(String::from),
    }
}

fn file<'t>(tool: Tool, path: &'t Path, text: &'t str) -> ClientFile<'t> {
    ClientFile {
        tool,
        path,
        format: Format::of_path(path).unwrap(),
        text,
    }
}

fn read(file: &ClientFile<'_>) -> FileContent {
    file.read(Path::new(PROGRAM)).unwrap()
}

fn names(content: &FileContent) -> Vec<&str> {
    let servers = content.servers.iter();
    servers.map(|server| server.name.as_str()).collect()
}

#[test]
fn every_fixture_gets_the_entry_and_loses_it_again() {
    let mut count = 0;
    for (tool, path) in fixtures() {
        let original = std::fs::read_to_string(&path).unwrap();
        for text in [
            original.clone(),
            format!("\u{feff}{original}"),
            original.replace('\n', "\r\n"),
            original.trim_end().to_owned(),
        ] {
            // Some fixtures are broken on purpose.
            let Ok(before) = file(tool, &path, &text).read(Path::new(PROGRAM)) else {
                continue;
            };
            count += 1;
            let shown = path.display();
            for profile in [None, Some("work")] {
                let added = file(tool, &path, &text)
                    .with_bridge(&bridge(profile), Path::new(PROGRAM))
                    .unwrap_or_else(|error| panic!("{shown}: {error}"));
                let content = read(&file(tool, &path, &added));
                let found = content
                    .bridge
                    .as_ref()
                    .unwrap_or_else(|| panic!("{shown}: {added}"));
                assert_eq!(
                    found.entry.command.as_deref(),
                    Some("switchboard"),
                    "{shown}"
                );
                assert_eq!(
                    Bridge::profile_of(&found.entry).as_deref(),
                    profile,
                    "{shown}"
                );
                assert_eq!(content.servers.len(), before.servers.len(), "{shown}");
                let again =
                    file(tool, &path, &added).with_bridge(&bridge(profile), Path::new(PROGRAM));
                assert_eq!(again.unwrap(), added, "{shown}");
                let removed = file(tool, &path, &added)
                    .without(&["switchboard"], !file(tool, &path, &text).has_container())
                    .unwrap_or_else(|error| panic!("{shown}: {error}\n{added}"));
                assert_eq!(removed, text, "{shown}");
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_server_of_a_fixture_can_be_taken_out_and_put_back() {
    for (tool, path) in fixtures() {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(before) = file(tool, &path, &text).read(Path::new(PROGRAM)) else {
            continue;
        };
        let shown = path.display();
        for server in &before.servers {
            let value = file(tool, &path, &text).value_of(&server.name);
            // A server of a nested layout, such as that of a single project, has no value here.
            let Some(value) = value else { continue };
            let removed = match file(tool, &path, &text).without(&[&server.name], false) {
                Ok(removed) => removed,
                // One that is defined twice cannot be taken out alone.
                Err(ClientError::YamlLayout(_)) => continue,
                Err(ClientError::Edit(error)) if error.to_string().contains("more than once") => {
                    continue;
                }
                Err(error) => panic!("{shown}: {}: {error}", server.name),
            };
            let content = read(&file(tool, &path, &removed));
            let mut expected = names(&before);
            expected.retain(|name| *name != server.name);
            assert_eq!(names(&content), expected, "{shown}");
            let back = file(tool, &path, &removed)
                .with_values(&[(&server.name, &value)])
                .unwrap_or_else(|error| panic!("{shown}: {}: {error}\n{removed}", server.name));
            let content = read(&file(tool, &path, &back));
            let found = content.servers.iter().find(|each| each.name == server.name);
            assert_eq!(
                found.map(|each| &each.entry),
                Some(&server.entry),
                "{shown}\n{back}"
            );
        }
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let store = ClientStore::new(&root.path().join("state"));
    let path = root.path().join("mcp.json");
    std::fs::write(&path, "new").unwrap();
    let error = store.write(&path, Some("old"), "mine").unwrap_err();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    assert!(!error.hint().is_empty());
    let error = store.write(&path, None, "mine").unwrap_err();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    let error = store.delete(&path, "old", &[]).unwrap_err();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    store.write(&path, Some("new"), "mine").unwrap();
    store.delete(&path, "mine", &[]).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_record_is_read_back_and_names_no_backup_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let store = ClientStore::new(root.path());
    assert_eq!(store.record(Tool::Zed).unwrap(), None);
    let mut record = Record::new(PathBuf::from("/x"), "text");
    record.moved.push(MovedServer {
        name: "a".to_owned(),
        value: "{}".to_owned(),
        taken_as: "b".to_owned(),
        target: PathBuf::from("/y"),
        digest: "0".to_owned(),
        is_added: true,
    });
    store.save(Tool::Zed, &record).unwrap();
    assert_eq!(store.record(Tool::Zed).unwrap(), Some(record.clone()));
    assert!(record.is_as_written("text") && !record.is_as_written("text "));
    let name = store
        .back_up(Tool::Zed, "T", Path::new("a.json"), "1")
        .unwrap();
    let second = store
        .back_up(Tool::Zed, "T", Path::new("a.json"), "2")
        .unwrap();
    assert_eq!([name.as_str(), &second], ["T-zed.json", "T-zed-2.json"]);
    assert_eq!(store.backup(&second).as_deref(), Some("2"));
    assert_eq!(store.backup("../zed.json"), None);
    store.forget(Tool::Zed).unwrap();
    assert_eq!(store.record(Tool::Zed).unwrap(), None);
}
