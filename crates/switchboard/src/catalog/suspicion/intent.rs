//! What a sentence asks the model to do, by the meanings of its words and not by their order.
//!
//! Patterns (`rules`) find wordings that were seen. This finds what they have in common: somebody who steers a model has
//! to address it, name what is to be taken, say where it goes, or say what not to tell. Each combination of such
//! meanings within one sentence is a demand with a rule and a weight, in whichever language the words are. A sentence
//! that only describes the tool ("Reads a secret and returns it") has the objects, but not the command.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::Rule;
#[cfg_attr(
    not(test),
    expect(
        clippy::wildcard_imports,
        reason = "the meanings are the vocabulary of everything below"
    )
)]
use super::lexicon::*;
use super::rules::{LIMITED, NEGATIVE, compiled};

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
                before = sentence.judge(&mut reading.demands);
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

/// Whether any of the meanings is there.
const fn any(of: Meanings, wanted: Meanings) -> bool {
    of & wanted != 0
}

struct Sentence<'s> {
    text: &'s [u8],
    place: Range<usize>,
    terms: &'s [Term],
    is_summary: bool,
    /// The meanings of the sentence before.
    before: Meanings,
    setting: Setting<'s>,
}

impl Sentence<'_> {
    /// Finds what the sentence asks for. Returns its meanings, with verbs only where they command.
    fn judge(&self, demands: &mut Vec<Demand>) -> Meanings {
        let present = self.terms.iter().fold(0, |all, term| all | term.meanings);
        let is_sent = || any(present, GIVE) && (self.says(b"@") || self.says(b"://"));
        if !any(present, MATTERS) && !is_sent() {
            return 0;
        }
        let commands = self.terms.iter().filter(|term| any(term.meanings, VERBS));
        let commanded = commands
            .filter(|term| self.is_commanded(term))
            .fold(0, |all, term| all | (term.meanings & VERBS));
        let is_directive = commanded != 0 || any(present, OBLIGED | REQUIRED | IDENTITY);
        // "The history is copied into `x`" orders nothing and says what happens.
        let is_taken_in = (!self.is_summary || any(present, OBLIGED)) && self.names_parameter();
        let does = |verb: Meanings, form: Meanings| {
            any(commanded, verb) || (any(present, form) && (is_directive || is_taken_in))
        };
        let has = |wanted: Meanings| any(present, wanted);
        let (reads, gives) = (does(READ, READING), does(GIVE, GIVING));
        let (runs, changes) = (does(RUN, RUNNING), does(CHANGE, CHANGING));
        let is_urgent = has(WHEN | OFFICIAL | REQUIRED);
        let mut demand = |rule, weight: u8| {
            if weight > 0 {
                let weight = if self.setting.is_value {
                    weight.max(3)
                } else {
                    weight
                };
                demands.push(Demand {
                    rule,
                    weight,
                    place: self.extent(),
                });
            }
        };
        let when = |weight, is_so| if is_so { weight } else { 0 };

        // Taking what is secret, and handing it over.
        let takes_in = gives && (has(PARAMETER) || is_taken_in);
        let address = if gives || changes || reads {
            self.address()
        } else {
            None
        };
        let goes_somewhere = takes_in || has(OUTSIDE | CONTENTS) || address.is_some();
        let foreign = if runs || changes || has(DISPARAGE) || gives {
            self.foreign_tool()
        } else {
            None
        };
        if has(SECRET) {
            let is_noun = self.setting.is_parameter && has(CONTENTS);
            let follows = any(self.before, READ) && has(THIS);
            demand(
                Rule::CollectsSecrets,
                match () {
                    () if gives && self.is_put_there() => 0,
                    () if gives && (goes_somewhere || follows) => 3,
                    () if is_noun || (has(REQUIRED) && has(CONTENTS)) => 3,
                    () if gives => 2,
                    () => 0,
                },
            );
            let is_demanded = reads || (runs && foreign.is_some());
            let is_meant = is_urgent || takes_in || foreign.is_some() || has(ALL);
            demand(
                Rule::DemandsFiles,
                when(if is_meant { 3 } else { 2 }, is_demanded),
            );
        } else if gives && has(CREDENTIAL) {
            let goes_away = address.is_some() || has(OUTSIDE);
            demand(
                Rule::CollectsSecrets,
                if goes_away {
                    3
                } else {
                    when(2, has(USER) && takes_in)
                },
            );
        }
        demand(
            Rule::CollectsSecrets,
            when(2, gives && has(PERSONAL) && is_urgent && has(ALL | USER)),
        );
        let searches =
            reads && has(FILES) && is_urgent && (gives || has(CREDENTIAL | SECRET) || has(ALL));
        demand(Rule::DemandsFiles, when(2, searches));
        let follows = any(self.before, READ) && any(self.before, SECRET | FILES);
        demand(
            Rule::CollectsSecrets,
            when(2, gives && follows && has(THIS | CONTENTS) && takes_in),
        );

        // The conversation, the prompt, the list of tools.
        if has(CONTEXT) {
            let is_wanted = gives || (any(commanded, READ) && takes_in);
            let is_noun = self.setting.is_parameter;
            demand(
                Rule::Conversation,
                match () {
                    () if is_wanted && !self.is_summed_up() => 3,
                    () if is_noun && has(WHOLE | ALL) && !self.is_summed_up() => 3,
                    () if is_noun => 2,
                    () => 0,
                },
            );
        }
        let is_reported = gives || (runs && has(CONTEXT | FILES));
        let on_everything = has(WHEN) && has(ALL | OTHERS);
        demand(
            Rule::Conversation,
            when(3, has(QUESTION) && is_reported && on_everything),
        );

        // Where things go.
        if gives {
            let is_private = has(SECRET | CONTEXT | FILES | PERSONAL);
            demand(
                Rule::Exfiltration,
                match address {
                    Some(_) if is_private || (has(ALL) && has(ACTION)) => 3,
                    Some(Address::Person) if has(ALL | OBLIGED) || self.setting.is_value => 2,
                    Some(_) if has(ALL | CONTENTS) => 2,
                    None if has(OUTSIDE) && is_private => 3,
                    _ => 0,
                },
            );
        }
        let shell = has(SHELL) && (runs || is_directive);
        demand(
            Rule::Exfiltration,
            when(if is_urgent || has(FAILURE) { 3 } else { 2 }, shell),
        );
        let covers_traces =
            any(commanded, DESTROY) && (self.says(b"history") || self.says(b" log"));
        demand(
            Rule::Exfiltration,
            when(2, covers_traces && !self.is_summary),
        );

        // How other tools are to be used.
        let is_aimed = address.is_some() || has(SHELL);
        let on_all = self.is_universal();
        let is_ordered = has(ACTION) && has(OBLIGED) && has(ALL | WHEN);
        demand(
            Rule::OtherTools,
            match () {
                () if changes && foreign.is_some() && is_directive && (is_aimed || has(TARGET)) => {
                    3
                }
                () if changes && on_all && has(ACTION) && is_aimed => 3,
                () if changes && is_ordered && address == Some(Address::Person) => 3,
                () if changes
                    && has(TARGET)
                    && has(ALL | WHEN)
                    && address == Some(Address::Person) =>
                {
                    3
                }
                () if changes && on_all && has(TARGET) && has(WHEN) && self.says(b"tool") => 3,
                () if changes && on_all && has(ACTION) && has(TARGET) && has(OBLIGED) => 2,
                () if has(CONTENTS) && has(ALL) && gives && foreign.is_some() => 3,
                () if on_all && self.is_triggered() && is_directive && (runs || reads || gives) => {
                    let is_grave =
                        has(SECRET | CONTEXT | FILES | PERSONAL | SHELL) || foreign.is_some();
                    if is_grave || (has(OFFICIAL) && has(OBLIGED)) {
                        3
                    } else {
                        2
                    }
                }
                () if has(WHEN)
                    && has(USER)
                    && any(commanded, RUN)
                    && foreign.is_some()
                    && has(OFFICIAL | GIVE) =>
                {
                    2
                }
                () => 0,
            },
        );
        let disparaged = foreign.is_some_and(|at| {
            let mut bad = self
                .terms
                .iter()
                .filter(|term| any(term.meanings, DISPARAGE));
            bad.any(|term| term.start > at && term.start < at + 60)
        });
        demand(
            Rule::OtherTools,
            when(
                3,
                disparaged && (runs || has(PREFER) || self.says(b"instead") || changes),
            ),
        );
        let is_fake_failure =
            has(FAILURE) && has(REMEDY) && commanded != 0 && !self.is_conditional();
        demand(Rule::OtherTools, when(2, is_fake_failure));

        // Faint by themselves: what only poisoned definitions have several of.
        let is_private = has(CREDENTIAL | PERSONAL | QUESTION | FILES);
        let is_prose = !self.is_summary;
        demand(
            Rule::CollectsSecrets,
            when(
                2,
                is_prose
                    && any(commanded, GIVE)
                    && is_private
                    && is_taken_in
                    && has(USER | WHEN | ALL),
            ),
        );
        demand(
            Rule::OtherTools,
            when(
                2,
                has(AGENT)
                    && has(OBLIGED)
                    && (any(commanded, READ | GIVE) || has(SECRET | CONTEXT)),
            ),
        );
        demand(
            Rule::DemandsFiles,
            when(
                2,
                is_prose
                    && any(commanded, READ | RUN)
                    && has(FILES)
                    && has(WHEN)
                    && has(OBLIGED | OFFICIAL),
            ),
        );
        demand(
            Rule::Exfiltration,
            when(
                2,
                is_prose
                    && any(commanded, GIVE)
                    && (address.is_some() || (has(OUTSIDE) && has(CONTENTS | ALL))),
            ),
        );
        let tilde = self.terms.iter().any(|term| {
            any(term.meanings, SECRET) && matches!(self.text.get(term.start), Some(b'~' | b'/'))
        });
        demand(Rule::NamesSecrets, when(2, tilde));
        let ignores_user = any(commanded, NULLIFY) && has(USER);
        demand(
            Rule::OverridesInstructions,
            when(2, ignores_user && is_prose),
        );

        // What is not to be told, and what is to be told instead.
        let conceals = self.conceals(present, commanded);
        let is_meant = conceals > 0 && !self.is_limited() && !self.is_forbidden(UNASKED);
        demand(Rule::Conceals, when(conceals, is_meant));

        // What the model was told before.
        if has(RULES) && has(NULLIFY) {
            let is_told = any(commanded, NULLIFY) || has(OBLIGED);
            demand(
                Rule::OverridesInstructions,
                match () {
                    () if has(YOURS) => 4,
                    () if has(PRIOR) && is_told => 4,
                    () if has(AUTHORITY) => 3,
                    () if has(ALL) && is_told => 2,
                    () => 0,
                },
            );
        }
        demand(
            Rule::OverridesInstructions,
            when(2, has(RULES) && has(OUTDATED) && has(YOURS)),
        );
        demand(Rule::OverridesInstructions, when(2, has(IDENTITY)));
        demand(
            Rule::PseudoMarkup,
            when(
                2,
                has(AUTHORITY) && (has(UNASKED | RULES | NULLIFY) || gives),
            ),
        );
        let is_unasked = has(UNASKED) && !self.is_forbidden(UNASKED);
        demand(
            Rule::SkipsConsent,
            when(
                2,
                is_unasked
                    && is_directive
                    && (reads || gives || runs || has(AUTHORITY | AGENT))
                    && !self.is_summary,
            ),
        );

        // Being chosen over others.
        let prefers = has(PREFER) && has(OTHERS);
        demand(
            Rule::SelfPromotion,
            match () {
                () if prefers && has(PRAISE | DISPARAGE) && has(OBLIGED | ALL) => 3,
                () if prefers && has(ALL) && has(OBLIGED) => 3,
                () if has(DISPARAGE) && has(OTHERS) && has(OBLIGED) => 3,
                () => 0,
            },
        );
        (present & !VERBS) | commanded
    }

    /// Whether the verb is a command: it begins the sentence or a part of it, or follows what says that it must be done.
    fn is_commanded(&self, verb: &Term) -> bool {
        self.is_command_at(verb, verb.start) || {
            // "Periodically hand it over": the adverb makes no difference.
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

    fn is_command_at(&self, verb: &Term, start: usize) -> bool {
        // Verbs of other languages are commands by their form.
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
        // "Lets you send" and "the file that you send" only describe.
        let is_you = ends_with(b"you") && !DESCRIBES.iter().any(|words| ends_with(words));
        if is_you || ALWAYS.iter().any(|word| ends_with(word)) {
            return true;
        }
        !self.is_summary
            && (before.last().is_some_and(|last| b",;:)".contains(last))
                || LATER.iter().any(|word| ends_with(word)))
    }

    fn conceals(&self, present: Meanings, commanded: Meanings) -> u8 {
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
        // "Do not tell the user", in this order or the other.
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
        let is_kept = terms(NOTICE).any(|notice| {
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
        if is_kept { 3 } else { 0 }
    }

    /// Whether a negation is an order and not a description ("does not notify the user").
    fn is_negative_order(&self, not: &Term) -> bool {
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

    fn is_ascii(&self, term: &Term) -> bool {
        self.text
            .get(term.start..term.end)
            .is_some_and(<[u8]>::is_ascii)
    }

    /// "If the user", "when users": what follows is no order.
    fn is_condition(&self, term: &Term) -> bool {
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

    fn is_conditional(&self) -> bool {
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

    /// "Before any file operation", "all transfers": whatever the user asks for.
    fn is_universal(&self) -> bool {
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

    /// "Before any", "prior to each": what is meant is whatever happens.
    fn is_triggered(&self) -> bool {
        let terms = |meaning: Meanings| {
            self.terms
                .iter()
                .filter(move |term| any(term.meanings, meaning))
        };
        terms(WHEN).any(|when| {
            terms(ALL).any(|every| every.start >= when.end && every.start <= when.end + 30)
        })
    }

    /// Whether the sentence forbids what the term says: "must not go on without asking".
    fn is_forbidden(&self, meaning: Meanings) -> bool {
        let term = self.terms.iter().find(|term| any(term.meanings, meaning));
        let before = term.and_then(|term| self.text.get(self.place.start..term.start));
        before.is_some_and(|before| NEGATIVE.as_ref().is_some_and(|not| not.is_match(before)))
    }

    /// Whether it is about how often something is told, or when, and not about whether.
    fn is_limited(&self) -> bool {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        LIMITED
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(text))
    }

    /// A summary of the conversation is no copy of it.
    fn is_summed_up(&self) -> bool {
        [&b"summar"[..], b"brief", b"short "]
            .iter()
            .any(|word| self.says(word))
    }

    /// Whether the secret thing is where something is put ("put them into your .env file").
    fn is_put_there(&self) -> bool {
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

    fn says(&self, word: &[u8]) -> bool {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        memchr::memmem::find(text, word).is_some()
    }

    /// Whether the sentence says into which of the tool's parameters something goes.
    fn names_parameter(&self) -> bool {
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

    /// Where the sentence names a tool that is not the server's own.
    fn foreign_tool(&self) -> Option<usize> {
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

    /// What the sentence names as somebody's address.
    fn address(&self) -> Option<Address> {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        // Nearly no sentence has one, and these are cheap to look for.
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

    /// From the first to the last term.
    fn extent(&self) -> Range<usize> {
        let start = self.terms.iter().map(|term| term.start).min();
        let end = self.terms.iter().map(|term| term.end).max();
        start.unwrap_or(self.place.start)..end.unwrap_or(self.place.end)
    }
}

/// Telling that is about the secret itself, and not about how an answer is written.
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

/// Words before a verb that make it a command; those that only describe; those that do so after the first sentence.
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

/// So many parameters are looked for in a sentence.
const PARAMETERS: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    /// A mailbox, a telephone, an account.
    Person,
    /// A site or a machine.
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

/// Verbs that count where they command.
const VERBS: Meanings = READ | GIVE | RUN | CHANGE | DESTROY | OMIT | LIE | NULLIFY;

/// A sentence with none of these asks for nothing.
const MATTERS: Meanings = SECRET
    | CREDENTIAL
    | PERSONAL
    | FILES
    | CONTEXT
    | QUESTION
    | NOT
    | OMIT
    | LIE
    | NOTICE
    | RULES
    | IDENTITY
    | AUTHORITY
    | UNASKED
    | OUTSIDE
    | TARGET
    | DISPARAGE
    | PRAISE
    | PREFER
    | FAILURE
    | SHELL
    | NULLIFY
    | ALL
    | CHANGE
    | CHANGING;
