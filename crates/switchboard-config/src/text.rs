//! Text from files is data: what must not reach a terminal as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character has no width or changes the direction of what follows: such a character can make one
/// name look like another.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00AD}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// The text with control and invisible characters made visible, on one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |character: char| character.is_control() || is_invisible(character);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if hidden(character) {
            let _ = write!(shown, "{}", character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_others_kept() {
        assert_eq!(visible("größe 漢字 👍"), "größe 漢字 👍");
        assert_eq!(
            visible("a\u{1b}[31mb\u{202e}c\n"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}"
        );
    }
}
