//! Total score of the matches in one definition.
//!
//! The heaviest match of each rule counts once, plus a little for different wordings of the same rule. A match that is
//! only mentioned ("detects texts such as …"), negated, or about a tool of the same server counts for next to nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use regex::bytes::Regex;
use switchboard_config::text::visible;

use super::super::text;
use super::decode::{Decoded, decoded, reversed, rotated};
use super::fold::{Form, forms, words};
use super::intent::{self, Setting};
use super::rules::{
    ENOUGH, GATE, IDENTIFIER, LIMITED, MENTIONED, NEGATED, NEGATIVE, SIGNALS, Signal,
};
use super::{Flag, Rule};

/// Window around a gate word, in bytes: wider than any pattern reaches.
const BEFORE: usize = 512;
const AFTER: usize = 1024;
/// Maximum number of matches of one pattern weighed per part; the first may only be a mention.
const WEIGHED: usize = 8;
/// Context before and after a match that decides whether it is a mention, in bytes.
const CONTEXT_BEFORE: usize = 50;
const CONTEXT_AFTER: usize = 30;
/// Maximum length of an excerpt, in characters.
const EXCERPT: usize = 100;
/// Minimum length of a text that can hold a command with its object.
const SHORTEST_DEMAND: usize = 20;
/// Minimum length of a text that is checked.
const SHORTEST: usize = 8;
/// Names up to this length are not checked as text.
const SHORT_NAME: usize = 12;
/// Maximum depth of nested encodings.
const DEEPEST_CODE: usize = 2;

/// Findings in one definition.
pub(super) struct Findings<'o> {
    is_own: &'o dyn Fn(&str) -> bool,
    parameters: Vec<String>,
    best: BTreeMap<Rule, (u8, Flag)>,
    /// Patterns of each rule that matched with a weight above 1.
    wordings: BTreeMap<Rule, BTreeSet<usize>>,
}

/// Location of a text, and of the encoded run it was decoded from.
struct Site<'s> {
    field: &'s str,
    original: &'s str,
    /// Range of the encoded run.
    code: Option<Range<usize>>,
}

impl<'o> Findings<'o> {
    pub(super) fn new(is_own: &'o dyn Fn(&str) -> bool) -> Self {
        Self {
            is_own,
            parameters: Vec::new(),
            best: BTreeMap::new(),
            wordings: BTreeMap::new(),
        }
    }

    /// Sets the names of the tool's parameters.
    pub(super) fn parameters(&mut self, names: impl Iterator<Item = String>) {
        self.parameters = names.filter(|name| name.len() > 1).collect();
    }

    /// Returns the flags if the total score suffices.
    pub(super) fn flags(mut self) -> Vec<Flag> {
        // A secret counts once, through the action on it.
        let is_faint = |(weight, _): &(u8, Flag)| *weight == 1;
        let is_used = [Rule::CollectsSecrets, Rule::DemandsFiles]
            .iter()
            .any(|rule| self.best.contains_key(rule));
        if is_used && self.best.get(&Rule::NamesSecrets).is_some_and(is_faint) {
            self.best.remove(&Rule::NamesSecrets);
        }
        let several = self.wordings.values().filter(|wordings| wordings.len() > 1);
        let total = self
            .best
            .values()
            .map(|(weight, _)| usize::from(*weight))
            .sum::<usize>()
            + several.count();
        if total < usize::from(ENOUGH) {
            return Vec::new();
        }
        // Weak matches are shown only if they are needed to reach the threshold.
        let heavy = self.best.values().filter(|(weight, _)| *weight > 1);
        let suffices =
            heavy.map(|(weight, _)| usize::from(*weight)).sum::<usize>() >= usize::from(ENOUGH);
        let flags = self.best.into_values();
        flags
            .filter(|(weight, _)| *weight > 1 || !suffices)
            .map(|(_, flag)| flag)
            .collect()
    }

    pub(super) fn text(&mut self, text: &str, field: &str) {
        self.characters(text, field);
        let site = Site {
            field,
            original: text,
            code: None,
        };
        self.read(text, &site, 0);
    }

    /// Checks the name of a tool, a parameter or a member.
    pub(super) fn name(&mut self, name: &str, field: &str) {
        self.characters(name, field);
        if name.len() > SHORT_NAME {
            let site = Site {
                field,
                original: name,
                code: Some(0..name.len()),
            };
            self.read(&words(name), &site, 0);
        }
    }

    /// Checks the name of a parameter against known side channels.
    pub(super) fn parameter(&mut self, name: &str, field: &str) {
        let plain = name.to_lowercase().replace('-', "_");
        let known = SIDE_CHANNELS.iter().find(|(each, _)| *each == plain);
        if let Some((_, weight)) = known {
            self.note(Rule::SideChannel, *weight, name, 0..name.len(), field);
        }
    }

    fn read(&mut self, text: &str, site: &Site<'_>, depth: usize) {
        if text.len() < SHORTEST {
            return;
        }
        let mut codes = Vec::new();
        for form in forms(text) {
            for part in parts(&form.text) {
                self.signals(&form, part, site);
            }
            if form.text.len() < SHORTEST_DEMAND {
                continue;
            }
            let ciphers = self.demands(&form, site);
            codes.extend(ciphers.map(|text| Decoded {
                text,
                place: 0..site.original.len(),
            }));
        }
        if depth < DEEPEST_CODE {
            codes.extend(decoded(text));
            for code in codes {
                let mut inner = Findings::new(self.is_own);
                inner.parameters.clone_from(&self.parameters);
                let place = site.code.clone().unwrap_or(code.place);
                let inside = Site {
                    code: Some(place.clone()),
                    ..*site
                };
                inner.read(&code.text, &inside, depth + 1);
                let total: usize = inner
                    .best
                    .values()
                    .map(|(weight, _)| usize::from(*weight))
                    .sum();
                if total < 3 {
                    continue;
                }
                self.note(Rule::EncodedText, 2, site.original, place, site.field);
                for (rule, (weight, flag)) in inner.best {
                    self.keep(rule, weight, || flag);
                }
            }
        }
    }

    /// Scores the demands of all sentences. Returns the deciphered text if it is in a cipher.
    fn demands(
        &mut self,
        form: &Form<'_>,
        site: &Site<'_>,
    ) -> impl Iterator<Item = String> + use<> {
        let reading = intent::read(
            &form.text,
            Setting {
                has_summary: site.field == "description" && site.code.is_none(),
                is_parameter: site.field.contains("properties."),
                is_value: VALUES.iter().any(|value| site.field.ends_with(value)),
                parameters: &self.parameters,
                is_own: self.is_own,
            },
        );
        for demand in reading.demands {
            let weight = mention_limit(&form.text, &demand.place)
                .map_or(demand.weight, |most| demand.weight.min(most));
            self.found(demand.rule, weight, form, demand.place, site);
        }
        let rotated = reading.is_rotated.then(|| rotated(&form.text));
        let reversed = reading.is_reversed.then(|| reversed(&form.text));
        rotated.into_iter().chain(reversed)
    }

    fn signals(&mut self, form: &Form<'_>, part: Range<usize>, site: &Site<'_>) {
        let text = form.text.as_bytes();
        let within = text.get(part.clone()).unwrap_or_default();
        for (index, signal) in SIGNALS.iter().enumerate() {
            for found in signal.pattern.find_iter(within).take(WEIGHED) {
                let found = part.start + found.start()..part.start + found.end();
                let weight = self.weight(signal, text, &found);
                if weight == 0 {
                    continue;
                }
                if weight > 1 {
                    self.wordings.entry(signal.rule).or_default().insert(index);
                }
                self.found(signal.rule, weight, form, found, site);
            }
        }
    }

    /// Records a match in one form of a text.
    fn found(
        &mut self,
        rule: Rule,
        weight: u8,
        form: &Form<'_>,
        found: Range<usize>,
        site: &Site<'_>,
    ) {
        let matched = form.text.as_bytes().get(found.clone()).unwrap_or_default();
        let folded = String::from_utf8_lossy(matched);
        let whole = site.original.len();
        let (place, matched) = match (&site.code, form.place(found)) {
            (Some(code), _) => (code.clone(), &*folded),
            (None, None) => (0..whole, &*folded),
            (None, Some(place)) => {
                let original = site.original.get(place.clone());
                (place, original.unwrap_or(&folded))
            }
        };
        self.keep(rule, weight, || flag(rule, matched, place, site.field));
    }

    /// Weight of a match in its context.
    fn weight(&self, signal: &Signal, text: &[u8], found: &Range<usize>) -> u8 {
        let Signal { rule, weight, .. } = signal;
        let matched = text.get(found.clone()).unwrap_or_default();
        let start = found.start.saturating_sub(CONTEXT_BEFORE);
        let before = text.get(start..found.start).unwrap_or_default();
        let sentence = before
            .rsplit(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let after = text.get(found.end..).unwrap_or_default();
        let after = after.get(..CONTEXT_AFTER).unwrap_or(after);
        if *rule == Rule::OtherTools && self.is_about_own(matched) {
            return 0;
        }
        // Where a tool reads its own settings from is not a demand.
        let is_passive = |verb: &[u8]| memchr::memmem::find(matched, verb).is_some();
        if *rule == Rule::DemandsFiles && (is_passive(b"read from") || is_passive(b"loaded from")) {
            return 0;
        }
        let has = |pattern: &Option<Regex>, text: &[u8]| {
            pattern
                .as_ref()
                .is_some_and(|pattern| pattern.is_match(text))
        };
        let is_mention = has(&MENTIONED, sentence)
            || match rule {
                Rule::Conceals => {
                    has(&LIMITED, after)
                        || (matched.starts_with(b"without") && has(&NEGATIVE, sentence))
                }
                Rule::SkipsConsent => has(&NEGATIVE, sentence),
                Rule::DemandsFiles
                | Rule::CollectsSecrets
                | Rule::Exfiltration
                | Rule::Conversation => has(&NEGATED, sentence),
                _ => false,
            };
        if is_mention {
            (*weight).min(1)
        } else {
            *weight
        }
    }

    /// Whether all tools named in a text are the server's own.
    fn is_about_own(&self, matched: &[u8]) -> bool {
        let Some(identifier) = &*IDENTIFIER else {
            return false;
        };
        let mut names = identifier.find_iter(matched).peekable();
        names.peek().is_some()
            && names.all(|name| {
                let name = name.as_bytes();
                !name.starts_with(b"mcp__")
                    && std::str::from_utf8(name).is_ok_and(|name| (self.is_own)(name))
            })
    }

    fn note(&mut self, rule: Rule, weight: u8, text: &str, place: Range<usize>, field: &str) {
        let matched = text.get(place.clone()).unwrap_or_default();
        self.keep(rule, weight, || flag(rule, matched, place, field));
    }

    fn keep(&mut self, rule: Rule, weight: u8, flag: impl FnOnce() -> Flag) {
        let known = self.best.get(&rule).map_or(0, |(weight, _)| *weight);
        if weight > known {
            self.best.insert(rule, (weight, flag()));
        }
    }

    /// Checks for invisible characters and for text pushed out of view.
    fn characters(&mut self, text: &str, field: &str) {
        if let Some(place) = blank_run(text) {
            self.note(Rule::BlankRun, ENOUGH, text, place, field);
        }
        if let Some(place) = comment(text) {
            self.note(Rule::HiddenMarkup, 2, text, place, field);
        }
        if text::is_plain(text) {
            return;
        }
        if let Some(place) = tag(text) {
            self.note(Rule::TagCharacters, ENOUGH, text, place, field);
        }
        if let Some(place) = hidden(text) {
            self.note(Rule::HiddenCharacters, ENOUGH, text, place, field);
        }
    }
}

/// Members of a schema that hold values rather than prose.
const VALUES: [&str; 5] = [".enum", ".const", ".default", ".examples", ".pattern"];

/// Maximum weight of a match that is only mentioned; `None` if it is not.
fn mention_limit(text: &str, found: &Range<usize>) -> Option<u8> {
    let start = found.start.saturating_sub(CONTEXT_BEFORE);
    let about = text.as_bytes().get(start..found.end).unwrap_or_default();
    let about = about
        .get(..about.len().min(MENTION_WITHIN))
        .unwrap_or(about);
    let is_mention = MENTIONED
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(about));
    is_mention.then_some(1)
}

/// Maximum distance from the context's start at which a mention is recognized.
const MENTION_WITHIN: usize = 90;

/// Parameter names that poisoned tools have used to extract the model's knowledge, with weights.
const SIDE_CHANNELS: &[(&str, u8)] = &[
    ("sidenote", 4),
    ("side_note", 4),
    ("sidechannel", 4),
    ("side_channel", 4),
    ("exfil", 4),
    ("full_conversation", 4),
    ("chat_transcript", 4),
    ("conversation_transcript", 4),
    ("conversation_history", 3),
    ("chat_history", 3),
    ("chain_of_thought", 3),
    ("hidden_instructions", 4),
    ("context_injection", 3),
    ("llm_model_name", 4),
];

/// Returns the parts of a text around gate words.
fn parts(text: &str) -> Vec<Range<usize>> {
    let Some(gate) = &*GATE else {
        return std::iter::once(0..text.len()).collect();
    };
    let bytes = text.as_bytes();
    let mut parts: Vec<Range<usize>> = Vec::new();
    for found in gate.find_iter(bytes) {
        let window = lines_around(bytes, found.start(), found.end());
        match parts.last_mut() {
            Some(last) if window.start <= last.end => last.end = window.end.max(last.end),
            _ => parts.push(window),
        }
    }
    parts
}

/// Window around a word: its line and the neighbouring ones, as far as patterns reach.
fn lines_around(bytes: &[u8], start: usize, end: usize) -> Range<usize> {
    let first = start.saturating_sub(BEFORE);
    let last = (end + AFTER).min(bytes.len());
    let before = bytes.get(first..start).unwrap_or_default();
    let after = bytes.get(end..last).unwrap_or_default();
    let line = memchr::memrchr_iter(b'\n', before).nth(1);
    let next = memchr::memchr_iter(b'\n', after).nth(1);
    line.map_or(first, |at| first + at)..next.map_or(last, |at| end + at)
}

fn flag(rule: Rule, matched: &str, span: Range<usize>, field: &str) -> Flag {
    let field = visible(field).into_owned();
    Flag {
        rule,
        field: if field.is_empty() {
            "definition".to_owned()
        } else {
            field
        },
        span,
        excerpt: text::cut(visible(matched.trim()), EXCERPT).into_owned(),
    }
}

/// Finds a dozen empty lines, or more blanks than the width of a screen.
fn blank_run(text: &str) -> Option<Range<usize>> {
    const LINES: usize = 12;
    const BLANKS: usize = 120;
    let (mut start, mut lines, mut blanks) = (0, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => (lines, blanks) = (lines + 1, 0),
            b' ' | b'\t' => blanks += 1,
            b'\r' => {}
            _ => (start, lines, blanks) = (at + 1, 0, 0),
        }
        if lines >= LINES || blanks >= BLANKS {
            return Some(start..at + 1);
        }
    }
    None
}

/// Finds an HTML comment.
fn comment(text: &str) -> Option<Range<usize>> {
    let start = text.find("<!--")?;
    let length = text.get(start..)?.find("-->")?;
    Some(start..start + length + "-->".len())
}

fn hidden(text: &str) -> Option<Range<usize>> {
    let mut previous = None;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let at = text.len() - rest.len();
        rest = &rest[character.len_utf8()..];
        if character == BLACK_FLAG {
            rest = &rest[region(rest)..];
        } else if !is_tag(character) && !text::stays(previous, character, rest.chars().next()) {
            return Some(at..at + character.len_utf8());
        }
        previous = Some(character);
    }
    None
}

/// Whether a text is too short to contain a demand, and has only printable ASCII.
pub(super) fn says_nothing(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    text.len() < SHORTEST && text.bytes().all(is_plain)
}

/// Whether a text contains tag characters, apart from flags of regions.
pub(super) fn has_tags(text: &str) -> bool {
    tag(text).is_some()
}

fn tag(text: &str) -> Option<Range<usize>> {
    let mut rest = text;
    while let Some(at) = rest.find(|character| character == BLACK_FLAG || is_tag(character)) {
        let after = &rest[at..];
        let first = after.chars().next()?;
        if is_tag(first) {
            let start = text.len() - after.len();
            return Some(start..start + first.len_utf8());
        }
        let after = &after[first.len_utf8()..];
        rest = &after[region(after)..];
    }
    None
}

/// Flags of some regions are a black flag, a few tag characters and an end tag.
const BLACK_FLAG: char = '\u{1F3F4}';

/// Number of bytes after a black flag that name a region.
fn region(after: &str) -> usize {
    const END: char = '\u{E007F}';
    let tags = after.chars().take_while(|character| is_tag(*character));
    match tags.clone().position(|character| character == END) {
        Some(count @ 3..=6) => tags.take(count + 1).map(char::len_utf8).sum(),
        _ => 0,
    }
}

fn is_tag(character: char) -> bool {
    ('\u{E0000}'..='\u{E007F}').contains(&character)
}
