//! The words that the indexed tools have, and which of them a mistyped or half-typed word may stand for.
//!
//! Owns the numbering of words. A word keeps its number until the index is packed; whether any tool still has it is
//! the index's business.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::quality::RandomState;

/// The shortest and longest word that a mistyped one is compared with, in bytes.
const COMPARED: std::ops::RangeInclusive<usize> = 4..=24;

/// From this length on a word may have two letters wrong.
const LONG: usize = 8;

/// The fewest letters that are left of a word without its ending, and the most that an ending has.
const MIN_STEM: usize = 5;
const MAX_ENDING: usize = 7;

/// Two words are related if they share at least two thirds of the longer one.
const RELATED: usize = 3;
const RELATED_OF: usize = 2;

/// Words by number and numbers by word.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<Arc<str>, u32, RandomState>,
    words: Vec<Arc<str>>,
    /// The same in order, for words that are typed in half.
    ordered: BTreeMap<Arc<str>, u32>,
    /// Words by what is left of them without one of their letters: two words that are one typing mistake apart have
    /// such a rest in common. By hash; whoever looks here compares the words themselves.
    rests: HashMap<u64, Vec<u32>, RandomState>,
}

impl Vocabulary {
    /// The number of a word.
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// The number of a word, a new one if need be.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        let word: Arc<str> = word.into();
        for_each_rest(&word, |rest| {
            self.rests.entry(rest).or_default().push(number);
        });
        self.numbers.insert(Arc::clone(&word), number);
        self.ordered.insert(Arc::clone(&word), number);
        self.words.push(word);
        number
    }

    /// The word of a number.
    pub(super) fn word(&self, number: u32) -> Option<&str> {
        self.words.get(number as usize).map(|word| &**word)
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The likeliest word that a mistyped one stands for, of those that `weight` gives anything: fewest mistakes, then
    /// most weight, then first in the alphabet.
    pub(super) fn correct(&self, word: &str, weight: impl Fn(u32) -> usize + Copy) -> Option<u32> {
        let allowed = if word.len() < LONG { 1 } else { 2 };
        let mut best: Option<(usize, std::cmp::Reverse<usize>, &str, u32)> = None;
        for_each_rest(word, |rest| {
            for number in self.rests.get(&rest).into_iter().flatten() {
                let (Some(candidate), weight) = (self.word(*number), weight(*number)) else {
                    continue;
                };
                if weight == 0 || best.is_some_and(|best| best.3 == *number) {
                    continue;
                }
                let mistakes = strsim::osa_distance(word, candidate);
                let found = (mistakes, std::cmp::Reverse(weight), candidate, *number);
                if mistakes <= allowed && best.is_none_or(|best| found < best) {
                    best = Some(found);
                }
            }
        });
        best.map(|(.., number)| number)
            .or_else(|| self.shortened(word, weight))
            .or_else(|| self.related(word, weight))
    }

    /// The longest known word that this one begins with. A mistake in an ending keeps it from being taken off.
    fn shortened(&self, word: &str, weight: impl Fn(u32) -> usize) -> Option<u32> {
        let shortest = word.len().saturating_sub(MAX_ENDING).max(MIN_STEM);
        let starts = (shortest..word.len()).rev();
        starts
            .filter_map(|end| self.get(word.get(..end)?))
            .find(|number| weight(*number) > 0)
    }

    /// The word that shares the longest beginning with this one, most of both: `multiplication` is `multiply`. Then most
    /// weight, then first in the alphabet.
    fn related(&self, word: &str, weight: impl Fn(u32) -> usize) -> Option<u32> {
        let start = word.get(..MIN_STEM).filter(|_| word.is_ascii())?;
        let candidates = self
            .beginning_with(start)
            .filter_map(|(candidate, number)| {
                let shared = (candidate.bytes().zip(word.bytes()))
                    .take_while(|(left, right)| left == right)
                    .count();
                let longer = candidate.len().max(word.len());
                let weight = weight(number);
                (weight > 0 && RELATED * shared >= RELATED_OF * longer)
                    .then_some((shared, weight, number))
            });
        let better = |best: (usize, usize, u32), next: (usize, usize, u32)| {
            if (next.0, next.1) > (best.0, best.1) {
                next
            } else {
                best
            }
        };
        candidates.reduce(better).map(|(.., number)| number)
    }

    /// The words that begin like this, in the order of the alphabet.
    fn beginning_with<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, u32)> {
        let from = (Bound::Included(start), Bound::Unbounded);
        let begun = self.ordered.range::<str, _>(from);
        begun
            .map(|(word, number)| (&**word, *number))
            .take_while(move |(word, _)| word.starts_with(start))
    }

    /// The word with the most weight that begins like this; the first of the alphabet among equals.
    pub(super) fn complete(&self, start: &str, weight: impl Fn(u32) -> usize) -> Option<u32> {
        /// How many words are looked at.
        const MOST: usize = 64;
        self.beginning_with(start)
            .map(|(_, number)| (weight(number), number))
            .filter(|(weight, _)| *weight > 0)
            .take(MOST)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, number)| number)
    }
}

/// Hashes of the word and of what is left of it without one letter.
fn for_each_rest(word: &str, mut emit: impl FnMut(u64)) {
    let is_compared = COMPARED.contains(&word.len())
        && word.is_ascii()
        && !word.bytes().any(|byte| byte.is_ascii_digit());
    if !is_compared {
        return;
    }
    emit(hash(word.bytes()));
    for left_out in 0..word.len() {
        let bytes = word.bytes().enumerate();
        let kept = bytes.filter(|(position, _)| *position != left_out);
        emit(hash(kept.map(|(_, byte)| byte)));
    }
}

/// FNV-1a: the words are short, and a collision costs one comparison.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(words: &[&str]) -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        for word in words {
            vocabulary.number(word);
        }
        vocabulary
    }

    #[test]
    fn a_mistyped_word_is_the_nearest_one() {
        let vocabulary = vocabulary(&["weather", "repositori", "file", "mail", "mall", "search"]);
        let check = |typed: &str, expected: Option<&str>| {
            let found = vocabulary.correct(typed, |_| 1);
            let found = found.and_then(|number| vocabulary.word(number));
            assert_eq!(found, expected, "{typed}");
        };
        check("wether", Some("weather"));
        check("weathr", Some("weather"));
        check("waether", Some("weather"));
        check("weatherr", Some("weather"));
        check("reposiotri", Some("repositori"));
        check("repozitori", Some("repositori"));
        check("serach", Some("search"));
        check("weatheral", Some("weather"));
        // Of two that are as near, the first of the alphabet.
        check("maal", Some("mail"));
        check("xyzzy", None);
        // Another ending of the same stem.
        check("repositioned", None);
        check("searchlight", Some("search"));
        check("fil", None);
        check("2203", None);
    }

    #[test]
    fn a_word_that_weighs_nothing_is_not_offered() {
        let vocabulary = vocabulary(&["mail", "mall"]);
        let heavier = vocabulary.correct("maal", |number| number as usize);
        assert_eq!(
            heavier.and_then(|number| vocabulary.word(number)),
            Some("mall")
        );
        assert_eq!(vocabulary.correct("maal", |_| 0), None);
        assert_eq!(vocabulary.complete("ma", |_| 0), None);
    }

    #[test]
    fn a_half_typed_word_is_completed() {
        let vocabulary = vocabulary(&["calendar", "calcul", "cat"]);
        let complete = |start: &str| {
            let number = vocabulary.complete(start, |_| 1)?;
            vocabulary.word(number)
        };
        assert_eq!(complete("calend"), Some("calendar"));
        assert_eq!(complete("cal"), Some("calcul"));
        assert_eq!(complete("dog"), None);
    }
}
