//! Snapshot tests of conversations: each `.toml` file scripts a model and is played in every wire format. The requests
//! of two of them are compared as rendered by `render`; the scripted endpoint checks those of the third.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test helpers fail by panicking"
)]

mod play;
mod render;
mod script;
mod servers;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use switchboard_test::model::Wire;

use crate::play::play;
use crate::render::render;
use crate::script::Conversation;

#[tokio::test]
async fn every_conversation_goes_as_written() {
    let files = files();
    assert!(files.len() >= 50, "only {} conversations", files.len());
    let mut failed = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        // Each in its own task, so that all failures are reported.
        if tokio::spawn(check(name.clone(), file)).await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "not as written: {failed:?}");
}

async fn check(name: String, file: PathBuf) {
    let text = std::fs::read_to_string(&file).unwrap();
    let conversation: Conversation =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut rendered = format!("{}\n", conversation.about);
    let mut output = Vec::new();
    for wire in [Wire::Anthropic, Wire::OpenAi, Wire::Responses] {
        let mut played = play(&name, &conversation, wire).await;
        if wire != Wire::Responses {
            rendered.push_str(&render(wire, &played, conversation.shows_tools));
        }
        in_order(&mut played.output);
        output.push(played.output);
    }
    for other in &output[1..] {
        assert_eq!(
            &output[0], other,
            "{name}: the output must not depend on the format"
        );
    }
    let _ = writeln!(rendered, "\n== told\n{}", output[0].join("\n"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, rendered));
}

/// Parallel calls end in any order: sorts each group into starts, then ends.
fn in_order(output: &mut [String]) {
    let is_end = |line: &String| line.ends_with(" ended") || line.ends_with(" failed");
    let mut start = 0;
    let mut open = 0;
    for place in 0..output.len() {
        let line = &output[place];
        if !line.starts_with("call ") {
            start = place + 1;
            open = 0;
            continue;
        }
        open = if is_end(line) { open - 1 } else { open + 1 };
        if open == 0 {
            output[start..=place].sort_by_key(|line| {
                // Starts keep their order.
                let name = is_end(line).then(|| (line.len(), line.clone()));
                (is_end(line), name)
            });
            start = place + 1;
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_toml = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    };
    let mut files: Vec<PathBuf> = paths.filter(is_toml).collect();
    files.sort();
    files
}
