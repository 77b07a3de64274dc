//! What a sentence asks the model to do, by the meanings of its words and not by their order.
//!
//! Patterns (`rules`) find wordings that were seen. This finds what they have in common: a text that steers a model has
//! to address it, name what is to be taken, say where it goes, or say what not to tell. Each combination of such
//! meanings within one sentence is a demand with a rule and a weight, in whichever language the words are. A sentence
//! that only describes the tool ("Reads a secret and returns it") has the objects, but not the command.

mod judge;
mod sentence;

use std::ops::Range;

use super::Rule;
use super::lexicon::{ALL, LEXICON, Meanings, OBLIGED, REVERSED, ROTATED, Term, WHEN};
use judge::judge;
use sentence::{Sentence, any};

/// Something that a sentence asks for.
pub(super) struct Demand {
    pub(super) rule: Rule,
    pub(super) weight: u8,
    /// From the first to the last word that matters.
    pub(super) place: Range<usize>,
}

/// What is known of the text besides its words.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s> {
    /// It begins by saying what the tool does, and so in the imperative.
    pub(super) has_summary: bool,
    /// It describes one parameter, so a noun is what is to be passed.
    pub(super) is_parameter: bool,
    /// It is a value of the schema (a default, an example, a name), where nobody expects a sentence.
    pub(super) is_value: bool,
    /// Names of parameters, which others would be taken for tools.
    pub(super) parameters: &'s [String],
    /// Whether a name is one of the server's own tools.
    pub(super) is_own: &'s dyn Fn(&str) -> bool,
}

/// A sentence longer than this is taken for several: what stands further apart has nothing to do with each other.
const LONGEST: usize = 320;
/// So many bytes may stand between "not" and what is not to be told.
const NEAR: usize = 40;

/// So many words in a cipher are no coincidence.
const CIPHERED: usize = 3;

/// What the sentences of a text ask for, and whether it is worth deciphering.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) demands: Vec<Demand>,
    pub(super) is_rotated: bool,
    pub(super) is_reversed: bool,
}

/// Everything that the sentences of a folded text ask for.
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
        // The sentence ends before the next term, or with the text.
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
            // A sentence begins after what ends the one before.
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

/// "When …", "Before any …": what follows is an order, not what the tool does.
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

/// Where the sentence from `start` ends, if that is before `end`.
fn sentence_end(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    // No further than a sentence goes: this is done for every term.
    let until = bytes.get(start..end.min(start + LONGEST))?;
    match memchr::memchr3(b'\n', b'!', b'?', until) {
        Some(at) => Some(start + at),
        None if end > start + LONGEST => Some(start + LONGEST),
        None => None,
    }
}
