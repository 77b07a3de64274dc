//! Detects what a sentence asks the model to do, from the meanings of its words rather than their order.
//!
//! The patterns in `rules` match known wordings. This matches what they have in common: a text that steers a model must
//! address it, name what to take, say where it goes, or say what to conceal. Each combination of such meanings in one
//! sentence is a demand with a rule and a weight, in any supported language. A sentence that only describes the tool
//! ("Reads a secret and returns it") has the objects but no command.

mod judge;
mod sentence;

use std::ops::Range;

use super::Rule;
use super::lexicon::{ALL, LEXICON, Meanings, OBLIGED, REVERSED, ROTATED, Term, WHEN};
use judge::judge;
use sentence::{Sentence, any};

/// Something that a sentence asks the model to do.
pub(super) struct Demand {
    pub(super) rule: Rule,
    pub(super) weight: u8,
    /// Range from the first to the last relevant word.
    pub(super) place: Range<usize>,
}

/// Context of the text within the definition.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s> {
    /// The text starts with a summary of the tool, which is often in the imperative.
    pub(super) has_summary: bool,
    /// The text describes one parameter, so a noun names the value to pass.
    pub(super) is_parameter: bool,
    /// The text is a value of the schema (a default, an example, a name), which rarely contains sentences.
    pub(super) is_value: bool,
    /// Parameter names, which could otherwise be mistaken for tool names.
    pub(super) parameters: &'s [String],
    /// Whether a name is one of the server's own tools.
    pub(super) is_own: &'s dyn Fn(&str) -> bool,
}

/// Maximum length of a sentence, in bytes; longer ones are split, because distant words are unrelated.
const LONGEST: usize = 320;
/// Maximum distance in bytes between a negation and the verb of telling.
const NEAR: usize = 40;

/// Minimum number of enciphered words.
const CIPHERED: usize = 3;

/// Demands of a text, and whether it seems enciphered.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) demands: Vec<Demand>,
    pub(super) is_rotated: bool,
    pub(super) is_reversed: bool,
}

/// Collects the demands of all sentences in a folded text.
pub(super) fn read(text: &str, setting: Setting<'_>) -> Reading {
    let mut reading = Reading::default();
    let Some(lexicon) = &*LEXICON else {
        return reading;
    };
    let (mut rotated, mut reversed) = (0, 0);
    let bytes = text.as_bytes();
    let mut terms: Vec<Term> = Vec::new();
    let mut start = 0;
    let mut is_first = true;
    let mut before: Meanings = 0;
    let mut found = lexicon.find(text).peekable();
    loop {
        let next = found.peek().copied();
        // The sentence ends before the next term, or at the end of the text.
        let end = match next {
            Some(term) if term.start < start => {
                found.next();
                continue;
            }
            Some(term) => sentence_end(bytes, start, term.end),
            None => Some(bytes.len()),
        };
        if let Some(end) = end {
            if terms.len() > 1 {
                let sentence = Sentence {
                    text: bytes,
                    place: start..end,
                    terms: &terms,
                    is_summary: is_first
                        && setting.has_summary
                        && !begins_with_condition(bytes, start, &terms),
                    before,
                    setting,
                };
                before = judge(&sentence, &mut reading.demands);
            } else {
                before = 0;
            }
            terms.clear();
            is_first &= end == start;
            start = end;
            // Skip the terminator of the previous sentence.
            if bytes.get(start).is_some_and(|byte| is_end(*byte)) {
                start += 1;
            }
            if next.is_none() {
                break;
            }
            continue;
        }
        if let Some(term) = found.next() {
            rotated += usize::from(any(term.meanings, ROTATED));
            reversed += usize::from(any(term.meanings, REVERSED));
            terms.push(term);
        }
    }
    reading.is_rotated = rotated >= CIPHERED;
    reading.is_reversed = reversed >= CIPHERED;
    reading
}

/// "When …", "Before any …": an order follows, not a description of the tool.
fn begins_with_condition(bytes: &[u8], start: usize, terms: &[Term]) -> bool {
    let blanks = bytes
        .get(start..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    let first = start + blanks.count();
    terms
        .iter()
        .any(|term| term.start == first && any(term.meanings, WHEN | ALL | OBLIGED))
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'!' | b'?')
}

/// Returns the end of the sentence that begins at `start`, if it is before `end`.
fn sentence_end(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    // Bounded by the maximum length: this runs for every term.
    let until = bytes.get(start..end.min(start + LONGEST))?;
    match memchr::memchr3(b'\n', b'!', b'?', until) {
        Some(at) => Some(start + at),
        None if end > start + LONGEST => Some(start + LONGEST),
        None => None,
    }
}
