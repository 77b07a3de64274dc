use serde_json::json;
use switchboard::internal::call::shape::{Block, Media};

use super::World;

#[tokio::test]
async fn lines_are_read_by_number() {
    let world = World::new();
    world
        .file("a.txt", "one\ntwo\nthree\n")
        .file("no_end.txt", "one\ntwo")
        .file("windows.txt", "\u{feff}one\r\ntwo\r\n")
        .file("empty.txt", "")
        .file("blank.txt", "\n\n");
    let check = async |arguments, expected: &str| {
        assert_eq!(world.good("Read", arguments).await, expected);
    };
    check(json!({"file_path": "a.txt"}), "1\tone\n2\ttwo\n3\tthree\n").await;
    check(
        json!({"file_path": world.path("a.txt")}),
        "1\tone\n2\ttwo\n3\tthree\n",
    )
    .await;
    check(json!({"file_path": "a.txt", "offset": 3}), "3\tthree\n").await;
    check(
        json!({"file_path": "a.txt", "offset": 2, "limit": 1}),
        "2\ttwo\n[more follows: read on with offset 3]",
    )
    .await;
    check(
        json!({"file_path": "a.txt", "limit": 3}),
        "1\tone\n2\ttwo\n3\tthree\n",
    )
    .await;
    check(json!({"file_path": "no_end.txt", "offset": 2}), "2\ttwo\n").await;
    check(json!({"file_path": "windows.txt"}), "1\tone\n2\ttwo\n").await;
    check(json!({"file_path": "empty.txt"}), "[the file is empty]").await;
    check(json!({"file_path": "blank.txt"}), "1\t\n2\t\n").await;
    let answer = world
        .bad("Read", json!({"file_path": "a.txt", "offset": 9}))
        .await;
    assert_eq!(
        answer,
        "a.txt cannot be read: it has 3 lines, so none from 9"
    );
}

#[tokio::test]
async fn long_lines_and_long_files_are_cut() {
    let world = World::new();
    let long = "x".repeat(5_000_000);
    world.file("line.txt", format!("{long}\nshort\n"));
    let answer = world.good("Read", json!({"file_path": "line.txt"})).await;
    let cut = format!(
        "1\t{} [… line of 5000001 bytes cut]\n2\tshort\n",
        "x".repeat(2000)
    );
    assert_eq!(answer, cut);

    let many = super::numbered(100_000);
    world.file("many.txt", many);
    let answer = world.good("Read", json!({"file_path": "many.txt"})).await;
    assert!(answer.chars().count() <= 10_000, "{}", answer.len());
    let next = answer
        .split("with offset ")
        .nth(1)
        .unwrap()
        .trim_end_matches(']');
    let next: u64 = next.parse().unwrap();
    let last = answer.lines().rev().nth(1).unwrap();
    assert_eq!(last, format!("{}\tline {}", next - 1, next - 1));
    let answer = world
        .good("Read", json!({"file_path": "many.txt", "offset": 100_000}))
        .await;
    assert_eq!(answer, "100000\tline 100000\n");
}

#[tokio::test]
async fn a_range_ends_where_it_should_however_the_file_is_read() {
    let world = World::new();
    // Chunks of 64 KiB end with line 32,768.
    world.file("pairs.txt", "a\n".repeat(40_000));
    for line in [32_767, 32_768, 32_769] {
        let arguments = json!({"file_path": "pairs.txt", "offset": line, "limit": 1});
        let next = line + 1;
        let expected = format!("{line}\ta\n[more follows: read on with offset {next}]");
        assert_eq!(world.good("Read", arguments).await, expected);
    }
}

#[tokio::test]
async fn a_very_large_file_is_read_by_range() {
    let world = World::new();
    let file = std::fs::File::create(world.path("huge.txt")).unwrap();
    std::io::Write::write_all(&mut &file, &[b'a', b'\n'].repeat(5000)).unwrap();
    // Sparse: the rest takes no space on the disk.
    file.set_len(3 << 30).unwrap();
    let arguments = json!({"file_path": "huge.txt", "offset": 4999, "limit": 2});
    let answer = world.good("Read", arguments).await;
    assert_eq!(
        answer,
        "4999\ta\n5000\ta\n[more follows: read on with offset 5001]"
    );
}

#[tokio::test]
async fn pictures_are_looked_at() {
    let world = World::new();
    let check = async |bytes: &[u8], mime_type: &str, data: &str| {
        // The file name does not matter.
        world.file("picture.txt", bytes);
        let output = world.run("Read", json!({"file_path": "picture.txt"})).await;
        let image = Media {
            mime_type: mime_type.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(
            (output.content, output.is_error),
            (vec![Block::Image(image)], false)
        );
    };
    check(b"\x89PNG\r\n\x1a\n\0", "image/png", "iVBORw0KGgoA").await;
    check(b"\xff\xd8\xff\xe0", "image/jpeg", "/9j/4A==").await;
    check(b"GIF89a", "image/gif", "R0lGODlh").await;
    check(b"RIFF\0\0\0\0WEBP", "image/webp", "UklGRgAAAABXRUJQ").await;
    let mut large = b"GIF89a".to_vec();
    large.resize(4_000_000, 0);
    world.file("large.gif", large);
    let answer = world.bad("Read", json!({"file_path": "large.gif"})).await;
    assert!(
        answer.contains("4000000 bytes") && answer.contains("smaller"),
        "{answer}"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_told_with_what_to_do() {
    let world = World::new();
    world
        .file("doc.pdf", "%PDF-1.7\n")
        .file("program", b"\x7fELF\0\0")
        .file("wide.txt", b"\xff\xfeh\0i\0")
        .file("latin.txt", b"caf\xe9\n")
        .file("src/main.rs", "");
    std::os::unix::fs::symlink("nowhere", world.path("dangling")).unwrap();
    let status = std::process::Command::new("mkfifo")
        .arg(world.path("pipe"))
        .status();
    assert!(status.unwrap().success());
    let check = async |path: &str, expected: &str| {
        let answer = world.bad("Read", json!({ "file_path": path })).await;
        let answer = answer.replace(world.workspace.to_str().unwrap(), "WORK");
        assert_eq!(answer, expected);
    };
    check(
        "doc.pdf",
        "doc.pdf cannot be read: it is a PDF of 9 bytes; get its text with a program, such as pdftotext FILE -",
    )
    .await;
    check(
        "program",
        "program cannot be read: it is a binary file of 6 bytes; look at it with a program, such as file or xxd",
    )
    .await;
    check(
        "wide.txt",
        "wide.txt cannot be read: it is UTF-16; convert it with a program, such as iconv -f UTF-16",
    )
    .await;
    check(
        "src",
        "src cannot be read: it is a folder; use Glob to see what is in it",
    )
    .await;
    check(
        ".",
        ". cannot be read: it is a folder; use Glob to see what is in it",
    )
    .await;
    let special = "it is a device, pipe or socket, not a regular file";
    check("pipe", &format!("pipe cannot be read: {special}")).await;
    check("/dev/zero", &format!("/dev/zero cannot be read: {special}")).await;
    check(
        "src/Mian.rs",
        "src/Mian.rs cannot be read: no such file; did you mean \"main.rs\"?",
    )
    .await;
    check(
        "scr/main.rs",
        "scr/main.rs cannot be read: WORK/scr does not exist; did you mean \"src\"?",
    )
    .await;
    check("zzz", "zzz cannot be read: no such file").await;
    check(
        "dangling",
        "dangling cannot be read: it is a broken symlink",
    )
    .await;
    check("", "\"\" is not a path: it is empty").await;
    check(
        "~/x",
        "\"~/x\" is not a path: `~` is not expanded; write the path in full",
    )
    .await;
    check(
        "file:///etc/passwd",
        "\"file:///etc/passwd\" is not a path: it is a URI; write a path",
    )
    .await;
    check(
        "a\0b",
        "\"a\\0b\" is not a path: it contains a NUL character",
    )
    .await;
    let answer = world.good("Read", json!({"file_path": "latin.txt"})).await;
    assert_eq!(
        answer,
        "1\tcaf\u{fffd}\n[bytes that are not UTF-8 are shown as \u{fffd}]"
    );
}
