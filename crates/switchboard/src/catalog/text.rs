//! Prepares text for the model: sanitizes, truncates and counts it.
//!
//! [`neutralise`] removes a server's ability to move the cursor, reverse text direction or hide text from the user.
//! [`cut`] truncates with a mark, and [`Tokens`] is the only estimate of token cost. Nothing here judges the meaning of
//! the text.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use switchboard_config::text::is_invisible;

/// Default maximum length of a description or of a server's instructions for the model, in characters.
pub const MAX_DESCRIPTION: usize = 2_048;

/// Maximum length of a description or of a server's instructions for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionLimit(u32);

impl DescriptionLimit {
    pub(crate) fn characters(count: u64) -> Self {
        Self(u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub(crate) fn get(self) -> usize {
        self.0 as usize
    }
}

impl Default for DescriptionLimit {
    fn default() -> Self {
        Self::characters(MAX_DESCRIPTION as u64)
    }
}

/// Mark at the end of truncated text.
pub const CUT_MARK: &str = " … [cut]";

/// Sanitizes a text: escapes or removes everything that is not plain content.
///
/// - Control characters, bidirectional overrides, tags, zero-width and other invisible characters are escaped as
///   `\u{202e}`, so that hidden content becomes readable. Line breaks and tabs stay.
/// - ANSI colour sequences (`ESC [ … m`) are removed.
/// - Joiners between two characters of a script or emoji that use them stay, and so do variation selectors after one.
///   Between ASCII letters they are escaped.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    if !is_suspicious(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut previous = None;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if let Some(coloured) = colour_sequence(rest) {
            rest = coloured;
            continue;
        }
        if stays(previous, character, after.chars().next()) {
            shown.push(character);
        } else {
            let _ = write!(shown, "{}", character.escape_unicode());
        }
        previous = Some(character);
        rest = after;
    }
    Cow::Owned(shown)
}

/// Whether [`neutralise`] leaves the text unchanged.
pub(crate) fn is_plain(text: &str) -> bool {
    neutralise(text) == text
}

/// Truncates to at most `limit` characters, including the mark.
pub fn cut(text: Cow<'_, str>, limit: usize) -> Cow<'_, str> {
    // A text has at least as many bytes as characters.
    if text.len() <= limit || text.chars().nth(limit).is_none() {
        return text;
    }
    let mark: String = CUT_MARK.chars().take(limit).collect();
    let room = limit - mark.chars().count();
    let mut short = first_characters(&text, room).to_owned();
    short.truncate(short.trim_end().len());
    short.push_str(&mark);
    Cow::Owned(short)
}

/// Returns the first `count` characters of a text, or all of it.
pub(crate) fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Sanitizes and truncates a text for the model.
pub(crate) fn for_model(text: &str, limit: DescriptionLimit) -> Cow<'_, str> {
    // Sanitizing only lengthens text or drops colours, so a hostile megabyte need not be read in full.
    let enough = first_characters(text, limit.get().saturating_mul(8));
    cut(neutralise(enough), limit.get())
}

/// Estimated number of tokens: 2.5 characters each, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tokens(pub u64);

impl Tokens {
    /// Cost of that many characters.
    pub fn of_characters(characters: usize) -> Self {
        Self((characters as u64).saturating_mul(2).div_ceil(5))
    }

    /// Cost of a text.
    pub fn of(text: &str) -> Self {
        Self::of_characters(text.chars().count())
    }

    /// Number of characters that fit.
    pub fn characters(self) -> usize {
        let characters = self.0.saturating_mul(5) / 2;
        usize::try_from(characters).unwrap_or(usize::MAX)
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(tokens: I) -> Self {
        tokens.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// Whether the text may need sanitizing. Plain ASCII, the common case, takes one pass over its bytes.
fn is_suspicious(text: &str) -> bool {
    let control =
        |byte: u8| (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r')) || byte == 0x7F;
    if text.bytes().any(control) {
        return true;
    }
    // A lone carriage return lets a terminal overwrite the text before it.
    if memchr::memchr_iter(b'\r', text.as_bytes())
        .any(|at| text.as_bytes().get(at + 1) != Some(&b'\n'))
    {
        return true;
    }
    !text.is_ascii()
        && text
            .chars()
            .any(|character| is_hidden(character) || character == '\u{85}')
}

fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' | '\r' => false,
        // Line and paragraph separators break lines unexpectedly.
        '\u{2028}' | '\u{2029}' => true,
        _ => character.is_control() || is_invisible(character),
    }
}

pub(super) fn stays(previous: Option<char>, character: char, next: Option<char>) -> bool {
    /// Whether a joiner may stand next to this character.
    fn joins(neighbour: Option<char>) -> bool {
        neighbour.is_some_and(|neighbour| {
            !neighbour.is_ascii()
                && (!is_hidden(neighbour) || matches!(neighbour, '\u{FE0E}' | '\u{FE0F}'))
        })
    }
    match character {
        '\r' => next == Some('\n'),
        // Joiners of Persian, Indic scripts and emoji.
        '\u{200C}' | '\u{200D}' => joins(previous) && joins(next),
        // Text or emoji presentation, also of the digits in keycaps.
        '\u{FE0E}' | '\u{FE0F}' => match previous {
            Some('0'..='9' | '#' | '*') => next == Some('\u{20E3}'),
            Some(previous) => !previous.is_ascii() && !is_hidden(previous),
            None => false,
        },
        _ => !is_hidden(character),
    }
}

/// Returns the text after a leading colour sequence, if there is one.
fn colour_sequence(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let after = parameters.trim_start_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, ';' | ':')
    });
    after.strip_prefix('m')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(neutralise(text), expected);
        assert_eq!(
            neutralise(expected),
            expected,
            "doing it twice changes nothing"
        );
    }

    #[test]
    fn what_is_hidden_becomes_visible_and_content_stays() {
        check("plain\ttext,\r\ntwo lines\n", "plain\ttext,\r\ntwo lines\n");
        check("größe 漢字 👍", "größe 漢字 👍");
        check("a\u{1b}[31;1mred\u{1b}[0m b", "ared b");
        check("a\u{1b}[2Jb", "a\\u{1b}[2Jb");
        check("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b");
        check("safe\rrm -rf", "safe\\u{d}rm -rf");
        check("abc\u{202e}fed", "abc\\u{202e}fed");
        check("a\u{200b}b\u{feff}c", "a\\u{200b}b\\u{feff}c");
        check("hi\u{e0041}\u{e0042}", "hi\\u{e0041}\\u{e0042}");
        check("next\u{85}line\u{2028}x", "next\\u{85}line\\u{2028}x");
        check("nul\0 del\u{7f}", "nul\\u{0} del\\u{7f}");
    }

    #[test]
    fn joiners_stay_where_writing_needs_them_and_nowhere_else() {
        check("⚠\u{fe0f} careful", "⚠\u{fe0f} careful");
        check("1\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3}");
        check("👩\u{200d}💻", "👩\u{200d}💻");
        check("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥");
        check("می\u{200c}خواهم", "می\u{200c}خواهم");
        check("pass\u{200d}word", "pass\\u{200d}word");
        check("a\u{fe0f}", "a\\u{fe0f}");
        check("⚠\u{fe0f}\u{fe0f}", "⚠\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn text_is_cut_at_a_character_with_a_mark() {
        assert_eq!(cut("short".into(), 5), "short");
        assert_eq!(cut("größere Dinge".into(), 12), "größ … [cut]");
        assert_eq!(cut("abcdefghij".into(), 3), " … ");
        let long = "ä".repeat(3_000);
        let shown = for_model(&long, DescriptionLimit::default());
        assert_eq!(shown.chars().count(), MAX_DESCRIPTION);
        assert!(shown.ends_with(CUT_MARK));
        assert_eq!(
            for_model(&"ä".repeat(MAX_DESCRIPTION), DescriptionLimit::default()),
            "ä".repeat(MAX_DESCRIPTION)
        );
        let shorter = for_model(&long, DescriptionLimit::characters(20));
        assert_eq!(shorter, format!("{}{CUT_MARK}", "ä".repeat(12)));
        let longer = for_model(&long, DescriptionLimit::characters(u64::MAX));
        assert_eq!(longer, long);
    }

    #[test]
    fn two_and_a_half_characters_are_a_token() {
        for (characters, tokens) in [(0, 0), (1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (2_048, 820)] {
            assert_eq!(
                Tokens::of_characters(characters),
                Tokens(tokens),
                "{characters}"
            );
        }
        assert_eq!(Tokens(25_000).characters(), 62_500);
        assert_eq!(Tokens::of("漢字漢字漢"), Tokens(2));
    }
}
