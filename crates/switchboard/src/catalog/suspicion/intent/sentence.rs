//! Properties of one sentence: commands, prohibitions, tool names, addresses.
//!
//! `judge` decides what they add up to.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

#[cfg_attr(
    not(test),
    expect(
        clippy::wildcard_imports,
        reason = "the meanings are the vocabulary of everything below"
    )
)]
use super::super::lexicon::*;
use super::super::rules::{LIMITED, NEGATIVE, compiled};
use super::{NEAR, Setting};

/// Whether any of the wanted meanings is present.
pub(super) const fn any(of: Meanings, wanted: Meanings) -> bool {
    of & wanted != 0
}

/// A sentence with its terms and context.
pub(super) struct Sentence<'s> {
    pub(super) text: &'s [u8],
    pub(super) place: Range<usize>,
    pub(super) terms: &'s [Term],
    pub(super) is_summary: bool,
    /// Meanings of the previous sentence.
    pub(super) before: Meanings,
    pub(super) setting: Setting<'s>,
}

impl Sentence<'_> {
    /// Whether the verb is a command: it starts the sentence or a clause, or follows a word of obligation.
    pub(super) fn is_commanded(&self, verb: &Term) -> bool {
        self.is_command_at(verb, verb.start) || {
            // "Periodically hand it over": skip the adverb.
            let before = self
                .text
                .get(self.place.start..verb.start)
                .unwrap_or_default()
                .trim_ascii_end();
            let adverb = before
                .rsplit(|byte| !byte.is_ascii_lowercase())
                .next()
                .unwrap_or_default();
            adverb.len() > 4
                && adverb.ends_with(b"ly")
                && self.is_command_at(verb, self.place.start + before.len() - adverb.len())
        }
    }

    pub(super) fn is_command_at(&self, verb: &Term, start: usize) -> bool {
        // Verbs of other languages are listed in their imperative form.
        if any(verb.meanings, OBLIGED) {
            return true;
        }
        let before = self.text.get(self.place.start..start).unwrap_or_default();
        let before = before.trim_ascii_end();
        let quotes = |byte: &u8| b"*\"'`([{<>#-".contains(byte);
        let Some(end) = before.iter().rposition(|byte| !quotes(byte)) else {
            return !self.is_summary;
        };
        let before = before.get(..=end).unwrap_or_default().trim_ascii_end();
        if before.is_empty() {
            return !self.is_summary;
        }
        let ends_with = |word: &[u8]| {
            before
                .strip_suffix(word)
                .is_some_and(|rest| rest.last().is_none_or(|byte| !byte.is_ascii_alphanumeric()))
        };
        // "Lets you send" and "the file that you send" are descriptions.
        let is_you = ends_with(b"you") && !DESCRIBES.iter().any(|words| ends_with(words));
        if is_you || ALWAYS.iter().any(|word| ends_with(word)) {
            return true;
        }
        !self.is_summary
            && (before.last().is_some_and(|last| b",;:)".contains(last))
                || LATER.iter().any(|word| ends_with(word)))
    }

    pub(super) fn conceals(&self, present: Meanings, commanded: Meanings) -> u8 {
        if !any(present, NOT | OMIT | LIE | NOTICE) {
            return 0;
        }
        let has = |wanted: Meanings| any(present, wanted);
        let terms = |meaning: Meanings| {
            self.terms
                .iter()
                .filter(move |term| any(term.meanings, meaning))
        };
        let near = |first: &Term, second: &Term| {
            let gap = second
                .start
                .saturating_sub(first.end)
                .max(first.start.saturating_sub(second.end));
            gap <= NEAR
        };
        // "Do not tell the user", in either order.
        let is_order = |not: &Term| any(not.meanings, TELL) || self.is_negative_order(not);
        let is_silence = terms(NOT).any(|not| {
            is_order(not)
                && terms(TELL).any(|tell| {
                    near(not, tell) && (not.start <= tell.start || !self.is_ascii(tell))
                })
        });
        if is_silence && has(USER | REPLY) {
            return 3;
        }
        // "Do not bring it up."
        let is_about_this = terms(TELL).any(|tell| {
            let order =
                |not: &Term| is_order(not) && not.end <= tell.start && tell.start - not.end <= 8;
            let word = self.text.get(tell.start..tell.end).unwrap_or_default();
            let is_strong = STRONG_TELLING.iter().any(|strong| word.starts_with(strong));
            is_strong
                && terms(NOT).any(order)
                && terms(THIS).any(|this| this.end > tell.start && this.start <= tell.end + 4)
        });
        if is_about_this && !self.is_summary {
            return 3;
        }
        let your_reply = has(REPLY) && (has(USER) || self.says(b"your"));
        if any(commanded, OMIT) && your_reply {
            return 3;
        }
        if any(commanded, LIE) && (has(USER | REPLY | NOT) || is_silence) {
            return 3;
        }
        // "The user does not need to see this."
        let is_withheld = terms(NOTICE).any(|notice| {
            let about = self.text.get(notice.start..notice.end).unwrap_or_default();
            let is_hidden = [
                &b"unknown"[..],
                b"unaware",
                b"hidden from",
                b"kept from",
                b"secret from",
                b"in the dark",
                b"unnoticed",
                b"oblivious",
            ]
            .iter()
            .any(|word| memchr::memmem::find(about, word).is_some());
            let is_denied = || {
                terms(NOT).any(|not| {
                    not.end <= notice.start
                        && near(not, notice)
                        && terms(USER).any(|user| {
                            user.end <= not.start && near(user, not) && !self.is_condition(user)
                        })
                })
            };
            has(USER) && ((is_hidden && has(OBLIGED | THIS)) || is_denied())
        });
        if is_withheld { 3 } else { 0 }
    }

    /// Whether a negation is an order rather than a description ("does not notify the user").
    pub(super) fn is_negative_order(&self, not: &Term) -> bool {
        let word = self.text.get(not.start..not.end).unwrap_or_default();
        if !word.is_ascii() {
            return true;
        }
        let before = self
            .text
            .get(self.place.start..not.start)
            .unwrap_or_default()
            .trim_ascii_end();
        match word {
            b"not" => [
                &b"do"[..],
                b"must",
                b"should",
                b"shall",
                b"need",
                b"and",
                b"but",
                b",",
            ]
            .iter()
            .any(|word| before.ends_with(word)),
            b"does not" | b"doesn't" | b"cannot" | b"can't" | b"isn't" | b"aren't" | b"won't"
            | b"none" | b"nor" | b"neither" | b"rather than" | b"instead of" | b"nothing"
            | b"nobody" | b"no one" => false,
            _ => true,
        }
    }

    pub(super) fn is_ascii(&self, term: &Term) -> bool {
        self.text
            .get(term.start..term.end)
            .is_some_and(<[u8]>::is_ascii)
    }

    /// "If the user", "when users": not an order.
    pub(super) fn is_condition(&self, term: &Term) -> bool {
        let before = self
            .text
            .get(self.place.start..term.start)
            .unwrap_or_default();
        let tail = before
            .get(before.len().saturating_sub(14)..)
            .unwrap_or_default();
        [
            &b"if "[..],
            b"when",
            b"unless",
            b"whether",
            b"where ",
            b"which ",
            b"that ",
        ]
        .iter()
        .any(|word| memchr::memmem::find(tail, word).is_some())
    }

    pub(super) fn is_conditional(&self) -> bool {
        let text = self
            .text
            .get(self.place.clone())
            .unwrap_or_default()
            .trim_ascii_start();
        [&b"if "[..], b"when ", b"on ", b"in case"]
            .iter()
            .any(|word| text.starts_with(word))
            || self.says(b" if ")
    }

    /// "Before any file operation", "all transfers": applies to everything the user asks for.
    pub(super) fn is_universal(&self) -> bool {
        let terms = |meaning: Meanings| {
            self.terms
                .iter()
                .filter(move |term| any(term.meanings, meaning))
        };
        let is_total = |every: &Term| {
            let word = self.text.get(every.start..every.end).unwrap_or_default();
            matches!(word, b"everything" | b"anything" | b"whatever")
        };
        if terms(ALL).any(is_total) {
            return true;
        }
        terms(ALL).any(|every| {
            terms(ACTION)
                .any(|action| action.start >= every.start && action.start <= every.end + 16)
        })
    }

    /// "Before any", "prior to each": triggered by any event.
    pub(super) fn is_triggered(&self) -> bool {
        let terms = |meaning: Meanings| {
            self.terms
                .iter()
                .filter(move |term| any(term.meanings, meaning))
        };
        terms(WHEN).any(|when| {
            terms(ALL).any(|every| every.start >= when.end && every.start <= when.end + 30)
        })
    }

    /// Whether the sentence forbids the term: "must not go on without asking".
    pub(super) fn is_forbidden(&self, meaning: Meanings) -> bool {
        let term = self.terms.iter().find(|term| any(term.meanings, meaning));
        let before = term.and_then(|term| self.text.get(self.place.start..term.start));
        before.is_some_and(|before| NEGATIVE.as_ref().is_some_and(|not| not.is_match(before)))
    }

    /// Whether the sentence limits how often or when to tell something, not whether.
    pub(super) fn is_limited(&self) -> bool {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        LIMITED
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(text))
    }

    /// A summary of the conversation is not a copy of it.
    pub(super) fn is_summed_up(&self) -> bool {
        [&b"summar"[..], b"brief", b"short "]
            .iter()
            .any(|word| self.says(word))
    }

    /// Whether the secret is a destination ("put them into your .env file").
    pub(super) fn is_put_there(&self) -> bool {
        let mut secrets = self.terms.iter().filter(|term| any(term.meanings, SECRET));
        secrets.all(|secret| {
            let before = self
                .text
                .get(self.place.start..secret.start)
                .unwrap_or_default();
            let before = before.strip_suffix(b".").unwrap_or(before).trim_ascii_end();
            let before = [&b"your"[..], b"the", b"a", b"an", b"local"]
                .iter()
                .find_map(|word| before.strip_suffix(*word))
                .unwrap_or(before);
            [&b" in "[..], b" into ", b" to "]
                .iter()
                .any(|word| before.ends_with(word))
        })
    }

    pub(super) fn says(&self, word: &[u8]) -> bool {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        memchr::memmem::find(text, word).is_some()
    }

    /// Whether the sentence names one of the tool's parameters as a destination.
    pub(super) fn names_parameter(&self) -> bool {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        self.setting.parameters.iter().take(PARAMETERS).any(|name| {
            memchr::memmem::find_iter(text, name.as_bytes()).any(|at| {
                let before = text.get(..at).unwrap_or_default();
                let quoted = before
                    .strip_suffix(b"`")
                    .or_else(|| before.strip_suffix(b"'"))
                    .or_else(|| before.strip_suffix(b"\""));
                let before = quoted.unwrap_or(before).trim_ascii_end();
                let ends = text
                    .get(at + name.len())
                    .is_none_or(|byte| !byte.is_ascii_alphanumeric());
                ends && [
                    &b" in"[..],
                    b" as",
                    b" to",
                    b" into",
                    b" under",
                    b" via",
                    b" with",
                    b" im",
                    b" en",
                    b" au",
                    b" em",
                    b" no",
                ]
                .iter()
                .any(|word| before.ends_with(word))
            })
        })
    }

    /// Returns the position of the name of a tool that is not the server's own.
    pub(super) fn foreign_tool(&self) -> Option<usize> {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        if memchr::memchr(b'_', text).is_none() && !self.says(b"tool ") {
            return None;
        }
        let identifier = TOOL_NAME.as_ref()?;
        let found = identifier.find_iter(text).find(|found| {
            let name = std::str::from_utf8(found.as_bytes()).unwrap_or_default();
            !self.setting.parameters.iter().any(|own| own == name) && !(self.setting.is_own)(name)
        })?;
        Some(self.place.start + found.start())
    }

    /// Returns the kind of address in the sentence, if any.
    pub(super) fn address(&self) -> Option<Address> {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        // Cheap pre-check: nearly all sentences have no address.
        let may_be = text
            .iter()
            .any(|byte| matches!(byte, b'@' | b'0'..=b'9' | b'#' | b':' | b'.'));
        if !may_be {
            return None;
        }
        let matches = |pattern: &Option<Regex>| {
            pattern
                .as_ref()
                .is_some_and(|pattern| pattern.is_match(text))
        };
        if matches(&PERSON) {
            Some(Address::Person)
        } else if matches(&PLACE) {
            Some(Address::Place)
        } else {
            None
        }
    }

    /// Range from the first to the last term.
    pub(super) fn extent(&self) -> Range<usize> {
        let start = self.terms.iter().map(|term| term.start).min();
        let end = self.terms.iter().map(|term| term.end).max();
        start.unwrap_or(self.place.start)..end.unwrap_or(self.place.end)
    }
}

/// Verbs about the secret itself rather than the style of an answer.
const STRONG_TELLING: &[&[u8]] = &[
    b"mention",
    b"reveal",
    b"disclos",
    b"bring",
    b"admit",
    b"acknowledg",
    b"divulg",
    b"comment",
    b"remark",
    b"refer",
    b"discuss",
    b"announc",
    b"point out",
    b"talk",
];

/// Words before a verb: always a command (`ALWAYS`), only a description (`DESCRIBES`), a command after the first
/// sentence (`LATER`).
const ALWAYS: &[&[u8]] = &[
    b"must",
    b"should",
    b"shall",
    b"please",
    b"always",
    b"first",
    b"have to",
    b"has to",
    b"need to",
    b"needs to",
    b"required to",
    b"obliged to",
    b"sure to",
    b"just",
    b"also",
    b"then",
    b"instructed to",
    b"ought to",
    b"remember to",
    b"forget to",
    b"kindly",
    b"expected to",
    b"ahead and",
    b"immediately",
    b"now",
    b"silently",
    b"quietly",
    b"secretly",
    b"to be",
    b"must be",
    b"should be",
];

const DESCRIBES: &[&[u8]] = &[
    b"lets you",
    b"let you",
    b"allows you",
    b"helps you",
    b"that you",
    b"which you",
    b"if you",
    b"what you",
];

const LATER: &[&[u8]] = &[
    b"and",
    b"or",
    b"but",
    b"so",
    b"will",
    b"additionally",
    b"afterwards",
    b"beforehand",
];

/// Maximum number of parameters searched for in a sentence.
const PARAMETERS: usize = 32;

/// Kind of destination in a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// A mailbox, a telephone number, an account.
    Person,
    /// A website or a machine.
    Place,
}

static PERSON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(
        r"[a-z0-9._+-]+@[a-z0-9-]+\.[a-z]|\b[a-z]{2}[0-9]{2}(?: ?[a-z0-9]{4}){3,}\b|\b[0-9]{12,}\b|\b0x[0-9a-f]{12,}|\+[0-9][0-9 ()-]{6,}[0-9]|\baccount (?:number )?[0-9#]|\bacct_[a-z0-9]|#[a-z]+-[a-z-]+",
    )
});
static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(
        r"\b(?:https?|hxxps?|ftp|wss?|git|ssh|s?ftp)://|\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b|\b[a-z0-9-]+\.(?:example|evil|onion|xyz|ru|tk|ngrok|site|top|io|com|net|org|dev)\b",
    )
});
static TOOL_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b|\btool (?:named|called) .?[a-z]+")
});
