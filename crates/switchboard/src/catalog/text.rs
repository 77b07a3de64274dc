//! Text on its way to the model: made harmless, cut, and counted, in one place.
//!
//! Everything a server writes is data. [`neutralise`] takes the power from it to move a cursor, to reverse the
//! direction of what follows, or to say things that only the model can see. [`cut`] bounds it with a mark that tells
//! so, and [`Tokens`] is the one estimate of what text costs. Nothing here judges what the text *says*.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use switchboard_config::text::is_invisible;

/// The most characters of a description or of a server's instructions that the model sees, unless configured otherwise.
pub const MAX_DESCRIPTION: usize = 2_048;

/// The most characters of a description or of a server's instructions that the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionLimit(u32);

impl DescriptionLimit {
    /// That many characters.
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

/// What stands where text was cut.
pub const CUT_MARK: &str = " … [cut]";

/// The text with everything that is not plain content made visible or taken out.
///
/// - Control characters, bidirectional overrides, tags, zero-width and other invisible characters are written as
///   `\u{202e}`, so that what was hidden can be read. Line breaks and tabs stay.
/// - Colour sequences of terminals (`ESC [ … m`) carry nothing for a model and go.
/// - A joiner between two characters of a script or emoji that use it stays, and so does a variation selector after
///   one: they are how those are written. Between ASCII letters they are made visible like the rest.
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

/// Whether [`neutralise`] would leave the text as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    neutralise(text) == text
}

/// The first `limit` characters at most, the mark included where something was cut off.
pub fn cut(text: Cow<'_, str>, limit: usize) -> Cow<'_, str> {
    // Bytes are at least as many as characters.
    if text.len() <= limit || text.chars().nth(limit).is_none() {
        return text;
    }
    let mark: String = CUT_MARK.chars().take(limit).collect();
    let kept = limit - mark.chars().count();
    let mut short = first_characters(&text, kept).to_owned();
    short.truncate(short.trim_end().len());
    short.push_str(&mark);
    Cow::Owned(short)
}

/// The first `count` characters of a text, or all of it.
pub(crate) fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// What a model sees of a longer text for it alone: harmless, and of at most that many characters.
pub(crate) fn for_model(text: &str, limit: DescriptionLimit) -> Cow<'_, str> {
    // Neutralising only ever makes text longer or drops colours, so a hostile megabyte is not walked to its end.
    let enough = first_characters(text, limit.get().saturating_mul(8));
    cut(neutralise(enough), limit.get())
}

/// An estimate of tokens: 2.5 characters each, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tokens(pub u64);

impl Tokens {
    /// What that many characters cost.
    pub fn of_characters(characters: usize) -> Self {
        Self((characters as u64).saturating_mul(2).div_ceil(5))
    }

    /// What a text costs.
    pub fn of(text: &str) -> Self {
        Self::of_characters(text.chars().count())
    }

    /// How many characters fit.
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

/// Whether anything in the text needs a closer look. Plain ASCII, the common case, takes one pass over its bytes.
fn is_suspicious(text: &str) -> bool {
    let control =
        |byte: u8| (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r')) || byte == 0x7F;
    if text.bytes().any(control) {
        return true;
    }
    // A lone carriage return lets a terminal overwrite what stands before it.
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
        // Line and paragraph separators break a line where nobody expects it.
        '\u{2028}' | '\u{2029}' => true,
        _ => character.is_control() || is_invisible(character),
    }
}

pub(super) fn stays(previous: Option<char>, character: char, next: Option<char>) -> bool {
    /// A character of a script or an emoji that joiners may stand beside.
    fn joins(neighbour: Option<char>) -> bool {
        neighbour.is_some_and(|neighbour| {
            !neighbour.is_ascii()
                && (!is_hidden(neighbour) || matches!(neighbour, '\u{FE0E}' | '\u{FE0F}'))
        })
    }
    match character {
        '\r' => next == Some('\n'),
        // Joiners, as Persian, Indic scripts and emoji have them.
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

/// What follows a colour sequence, if the text starts with one.
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
