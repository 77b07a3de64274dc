//! Wraps styled text into rows.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::live::Line;

/// The prefix of a text's first row, and that of the others.
#[derive(Debug, Clone, Default)]
pub(super) struct Margin {
    pub(super) first: Line,
    pub(super) others: Line,
}

/// Wraps a text. Preserves line breaks; breaks words that are wider than a row.
pub(super) fn wrap(text: &[(Style, String)], margin: &Margin, width: usize) -> Vec<Line> {
    let mut wrapping = Wrapping {
        margin,
        width,
        rows: Vec::new(),
        row: margin.first.clone(),
        used: columns(&margin.first),
        is_blank: true,
    };
    for words in text_lines(text) {
        for word in words {
            wrapping.word(word);
        }
        wrapping.next_row();
    }
    wrapping.rows
}

/// Width of a row in columns.
pub(super) fn columns(row: &Line) -> usize {
    row.iter().map(|(_, text)| text.width()).sum()
}

/// A word, in differently styled pieces.
type Word = Vec<(Style, String)>;

struct Wrapping<'m> {
    margin: &'m Margin,
    width: usize,
    rows: Vec<Line>,
    row: Line,
    used: usize,
    /// Whether the row contains only the margin.
    is_blank: bool,
}

impl Wrapping<'_> {
    fn word(&mut self, word: Word) {
        let columns = columns(&word);
        let gap = usize::from(!self.is_blank);
        if self.used + gap + columns > self.width && !self.is_blank {
            self.next_row();
        }
        if !self.is_blank {
            // A space between two pieces of one style takes that style, so that an underlined link has no gaps.
            let same = match (self.row.last(), word.first()) {
                (Some((before, _)), Some((after, _))) if before == after => *before,
                _ => Style::new(),
            };
            self.add(same, " ");
        }
        for (style, text) in word {
            self.piece(style, &text);
        }
        self.is_blank = false;
    }

    fn piece(&mut self, style: Style, text: &str) {
        let mut start = 0;
        let mut used = self.used;
        for (index, character) in text.char_indices() {
            let needed = character.width().unwrap_or_default();
            if used + needed > self.width && used > self.margin_columns() {
                self.add(style, text.get(start..index).unwrap_or_default());
                self.next_row();
                start = index;
                used = self.used;
            }
            used += needed;
        }
        self.add(style, text.get(start..).unwrap_or_default());
        self.is_blank = false;
    }

    fn margin_columns(&self) -> usize {
        let is_first = self.rows.is_empty();
        columns(if is_first {
            &self.margin.first
        } else {
            &self.margin.others
        })
    }

    fn add(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        self.used += text.width();
        match self.row.last_mut() {
            Some((last, before)) if *last == style => before.push_str(text),
            _ => self.row.push((style, text.to_owned())),
        }
    }

    fn next_row(&mut self) {
        let next = self.margin.others.clone();
        self.used = columns(&next);
        self.rows.push(std::mem::replace(&mut self.row, next));
        self.is_blank = true;
    }
}

/// Splits a text into lines of words.
fn text_lines(text: &[(Style, String)]) -> Vec<Vec<Word>> {
    let mut lines = vec![Vec::new()];
    let mut word = Word::new();
    let end_word = |word: &mut Word, lines: &mut Vec<Vec<Word>>| {
        if let Some(line) = lines.last_mut()
            && !word.is_empty()
        {
            line.push(std::mem::take(word));
        }
    };
    for (style, piece) in text {
        let mut rest = piece.as_str();
        while let Some(at) = rest.find([' ', '\t', '\n']) {
            let (before, after) = rest.split_at(at);
            if !before.is_empty() {
                word.push((*style, before.to_owned()));
            }
            end_word(&mut word, &mut lines);
            if after.starts_with('\n') {
                lines.push(Vec::new());
            }
            rest = after.get(1..).unwrap_or_default();
        }
        if !rest.is_empty() {
            word.push((*style, rest.to_owned()));
        }
    }
    end_word(&mut word, &mut lines);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_not_broken_if_they_fit() {
        let check = |text: &str, width: usize, expected: &[&str]| {
            let margin = Margin {
                first: vec![(Style::new(), "- ".to_owned())],
                others: vec![(Style::new(), "  ".to_owned())],
            };
            let rows = wrap(&[(Style::new(), text.to_owned())], &margin, width);
            let plain = |row: &Line| row.iter().map(|(_, text)| text.as_str()).collect();
            let rows: Vec<String> = rows.iter().map(plain).collect();
            assert_eq!(rows, expected, "{text} in {width}");
        };
        check("one two three", 9, &["- one two", "  three"]);
        check("one\ntwo", 9, &["- one", "  two"]);
        check("abcdefghijkl", 7, &["- abcde", "  fghij", "  kl"]);
        check("漢字漢字", 7, &["- 漢字", "  漢字"]);
        check("x abcdefghij", 7, &["- x", "  abcde", "  fghij"]);
        check("", 9, &["- "]);
    }
}
