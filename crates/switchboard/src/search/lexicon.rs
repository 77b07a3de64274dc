//! Stop words, weak words and synonyms.
//!
//! Word lists and the synonym table, parsed once. General knowledge of English, and of Chinese, in which many servers
//! are described; independent of any server or set of tools.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::quality::RandomState;

use super::text::Splitter;
use super::written_file::{FILE_VERBS, FileVerb};

/// Stop words: common in every query and description.
const SAYS_NOTHING: &str = "a about above after again against all also am an and any are as at based be because been
    before below between both but by can could did do does doing don down during each few for from further give had
    has have having he help her here hers him his how i if in into is it its just know let like may me might more most
    much must my myself need nor not now of off on once one only or other our ours out over own per please same she
    should so some such tell than that the their theirs them then there these they this those through to too under
    until up upon us use used using very via want was we were what when where which while who whom whose why will with
    within would you your yours yourself";

/// Weak words: requests and words of nearly every task. They have a lower weight.
const SAYS_LITTLE: &str = "add analysis analyze best check comprehensive content create current data day describe
    detail document explain file find first full generate get good include info information input key last latest list
    look main make month name new next number open output people perform person plan provide read recent recommend
    related report result save search set show start suggest summarize summary text thing time today top type value
    way week work write year";

/// Parts of server names that do not distinguish servers.
const SAYS_SERVER: &str = "mcp server tool api";

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(include_str!("synonyms.txt")));

/// Word lists and synonym table.
#[derive(Debug)]
pub(super) struct Lexicon {
    entries: HashMap<Box<str>, Entry, RandomState>,
    groups: usize,
}

/// Properties of a word.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Stop word.
    pub(super) says_nothing: bool,
    /// Weak word, common in queries.
    pub(super) says_little: bool,
    /// Common part of server names.
    pub(super) says_server: bool,
    /// Whether it is a verb of writing or reading a file.
    pub(super) file_verb: Option<FileVerb>,
    /// Synonym groups that contain the word.
    pub(super) groups: Vec<u16>,
    /// Related words that a query with this word may need.
    pub(super) leads_to: Vec<Box<str>>,
}

impl Lexicon {
    pub(super) fn get() -> &'static Self {
        &LEXICON
    }

    /// Returns the properties of a stemmed word.
    pub(super) fn entry(&self, word: &str) -> Option<&Entry> {
        self.entries.get(word)
    }

    /// Returns the synonym groups of a stemmed word.
    pub(super) fn groups_of(&self, word: &str) -> &[u16] {
        self.entry(word).map_or(&[], |entry| &entry.groups)
    }

    /// Number of synonym groups.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// All words with synonyms, in arbitrary order.
    pub(super) fn grouped_words(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter(|(_, entry)| !entry.groups.is_empty())
            .map(|(word, _)| &**word)
    }

    fn read(table: &str) -> Self {
        let mut lexicon = Self {
            entries: HashMap::default(),
            groups: 0,
        };
        for word in stems(SAYS_NOTHING) {
            lexicon.entry_mut(word).says_nothing = true;
        }
        for word in stems(SAYS_LITTLE) {
            lexicon.entry_mut(word).says_little = true;
        }
        for word in stems(SAYS_SERVER) {
            lexicon.entry_mut(word).says_server = true;
        }
        for (verb, words) in FILE_VERBS {
            for word in stems(words) {
                lexicon.entry_mut(word).file_verb = Some(verb);
            }
        }
        for line in table.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once('>') {
                Some((left, right)) => {
                    let needs = stems(right);
                    for word in stems(left) {
                        lexicon.entry_mut(word).leads_to.extend(needs.clone());
                    }
                }
                None => lexicon.add_group(line),
            }
        }
        lexicon
    }

    fn add_group(&mut self, line: &str) {
        // Cannot overflow: the table is part of the program and has a few hundred lines.
        let Ok(group) = u16::try_from(self.groups) else {
            return;
        };
        for word in stems(line) {
            let groups = &mut self.entry_mut(word).groups;
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        self.groups += 1;
    }

    fn entry_mut(&mut self, word: Box<str>) -> &mut Entry {
        self.entries.entry(word).or_default()
    }
}

fn stems(words: &str) -> Vec<Box<str>> {
    let mut stems = Vec::new();
    Splitter::default().split(words, |word, _| stems.push(word.into()));
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_what_its_comments_say() {
        for line in include_str!("synonyms.txt").lines() {
            for word in line
                .split_whitespace()
                .take_while(|word| !word.starts_with('#'))
            {
                let characters = word.chars().count();
                assert!(word.is_ascii() || characters == 2, "{word}");
            }
        }
        let lexicon = Lexicon::get();
        assert!(lexicon.groups() > 100);
        let shared = |left: &str, right: &str| {
            let right = lexicon.groups_of(right);
            let mut left = lexicon.groups_of(left).iter();
            left.any(|group| right.contains(group))
        };
        assert!(shared("delet", "remov"));
        assert!(shared("folder", "directori"));
        assert!(shared("news", "新闻"));
        assert!(!shared("delet", "creat"));
    }

    #[test]
    fn words_of_questions_say_nothing() {
        let lexicon = Lexicon::get();
        for word in ["the", "what", "pleas"] {
            assert!(
                lexicon.entry(word).is_some_and(|entry| entry.says_nothing),
                "{word}"
            );
        }
        assert!(
            lexicon
                .entry("weather")
                .is_some_and(|entry| !entry.says_nothing)
        );
    }
}
