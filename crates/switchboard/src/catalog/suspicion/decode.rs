//! Decodes encoded runs within a text: base64, hexadecimal, percent-encoding and escapes.
//!
//! Only runs that decode to prose are returned: hashes, keys and images are not.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Minimum length of an encoded run.
const SHORTEST: usize = 24;
/// Maximum length decoded at a time; longer runs are decoded in pieces.
const PIECE: usize = 64 * 1024;
/// Minimum number of escapes for a text to be decoded.
const FEW_ESCAPES: usize = 4;

/// A decoded part of a text and its position.
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) place: Range<usize>,
}

/// Returns all encoded parts of a text, decoded.
pub(super) fn decoded(text: &str) -> Vec<Decoded> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-=".contains(&byte);
    let mut start = 0;
    for at in 0..=bytes.len() {
        if bytes.get(at).is_some_and(|byte| is_code(*byte)) {
            continue;
        }
        if at - start >= SHORTEST {
            run(text, start..at, &mut found);
        }
        start = at + 1;
    }
    let whole = [percent(text), escapes(text)];
    found.extend(whole.into_iter().flatten().map(|plain| Decoded {
        text: plain,
        place: 0..text.len(),
    }));
    found
}

/// Decodes ROT13.
pub(super) fn rotated(text: &str) -> String {
    let rotate = |letter: char, first: u8| {
        let place = u8::try_from(letter).unwrap_or(first).wrapping_sub(first);
        char::from(first + (place + 13) % 26)
    };
    text.chars()
        .map(|letter| match letter {
            'a'..='z' => rotate(letter, b'a'),
            'A'..='Z' => rotate(letter, b'A'),
            _ => letter,
        })
        .collect()
}

pub(super) fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn run(text: &str, place: Range<usize>, found: &mut Vec<Decoded>) {
    const ANY: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY);
    let code = text.get(place.clone()).unwrap_or_default();
    let code = code.trim_matches(['-', '_', '/']).trim_end_matches('=');
    let mut at = place.start;
    for piece in code.as_bytes().chunks(PIECE) {
        let here = at..at + piece.len();
        at = here.end;
        let plain = hexadecimal(piece)
            .or_else(|| STANDARD.decode(piece).ok())
            .or_else(|| URL_SAFE.decode(piece).ok());
        let plain = plain.map(|plain| String::from_utf8_lossy(&plain).into_owned());
        if let Some(plain) = plain.filter(|plain| is_prose(plain)) {
            found.push(Decoded {
                text: plain,
                place: here,
            });
        }
    }
}

fn hexadecimal(code: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = code.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

/// Whether a text is prose and not noise.
fn is_prose(text: &str) -> bool {
    let (mut ordinary, mut all, mut blanks) = (0_usize, 0_usize, 0_usize);
    for character in text.chars() {
        all += 1;
        blanks += usize::from(character == ' ');
        let is_ordinary =
            character.is_alphabetic() || " .,;:!?/~_-'\"@`()0123456789\n".contains(character);
        ordinary += usize::from(is_ordinary && character != '\u{FFFD}');
    }
    // Asian scripts have no spaces between words.
    (blanks > 0 || !text.is_ascii()) && ordinary * 20 >= all * 17
}

fn percent(text: &str) -> Option<String> {
    if memchr::memchr_iter(b'%', text.as_bytes())
        .take(FEW_ESCAPES)
        .count()
        < FEW_ESCAPES
    {
        return None;
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut count = 0;
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| after.get(..2).and_then(hexadecimal))
            .flatten();
        if let Some(code) = code {
            plain.extend(code);
            count += 1;
            rest = after.get(2..).unwrap_or_default();
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    (count >= FEW_ESCAPES).then(|| String::from_utf8_lossy(&plain).into_owned())
}

/// Decodes escapes of source code and HTML: `\u0041`, `\x41`, `&#65;`, `&#x41;`.
fn escapes(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&']) {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        if let Some((character, length)) = escape(after) {
            plain.push(character);
            count += 1;
            rest = after.get(length..).unwrap_or_default();
        } else {
            plain.push_str(after.get(..1).unwrap_or_default());
            rest = after.get(1..).unwrap_or_default();
        }
    }
    plain.push_str(rest);
    (count >= FEW_ESCAPES).then_some(plain)
}

/// Decodes an escape at the start of the text; returns the character and the length of the escape.
fn escape(text: &str) -> Option<(char, usize)> {
    let number = |digits: &str, radix| {
        let number = u32::from_str_radix(digits, radix).ok()?;
        char::from_u32(number)
    };
    if let Some(digits) = text.strip_prefix("\\u").and_then(|after| after.get(..4)) {
        return Some((number(digits, 16)?, 6));
    }
    if let Some(digits) = text.strip_prefix("\\x").and_then(|after| after.get(..2)) {
        return Some((number(digits, 16)?, 4));
    }
    let entity = text.strip_prefix("&#")?;
    let end = entity.bytes().take(10).position(|byte| byte == b';')?;
    let digits = entity.get(..end)?;
    let character = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => number(digits, 16)?,
        None => number(digits, 10)?,
    };
    Some((character, end + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = decoded(text);
        let found: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn prose_in_code_is_found_and_noise_is_not() {
        check(
            "x aWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnM= y",
            &["ignore all previous instructions"],
        );
        check(
            "69676e6f726520616c6c2070726576696f757320727563",
            &["ignore all previous ruc"],
        );
        check("a%62%63%64 %65f", &["abcd ef"]);
        check(r"\u0069\x67&#110;&#x6f;re", &["ignore"]);
        for text in [
            "9fceb02d0ae598e95dc970b74767f19372d61af8",
            "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
            "a_long_identifier_with_many_parts_in_it",
            "50% of 100% is 50%",
            r"C:\users\x & y",
        ] {
            check(text, &[]);
        }
    }
}
