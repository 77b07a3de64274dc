//! A view on a screen: as much of it as there is room for, and how much there is besides.

use unicode_width::UnicodeWidthChar as _;

use super::{ConsentView, Entry};

/// Rows that one argument gets where there are several, and how many arguments get some.
const ROWS: usize = 6;
const ARGUMENTS: usize = 12;
/// Rows that anything gets at least.
const FEWEST: usize = 4;
/// Columns that a line has at least, whatever the screen says.
const NARROWEST: usize = 20;

/// Room for a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// The columns of a line.
    pub columns: usize,
    /// The rows for all of it.
    pub rows: usize,
}

/// A view as a screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The rows, none wider than the screen. A row that says what is left out is among them.
    pub rows: Vec<String>,
    /// Everything that is not on them.
    pub hidden: Vec<Hidden>,
}

/// Something that is not on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// What it is called.
    pub label: String,
    /// Why it is not there.
    pub kind: HiddenKind,
    /// How many characters it has; zero for what is masked.
    pub characters: usize,
}

/// Why something is not on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenKind {
    /// There is no room for it.
    Cut,
    /// It is blank, and its place is marked with the number of blanks.
    Blanks,
    /// It sounds or looks secret.
    Masked,
}

impl Folded {
    /// Whether everything is on the screen but blanks that are counted and values that are masked. Only then can the
    /// call be approved by what is shown.
    pub fn is_complete(&self) -> bool {
        self.hidden
            .iter()
            .all(|hidden| hidden.kind != HiddenKind::Cut)
    }
}

impl ConsentView {
    /// As much of the view as the screen has room for.
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

    /// All of the view, in rows of this width.
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
        // The beginning and the end, and between them how much is missing.
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

    /// Says of entries that they are not on the screen.
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

/// An entry in rows: its label, then its text, each further row with a bar before it, so that no text can look like
/// another entry or like a question.
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
                begin(&mut row);
                width = 0;
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
