//! Vocabulary of the indexed words, with correction of typos and completion of prefixes.
//!
//! A word has the same number until the index is packed; the index knows whether a tool still contains it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::quality::RandomState;

/// Length range of words that are compared for typos, in bytes.
const COMPARED: std::ops::RangeInclusive<usize> = 4..=24;

/// Minimum length of a word in which two typos are allowed.
const LONG: usize = 8;

/// Minimum length of a stem, and maximum length of an ending.
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
    /// Sorted, for completing prefixes.
    ordered: BTreeMap<Arc<str>, u32>,
    /// Words by the hash of the word with one letter deleted: two words one typo apart share such a deletion. Callers
    /// must compare the words themselves.
    rests: HashMap<u64, Vec<u32>, RandomState>,
}

impl Vocabulary {
    /// Returns the number of a known word.
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// Returns the number of a word and adds it if new.
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

    /// Returns the word with that number.
    pub(super) fn word(&self, number: u32) -> Option<&str> {
        self.words.get(number as usize).map(|word| &**word)
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Corrects a typo. Of the words with a positive `weight`: fewest edits, then highest weight, then alphabetical
    /// order.
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

    /// Returns the longest known prefix of a word. A typo in an ending prevents stemming.
    fn shortened(&self, word: &str, weight: impl Fn(u32) -> usize) -> Option<u32> {
        let shortest = word.len().saturating_sub(MAX_ENDING).max(MIN_STEM);
        let starts = (shortest..word.len()).rev();
        starts
            .filter_map(|end| self.get(word.get(..end)?))
            .find(|number| weight(*number) > 0)
    }

    /// Returns the word with the longest common prefix that covers most of both: `multiplication` gives `multiply`.
    /// Then highest weight, then alphabetical order.
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

    /// Words with that prefix, in alphabetical order.
    fn beginning_with<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, u32)> {
        let from = (Bound::Included(start), Bound::Unbounded);
        let matching = self.ordered.range::<str, _>(from);
        matching
            .map(|(word, number)| (&**word, *number))
            .take_while(move |(word, _)| word.starts_with(start))
    }

    /// Returns the word with that prefix and the highest weight; the first in alphabetical order among equals.
    pub(super) fn complete(&self, start: &str, weight: impl Fn(u32) -> usize) -> Option<u32> {
        /// Maximum number of words compared.
        const MOST: usize = 64;
        self.beginning_with(start)
            .map(|(_, number)| (weight(number), number))
            .filter(|(weight, _)| *weight > 0)
            .take(MOST)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, number)| number)
    }
}

/// Emits hashes of the word and of all its one-letter deletions.
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
        let rest = bytes.filter(|(position, _)| *position != left_out);
        emit(hash(rest.map(|(_, byte)| byte)));
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
        // Of two equally near words, the first in alphabetical order.
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
