//! Checks that the reference in `docs/` is up to date.

use std::path::Path;

use switchboard_config::reference::reference;

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == reference(),
        "docs/reference.md is out of date: run `UPDATE_REFERENCE=1 cargo test -p switchboard-config --test reference`"
    );
    // Every setting is listed, and no text breaks the table.
    for line in written.lines().filter(|line| line.starts_with("| `")) {
        assert!(matches!(line.matches(" |").count(), 3 | 4), "{line}");
    }
    assert!(written.contains("| `tool_timeout_sec` | seconds | 60 |"));
}
