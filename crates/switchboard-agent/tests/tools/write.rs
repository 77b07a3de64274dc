use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::{World, modes, text};

#[tokio::test]
async fn files_are_made_with_their_folders() {
    let world = World::new();
    let arguments = json!({"file_path": "a/b/new.txt", "content": "one\ntwo\n"});
    let output = world.run("Write", arguments).await;
    assert_eq!(text(&output), "created a/b/new.txt: 2 lines, 8 bytes");
    let display = "--- a/b/new.txt\n+++ a/b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
    assert_eq!(output.display.as_deref(), Some(display));
    assert_eq!(world.contents("a/b/new.txt"), "one\ntwo\n");
    let made_by_others = world.file("other.txt", "").path("other.txt");
    assert_eq!(modes(&world.path("a/b/new.txt")), modes(&made_by_others));
    // A file written by the session may be replaced.
    let again = json!({"file_path": "a/b/new.txt", "content": ""});
    let answer = world.good("Write", again).await;
    assert_eq!(answer, "replaced a/b/new.txt: 0 lines, 0 bytes");
    let left: Vec<_> = std::fs::read_dir(world.path("a/b")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn only_what_was_read_is_replaced() {
    let world = World::new();
    world.file("a.txt", "old\n");
    let write = json!({"file_path": "a.txt", "content": "new\n"});
    let answer = world.bad("Write", write.clone()).await;
    assert_eq!(
        answer,
        "a.txt is not written: it exists; read it with Read first"
    );
    world.good("Read", json!({"file_path": "a.txt"})).await;
    world.file("a.txt", "older\n");
    let answer = world.bad("Write", write.clone()).await;
    let stale = "a.txt is not written: it has changed since it was read; read it again first";
    assert_eq!(answer, stale);
    assert_eq!(world.contents("a.txt"), "older\n");
    world
        .good("Read", json!({"file_path": world.path("a.txt")}))
        .await;
    let output = world.run("Write", write.clone()).await;
    assert_eq!(text(&output), "replaced a.txt: 1 lines, 4 bytes");
    let display = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-older\n+new\n";
    assert_eq!(output.display.as_deref(), Some(display));
    // Another session has not read it.
    let other = super::standard(&super::Shell::default());
    let arguments = serde_json::value::to_raw_value(&write).unwrap();
    let output = other[2].run(&arguments, &world.context).await;
    assert!(output.is_error);
}

#[tokio::test]
async fn what_is_written_is_what_was_shown() {
    let world = World::new();
    let write = json!({"file_path": "a.txt", "content": "one\ntwo\n"});
    let shown = world.preview("Write", write.clone()).await;
    assert_eq!(shown.title, "new file a.txt, 2 lines, 8 bytes");
    assert_eq!(shown.text, "one\ntwo\n");
    assert_eq!(shown.covers, ["content"]);
    // Another process has created it.
    world.file("a.txt", "mine\n");
    world.bad("Write", write.clone()).await;
    assert_eq!(world.contents("a.txt"), "mine\n");
    let shown = world.preview("Write", write.clone()).await;
    assert_eq!(shown.title, "a.txt will not be changed");
    assert_eq!(shown.text, "it exists; read it with Read first");

    world.good("Read", json!({"file_path": "a.txt"})).await;
    let shown = world.preview("Write", write.clone()).await;
    assert_eq!(shown.title, "replace a.txt");
    assert_eq!(
        shown.text,
        "--- a.txt\n+++ a.txt\n@@ -1 +1,2 @@\n-mine\n+one\n+two\n"
    );
    // The session reads the changed file, but that is not the approved change.
    world.file("a.txt", "other\n");
    world.good("Read", json!({"file_path": "a.txt"})).await;
    let answer = world.bad("Write", write.clone()).await;
    let changed = "a.txt is not written: it has changed since the change was shown and approved; read it again, and \
                   propose the change anew";
    assert_eq!(answer, changed);
    assert_eq!(world.contents("a.txt"), "other\n");
    world.preview("Write", write.clone()).await;
    world.good("Write", write).await;
    // A long change is shown in full.
    let content = super::numbered(2000);
    let shown = world
        .preview("Write", json!({"file_path": "b.txt", "content": content}))
        .await;
    assert_eq!(shown.text, content);
}

#[tokio::test]
async fn modes_and_links_stay() {
    let world = World::new();
    world
        .file("run.sh", "old")
        .file("target.txt", "old")
        .file("twin.txt", "old");
    let executable = std::fs::Permissions::from_mode(0o751);
    std::fs::set_permissions(world.path("run.sh"), executable).unwrap();
    std::os::unix::fs::symlink("target.txt", world.path("link.txt")).unwrap();
    std::fs::hard_link(world.path("twin.txt"), world.path("other_twin.txt")).unwrap();
    for name in ["run.sh", "link.txt", "twin.txt"] {
        world.good("Read", json!({ "file_path": name })).await;
        world
            .good("Write", json!({ "file_path": name, "content": "new" }))
            .await;
    }
    assert_eq!(modes(&world.path("run.sh")), 0o751);
    assert!(world.path("link.txt").is_symlink());
    for name in ["run.sh", "target.txt", "other_twin.txt"] {
        assert_eq!(world.contents(name), "new", "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_told() {
    let world = World::new();
    world.file("file", "x");
    std::fs::create_dir(world.path("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", world.path("dangling")).unwrap();
    let check = async |path: &str, expected: &str| {
        let answer = world
            .bad("Write", json!({"file_path": path, "content": "x"}))
            .await;
        assert!(answer.contains(expected), "{path}: {answer}");
    };
    check("folder", "it is a folder").await;
    check("new/", "it names a folder").await;
    check("dangling", "a broken symlink").await;
    check("file/below", "file/below is not written: ").await;
    check("/dev/null", "not a regular file").await;
    check("~/x", "`~` is not expanded").await;
    assert!(!world.path("new").exists() && !world.path("nowhere").exists());
}
