//! Finds the end of a JSON string: fast for keys, for long texts and for texts with many escapes.
//!
//! Most bytes of a message pass through this loop. It uses three strategies: a key ends within a block of 16 bytes; a
//! long run without escapes uses a vectorized search; a text with an escape every few bytes, which would stop both, is
//! read in blocks of 64 bytes, with one bit per quote and backslash.

use wide::u8x16;

/// The end of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StringEnd {
    /// The offset after the closing quote.
    pub position: usize,
    /// Whether the string contains a backslash. Without one, the bytes between the quotes are the text.
    pub escaped: bool,
}

/// The end of a string whose content starts at `start`; `None` if it has no closing quote.
///
/// For validated text, or if the result need not be reliable: an escape is any two bytes.
#[inline]
pub(crate) fn end_of_string(bytes: &[u8], start: usize) -> Option<StringEnd> {
    end::<false>(bytes, start)
}

/// Like [`end_of_string`]; also `None` if the string is invalid JSON, because of a control character or an invalid
/// escape.
#[inline]
pub(crate) fn end_of_checked_string(bytes: &[u8], start: usize) -> Option<StringEnd> {
    end::<true>(bytes, start)
}

#[inline]
fn end<const CHECK: bool>(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let mut position = start;
    for _ in 0..SHORT_BLOCKS {
        let Some(block) = chunk::<16>(bytes, position) else {
            return end_near_tail::<CHECK>(bytes, position);
        };
        let block = u8x16::new(*block);
        let is = |byte| block.simd_eq(u8x16::splat(byte));
        let special = (is(b'"') | is(b'\\')).to_bitmask();
        if CHECK {
            let controls = block.simd_eq(block.min(u8x16::splat(b' ' - 1)));
            let before_special = special.wrapping_sub(1) & !special;
            if controls.to_bitmask() & before_special != 0 {
                return None;
            }
        }
        if special != 0 {
            position += special.trailing_zeros() as usize;
            return at_special::<CHECK>(bytes, position);
        }
        position += 16;
    }
    end_of_long_string::<CHECK>(bytes, Stretch::Plain(position))
}

/// Number of blocks before a string counts as long.
const SHORT_BLOCKS: usize = 2;

/// Continues at the first quote or backslash.
#[inline]
fn at_special<const CHECK: bool>(bytes: &[u8], position: usize) -> Option<StringEnd> {
    match bytes.get(position)? {
        b'"' => Some(StringEnd {
            position: position + 1,
            escaped: false,
        }),
        _ => end_of_long_string::<CHECK>(bytes, Stretch::Dense(position)),
    }
}

/// Continues where less than a block is left.
fn end_near_tail<const CHECK: bool>(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let Some(word) = chunk::<8>(bytes, start) else {
        return end_in_tail::<CHECK>(bytes, start);
    };
    let word = u64::from_le_bytes(*word);
    let special = equal_to(word, b'"') | equal_to(word, b'\\');
    if CHECK && has_control_before(word, special) {
        return None;
    }
    if special == 0 {
        return end_in_tail::<CHECK>(bytes, start + 8);
    }
    at_special::<CHECK>(bytes, start + special.trailing_zeros() as usize / 8)
}

/// How a long string continues, and where.
#[derive(Debug, PartialEq)]
enum Stretch {
    /// No escapes for a while.
    Plain(usize),
    /// An escape at this offset.
    Dense(usize),
    /// The string ends before this offset.
    End(usize),
}

fn end_of_long_string<const CHECK: bool>(bytes: &[u8], start: Stretch) -> Option<StringEnd> {
    let mut stretch = start;
    let mut escaped = false;
    loop {
        stretch = match stretch {
            Stretch::Plain(position) => read_plain::<CHECK>(bytes, position)?,
            Stretch::Dense(position) => {
                escaped = true;
                read_dense::<CHECK>(bytes, position)?
            }
            Stretch::End(position) => return Some(StringEnd { position, escaped }),
        };
    }
}

fn read_plain<const CHECK: bool>(bytes: &[u8], start: usize) -> Option<Stretch> {
    let mut position = start;
    loop {
        let rest = bytes.get(position..)?;
        // In windows, so that the second pass finds the bytes in the L1 cache.
        let window = rest.get(..WINDOW).unwrap_or(rest);
        let found = memchr::memchr2(b'"', b'\\', window);
        let run = window.get(..found.unwrap_or(window.len()))?;
        if CHECK && has_control(run) {
            return None;
        }
        position += run.len();
        match bytes.get(position)? {
            _ if found.is_none() => {}
            b'"' => return Some(Stretch::End(position + 1)),
            _ => return Some(Stretch::Dense(position)),
        }
    }
}

const WINDOW: usize = 16 * 1024;

/// Reads blocks until two in a row have no escapes.
fn read_dense<const CHECK: bool>(bytes: &[u8], start: usize) -> Option<Stretch> {
    let in_tail =
        |position| end_in_tail::<CHECK>(bytes, position).map(|end| Stretch::End(end.position));
    let mut position = start;
    let mut plain_blocks = 0;
    while let Some(block) = chunk::<64>(bytes, position).map(Block::new) {
        if CHECK && block.has_control() {
            // It may be after the end of the string, where whitespace is allowed; check each byte.
            return in_tail(position);
        }
        let backslashes = block.equal_to(b'\\');
        let escaped = after_odd_runs(backslashes);
        let ends = block.equal_to(b'"') & !escaped;
        if CHECK {
            let before_end = ends.wrapping_sub(1) & !ends;
            let to_look_at = escaped & before_end & !block.simple_escape_letters();
            check_escapes(bytes, position, to_look_at)?;
        }
        if ends != 0 {
            return Some(Stretch::End(position + ends.trailing_zeros() as usize + 1));
        }
        if backslashes == 0 {
            plain_blocks += 1;
            if plain_blocks == 2 {
                return Some(Stretch::Plain(position + 64));
            }
        } else {
            plain_blocks = 0;
        }
        position += 64;
        // An odd run at the end escapes the byte after the block.
        if backslashes.leading_ones() % 2 == 1 {
            if CHECK && !is_escape(bytes, position) {
                return None;
            }
            position += 1;
        }
    }
    in_tail(position)
}

/// The bytes that follow a run of backslashes of odd length, that is, the escaped bytes other than backslashes.
///
/// Adding a run's first bit carries through the run and leaves one bit after its end. A run is odd if the parity of
/// that position differs from the parity of its start.
fn after_odd_runs(backslashes: u64) -> u64 {
    const EVEN: u64 = u64::from_ne_bytes([0b0101_0101; 8]);
    let starts = backslashes & !(backslashes << 1);
    let ends_of = |starts: u64| backslashes.wrapping_add(starts) & !backslashes;
    (ends_of(starts & EVEN) & !EVEN) | (ends_of(starts & !EVEN) & EVEN)
}

/// Validates the escapes whose letters are marked.
#[inline]
fn check_escapes(bytes: &[u8], position: usize, letters: u64) -> Option<()> {
    let mut rest = letters;
    while rest != 0 {
        if !is_escape(bytes, position + rest.trailing_zeros() as usize) {
            return None;
        }
        rest &= rest - 1;
    }
    Some(())
}

/// Continues byte by byte.
fn end_in_tail<const CHECK: bool>(bytes: &[u8], start: usize) -> Option<StringEnd> {
    let mut position = start;
    let mut escaped = false;
    loop {
        match bytes.get(position)? {
            b'"' => {
                return Some(StringEnd {
                    position: position + 1,
                    escaped,
                });
            }
            b'\\' => {
                escaped = true;
                if CHECK && !is_escape(bytes, position + 1) {
                    return None;
                }
                position += 2;
            }
            0..=0x1f if CHECK => return None,
            _ => position += 1,
        }
    }
}

/// Whether the letter at `position` is a valid escape. Hexadecimal digits are then read as ordinary characters.
fn is_escape(bytes: &[u8], position: usize) -> bool {
    match bytes.get(position) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => bytes
            .get(position + 1..position + 5)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    }
}

/// Computes a minimum, so that the loop is vectorized.
fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |least, &byte| least.min(byte)) < b' '
}

/// Whether there is a control character before the first of the `special` bytes.
fn has_control_before(word: u64, special: u64) -> bool {
    // A byte below 0x20 stays below 0x80 when 0x60 is added; no byte carries into the next.
    let controls = !((word & !HIGHS).wrapping_add(ONES * 0x60) | word) & HIGHS;
    controls != 0 && controls.trailing_zeros() < special.trailing_zeros()
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// The highest bit of each byte that equals `byte`.
#[inline]
fn equal_to(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ (ONES * u64::from(byte));
    // Adding 0x7f to the lower seven bits sets the highest unless they are all zero.
    !(((zero_where_equal & !HIGHS) + !HIGHS) | zero_where_equal) & HIGHS
}

/// 64 bytes examined together. The masks have one bit per byte, the first byte in the lowest bit.
struct Block([u8x16; 4]);

impl Block {
    #[inline]
    fn new(bytes: &[u8; 64]) -> Self {
        let (parts, _) = bytes.as_chunks::<16>();
        Self(std::array::from_fn(|index| u8x16::new(parts[index])))
    }

    #[inline]
    fn equal_to(&self, byte: u8) -> u64 {
        self.mask(|part| part.simd_eq(u8x16::splat(byte)))
    }

    /// The letters of two-byte escapes.
    #[inline]
    fn simple_escape_letters(&self) -> u64 {
        self.mask(|part| {
            let is = |byte| part.simd_eq(u8x16::splat(byte));
            is(b'"') | is(b'\\') | is(b'/') | is(b'b') | is(b'f') | is(b'n') | is(b'r') | is(b't')
        })
    }

    #[inline]
    fn has_control(&self) -> bool {
        let [first, second, third, fourth] = self.0;
        let least = first.min(second).min(third.min(fourth));
        least.simd_eq(least.min(u8x16::splat(b' ' - 1))).any()
    }

    #[inline]
    fn mask(&self, marks: impl Fn(u8x16) -> u8x16) -> u64 {
        self.0.iter().rev().fold(0, |mask, part| {
            mask << 16 | u64::from(marks(*part).to_bitmask())
        })
    }
}

#[inline]
fn chunk<const SIZE: usize>(bytes: &[u8], start: usize) -> Option<&[u8; SIZE]> {
    bytes.get(start..)?.first_chunk()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn strings_end_at_the_first_unescaped_quote() {
        for length in 0..200 {
            let plain = "x".repeat(length);
            for (inside, ends) in [
                (plain.clone(), true),
                (format!("{plain}\\\""), true),
                (format!("{plain}\\\\"), true),
                (format!("{plain}\\\\\\\"{plain}"), true),
                (format!("\\n{plain}\\u00e9"), true),
                (format!("é{plain}\u{7f}"), true),
                (format!("{plain}\\"), false),
                (format!("{plain}\\x"), false),
                (format!("{plain}\\u00g0"), false),
                (format!("{plain}\n"), false),
                (format!("\\\\{plain}\u{1f}{plain}"), false),
            ] {
                let text = format!("{inside}\" \\ \n\" and more");
                let expected = ends.then_some(StringEnd {
                    position: inside.len() + 1,
                    escaped: inside.contains('\\'),
                });
                assert_eq!(
                    end_of_checked_string(text.as_bytes(), 0),
                    expected,
                    "{text:?}"
                );
                if ends {
                    assert_eq!(end_of_string(text.as_bytes(), 0), expected, "{text:?}");
                }
                assert_eq!(
                    end_of_checked_string(inside.as_bytes(), 0),
                    None,
                    "{inside:?}"
                );
            }
        }
    }

    #[test]
    fn alternating_stretches_do_not_recurse() {
        let text = format!("{}\"", format!("\\n{}", "x".repeat(300)).repeat(50_000));
        let expected = StringEnd {
            position: text.len(),
            escaped: true,
        };
        assert_eq!(end_of_checked_string(text.as_bytes(), 0), Some(expected));
    }

    /// Long strings over an alphabet of special characters.
    fn dense() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            8 => Just(b'x'),
            4 => Just(b'\\'),
            1 => Just(b'"'),
            2 => Just(b'n'),
            1 => Just(b'u'),
            1 => Just(b'0'),
            1 => prop_oneof![Just(b'\n'), Just(0x1f), Just(0xc3), Just(0x7f), Just(0xa9)],
        ];
        vec(byte, 0..400)
    }

    proptest! {
        #[test]
        fn all_strategies_find_the_same_end(bytes in dense()) {
            prop_assert_eq!(end_of_checked_string(&bytes, 0), end_in_tail::<true>(&bytes, 0));
            prop_assert_eq!(end_of_string(&bytes, 0), end_in_tail::<false>(&bytes, 0));
            let position = |end: Option<StringEnd>| end.map(|end| end.position);
            let dense = |check: fn(&[u8], Stretch) -> Option<StringEnd>| {
                position(check(&bytes, Stretch::Dense(0)))
            };
            prop_assert_eq!(dense(end_of_long_string::<true>), position(end_in_tail::<true>(&bytes, 0)));
            prop_assert_eq!(dense(end_of_long_string::<false>), position(end_in_tail::<false>(&bytes, 0)));
        }
    }
}
