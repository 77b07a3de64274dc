use serde_json::{Value, json};

use super::{World, text};

/// Edits `before`; returns the file, the answer and the diff.
async fn edit(before: &str, mut arguments: Value) -> (String, String, Option<String>) {
    let world = World::new();
    world.file("a.rs", before);
    arguments["file_path"] = "a.rs".into();
    let output = world.run("Edit", arguments).await;
    assert_eq!(output.is_error, output.display.is_none());
    (world.contents("a.rs"), text(&output), output.display)
}

#[tokio::test]
async fn one_text_takes_the_place_of_another() {
    let check = async |before: &str, arguments: Value, after: &str, answer: &str| {
        let (found, text, _) = edit(before, arguments).await;
        assert_eq!((found.as_str(), text.as_str()), (after, answer));
    };
    let change = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    check(
        "a\nb\nc\n",
        change("b", "x\ny"),
        "a\nx\ny\nc\n",
        "changed a.rs: line 2",
    )
    .await;
    check(
        "a\nb\nc\n",
        change("b\nc\n", ""),
        "a\n",
        "changed a.rs: line 2",
    )
    .await;
    let all = json!({"old_string": "a", "new_string": "aa", "replace_all": true});
    check(
        "a\nba\na",
        all,
        "aa\nbaa\naa",
        "changed a.rs: 3 times, lines 1, 2, 3",
    )
    .await;
    check(
        "a\r\nb\r\n",
        change("a\nb", "x\ny\nz"),
        "x\r\ny\r\nz\r\n",
        "changed a.rs: line 1",
    )
    .await;
    check(
        "a\r\nb\r\n",
        change("b", "x\ny"),
        "a\r\nx\r\ny\r\n",
        "changed a.rs: line 2",
    )
    .await;
    // In a file with mixed line endings, only the named text changes.
    check(
        "a\r\nb\nc",
        change("b\n", "x\n"),
        "a\r\nx\nc",
        "changed a.rs: line 2",
    )
    .await;
    check(
        "\u{feff}ä\n",
        change("ä", "ö"),
        "\u{feff}ö\n",
        "changed a.rs: line 1",
    )
    .await;
}

#[tokio::test]
async fn the_difference_is_shown() {
    let before = super::numbered(9);
    let arguments = json!({"old_string": "line 5", "new_string": "five"});
    let (_, _, display) = edit(&before, arguments).await;
    let expected = "--- a.rs\n+++ a.rs\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+five\n line 6\n line 7\n line 8\n";
    assert_eq!(display.as_deref(), Some(expected));
}

#[tokio::test]
async fn what_does_not_fit_is_explained() {
    let file = "fn main() {\n    let total = 1 + 2;\n    print(total);\n    print(total);\n}\n";
    let check = async |old: &str, new: &str, expected: &str| {
        let arguments = json!({"old_string": old, "new_string": new});
        let (after, answer, _) = edit(file, arguments).await;
        assert_eq!(after, file);
        assert_eq!(answer, format!("a.rs is not changed: {expected}"));
    };
    check(
        "print(total);",
        "x",
        "old_string matches 2 times, lines 3, 4; add surrounding lines until it matches once, or set replace_all",
    )
    .await;
    check("x", "x", "old_string and new_string are the same").await;
    check("", "x", "old_string is empty; use Write for a new file").await;
    check(
        "fn main() {\n  let total = 1  + 2;",
        "x",
        "old_string differs from the file in white space only; the file has:\n1\tfn main() {\n2\t    let total = 1 + 2;",
    )
    .await;
    check(
        "    let totals = 1 + 2;\n    print(x);",
        "x",
        "old_string not found; nearest match:\n2\t    let total = 1 + 2;\n3\t    print(total);",
    )
    .await;
    check(
        "2\t    let total = 1 + 2;",
        "x",
        "old_string not found; leave out the line numbers of Read",
    )
    .await;
    check(
        "nothing of the kind",
        "x",
        "old_string not found, nor anything similar; read the file again",
    )
    .await;
}

#[tokio::test]
async fn only_text_files_are_edited() {
    let world = World::new();
    world.file("binary", b"\xff\xfe\0").file("src/lib.rs", "x");
    let check = async |path: &str, expected: &str| {
        let arguments = json!({"file_path": path, "old_string": "a", "new_string": "b"});
        let answer = world.bad("Edit", arguments).await;
        assert_eq!(answer, format!("{path} is not changed: {expected}"));
    };
    check("binary", "it is not UTF-8 text; use a program").await;
    check("src", "it is a folder; use Glob to see what is in it").await;
    check("src/lip.rs", "no such file; did you mean \"lib.rs\"?").await;
}

#[tokio::test]
async fn an_edit_does_not_count_as_having_read() {
    let world = World::new();
    world.file("a.txt", "a\nb\n");
    let edit = json!({"file_path": "a.txt", "old_string": "a", "new_string": "x"});
    world.good("Edit", edit).await;
    let write = json!({"file_path": "a.txt", "content": ""});
    world.bad("Write", write.clone()).await;
    world.good("Read", json!({"file_path": "a.txt"})).await;
    let edit = json!({"file_path": "a.txt", "old_string": "b", "new_string": "y"});
    world.good("Edit", edit).await;
    world.good("Write", write).await;
}

#[tokio::test]
async fn hostile_texts_take_no_time() {
    let line = "a".repeat(10_000);
    let file = format!("{line}\n").repeat(500);
    let old = format!("{}b\n", "a".repeat(9_999)).repeat(200);
    let started = std::time::Instant::now();
    let (_, answer, _) = edit(&file, json!({"old_string": old, "new_string": "x"})).await;
    assert!(answer.chars().count() <= 10_000);
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_is_changed_is_what_was_shown() {
    let world = World::new();
    world.file("a.txt", "one\r\ntwo\r\n");
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let shown = world.preview("Edit", edit.clone()).await;
    assert_eq!(shown.title, "change a.txt, line 2");
    assert_eq!(
        shown.text,
        "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    );
    // The edit is still possible, but it is not the approved one.
    world.file("a.txt", "zero\r\ntwo\r\n");
    let answer = world.bad("Edit", edit.clone()).await;
    assert!(
        answer.contains("it has changed since the change was shown"),
        "{answer}"
    );
    assert_eq!(world.contents("a.txt"), "zero\r\ntwo\r\n");
    world.preview("Edit", edit.clone()).await;
    world.good("Edit", edit.clone()).await;
    assert_eq!(world.contents("a.txt"), "zero\r\nthree\r\n");
    let shown = world.preview("Edit", edit).await;
    assert_eq!(shown.title, "a.txt will not be changed");
    let all =
        json!({"file_path": "b.txt", "old_string": "x", "new_string": "y", "replace_all": true});
    world.file("b.txt", "x\n".repeat(1000));
    let shown = world.preview("Edit", all).await;
    assert_eq!(shown.text.matches("\n+y").count(), 1000);
}
