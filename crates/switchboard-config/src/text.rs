//! Sanitizes text from files for terminals.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character that is not a control character is still unsafe for a terminal or a model: it has no width,
/// changes the text direction, breaks a line, or has no agreed meaning.
///
/// These are line and paragraph separators, format characters, all default ignorables (variation selectors, tags,
/// fillers, assigned or not), private use and noncharacters. Format characters around numbers in Arabic, Syriac and
/// Kaithi are drawn, so they are allowed.
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
        // The last two code points of each plane are noncharacters.
        _ => u32::from(character) & 0xFFFE == 0xFFFE,
    }
}

/// Escapes control and invisible characters, on one line.
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
    use std::collections::HashMap;
    use std::ops::RangeInclusive;

    use unicode_general_category::{GeneralCategory, get_general_category};

    use super::*;

    /// Characters without a visible shape: `Default_Ignorable_Code_Point`.
    const IGNORABLE: [RangeInclusive<char>; 17] = [
        '\u{AD}'..='\u{AD}',
        '\u{34F}'..='\u{34F}',
        '\u{61C}'..='\u{61C}',
        '\u{115F}'..='\u{1160}',
        '\u{17B4}'..='\u{17B5}',
        '\u{180B}'..='\u{180F}',
        '\u{200B}'..='\u{200F}',
        '\u{202A}'..='\u{202E}',
        '\u{2060}'..='\u{206F}',
        '\u{3164}'..='\u{3164}',
        '\u{FE00}'..='\u{FE0F}',
        '\u{FEFF}'..='\u{FEFF}',
        '\u{FFA0}'..='\u{FFA0}',
        '\u{FFF0}'..='\u{FFF8}',
        '\u{1BCA0}'..='\u{1BCA3}',
        '\u{1D173}'..='\u{1D17A}',
        '\u{E0000}'..='\u{E0FFF}',
    ];

    /// Format characters that are drawn: Arabic, Syriac and Kaithi signs that enclose a number.
    const DRAWN: [RangeInclusive<char>; 7] = [
        '\u{600}'..='\u{605}',
        '\u{6DD}'..='\u{6DD}',
        '\u{70F}'..='\u{70F}',
        '\u{890}'..='\u{891}',
        '\u{8E2}'..='\u{8E2}',
        '\u{110BD}'..='\u{110BD}',
        '\u{110CD}'..='\u{110CD}',
    ];

    /// Tests every scalar value, by general category. Surrogates (Cs) are not scalar values.
    #[test]
    fn nothing_that_is_invisible_or_moves_the_cursor_is_shown_as_it_is() {
        use GeneralCategory::{
            Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned,
        };
        let within = |ranges: &[RangeInclusive<char>], character| {
            ranges.iter().any(|range| range.contains(&character))
        };
        let mut seen = HashMap::new();
        for character in '\0'..=char::MAX {
            let category = get_general_category(character);
            let is_noncharacter = u32::from(character) & 0xFFFE == 0xFFFE
                || ('\u{FDD0}'..='\u{FDEF}').contains(&character);
            let is_hidden = within(&IGNORABLE, character)
                || match category {
                    Control | LineSeparator | ParagraphSeparator | PrivateUse => true,
                    Format => !within(&DRAWN, character),
                    // Unassigned characters are drawn as a box until a terminal supports them.
                    Unassigned => is_noncharacter || character > '\u{E0000}',
                    Surrogate => unreachable!("a surrogate is not a character"),
                    _ => false,
                };
            let text = character.to_string();
            let expected = if is_hidden {
                format!("\\u{{{:x}}}", u32::from(character))
            } else {
                text.clone()
            };
            assert_eq!(visible(&text), expected, "U+{:04X}", u32::from(character));
            *seen.entry(format!("{category:?}")).or_insert(0_usize) += usize::from(is_hidden);
        }
        // Each category must occur: C0, C1, bidi controls, tags, selectors, line and paragraph separators, private use.
        for (category, least) in [
            ("Control", 65),
            ("Format", 100),
            ("LineSeparator", 1),
            ("ParagraphSeparator", 1),
            ("PrivateUse", 137_000),
            ("NonspacingMark", 256),
        ] {
            assert!(seen[category] >= least, "{category}: {}", seen[category]);
        }
    }

    #[test]
    fn hidden_characters_are_shown_and_others_kept() {
        assert_eq!(visible("größe 漢字 👍"), "größe 漢字 👍");
        assert_eq!(
            visible("a\u{1b}[31mb\u{202e}c\n"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}"
        );
    }
}
