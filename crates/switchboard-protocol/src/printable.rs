//! Sanitizes text from a peer for error messages.

/// At most `limit` characters, with control, bidirectional and invisible ones escaped and quotes unchanged.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut printable = String::new();
    let mut rest = text.chars();
    for character in rest.by_ref().take(limit) {
        match character {
            '"' | '\'' | '\\' => printable.push(character),
            _ => printable.extend(character.escape_debug()),
        }
    }
    if rest.next().is_some() {
        printable.push('…');
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        for (text, expected) in [
            (r#"{"a":"\n"}"#, r#"{"a":"\n"}"#),
            ("é世界", "é世界"),
            (
                "\u{1b}[0m\r\n\u{202e}\u{200b}",
                r"\u{1b}[0m\r\n\u{202e}\u{200b}",
            ),
            ("0123456789abcdef", "0123456789…"),
            ("0123456789", "0123456789"),
        ] {
            let limit = if text.starts_with('0') { 10 } else { 40 };
            assert_eq!(printable(text, limit), expected);
        }
    }
}
