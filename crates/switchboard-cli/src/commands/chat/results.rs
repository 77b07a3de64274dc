//! Results of calls in a chat: folded on the screen, kept to be shown in full.

use std::collections::VecDeque;

use anstyle::Style;
use serde_json::value::RawValue;
use switchboard::SharedJson;
use switchboard::internal::catalog::text::neutralise;
use switchboard_agent::message::Content;
use switchboard_config::text::visible;
use switchboard_protocol::cursor::{Cursor, Malformed};

use super::call_line;
use crate::commands::status::size;
use crate::live::Line;
use crate::printer::style;
use crate::startup::counted;
use crate::terminal::fitted;

/// Rows shown of a result.
const FOLDED_ROWS: usize = 3;
/// Bytes of results kept.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Values in a tree, and its depth.
const MAX_TREE_ROWS: usize = 5_000;
const MAX_TREE_DEPTH: usize = 32;

/// The results of a chat, the newest last.
#[derive(Debug, Default)]
pub(super) struct Results {
    kept: VecDeque<CallResult>,
    count: usize,
    bytes: usize,
}

/// The result of one call.
#[derive(Debug)]
pub(super) struct CallResult {
    /// Counted from 1.
    pub(super) number: usize,
    /// The tool and its arguments.
    pub(super) title: String,
    /// Sanitized.
    pub(super) lines: Vec<Line>,
    bytes: usize,
}

/// What a call returned.
pub(super) struct Returned<'a> {
    pub(super) content: &'a [Content],
    /// As the server sent it.
    pub(super) result: Option<&'a SharedJson>,
    /// What the tool shows in place of the content, usually a diff.
    pub(super) display: Option<&'a str>,
}

impl Results {
    /// Keeps a result.
    pub(super) fn add(&mut self, title: String, returned: &Returned<'_>) -> &CallResult {
        self.count += 1;
        let (lines, bytes) = returned.lines();
        self.bytes += bytes;
        self.kept.push_back(CallResult {
            number: self.count,
            title,
            lines,
            bytes,
        });
        while self.bytes > MAX_BYTES && self.kept.len() > 1 {
            let dropped = self.kept.pop_front().map_or(0, |result| result.bytes);
            self.bytes = self.bytes.saturating_sub(dropped);
        }
        // Never out of range: one was just added.
        &self.kept[self.kept.len() - 1]
    }

    pub(super) fn last(&self) -> Option<&CallResult> {
        self.kept.back()
    }

    pub(super) fn get(&self, number: usize) -> Option<&CallResult> {
        self.kept.iter().find(|result| result.number == number)
    }

    /// The numbers of the first and the last result that are kept.
    pub(super) fn range(&self) -> Option<(usize, usize)> {
        Some((self.kept.front()?.number, self.kept.back()?.number))
    }
}

impl CallResult {
    /// The first rows, and what is left out.
    pub(super) fn folded(&self, columns: usize) -> Vec<Line> {
        // One more row than the limit takes no more space than the note about it.
        let shown = match self.lines.len() {
            lines if lines <= FOLDED_ROWS + 1 => lines,
            _ => FOLDED_ROWS,
        };
        let is_wide = |line: &Line| width(line) > columns;
        let is_cut = self.lines.iter().take(shown).any(is_wide);
        let mut rows: Vec<Line> = self
            .lines
            .iter()
            .take(shown)
            .map(|line| cut(line, columns))
            .collect();
        let more = self.lines.len() - shown;
        let keys = format!("ctrl-O or /show {}", self.number);
        if more > 0 {
            let more = counted(more, "more line");
            let note = format!("… {more}, {}: {keys}", size(self.bytes as u64));
            rows.push(vec![(style::QUIET, note)]);
        } else if is_cut {
            let note = format!("… {}: {keys}", size(self.bytes as u64));
            rows.push(vec![(style::QUIET, note)]);
        }
        rows
    }
}

impl Returned<'_> {
    /// The lines of the result and its size.
    fn lines(&self) -> (Vec<Line>, usize) {
        if let Some(display) = self.display {
            return (call_line::display(display, usize::MAX, None), display.len());
        }
        if let Some(tree) = self.structured() {
            return tree;
        }
        let mut lines = Vec::new();
        let mut bytes = 0;
        for part in self.content {
            match part {
                Content::Text { text } => {
                    bytes += text.len();
                    let text = neutralise(text.trim_end());
                    for line in text.lines() {
                        let line = visible(&line.replace('\t', "    ")).into_owned();
                        lines.push(vec![(style::QUIET, line)]);
                    }
                }
                Content::Image(image) => {
                    let length = image.data.trim_end_matches('=').len() * 3 / 4;
                    bytes += length;
                    let kind = visible(&image.mime_type).into_owned();
                    let note = format!("[{kind}, {}]", size(length as u64));
                    lines.push(vec![(style::QUIET, note)]);
                }
                _ => {}
            }
        }
        (lines, bytes)
    }

    /// Structured content as a tree; `None` if there is none.
    fn structured(&self) -> Option<(Vec<Line>, usize)> {
        #[derive(serde::Deserialize)]
        struct Members<'a> {
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
        }
        let text = std::str::from_utf8(self.result?.as_bytes()).ok()?;
        let structured = serde_json::from_str::<Members<'_>>(text).ok()?.structured?;
        if !structured.get().starts_with(['{', '[']) {
            return None;
        }
        let mut lines = Vec::new();
        tree(structured.get(), 0, &mut lines).ok()?;
        Some((lines, structured.get().len()))
    }
}

/// Adds the members of an object or array, one line each, nested ones indented. Values are as the server wrote them.
fn tree(value: &str, depth: usize, lines: &mut Vec<Line>) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(value);
    let is_object = cursor.peek() == b'{';
    cursor.enter(if is_object { b'{' } else { b'[' })?;
    let indent = "  ".repeat(depth);
    let mut index = 0_usize;
    loop {
        let key = if is_object {
            let Some(key) = cursor.next_key()? else { break };
            safe(&key.decode())
        } else {
            if !cursor.next_item()? {
                break;
            }
            index.to_string()
        };
        index += 1;
        let member = cursor.value()?;
        if lines.len() >= MAX_TREE_ROWS || depth >= MAX_TREE_DEPTH {
            lines.push(vec![(style::QUIET, format!("{indent}…"))]);
            break;
        }
        let mut line = vec![(style::NAME, format!("{indent}{key}"))];
        match member.as_bytes() {
            [b'{' | b'[', ..] if !matches!(member, "{}" | "[]") => {
                lines.push(line);
                tree(member, depth + 1, lines)?;
            }
            [b'"', ..] => {
                let text = Cursor::new(member).string()?.decode().replace('\n', " ⏎ ");
                line.push((Style::new(), format!(": {}", safe(&text))));
                lines.push(line);
            }
            _ => {
                line.push((style::HINT, format!(": {}", safe(member))));
                lines.push(line);
            }
        }
    }
    Ok(())
}

fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

fn width(line: &Line) -> usize {
    use unicode_width::UnicodeWidthStr as _;
    line.iter().map(|(_, text)| text.width()).sum()
}

fn cut(line: &Line, columns: usize) -> Line {
    use unicode_width::UnicodeWidthStr as _;
    let mut room = columns;
    let mut row = Line::new();
    for (style, text) in line {
        if room == 0 {
            break;
        }
        let text = fitted(text, room).into_owned();
        room = room.saturating_sub(text.width());
        row.push((*style, text));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: &[Line]) -> Vec<String> {
        let text = |row: &Line| row.iter().map(|(_, text)| text.as_str()).collect();
        rows.iter().map(text).collect()
    }

    fn content(text: &str) -> Vec<Content> {
        vec![Content::Text {
            text: text.to_owned(),
        }]
    }

    #[test]
    fn results_are_folded() {
        let mut results = Results::default();
        let mut check = |given: &str, expected: &[&str]| {
            let content = content(given);
            let returned = Returned {
                content: &content,
                result: None,
                display: None,
            };
            let result = results.add("call".to_owned(), &returned);
            assert_eq!(text(&result.folded(40)), expected, "{given:?}");
        };
        check("", &[]);
        check("one\ntwo\n", &["one", "two"]);
        check("1\n2\n3\n4", &["1", "2", "3", "4"]);
        check(
            "1\n2\n3\n4\n5",
            &["1", "2", "3", "… 2 more lines, 9 B: ctrl-O or /show 4"],
        );
        let long = "x".repeat(60);
        let cut = format!("{}…", "x".repeat(39));
        check(&long, &[&cut, "… 60 B: ctrl-O or /show 5"]);
        check("a\u{1b}[2Jb\u{202e}", &["a\\u{1b}[2Jb\\u{202e}"]);
        assert_eq!(results.range(), Some((1, 6)));
        // A diff is kept whole, though only its first lines are printed.
        let diff = "+line\n".repeat(100);
        let returned = Returned {
            content: &[],
            result: None,
            display: Some(&diff),
        };
        assert_eq!(results.add("call".to_owned(), &returned).lines.len(), 100);
        assert_eq!(results.get(4).unwrap().lines.len(), 5);
    }

    #[test]
    fn structured_content_is_a_tree() {
        let value = r#"{"city": "Rome\u001b", "wind": {"speed": 18446744073709551616, "gusts": [4, 5]}, "none": {}}"#;
        let mut lines = Vec::new();
        tree(value, 0, &mut lines).unwrap();
        assert_eq!(
            text(&lines),
            [
                "city: Rome\\u{1b}",
                "wind",
                "  speed: 18446744073709551616",
                "  gusts",
                "    0: 4",
                "    1: 5",
                "none: {}",
            ]
        );
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let mut lines = Vec::new();
        tree(&deep, 0, &mut lines).unwrap();
        assert_eq!(lines.len(), MAX_TREE_DEPTH + 1);
    }
}
