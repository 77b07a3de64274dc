//! Lists in a dialog: the user picks one row, or marks several. Typed letters filter the rows.

use std::io;

use super::Dialog;
use crate::live::Line;
use crate::printer::style;
use crate::questions::entry::{self, Entered};
use crate::screen::{self, Frame};
use crate::terminal::Key;

/// Maximum length of a filter, in bytes.
const MAX_FILTER: usize = 100;

/// A list as it is drawn.
struct List<'l> {
    items: &'l [Line],
    /// Indices of the rows that match the filter.
    shown: &'l [usize],
    /// The selected one of those shown.
    at: usize,
    filter: &'l str,
    /// `None` if one row is picked.
    marks: Option<&'l [bool]>,
}

impl Dialog<'_> {
    /// Lets the user pick one of many rows, starting at one. `None` if the user leaves.
    pub(crate) async fn pick(&mut self, items: &[Line], at: usize) -> io::Result<Option<usize>> {
        if self.is_panel() {
            self.select(items, at, None).await
        } else {
            self.pick_plainly(items).await
        }
    }

    /// Lets the user mark rows of a panel. Returns whether the user has accepted the marks.
    pub(crate) async fn mark_rows(
        &mut self,
        items: &[Line],
        marks: &mut [bool],
    ) -> io::Result<bool> {
        Ok(self.select(items, 0, Some(marks)).await?.is_some())
    }

    async fn select(
        &mut self,
        items: &[Line],
        at: usize,
        mut marks: Option<&mut [bool]>,
    ) -> io::Result<Option<usize>> {
        let mut filter = String::new();
        let mut at = at;
        loop {
            let is_there = |item: &Line| matches(&plain(item), &filter);
            let shown: Vec<usize> = (0..items.len())
                .filter(|index| items.get(*index).is_some_and(is_there))
                .collect();
            at = at.min(shown.len().saturating_sub(1));
            self.draw_list(&List {
                items,
                shown: &shown,
                at,
                filter: &filter,
                marks: marks.as_deref(),
            });
            let page = list_height();
            match self.key().await? {
                Key::Up => at = at.checked_sub(1).unwrap_or(shown.len().saturating_sub(1)),
                Key::Down | Key::Tab => at = (at + 1) % shown.len().max(1),
                Key::PageUp => at = at.saturating_sub(page),
                Key::PageDown => at = (at + page).min(shown.len().saturating_sub(1)),
                Key::Enter if marks.is_some() => return Ok(Some(at)),
                Key::Enter => {
                    if let Some(index) = shown.get(at) {
                        return Ok(Some(*index));
                    }
                }
                Key::Character(' ') if marks.is_some() => {
                    let marked = marks.as_deref_mut().zip(shown.get(at));
                    if let Some(mark) = marked.and_then(|(marks, index)| marks.get_mut(*index)) {
                        *mark = !*mark;
                    }
                }
                Key::Character(' ') if filter.is_empty() => {}
                Key::Character(character) => {
                    entry::add(&mut filter, character, MAX_FILTER);
                    at = 0;
                }
                Key::Backspace => _ = filter.pop(),
                Key::EraseLine | Key::EraseWord => filter.clear(),
                Key::Escape if !filter.is_empty() => filter.clear(),
                Key::Escape | Key::End => return Ok(None),
                _ => {}
            }
        }
    }

    fn draw_list(&self, list: &List<'_>) {
        let page = list_height();
        let first = (list.at + 1).saturating_sub(page);
        let mut rows = self.framed();
        for (place, index) in list.shown.iter().enumerate().skip(first).take(page) {
            let pointer = if place == list.at { "❯ " } else { "  " };
            let mut row = vec![(style::HINT, pointer.to_owned())];
            if let Some(marks) = list.marks {
                let is_marked = marks.get(*index).is_some_and(|is_marked| *is_marked);
                let mark = if is_marked { "[x] " } else { "[ ] " };
                row.push((style::NAME, mark.to_owned()));
            }
            row.extend(list.items.get(*index).cloned().unwrap_or_default());
            rows.push(row);
        }
        if list.shown.is_empty() {
            rows.push(vec![(style::QUIET, "  no match".to_owned())]);
        }
        let below = list.shown.len().saturating_sub(first + page);
        let more = if below > 0 {
            format!(", {below} more below")
        } else {
            String::new()
        };
        let keys = match (list.filter, list.marks) {
            ("", None) => format!("  ↑↓ enter, esc leaves, type to filter{more}"),
            ("", Some(_)) => format!("  ↑↓ space marks, enter accepts, esc leaves{more}"),
            (filter, _) => format!("  filter: {filter}{more}"),
        };
        rows.push(vec![(style::QUIET, keys)]);
        screen::set_panel(Some(Frame { rows, cursor: None }));
    }

    async fn pick_plainly(&mut self, items: &[Line]) -> io::Result<Option<usize>> {
        for (index, item) in items.iter().enumerate() {
            let mut row = vec![(style::NAME, format!("{:>3}  ", index + 1))];
            row.extend(item.iter().cloned());
            self.say(row);
        }
        let prompt = vec![(style::HINT, "number › ".to_owned())];
        loop {
            let Entered::Line(typed) = self.line(&prompt, "").await? else {
                return Ok(None);
            };
            let index = match typed.trim() {
                "" => return Ok(None),
                number => number
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| number.checked_sub(1)),
            };
            match index.filter(|index| *index < items.len()) {
                Some(index) => return Ok(Some(index)),
                None => self.say_text("  not a number in the list"),
            }
        }
    }
}

/// Rows of a list.
fn list_height() -> usize {
    (screen::size().rows / 2).clamp(3, 15)
}

fn plain(line: &Line) -> String {
    line.iter().map(|(_, text)| text.as_str()).collect()
}

/// Whether a text has all words of a filter, ignoring case.
fn matches(text: &str, filter: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = filter.split_whitespace();
    words.all(|word| text.contains(&word.to_lowercase()))
}
