//! Tokenizer: splits identifiers, stems words, and splits text without spaces into pairs.
//!
//! Used for tools and queries alike. Stateless, and independent of the meaning of words.

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum length of a word, in bytes; longer runs are keys, hashes or encoded images.
const MAX_WORD: usize = 40;

/// Relation of a word to the text it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A word, or a part of an identifier.
    Part,
    /// A whole identifier that is also split into parts.
    Whole,
}

/// Splits text into words. Reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    word: String,
    pair: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// A character of a script written without spaces, or with few.
    Dense,
    Other,
}

impl Splitter {
    /// Calls `emit` with every word, lower-case and stemmed, in order. Skips one-letter words.
    pub(super) fn split(&mut self, text: &str, mut emit: impl FnMut(&str, Shape)) {
        let mut rest = text;
        while let Some(start) = rest.find(|character| class(character) != Class::Other) {
            rest = rest.get(start..).unwrap_or_default();
            let is_dense = rest.chars().next().map(class) == Some(Class::Dense);
            let end = rest
                .find(|character| match class(character) {
                    Class::Other => true,
                    class => (class == Class::Dense) != is_dense,
                })
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if is_dense {
                self.pairs(run, &mut emit);
            } else {
                self.identifier(run, &mut emit);
            }
        }
    }

    fn identifier(&mut self, run: &str, emit: &mut impl FnMut(&str, Shape)) {
        let mut parts = 0;
        let mut start = 0;
        let mut characters = run.char_indices().peekable();
        let mut before = Class::Other;
        while let Some((position, character)) = characters.next() {
            let this = class(character);
            let next = characters.peek().map(|(_, character)| class(*character));
            let begins = match (before, this) {
                // `HTTPServer` is `HTTP` and `Server`.
                (Class::Upper, Class::Upper) => next == Some(Class::Lower),
                (Class::Lower, Class::Upper)
                | (Class::Digit, Class::Lower | Class::Upper)
                | (Class::Lower | Class::Upper, Class::Digit) => true,
                _ => false,
            };
            if begins {
                self.word(
                    run.get(start..position).unwrap_or_default(),
                    Shape::Part,
                    emit,
                );
                start = position;
                parts += 1;
            }
            before = this;
        }
        self.word(run.get(start..).unwrap_or_default(), Shape::Part, emit);
        if parts > 0 {
            self.word(run, Shape::Whole, emit);
        }
    }

    fn word(&mut self, part: &str, shape: Shape, emit: &mut impl FnMut(&str, Shape)) {
        if part.len() < 2 || part.len() > MAX_WORD {
            return;
        }
        self.word.clear();
        if part.is_ascii() {
            self.word.push_str(part);
            self.word.make_ascii_lowercase();
        } else {
            self.word.push_str(&part.to_lowercase());
        }
        if self.word.len() > 2 && self.word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            let stemmer = Stemmer::create(Algorithm::English);
            emit(&stemmer.stem(&self.word), shape);
        } else {
            emit(&self.word, shape);
        }
    }

    fn pairs(&mut self, run: &str, emit: &mut impl FnMut(&str, Shape)) {
        let mut characters = run.chars();
        let Some(mut before) = characters.next() else {
            return;
        };
        let mut is_alone = true;
        for character in characters {
            self.pair.clear();
            self.pair.push(before);
            self.pair.push(character);
            emit(&self.pair, Shape::Part);
            before = character;
            is_alone = false;
        }
        if is_alone {
            emit(run, Shape::Part);
        }
    }
}

fn class(character: char) -> Class {
    match character {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        '\0'..='\x7F' => Class::Other,
        // Thai to Tibetan, Burmese, Khmer, kana, Chinese characters, Korean syllables.
        '\u{E00}'..='\u{FFF}'
        | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Class::Dense,
        character if character.is_uppercase() => Class::Upper,
        character if character.is_alphabetic() => Class::Lower,
        character if character.is_numeric() => Class::Digit,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        Splitter::default().split(text, |word, shape| {
            let mark = if shape == Shape::Whole { "=" } else { "" };
            words.push(format!("{mark}{word}"));
        });
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn identifiers_are_split_and_kept_whole() {
        check("createPullRequest", "creat pull request =createpullrequest");
        check("create_pull_request", "creat pull request");
        check("get-issue", "get issu");
        check("HTTPServer", "http server =httpserver");
        check("parseURL2Text", "pars url text =parseurl2text");
        check("mp3", "mp =mp3");
        check("server.tool/name", "server tool name");
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        check("create creates created creating", "creat creat creat creat");
        check("repository repositories", "repositori repositori");
        check("copy copies copied", "copi copi copi");
        check("run runs running", "run run run");
        check("hope hoped hopping", "hope hope hop");
        check("is mp news", "is mp news");
    }

    #[test]
    fn sentences_are_words() {
        check("What's the weather, today?", "what the weather today");
        check("Élan vital", "élan vital");
        check("  ...  🎉 ", "");
        check("", "");
    }

    #[test]
    fn text_without_spaces_is_pairs() {
        check("获取新闻", "获取 取新 新闻");
        check("抖", "抖");
        check("查询12306余票", "查询 12306 余票");
        check("날씨", "날씨");
        check("get新闻now", "get 新闻 now");
    }

    #[test]
    fn what_is_too_long_to_be_a_word_is_left_out() {
        check(&"a".repeat(MAX_WORD + 1), "");
        check(&"新".repeat(3), "新新 新新");
    }
}
