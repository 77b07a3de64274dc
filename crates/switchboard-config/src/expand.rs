//! `${…}` in values.

/// Whether a text is nothing but references.
pub fn is_only_references(text: &str) -> bool {
    let _ = text;
    false
}
