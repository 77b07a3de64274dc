//! Query parser: weighted words, tool names, and the file that the query wants written.
//!
//! Independent of the indexed tools; `rank` turns words into scores.

use super::common_words::{CommonWord, CommonWords};
use super::document::beginning;
use super::lexicon::Lexicon;
use super::text::{Shape, Splitter};
use super::written_file::{FileFinder, WrittenFile};

/// Maximum length of a query, in bytes.
const MAX_QUERY: usize = 4 * 1024;

/// Maximum number of distinct words.
const MAX_WORDS: usize = 96;

/// Maximum number of names.
const MAX_NAMES: usize = 16;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 200;

/// Maximum number of words in a query that may still be being typed.
const FEW_WORDS: usize = 4;

/// Weight of a weak word.
const LITTLE: f32 = 0.5;

/// Stop words that are also the second part of a verb: "log in" is `login`.
const PARTICLES: [&str; 7] = ["down", "in", "off", "on", "out", "over", "up"];

/// Prefix of a list of tools by name.
const SELECT: &str = "select:";

#[derive(Debug, Default)]
pub(super) struct Query {
    /// Distinct words that count, in query order.
    pub(super) words: Vec<Word>,
    /// Adjacent words joined into one.
    pub(super) pairs: Vec<Word>,
    /// Lower-case texts that may be tool names.
    pub(super) names: Vec<String>,
    /// File that the query wants written, if it names one.
    pub(super) written_file: Option<WrittenFile>,
}

/// A word of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    /// Stemmed form.
    pub(super) stem: Box<str>,
    pub(super) weight: f32,
    /// Capitalized within a sentence, like a name. Names are never corrected to another word.
    pub(super) is_name: bool,
    /// Entry in the table of common words.
    pub(super) common: Option<CommonWord>,
}

/// Returns the names of a `select:` query, in order; `None` for any other query.
pub(super) fn selected(query: &str) -> Option<impl Iterator<Item = &str>> {
    let names = query.trim_start().strip_prefix(SELECT)?;
    let names = names.split([',', ' ', '\n']).map(str::trim);
    Some(names.filter(|name| !name.is_empty() && name.len() <= MAX_NAME))
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let text = beginning(text, MAX_QUERY).trim();
        let mut reader = Reader::default();
        if text.len() <= MAX_NAME {
            reader.query.names.push(text.to_lowercase());
        }
        let mut chunks = text.split_whitespace().peekable();
        while let Some(chunk) = chunks.next() {
            reader.capitals(chunk, chunks.peek().copied());
            reader.chunk(chunk);
        }
        reader.finish()
    }

    /// Whether it is so short that its words may be incomplete.
    pub(super) fn is_short(&self) -> bool {
        self.words.len() <= FEW_WORDS
    }
}

#[derive(Default)]
struct Reader {
    splitter: Splitter,
    query: Query,
    counts: Vec<u16>,
    files: FileFinder,
    /// Previous word, if it counted.
    before: Option<usize>,
    /// Previous word, even if it did not count: "back up" is `backup`.
    joined: String,
    /// Capitalization of the current chunk.
    capitals: Capitals,
    /// Whether the current chunk is not the first of its sentence.
    in_sentence: bool,
}

/// Meaning of the capital letters of a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Capitals {
    /// An ordinary word, or the first of a sentence.
    #[default]
    None,
    /// A name.
    Name,
    /// Part of a name of several words: the "New" of "New York".
    PartOfName,
}

impl Reader {
    /// Classifies a chunk by its capital letters and those of the next one.
    fn capitals(&mut self, chunk: &str, next: Option<&str>) {
        let goes_on = chunk.ends_with(char::is_alphanumeric);
        let is_part = goes_on && next.is_some_and(is_capitalized)
            || self.capitals != Capitals::None && self.in_sentence;
        self.capitals = match is_capitalized(chunk) {
            true if is_part => Capitals::PartOfName,
            true if self.in_sentence => Capitals::Name,
            _ => Capitals::None,
        };
        self.in_sentence = true;
    }

    fn chunk(&mut self, chunk: &str) {
        let may_begin = |character: char| matches!(character, '/' | '~' | '.' | '_');
        let core = chunk
            .trim_start_matches(|character: char| {
                !character.is_alphanumeric() && !may_begin(character)
            })
            .trim_end_matches(|character: char| !character.is_alphanumeric() && character != '_');
        if is_address(core) {
            let host = core.split_once("://").map_or(core, |(_, rest)| rest);
            let host = host.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.strip_prefix("www.").unwrap_or(host);
            self.text("url");
            self.text(host.rsplit_once('.').map_or(host, |(name, _)| name));
        } else if is_path(core) {
            // Names of folders and files are arbitrary; the file type says more.
            match extension(core) {
                Some(extension) => {
                    self.files.file(&extension);
                    self.text("file");
                    self.text(&extension);
                }
                None => self.text("folder"),
            }
        } else {
            if is_identifier(core) && self.query.names.len() < MAX_NAMES {
                self.query.names.push(core.to_lowercase());
            }
            self.text(core);
        }
        let closing = |character: char| matches!(character, '"' | '\'' | ')' | '”' | '’');
        if chunk
            .trim_end_matches(closing)
            .ends_with(['.', '!', '?', ';', '。', '？', '！'])
        {
            self.files.end_sentence();
            self.before = None;
            self.joined.clear();
            self.in_sentence = false;
            self.capitals = Capitals::None;
        }
    }

    fn text(&mut self, text: &str) {
        let Self {
            splitter,
            query,
            counts,
            files,
            before,
            joined,
            capitals,
            in_sentence: _,
        } = self;
        let is_name = *capitals != Capitals::None;
        splitter.split(text, |word, shape| {
            let entry = Lexicon::get().entry(word);
            files.word(entry.and_then(|entry| entry.file_verb));
            let says_nothing = entry.is_some_and(|entry| entry.says_nothing);
            let says_little = entry.is_some_and(|entry| entry.says_little);
            if shape == Shape::Part {
                if !joined.is_empty() && (says_little || PARTICLES.contains(&word)) {
                    query.pairs.push(Word {
                        stem: format!("{joined}{word}").into(),
                        weight: 1.0,
                        is_name: false,
                        common: None,
                    });
                }
                word.clone_into(joined);
            }
            if says_nothing || says_little && *capitals == Capitals::PartOfName {
                return;
            }
            let known = query.words.iter().position(|known| &*known.stem == word);
            let place = match known {
                Some(place) => place,
                None if query.words.len() == MAX_WORDS => return,
                None => {
                    let common = CommonWords::get().find(word);
                    let weight = common.map_or(1.0, CommonWord::weight);
                    query.words.push(Word {
                        stem: word.into(),
                        weight: if says_little { weight * LITTLE } else { weight },
                        is_name,
                        common,
                    });
                    counts.push(0);
                    query.words.len() - 1
                }
            };
            if let Some(count) = counts.get_mut(place) {
                *count = count.saturating_add(1);
            }
            if shape == Shape::Whole {
                return;
            }
            if let Some(before) = before.replace(place)
                && before != place
                && let (Some(left), Some(right)) = (query.words.get(before), query.words.get(place))
            {
                let stem = format!("{}{}", left.stem, right.stem).into();
                let weight = left.weight.max(right.weight);
                query.pairs.push(Word {
                    stem,
                    weight,
                    is_name: false,
                    common: None,
                });
            }
        });
    }

    fn finish(self) -> Query {
        let mut query = self.query;
        for (word, count) in query.words.iter_mut().zip(&self.counts) {
            // A repeated word counts a third more; the factor stays below 2.
            let count = f32::from(*count);
            word.weight *= 2.0 * count / (count + 1.0);
        }
        query.pairs.truncate(MAX_WORDS);
        query.written_file = self.files.finish();
        query
    }
}

/// Whether it starts like a name: a capital letter, then a lower-case one. `HTTP` and `camelCase` do not.
fn is_capitalized(chunk: &str) -> bool {
    let mut letters = chunk.chars().skip_while(|letter| !letter.is_alphanumeric());
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
}

fn is_address(chunk: &str) -> bool {
    chunk.contains("://") || chunk.starts_with("www.")
}

fn is_path(chunk: &str) -> bool {
    let is_rooted = ["/", "~/", "./", "../"]
        .iter()
        .any(|root| chunk.starts_with(root));
    is_rooted
        || matches!(chunk.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic())
}

/// Lower-case extension of a file name.
fn extension(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, extension) = name.rsplit_once('.')?;
    let is_short = (1..=5).contains(&extension.len());
    let is_plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_short && is_plain).then(|| extension.to_ascii_lowercase())
}

/// Whether it looks like an identifier rather than a word.
fn is_identifier(chunk: &str) -> bool {
    let inner = chunk.as_bytes().get(1..).unwrap_or_default();
    chunk.len() <= MAX_NAME
        && inner
            .iter()
            .any(|byte| matches!(byte, b'_' | b'-' | b'/' | b'.' | b'A'..=b'Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let query = Query::parse(text);
        let words: Vec<&str> = query.words.iter().map(|word| &*word.stem).collect();
        words.join(" ")
    }

    #[test]
    fn words_of_questions_are_left_out() {
        assert_eq!(words("What's the weather like in Beijing?"), "weather beij");
        assert_eq!(words("please help me with this"), "");
        assert_eq!(words(""), "");
    }

    #[test]
    fn a_path_is_its_kind_of_file() {
        assert_eq!(
            words("Read /root/word/Exchange.docx, please"),
            "read file docx"
        );
        assert_eq!(words(r"open `C:\data\b.XLSX`."), "open file xlsx");
        assert_eq!(words("what is in /root/music/"), "folder");
        assert_eq!(words("~/notes.md"), "file md");
    }

    #[test]
    fn an_address_is_its_host() {
        assert_eq!(
            words("see https://www.youtube.com/watch?v=arj7oStGLkU"),
            "see url youtub"
        );
        assert_eq!(words("www.example.org"), "url exampl");
    }

    #[test]
    fn a_file_is_to_be_written_if_a_verb_says_so() {
        let words = |text: &str| {
            let file = Query::parse(text).written_file;
            file.map(|file| file.words().join(" "))
        };
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(words(text).as_deref(), expected, "{text}");
        };
        check("save it in /a/b.xlsx", Some("excel write sheet"));
        check("Read /a/b.docx", None);
        check("Write a poem. Then look at /a/b.md.", None);
        check("Read /a/b.md, then save /a/c.md", Some("write file"));
        check("what percentage of it is due tomorrow", None);
    }

    #[test]
    fn names_are_told_by_their_capitals() {
        let names = |text: &str| -> Vec<String> {
            let words = Query::parse(text).words.into_iter();
            let names = words.filter(|word| word.is_name);
            names.map(|word| word.stem.into_string()).collect()
        };
        assert_eq!(
            names("Play the album of Taylor Swift. Then stop."),
            ["taylor", "swift"]
        );
        assert_eq!(names("Translate this HTTP header"), Vec::<String>::new());
        // Parts of a place name are not words of the query.
        assert_eq!(words("hotels in New York"), "hotel york");
        assert_eq!(words("a new hotel"), "new hotel");
    }

    #[test]
    fn repeated_words_count_more_but_not_much() {
        let weight = |text: &str| Query::parse(text).words.first().map(|word| word.weight);
        assert!(weight("gold gold") > weight("gold"));
        let twice = weight("gold").map(|weight| 2.0 * weight);
        assert!(weight(&"gold ".repeat(50)) < twice);
    }

    #[test]
    fn neighbours_make_pairs() {
        let pairs = |text: &str| {
            let pairs = Query::parse(text).pairs.into_iter();
            pairs
                .map(|pair| pair.stem.into_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(pairs("draw a mind map. Gold!"), ["drawmind", "mindmap"]);
        assert!(pairs("back up the disk").contains(&"backup".to_owned()));
        assert!(pairs("look up a word").contains(&"lookup".to_owned()));
    }

    #[test]
    fn names_may_stand_in_a_sentence() {
        let query = Query::parse("use create_issue and mcp__git__log");
        assert_eq!(
            query.names,
            [
                "use create_issue and mcp__git__log",
                "create_issue",
                "mcp__git__log"
            ]
        );
        let names: Vec<&str> = selected(" select:a, b,,c").into_iter().flatten().collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(selected("a, b").is_none());
    }

    #[test]
    fn a_huge_question_is_cut() {
        let query = Query::parse(&"word1 wörd2 /a.b ".repeat(100_000));
        assert!(query.words.len() <= MAX_WORDS && query.names.len() <= MAX_NAMES);
        let distinct: Vec<String> = (0..100_000).map(|number| format!("w{number}x")).collect();
        assert_eq!(Query::parse(&distinct.join(" ")).words.len(), MAX_WORDS);
        assert_eq!(Query::parse(&"长".repeat(400_000)).words.len(), 1);
    }
}
