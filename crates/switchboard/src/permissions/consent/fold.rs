//! Fits a consent view to a screen, and counts what is left out.

use unicode_width::UnicodeWidthChar as _;

use super::{ConsentView, Entry};

/// Rows per argument if there are several, and the number of arguments shown.
const ROWS: usize = 6;
const ARGUMENTS: usize = 12;
/// The minimum number of rows for an entry.
const FEWEST: usize = 4;
/// The minimum width of a line in columns.
const NARROWEST: usize = 20;

/// The space for a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns per line.
    pub columns: usize,
    /// Rows in total.
    pub rows: usize,
}

/// A view fitted to a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The rows, none wider than the screen, including those that report omissions.
    pub rows: Vec<String>,
    /// Everything left out of the rows.
    pub hidden: Vec<Hidden>,
}

/// A part that is not on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// The label of the entry.
    pub label: String,
    /// The reason it is not shown.
    pub kind: HiddenKind,
    /// Its number of characters; zero if masked.
    pub characters: usize,
}

/// The reason a part is not on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenKind {
    /// Not enough space.
    Cut,
    /// Blanks, replaced by a mark with their number.
    Blanks,
    /// Its name or value looks like a secret.
    Masked,
}

impl Folded {
    /// Whether everything is on the screen except counted blanks and masked values. Only then can the call be approved
    /// from this view.
    pub fn is_complete(&self) -> bool {
        self.hidden
            .iter()
            .all(|hidden| hidden.kind != HiddenKind::Cut)
    }
}

impl ConsentView {
    /// Fits the view to a screen.
    pub fn folded(&self, screen: Screen) -> Folded {
        let mut folded = Folded {
            rows: Vec::new(),
            hidden: Vec::new(),
        };
        let columns = screen.columns.max(NARROWEST);
        let is_alone = self.entries.len() == 1;
        let mut arguments = 0;
        for (index, entry) in self.entries.iter().enumerate() {
            let room = if entry.is_preview || is_alone {
                screen
                    .rows
                    .saturating_sub(self.entries.len().min(ARGUMENTS))
            } else {
                ROWS
            };
            arguments += usize::from(!entry.is_preview);
            if arguments > ARGUMENTS {
                folded.leave_out(self.entries.get(index..).unwrap_or_default(), columns);
                break;
            }
            folded.add(entry, columns, room.max(FEWEST));
        }
        folded
    }

    /// The complete view, in rows of this width.
    pub fn unfolded(&self, columns: usize) -> Vec<String> {
        let columns = columns.max(NARROWEST);
        self.entries
            .iter()
            .flat_map(|entry| rows(entry, columns))
            .collect()
    }
}

impl Folded {
    fn add(&mut self, entry: &Entry, columns: usize, room: usize) {
        let label = || entry.label.clone();
        if entry.collapsed > 0 {
            self.hidden.push(Hidden {
                label: label(),
                kind: HiddenKind::Blanks,
                characters: entry.collapsed,
            });
        }
        if entry.is_masked {
            self.hidden.push(Hidden {
                label: label(),
                kind: HiddenKind::Masked,
                characters: 0,
            });
        }
        let mut rows = rows(entry, columns);
        if rows.len() <= room {
            self.rows.append(&mut rows);
            return;
        }
        // Show the beginning and the end, with the number of omitted characters between them.
        let tail = rows.split_off(rows.len() - 1);
        let cut = rows.split_off(room.saturating_sub(2).min(rows.len()));
        let characters = cut.iter().map(|row| row.chars().count()).sum();
        self.rows.append(&mut rows);
        self.rows.push(mark(cut.len(), "rows", characters, columns));
        self.rows.extend(tail);
        self.hidden.push(Hidden {
            label: label(),
            kind: HiddenKind::Cut,
            characters,
        });
    }

    /// Reports entries that are not on the screen.
    fn leave_out(&mut self, entries: &[Entry], columns: usize) {
        let size = |entry: &Entry| entry.label.chars().count() + entry.text.chars().count();
        let characters = entries.iter().map(size).sum();
        self.rows
            .push(mark(entries.len(), "arguments", characters, columns));
        self.hidden.extend(entries.iter().map(|entry| Hidden {
            label: entry.label.clone(),
            kind: HiddenKind::Cut,
            characters: size(entry),
        }));
    }
}

fn mark(count: usize, things: &str, characters: usize, columns: usize) -> String {
    let long = format!("  … {count} more {things}, {characters} characters, not shown …");
    let short = format!("  … {count} more …");
    if long.chars().count() <= columns {
        long
    } else {
        short
    }
}

/// Where to break a full row: after its last blank, or at its end if that would leave more than half of it empty.
fn word_break(row: &str, room: usize) -> usize {
    let after_blank = row.rfind(' ').map(|at| at + 1);
    let kept = |at: &usize| row.get(..*at).map_or(0, columns_of);
    after_blank
        .filter(|at| kept(at) * 2 >= room)
        .unwrap_or(row.len())
}

fn columns_of(text: &str) -> usize {
    let width = |character: char| character.width().unwrap_or_default();
    text.chars().map(width).sum()
}

/// Formats an entry as rows: its label, then its text. Every further row starts with a bar, so that no text can imitate
/// another entry or a prompt.
fn rows(entry: &Entry, columns: usize) -> Vec<String> {
    let between = if entry.is_preview { ":\n" } else { ": " };
    let whole = format!("{}{between}{}", entry.label, entry.text);
    let mut rows = Vec::new();
    for line in whole.split('\n') {
        let mut row = String::new();
        let mut width = 0;
        let room = columns - 4;
        let mut begin = |row: &mut String| {
            let start = if rows.is_empty() { "  " } else { "  │ " };
            rows.push(format!("{start}{row}"));
            row.clear();
        };
        for character in line.chars() {
            let shown = if character == '\t' { "    " } else { "" };
            let needed = shown.len().max(character.width().unwrap_or_default());
            if width + needed > room {
                let rest = row.split_off(word_break(&row, room));
                begin(&mut row);
                width = columns_of(&rest);
                row = rest;
            }
            if shown.is_empty() {
                row.push(character);
            } else {
                row.push_str(shown);
            }
            width += needed;
        }
        begin(&mut row);
    }
    rows
}
