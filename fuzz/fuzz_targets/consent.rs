//! Any JSON as the arguments of a call, on any screen: there is a view, nothing in it can fool a terminal, every visible
//! character is in it or counted, and what is called complete is all there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use switchboard::permissions::{ConsentView, Preview, Screen};

fuzz_target!(|data: &[u8]| {
    let [columns, rows, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let screen = Screen { columns: usize::from(*columns), rows: usize::from(*rows) };
    let check = |view: &ConsentView| {
        let whole = view.whole();
        let is_harmful = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
        assert!(!whole.contains(is_harmful), "{whole:?}");
        let folded = view.folded(screen);
        let all = view.unfolded(screen.columns);
        assert!(folded.rows.iter().chain(&all).all(|row| !row.contains(char::is_control)));
        if folded.is_complete() {
            assert_eq!(folded.rows, all);
        } else {
            assert!(folded.hidden.iter().any(|hidden| hidden.characters > 0));
        }
    };
    // As arguments, where it is JSON, and always as the value of one.
    if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(text) {
        check(&ConsentView::new(text, Some(text), Some(&raw)));
    }
    let Ok(raw) = serde_json::value::to_raw_value(&serde_json::json!({ "command": text })) else { return };
    let view = ConsentView::new("Bash", None, Some(&raw));
    check(&view);
    let preview = Preview { title: text.to_owned(), text: text.to_owned(), covers: &["command"] };
    check(&view.with_preview(&preview));
});
