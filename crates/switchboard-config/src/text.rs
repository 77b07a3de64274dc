//! Text from files is data: what must not reach a terminal as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character must not reach a terminal or a model as it is, although it is no control character: it has no
/// width, changes the direction of what follows, breaks a line where none is expected, or has no meaning that two
/// readers would agree on.
///
/// These are the line and paragraph separators, format characters, everything that Unicode lets a renderer ignore
/// (variation selectors, tags, fillers, assigned or not), private use and noncharacters. The marks that Arabic, Syriac
/// and Kaithi put around numbers are format characters too, but are drawn, so they stay.
pub fn is_invisible(character: char) -> bool {
    match character {
        '\0'..='\u{AC}' => false,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{E000}'..='\u{F8FF}' | '\u{FDD0}'..='\u{FDEF}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
        | '\u{13430}'..='\u{1343F}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        // Planes 14 to 16: tags, selectors and private use.
        | '\u{E0000}'..='\u{10FFFF}' => true,
        // The last two of each plane are no characters.
        _ => u32::from(character) & 0xFFFE == 0xFFFE,
    }
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
