//! Tests of results as shaped for a model, and of the files that hold the full output.

#![expect(clippy::expect_used, reason = "tests stop on wrong data")]

use std::fs;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard::catalog::Tokens;
use switchboard::internal::call::shape::{Block, Media, ShapeOptions, Shaped, shape};
use switchboard::internal::call::spill::{SpillFolder, SpillLimits};
use switchboard::{ServerName, SharedJson, ToolRef, WireName};
use tempfile::TempDir;

fn tool() -> ToolRef {
    ToolRef {
        server: ServerName::from("ser/ver"),
        tool: WireName::from("to ol"),
    }
}

fn shaped(result: &Value, max_tokens: u64, spill: Option<&SpillFolder>) -> Shaped {
    let options = ShapeOptions {
        max_tokens: Tokens(max_tokens),
        spill,
    };
    shape(&tool(), &SharedJson::from(result), options).expect("a result")
}

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

/// A folder that does not exist yet, in a temporary one.
fn folder() -> (TempDir, SpillFolder) {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = SpillFolder::new(parent.path().join("output"));
    (parent, folder)
}

#[track_caller]
fn check(result: &Value, blocks: &[Block]) {
    let shaped = shaped(result, 25_000, None);
    assert_eq!(shaped.blocks, blocks);
    assert!(!shaped.is_cut);
}

#[test]
fn every_kind_of_block_arrives_in_its_place() {
    check(
        &json!({"content": [
            {"type": "text", "text": "one \"quoted\"\n"},
            "bare",
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b.png", "mimeType": "image/png", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "description": "the c", "size": 7},
            {"type": "hologram", "rays": [1, 2]},
            {"type": "image", "mimeType": "image/png"},
            5,
        ]}),
        &[
            text("one \"quoted\"\n"),
            text("bare"),
            Block::Image(Media {
                mime_type: "image/png".to_owned(),
                data: "aGk=".to_owned(),
            }),
            Block::Audio(Media {
                mime_type: "audio/wav".to_owned(),
                data: "aGk=".to_owned(),
            }),
            text("[resource file:///a (text/plain)]\ninside"),
            Block::Image(Media {
                mime_type: "image/png".to_owned(),
                data: "aGk=".to_owned(),
            }),
            text("[resource link: c at file:///c, 7 bytes: the c]"),
            text(r#"{"rays":[1,2],"type":"hologram"}"#),
            text(r#"{"mimeType":"image/png","type":"image"}"#),
            text("5"),
        ],
    );
}

#[test]
fn errors_and_empty_answers_say_so() {
    let failed = shaped(
        &json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
        100,
        None,
    );
    assert!(failed.is_error);
    assert_eq!(failed.blocks, [text("no")]);
    check(
        &json!({"content": []}),
        &[text("[the tool returned no content]")],
    );
    check(&json!({}), &[text("[the tool returned no content]")]);
    let options = ShapeOptions {
        max_tokens: Tokens(100),
        spill: None,
    };
    assert!(shape(&tool(), &SharedJson::from(&json!(null)), options).is_err());
}

#[test]
fn text_is_made_harmless() {
    check(
        &json!({"content": [{"type": "text", "text": "\u{1b}[32mok\u{1b}[0m\u{202e}\u{1b}]0;x\u{7}"}]}),
        &[text("ok\\u{202e}\\u{1b}]0;x\\u{7}")],
    );
    check(
        &json!({"structuredContent": {"a": "x\u{e0041}"}}),
        &[text("{\"a\":\"x\\u{e0041}\"}")],
    );
}

#[track_caller]
fn check_once(content: &str, structured: &Value, expected: &[&str]) {
    let result =
        json!({"content": [{"type": "text", "text": content}], "structuredContent": structured});
    let blocks: Vec<Block> = expected.iter().map(|part| text(part)).collect();
    check(&result, &blocks);
}

#[test]
fn structured_content_is_shown_once() {
    let data = json!({"a": 1, "b": [true, null]});
    let pretty = "{\n  \"b\": [true, null],\n  \"a\": 1.0\n}";
    check_once(pretty, &data, &[pretty]);
    check_once("a is 1", &data, &["a is 1", r#"{"a":1,"b":[true,null]}"#]);
    check_once(
        "{\"a\": 2}",
        &data,
        &["{\"a\": 2}", r#"{"a":1,"b":[true,null]}"#],
    );
    check_once("5", &json!({"result": 5}), &["5"]);
    check_once("hello", &json!({"result": "hello"}), &["hello"]);
    check_once(
        "hello",
        &json!({"results": "hello"}),
        &["hello", r#"{"results":"hello"}"#],
    );
    check_once("x", &json!(null), &["x"]);
    check(&json!({"structuredContent": [1]}), &[text("[1]")]);
}

#[test]
fn bytes_that_are_no_picture_go_to_a_file() {
    let (_parent, folder) = folder();
    let blob = |mime: &str, blob: &str| json!({"content": [{"type": "resource", "resource": {"uri": "x://r", "mimeType": mime, "blob": blob}}]});
    let kept = shaped(&blob("application/pdf", "JVBERg=="), 1_000, Some(&folder));
    let file = kept.files.first().expect("a file");
    assert_eq!(fs::read(&file.path).expect("readable"), b"%PDF");
    assert_eq!(
        kept.blocks,
        [text(&format!(
            "[binary resource x://r (application/pdf), 4 bytes, saved to {}]",
            file.path.display()
        ))]
    );
    let name = file
        .path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned());
    assert!(
        name.as_ref()
            .is_some_and(|name| name.starts_with("output-ser-ver-to-ol-")),
        "{name:?}"
    );
    assert_eq!(file.path.extension(), Some("pdf".as_ref()));

    let broken = shaped(
        &blob("application/pdf", "not base64!"),
        1_000,
        Some(&folder),
    );
    let file = broken.files.first().expect("a file");
    assert_eq!(fs::read(&file.path).expect("readable"), b"notbase64!");

    let picture = json!({"content": [{"type": "image", "data": "***", "mimeType": "image/png"}]});
    let blocks = shaped(&picture, 1_000, Some(&folder)).blocks;
    assert!(
        matches!(blocks.as_slice(), [Block::Text(note)] if note.contains("cannot be shown")),
        "{blocks:?}"
    );

    let nowhere = shaped(&blob("application/pdf", "JVBERg=="), 1_000, None);
    assert_eq!(
        nowhere.blocks,
        [text(
            "[binary resource x://r (application/pdf), 4 bytes, not saved: no folder for large output]"
        )]
    );
}

#[test]
fn a_flood_of_blocks_becomes_few() {
    let (_parent, folder) = folder();
    let words: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    let content: Vec<Value> = words
        .iter()
        .map(|word| json!({"type": "text", "text": word}))
        .collect();
    let joined = shaped(&json!({"content": content}), 25_000, Some(&folder));
    assert_eq!(joined.blocks, [text(&words.join("\n"))]);

    let picture = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let many = shaped(
        &json!({"content": vec![picture; 40]}),
        25_000,
        Some(&folder),
    );
    let shown = many
        .blocks
        .iter()
        .filter(|block| matches!(block, Block::Image(_)))
        .count();
    assert_eq!((shown, many.files.len(), many.blocks.len()), (32, 8, 40));
    let file = many.files.first().expect("a file");
    assert_eq!(fs::read(&file.path).expect("readable"), b"hi");
    let picture = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let flood = shaped(
        &json!({"content": vec![picture; 200]}),
        25_000,
        Some(&folder),
    );
    assert_eq!((flood.files.len(), flood.blocks.len()), (63, 200));
}

#[test]
fn long_output_is_cut_at_a_line_and_kept_whole() {
    let (_parent, folder) = folder();
    let lines: Vec<String> = (0..1_000).map(|number| format!("line {number}")).collect();
    let lines = format!("{}\n", lines.join("\n"));
    let result = json!({"content": [
        {"type": "text", "text": lines},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "text", "text": "the end"},
    ]});
    let cut = shaped(&result, 400, Some(&folder));
    assert!(cut.is_cut);
    let file = cut.files.first().expect("a file");
    assert_eq!(
        fs::read_to_string(&file.path).expect("readable"),
        format!("{lines}\nthe end")
    );
    let [Block::Text(shown), Block::Image(_)] = cut.blocks.as_slice() else {
        panic!("{:?}", cut.blocks);
    };
    let (head, note) = shown.split_once("\n[output truncated: ").expect("a note");
    assert!(
        lines.starts_with(&format!("{head}\n")),
        "cut at the end of a line"
    );
    let characters = lines.chars().count() + "the end".len();
    assert_eq!(
        note,
        format!(
            "{characters} characters in total; the full output is in {}; read it in parts]",
            file.path.display()
        )
    );
    assert!(shown.chars().count() <= 1_000);
}

#[test]
fn a_folder_that_cannot_be_written_costs_the_file_and_nothing_else() {
    let (parent, _) = folder();
    let blocked = parent.path().join("file");
    fs::write(&blocked, "in the way").expect("written");
    let folder = SpillFolder::new(&blocked);
    let result = json!({"content": [{"type": "text", "text": "x".repeat(10_000)}]});
    let cut = shaped(&result, 1_000, Some(&folder));
    assert!(cut.is_cut && cut.files.is_empty());
    let shown = cut.text();
    assert!(
        shown.starts_with("xxx") && shown.contains("the rest was dropped: cannot write into"),
        "{shown}"
    );
    assert_eq!(
        fs::read_to_string(&blocked).expect("readable"),
        "in the way"
    );
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let (parent, folder) = folder();
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let first = folder.write("a", "txt", b"1").expect("written");
    let second = folder.write("a", "txt", b"2").expect("written");
    assert_ne!(first.path, second.path);
    assert_eq!((mode(folder.path()), mode(&first.path)), (0o700, 0o600));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("changed");
    folder
        .write("../../etc/x\0", "../sh", b"3")
        .expect("written");
    assert_eq!(mode(folder.path()), 0o700);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);

    let link = parent.path().join("link");
    symlink(folder.path(), &link).expect("a link");
    let error = SpillFolder::new(&link)
        .write("a", "txt", b"4")
        .expect_err("a link");
    assert!(error.to_string().ends_with("it is not a folder"), "{error}");
}

#[test]
fn cleaning_takes_the_old_and_then_the_oldest() {
    let (_parent, folder) = folder();
    let limits = |seconds: u64, max_bytes: u64| SpillLimits {
        max_age: Duration::from_secs(seconds),
        max_bytes,
    };
    let now = SystemTime::now();
    assert_eq!(folder.clean(limits(10, 10), now).expect("nothing there"), 0);
    let ages = [500, 400, 300, 200, 100];
    let paths = ages.map(|age| {
        let path = folder.write("a", "txt", &[0; 10]).expect("written").path;
        let file = fs::File::options().write(true).open(&path).expect("open");
        file.set_modified(now - Duration::from_secs(age))
            .expect("aged");
        path
    });
    let foreign = folder.path().join("notes.txt");
    fs::write(&foreign, [0; 1_000]).expect("written");
    let there = || paths.each_ref().map(|path| path.exists());
    assert_eq!(folder.clean(limits(450, 1_000), now).expect("cleaned"), 1);
    assert_eq!(there(), [false, true, true, true, true]);
    assert_eq!(folder.clean(limits(450, 25), now).expect("cleaned"), 2);
    assert_eq!(there(), [false, false, false, true, true]);
    assert!(foreign.exists());
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,400}",
        "[a-z\n]{0,900}",
        "[\u{1b}\u{202e}\r\n a-c]{0,60}",
        "(line of text\n){0,80}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_ever_longer_than_the_budget_and_nothing_is_lost(
        texts in prop::collection::vec(any_text(), 1..5),
        max_tokens in 0_u64..400,
    ) {
        let (_parent, folder) = folder();
        let content: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        let result = shaped(&json!({"content": content}), max_tokens, Some(&folder));
        let shown: usize = result.blocks.iter().map(|block| match block {
            Block::Text(text) => text.chars().count(),
            _ => 0,
        }).sum();
        prop_assert!(shown <= Tokens(max_tokens).characters(), "{shown} of {max_tokens} tokens");
        prop_assert_eq!(result.is_cut, !result.files.is_empty());
        if let Some(file) = result.files.first() {
            prop_assert_eq!(fs::read_to_string(&file.path).expect("readable"), texts.join("\n"));
        }
    }
}
