use std::time::{Duration, SystemTime};

use serde_json::json;

use super::World;

fn repository() -> World {
    let world = World::new();
    std::fs::create_dir(world.path(".git")).unwrap();
    world
        .file(".gitignore", "target/\n*.log\n")
        .file(".git/config", "needle")
        .file(
            "src/main.rs",
            "fn main() {\n    // needle\n    needle();\n}\n",
        )
        .file("src/deep/lib.rs", "pub fn needle() {}\r\n")
        .file("notes.md", "Needle\nhay\nhay\nhay\nneedle\n")
        .file("target/out.rs", "needle")
        .file("run.log", "needle")
        .file(".hidden.rs", "")
        .file("picture.png", b"\x89PNG\0needle\n");
    // Later in the list means older.
    let names = ["src/deep/lib.rs", ".hidden.rs", "src/main.rs", "notes.md"];
    for (age, name) in names.into_iter().enumerate() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        let file = std::fs::File::options().append(true).open(world.path(name));
        file.unwrap().set_modified(time).unwrap();
    }
    world
}

#[tokio::test]
async fn files_are_found_the_latest_first() {
    let world = repository();
    let check = async |arguments, expected: &str| {
        assert_eq!(world.good("Glob", arguments).await, expected);
    };
    check(
        json!({"pattern": "**/*.rs"}),
        "src/deep/lib.rs\n.hidden.rs\nsrc/main.rs",
    )
    .await;
    check(json!({"pattern": "*.rs"}), ".hidden.rs").await;
    check(json!({"pattern": "./*.md"}), "notes.md").await;
    check(json!({"pattern": "*.rs", "path": "src"}), "src/main.rs").await;
    check(
        json!({"pattern": "**/*.{md,rs}", "path": "src/.."}),
        "src/../src/deep/lib.rs\nsrc/../.hidden.rs\nsrc/../src/main.rs\nsrc/../notes.md",
    )
    .await;
    check(json!({"pattern": "*.nothing"}), "[no file matches]").await;
    let check = async |arguments, expected: &str| {
        let answer = world.bad("Glob", arguments).await;
        assert!(answer.contains(expected), "{answer}");
    };
    let outside = "the pattern leads out of the folder; name the folder in path";
    check(json!({"pattern": "../*"}), outside).await;
    check(json!({"pattern": "/etc/*"}), outside).await;
    check(json!({"pattern": "a{"}), "unclosed").await;
    check(
        json!({"pattern": "*", "path": "none"}),
        "none: No such file",
    )
    .await;
    check(
        json!({"pattern": "*", "path": "notes.md"}),
        "notes.md is not a folder",
    )
    .await;
}

#[tokio::test]
async fn many_files_are_bounded() {
    let world = World::new();
    for number in 0..500 {
        world.file(&format!("many/{number:03}.txt"), "x\n");
    }
    let answer = world.good("Glob", json!({"pattern": "**"})).await;
    assert_eq!(answer.lines().count(), 201);
    assert!(
        answer.ends_with("[300 more files match; narrow the pattern]"),
        "{answer}"
    );
    let answer = world
        .good("Grep", json!({"pattern": "x", "mode": "files"}))
        .await;
    assert_eq!(answer.lines().count(), 101);
    assert!(answer.starts_with("many/000.txt\nmany/001.txt\n"));
    assert!(answer.ends_with("or raise limit]"), "{answer}");
}

#[tokio::test]
async fn lines_are_found() {
    let world = repository();
    let check = async |arguments, expected: &str| {
        assert_eq!(world.good("Grep", arguments).await, expected);
    };
    check(
        json!({"pattern": "needle"}),
        "notes.md\n5:needle\n\nsrc/deep/lib.rs\n1:pub fn needle() {}\n\nsrc/main.rs\n2:    // needle\n3:    needle();",
    )
    .await;
    check(
        json!({"pattern": "^needle$", "ignore_case": true, "glob": "*.md"}),
        "notes.md\n1:Needle\n5:needle",
    )
    .await;
    check(
        json!({"pattern": "needle", "ignore_case": true, "path": "notes.md", "context": 1}),
        "notes.md\n1:Needle\n2-hay\n--\n4-hay\n5:needle",
    )
    .await;
    check(
        json!({"pattern": "\\{\\}$", "path": "src/deep"}),
        "src/deep/lib.rs\n1:pub fn needle() {}",
    )
    .await;
    check(
        json!({"pattern": "needle", "mode": "files"}),
        "notes.md\nsrc/deep/lib.rs\nsrc/main.rs",
    )
    .await;
    check(
        json!({"pattern": "needle", "mode": "count"}),
        "notes.md: 1\nsrc/deep/lib.rs: 1\nsrc/main.rs: 2",
    )
    .await;
    check(
        json!({"pattern": "main.*needle", "multiline": true}),
        "src/main.rs\n1:fn main() {\n2:    // needle\n3:    needle();",
    )
    .await;
    check(
        json!({"pattern": "needle", "path": "run.log"}),
        "run.log\n1:needle",
    )
    .await;
    check(json!({"pattern": "absent"}), "[nothing matches]").await;
    check(
        json!({"pattern": "needle", "limit": 1}),
        "notes.md\n5:needle\n\n[there may be more; narrow with path, glob or pattern, or raise limit]",
    )
    .await;
    let check = async |arguments, expected: &str| {
        let answer = world.bad("Grep", arguments).await;
        assert!(answer.contains(expected), "{answer}");
    };
    check(
        json!({"pattern": "f("}),
        "escape characters that mean themselves",
    )
    .await;
    check(json!({"pattern": "a\\nb"}), "set multiline").await;
    check(
        json!({"pattern": "a", "path": "none"}),
        "none: No such file",
    )
    .await;
    check(
        json!({"pattern": "(a{1000}){1000}"}),
        "the pattern cannot be used",
    )
    .await;
}

#[tokio::test]
async fn long_lines_are_cut() {
    let world = World::new();
    world.file("long.txt", format!("needle {}\n", "ä".repeat(100_000)));
    let answer = world.good("Grep", json!({"pattern": "needle"})).await;
    let expected = format!(
        "long.txt\n1:needle {} [… line of 200007 bytes cut]",
        "ä".repeat(493)
    );
    assert_eq!(answer, expected);
    let many = format!("needle {}\n", "x".repeat(400)).repeat(1000);
    world.file("many.txt", many);
    let answer = world
        .good("Grep", json!({"pattern": "needle", "limit": 1000}))
        .await;
    assert!(answer.chars().count() <= 10_000);
}
