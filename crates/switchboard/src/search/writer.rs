//! Term weights of a tool: BM25F over its fields, computed at indexing time.
//!
//! Field lengths are normalized by constants instead of averages over all tools, so that the weights of a tool do not
//! depend on others and no other tool is touched when one changes. The rarity of a word is computed at query time.

use std::mem;

use super::document::{Document, MAX_DESCRIPTION, beginning};
use super::index::{Index, Tool, to_u32};
use super::lexicon::Lexicon;
use super::text::{Shape, Splitter};
use super::vocabulary::Vocabulary;
use crate::names::{ServerName, ToolRef};

/// Saturation of repeated words (BM25 `k1`).
const SATURATION: f32 = 1.2;

/// Weight of two adjacent words of a name, joined into one.
const PAIR: f32 = 2.0;

/// Length of the weight vector of a usual tool. A tool whose vector is longer has more words than others, and matches more
/// queries by chance.
const LENGTH: f32 = 1.25;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 256;

/// BM25F parameters of a field.
struct Field {
    /// Weight of one occurrence.
    weight: f32,
    /// Strength of length normalization, from 0 to 1 (BM25 `b`).
    by_length: f32,
    /// Length at which a word has its plain weight.
    length: f32,
}

#[rustfmt::skip]
impl Field {
    const NAME: Self = Self { weight: 3.0, by_length: 0.5, length: 3.0 };
    const TITLE: Self = Self { weight: 2.0, by_length: 0.5, length: 3.0 };
    const SERVER: Self = Self { weight: 2.0, by_length: 0.0, length: 2.0 };
    const DESCRIPTION: Self = Self { weight: 0.7, by_length: 0.75, length: 25.0 };
    const PARAMETER_NAMES: Self = Self { weight: 0.7, by_length: 0.5, length: 4.0 };
    const PARAMETER_TEXTS: Self = Self { weight: 0.6, by_length: 0.4, length: 20.0 };
    const INSTRUCTIONS: Self = Self { weight: 1.0, by_length: 0.75, length: 50.0 };
}

/// Turns tools into postings. Reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Writer {
    splitter: Splitter,
    /// Terms of the current field, with repetitions.
    terms: Vec<u32>,
    /// Synonym groups of these terms.
    groups: Vec<u32>,
    /// Sum per term for the current tool; zero for absent terms.
    sums: Vec<f32>,
    /// Terms with a non-zero sum.
    touched: Vec<u32>,
}

/// Postings and tools of a server.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Term, position in the segment, weight.
    pub(super) postings: Vec<(u32, u32, f32)>,
    pub(super) tools: Vec<Tool>,
}

impl Writer {
    /// Indexes the instructions of a server, which take the first slot.
    pub(super) fn instructions(
        &mut self,
        vocabulary: &mut Vocabulary,
        text: &str,
        written: &mut Written,
    ) {
        let text = beginning(text, MAX_DESCRIPTION);
        self.field(vocabulary, text, &Field::INSTRUCTIONS);
        self.finish(0, written);
    }

    /// Indexes the next tool of a server.
    pub(super) fn tool(
        &mut self,
        vocabulary: &mut Vocabulary,
        server: &ServerName,
        document: &Document<'_>,
        written: &mut Written,
    ) {
        let name = beginning(document.tool.as_str(), MAX_NAME);
        self.field(vocabulary, name, &Field::NAME);
        self.pairs(vocabulary, name);
        self.server(vocabulary, beginning(server.as_str(), MAX_NAME));
        for (text, field) in [
            (&document.title, Field::TITLE),
            (&document.description, Field::DESCRIPTION),
            (&document.parameter_names, Field::PARAMETER_NAMES),
            (&document.parameter_texts, Field::PARAMETER_TEXTS),
        ] {
            self.field(vocabulary, beginning(text, MAX_DESCRIPTION), &field);
        }
        let factor = self.finish(to_u32(written.tools.len() + 1), written);
        written.tools.push(Tool {
            name: document.name.clone(),
            reference: ToolRef {
                server: server.clone(),
                tool: document.tool.clone(),
            },
            likeness: likeness(&document.tool.as_str().to_lowercase()),
            factor,
        });
    }

    fn field(&mut self, vocabulary: &mut Vocabulary, text: &str, field: &Field) {
        self.read(vocabulary, text, |_| true);
        self.weigh(field);
    }

    /// Joins adjacent words of a name, so that `mindmap` finds `mind_map`.
    fn pairs(&mut self, vocabulary: &mut Vocabulary, name: &str) {
        let mut before = String::new();
        let mut pairs: Vec<u32> = Vec::new();
        self.splitter.split(name, |word, shape| {
            let entry = Lexicon::get().entry(word);
            if shape == Shape::Whole || entry.is_some_and(|entry| entry.says_nothing) {
                return;
            }
            if !before.is_empty() {
                before.push_str(word);
                pairs.push(Index::term(vocabulary.number(&before)));
            }
            before.clear();
            before.push_str(word);
        });
        for term in pairs {
            self.add(term, PAIR);
        }
    }

    fn server(&mut self, vocabulary: &mut Vocabulary, name: &str) {
        let lexicon = Lexicon::get();
        self.read(vocabulary, name, |word| {
            lexicon.entry(word).is_none_or(|entry| !entry.says_server)
        });
        self.weigh(&Field::SERVER);
    }

    /// Collects the terms of a field.
    fn read(&mut self, vocabulary: &mut Vocabulary, text: &str, counts: impl Fn(&str) -> bool) {
        let lexicon = Lexicon::get();
        let (terms, groups) = (&mut self.terms, &mut self.groups);
        self.splitter.split(text, |word, _| {
            let entry = lexicon.entry(word);
            if entry.is_some_and(|entry| entry.says_nothing) || !counts(word) {
                return;
            }
            terms.push(Index::term(vocabulary.number(word)));
            let entry_groups = entry.map_or(&[][..], |entry| &entry.groups);
            groups.extend(entry_groups.iter().map(|group| u32::from(*group)));
        });
    }

    fn weigh(&mut self, field: &Field) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the number of words in a few kilobytes is exact in an f32"
        )]
        let length = self.terms.len() as f32;
        let relative = 1.0 - field.by_length + field.by_length * length / field.length;
        let weight = field.weight / relative;
        let (mut terms, mut groups) = (mem::take(&mut self.terms), mem::take(&mut self.groups));
        for term in terms.drain(..).chain(groups.drain(..)) {
            self.add(term, weight);
        }
        (self.terms, self.groups) = (terms, groups);
    }

    fn add(&mut self, term: u32, weight: f32) {
        let place = term as usize;
        if self.sums.len() <= place {
            self.sums.resize(place + 1, 0.0);
        }
        if let Some(sum) = self.sums.get_mut(place) {
            if *sum == 0.0 {
                self.touched.push(term);
            }
            *sum += weight;
        }
    }

    /// Writes the postings of a tool or of instructions; returns the factor that evens out their total weight.
    fn finish(&mut self, place: u32, written: &mut Written) -> f32 {
        let start = written.postings.len();
        let mut squares = 0.0;
        for term in self.touched.drain(..) {
            if let Some(sum) = self.sums.get_mut(term as usize) {
                let weight = *sum / (*sum + SATURATION);
                written.postings.push((term, place, weight));
                if Index::is_word(term) {
                    squares += weight * weight;
                }
                *sum = 0.0;
            }
        }
        let factor = if squares > 0.0 {
            (LENGTH / f32::sqrt(squares)).sqrt()
        } else {
            1.0
        };
        for (.., weight) in written.postings.iter_mut().skip(start) {
            *weight *= factor;
        }
        factor
    }
}

/// Hash of a lower-case name.
pub(super) fn likeness(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
