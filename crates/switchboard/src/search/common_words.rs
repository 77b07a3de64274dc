//! Table of common English words: how common each one is, and the words nearest to it in meaning.
//!
//! Owns the data of `common_words.bin`, which `common_words.py` generates from a sentence model and a dictionary; the
//! script describes sources, licences and format. Knows no tools: `query` weights words by it, and `rank` uses it for
//! words that no tool contains.

use std::sync::LazyLock;

/// Related words per word.
const NEAREST: usize = 8;

/// Factors for a related word, by the step of its cosine: from 0.3, 0.45, 0.6 and 0.75.
const NEARNESS: [f32; 4] = [0.2, 0.35, 0.5, 0.65];

/// Rank from which a word has its full weight.
const UNCOMMON: f32 = 1500.0;

/// Added to all ranks, so that the first few words differ little.
const OFFSET: f32 = 20.0;

static COMMON_WORDS: LazyLock<CommonWords> =
    LazyLock::new(|| CommonWords::read(include_bytes!("common_words.bin")));

/// The words, found by hash.
#[derive(Debug)]
pub(super) struct CommonWords {
    /// In order of frequency.
    words: Vec<&'static str>,
    /// [`NEAREST`] entries of two bytes per word.
    nearest: &'static [u8],
    /// Open addressing: rank plus one, 0 if free. The length is a power of two and at least twice the number of words.
    table: Vec<u16>,
}

/// A word of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommonWord(u16);

impl CommonWords {
    pub(super) fn get() -> &'static Self {
        &COMMON_WORDS
    }

    /// Finds a stemmed word.
    pub(super) fn find(&self, word: &str) -> Option<CommonWord> {
        let mut place = self.place(word);
        loop {
            let rank = self.table.get(place)?.checked_sub(1)?;
            if self.words.get(usize::from(rank)) == Some(&word) {
                return Some(CommonWord(rank));
            }
            place = (place + 1) % self.table.len();
        }
    }

    /// Returns the stemmed words nearest in meaning, with a factor for each.
    pub(super) fn nearest(&self, word: CommonWord) -> impl Iterator<Item = (&'static str, f32)> {
        let start = usize::from(word.0) * 2 * NEAREST;
        let entries = self.nearest.get(start..start + 2 * NEAREST);
        let (entries, _) = entries.unwrap_or_default().as_chunks::<2>();
        entries.iter().filter_map(move |entry| {
            let entry = u16::from_le_bytes(*entry);
            let (rank, step) = (entry / 4, entry % 4);
            // Too few words are near enough: the entry refers to the word itself.
            let other = self.words.get(usize::from(rank)).filter(|_| rank != word.0);
            other.copied().zip(NEARNESS.get(usize::from(step)).copied())
        })
    }

    fn read(data: &'static [u8]) -> Self {
        let (count, data) = data.split_first_chunk().unwrap_or((&[0; 2], &[]));
        let count = usize::from(u16::from_le_bytes(*count));
        let (nearest, words) = data
            .split_at_checked(count * 2 * NEAREST)
            .unwrap_or_default();
        let words = std::str::from_utf8(words).unwrap_or_default();
        let mut table = Self {
            words: words.lines().collect(),
            nearest,
            table: vec![0; (2 * count).next_power_of_two()],
        };
        for (number, word) in (1..).zip(&table.words) {
            let mut place = table.place(word);
            while table.table.get(place).is_some_and(|taken| *taken != 0) {
                place = (place + 1) % table.table.len();
            }
            if let Some(free) = table.table.get_mut(place) {
                *free = number;
            }
        }
        table
    }

    /// First place of a word in the table (FNV-1a).
    fn place(&self, word: &str) -> usize {
        let hash = word.bytes().fold(0x811C_9DC5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        hash as usize & (self.table.len() - 1)
    }
}

impl CommonWord {
    /// Factor for the word in a query, up to 1: the more common a word is, the less it says about the tool.
    pub(super) fn weight(self) -> f32 {
        let rank = (f32::from(self.0) + OFFSET) / UNCOMMON;
        // A square root is the same on all platforms, a power is not.
        rank.min(1.0).sqrt().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(word: &str) -> Vec<&'static str> {
        let table = CommonWords::get();
        let word = table.find(word).expect("a common word");
        let nearest: Vec<_> = table.nearest(word).collect();
        assert!(nearest.is_sorted_by(|left, right| left.1 >= right.1));
        nearest.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn every_word_is_found() {
        let table = CommonWords::get();
        assert!(table.words.len() > 15_000);
        assert_eq!(table.nearest.len(), table.words.len() * 2 * NEAREST);
        for (rank, word) in (0..).zip(&table.words) {
            assert_eq!(table.find(word), Some(CommonWord(rank)), "{word}");
        }
        assert_eq!(table.find("zzzzqqqq"), None);
        assert_eq!(table.find(""), None);
    }

    #[test]
    fn words_are_near_in_meaning() {
        assert!(nearest("pizza").contains(&"food"));
        assert!(nearest("movi").contains(&"film"));
        assert!(!nearest("pizza").contains(&"pizza"));
    }

    #[test]
    fn common_words_weigh_less() {
        let weight = |word| CommonWords::get().find(word).map(CommonWord::weight);
        assert!(weight("time") < weight("weather"));
        assert_eq!(weight("spreadsheet"), Some(1.0));
    }

    #[test]
    fn a_damaged_table_has_no_words() {
        assert_eq!(CommonWords::read(b"").find("weather"), None);
        assert_eq!(CommonWords::read(b"\x05\x00ab").find("weather"), None);
    }
}
