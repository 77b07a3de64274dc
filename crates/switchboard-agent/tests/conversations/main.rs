//! Conversations written by hand, each a file of its own, played in both wire formats with a model that says what the
//! file says. What the agent asks is compared whole, as far as `render` says.

mod play;
mod render;
mod script;
mod servers;

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
        // Each in a task of its own, so that all that go wrong are told.
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
    let mut told = Vec::new();
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut played = play(&name, &conversation, wire).await;
        rendered.push_str(&render(wire, &played, conversation.shows_tools));
        in_order(&mut played.told);
        told.push(played.told);
    }
    assert_eq!(
        told[0], told[1],
        "{name}: people are told the same whatever the format"
    );
    rendered.push_str(&format!("\n== told\n{}\n", told[0].join("\n")));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, rendered));
}

/// Calls that run side by side end in any order: of each group of them, first the beginnings, then the ends.
fn in_order(told: &mut [String]) {
    let is_end = |line: &String| line.ends_with(" ended") || line.ends_with(" failed");
    let mut start = 0;
    let mut open = 0;
    for place in 0..told.len() {
        let line = &told[place];
        if !line.starts_with("call ") {
            start = place + 1;
            open = 0;
            continue;
        }
        open = if is_end(line) { open - 1 } else { open + 1 };
        if open == 0 {
            told[start..=place].sort_by_key(|line| match is_end(line) {
                // Beginnings keep their order.
                false => (false, 0, String::new()),
                true => (true, line.len(), line.clone()),
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
