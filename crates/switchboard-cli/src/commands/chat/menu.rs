//! The menu below the input: candidates for the word at the cursor, found by fuzzy search. Nothing here prints.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::live::Line;
use crate::printer::style;
use crate::terminal::fitted;

/// Rows shown; the others are reached by scrolling.
const MAX_ROWS: usize = 8;
/// Candidates kept after filtering.
const MAX_CANDIDATES: usize = 100;
/// Longer candidates are matched by their first characters.
const MAX_MATCHED: usize = 200;

/// A text to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// A final blank is not shown.
    pub(super) text: String,
    /// Sanitized.
    pub(super) about: String,
}

impl Candidate {
    pub(super) fn new(text: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            about: about.into(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Menu {
    /// Byte offset in the input where a candidate is inserted.
    pub(super) start: usize,
    /// The best first.
    candidates: Vec<Candidate>,
    selected: usize,
    /// Whether the user has moved the selection.
    has_moved: bool,
}

impl Menu {
    /// The candidates that match a word; `None` if none does.
    pub(super) fn of(start: usize, word: &str, candidates: &[Candidate]) -> Option<Self> {
        let mut matching: Vec<(i32, &Candidate)> = candidates
            .iter()
            .filter_map(|candidate| Some((score(word, &candidate.text)?, candidate)))
            .collect();
        matching.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let candidates: Vec<Candidate> = matching
            .into_iter()
            .take(MAX_CANDIDATES)
            .map(|(_, candidate)| candidate.clone())
            .collect();
        (!candidates.is_empty()).then_some(Self {
            start,
            candidates,
            selected: 0,
            has_moved: false,
        })
    }

    pub(super) fn down(&mut self) {
        self.has_moved = true;
        self.selected = (self.selected + 1) % self.candidates.len();
    }

    pub(super) fn up(&mut self) {
        self.has_moved = true;
        let last = self.candidates.len() - 1;
        self.selected = self.selected.checked_sub(1).unwrap_or(last);
    }

    pub(super) fn selected(&self) -> Option<&Candidate> {
        self.candidates.get(self.selected)
    }

    /// What Enter inserts: the selected candidate, unless the word is complete or means something else.
    pub(super) fn entered(&self, word: &str) -> Option<&Candidate> {
        let is_whole = |candidate: &Candidate| candidate.text.trim_end() == word;
        if !self.has_moved && self.candidates.iter().any(is_whole) {
            return None;
        }
        let selected = self.selected()?;
        let is_start = !word.is_empty() && selected.text.starts_with(word);
        (self.has_moved || is_start).then_some(selected)
    }

    pub(super) fn rows(&self, columns: usize) -> Vec<Line> {
        let first = (self.selected + 1).saturating_sub(MAX_ROWS);
        let shown = self
            .candidates
            .iter()
            .enumerate()
            .skip(first)
            .take(MAX_ROWS);
        let widest = shown.clone().map(|(_, each)| each.text.trim_end().width());
        let name_width = widest.max().unwrap_or_default().min(columns * 3 / 5).max(4);
        let mut rows: Vec<Line> = shown
            .map(|(index, candidate)| {
                let is_selected = index == self.selected;
                let (mark, name_style) = if is_selected {
                    ("❯ ", style::HINT)
                } else {
                    ("  ", Style::new())
                };
                let name = fitted(candidate.text.trim_end(), name_width).into_owned();
                let gap = name_width.saturating_sub(name.width()) + 2;
                let room = columns.saturating_sub(name_width + 6).max(1);
                let about = fitted(&candidate.about, room).into_owned();
                vec![
                    (style::HINT, mark.to_owned()),
                    (name_style, name),
                    (style::QUIET, format!("{:gap$}{about}", "")),
                ]
            })
            .collect();
        let below = self.candidates.len().saturating_sub(first + MAX_ROWS);
        if below > 0 {
            rows.push(vec![(style::QUIET, format!("  … {below} more"))]);
        }
        rows
    }
}

/// How well a word matches a text as a subsequence, ignoring case; `None` if it does not.
fn score(word: &str, text: &str) -> Option<i32> {
    let lower = |text: &str| -> Vec<char> {
        let text = text.trim_end().chars().take(MAX_MATCHED);
        text.map(|each| each.to_ascii_lowercase()).collect()
    };
    let (word, letters) = (lower(word), lower(text));
    let Some(first) = word.first() else {
        return Some(0);
    };
    // The mark alone keeps the order of the candidates.
    if word.len() == 1 && letters.first() == Some(first) {
        return Some(0);
    }
    let starts = letters
        .iter()
        .enumerate()
        .filter(|(_, each)| *each == first);
    let best = starts.filter_map(|(start, _)| score_from(start, &word, &letters));
    // Among equals, the shorter text is the better match.
    let length = i32::try_from(letters.len()).unwrap_or(i32::MAX);
    best.max().map(|best| best * 4 - length)
}

fn score_from(start: usize, word: &[char], letters: &[char]) -> Option<i32> {
    let mut score = 0;
    let mut at = start;
    let mut previous = None;
    for letter in word {
        let found = letters.get(at..)?.iter().position(|each| each == letter)? + at;
        let is_word_start = found
            .checked_sub(1)
            .and_then(|before| letters.get(before))
            .is_none_or(|before| !before.is_alphanumeric());
        score += 1;
        score += if is_word_start { 8 } else { 0 };
        score += if previous.is_some_and(|previous| previous + 1 == found) {
            6
        } else {
            0
        };
        previous = Some(found);
        at = found + 1;
    }
    Some(if start == 0 { score + 4 } else { score })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(word: &str, texts: &[&str]) -> Vec<String> {
        let candidates: Vec<Candidate> =
            texts.iter().map(|text| Candidate::new(*text, "")).collect();
        let menu = Menu::of(0, word, &candidates);
        menu.into_iter()
            .flat_map(|menu| menu.candidates)
            .map(|candidate| candidate.text)
            .collect()
    }

    #[test]
    fn the_best_match_comes_first() {
        for (word, texts, expected) in [
            (
                "/m",
                &["/help", "/model ", "/mcp "][..],
                &["/mcp ", "/model "][..],
            ),
            ("/rsm", &["/resume ", "/mcp "], &["/resume "]),
            (
                "@main",
                &["@docs/domain.md", "@src/main.rs"],
                &["@src/main.rs", "@docs/domain.md"],
            ),
            (
                "@ctm",
                &["@chat/turn_main.rs", "@cat"],
                &["@chat/turn_main.rs"],
            ),
            ("/x", &["/help"], &[]),
        ] {
            assert_eq!(found(word, texts), expected, "{word}");
        }
    }

    #[test]
    fn enter_completes_only_what_was_begun_or_selected() {
        let candidates = [Candidate::new("/help", ""), Candidate::new("/resume ", "")];
        let check = |word: &str, moves: usize, expected: Option<&str>| {
            let mut menu = Menu::of(0, word, &candidates).unwrap();
            for _ in 0..moves {
                menu.down();
            }
            let entered = menu.entered(word).map(|each| each.text.as_str());
            assert_eq!(entered, expected, "{word}");
        };
        check("/he", 0, Some("/help"));
        check("/help", 0, None);
        check("/rsm", 0, None);
        check("/rsm", 1, Some("/resume "));
        check("/", 1, Some("/resume "));
    }

    #[test]
    fn rows_fit_and_scroll() {
        let candidates: Vec<Candidate> = (0..20)
            .map(|number| Candidate::new(format!("/command-{number:02}"), "about ".repeat(20)))
            .collect();
        for columns in [30, 60, 200] {
            let mut menu = Menu::of(0, "/", &candidates).unwrap();
            for _ in 0..11 {
                menu.down();
            }
            let rows = menu.rows(columns);
            assert_eq!(rows.len(), MAX_ROWS + 1);
            for row in &rows {
                let width: usize = row.iter().map(|(_, text)| text.width()).sum();
                assert!(width < columns, "{row:?}");
            }
            assert_eq!(rows[7][0].1, "❯ ");
        }
    }
}
