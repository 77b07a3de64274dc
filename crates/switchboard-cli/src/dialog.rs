//! A question to the user: rows of text, then a line to type or a choice.
//!
//! In a chat it is a panel in place of the input, which disappears with its answer. Elsewhere, and on a terminal without
//! a movable cursor, it is printed line by line. Dropping it removes the panel and returns the keys.

mod list;

use std::io;

use anstyle::Style;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use unicode_width::UnicodeWidthStr as _;

use crate::focus::{self, Pressed};
use crate::input::{Edited, History, Input};
use crate::live::{self, Line, TerminalLock, painted};
use crate::markdown::wrapped;
use crate::printer::{Printer, style};
use crate::questions::entry::{self, Entered};
use crate::questions::safe;
use crate::screen::{self, Frame};
use crate::terminal::{self, Key, Keyboard, fitted};

pub(crate) struct Dialog<'p> {
    printer: &'p Printer,
    keys: Keys,
    /// The panel so far.
    rows: Vec<Line>,
    _lock: TerminalLock,
}

enum Keys {
    Chat(mpsc::UnboundedReceiver<Pressed>),
    Terminal(Keyboard),
}

/// An answer that one key gives.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) key: char,
    pub(crate) words: String,
}

impl Choice {
    pub(crate) fn new(key: char, words: impl Into<String>) -> Self {
        Self {
            key,
            words: words.into(),
        }
    }
}

/// What the user did at a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The key of a choice.
    Key(char),
    /// Escape, Ctrl-D or the end of the input.
    Left,
    /// A key that means nothing, where the choices are printed. A panel ignores it.
    Other,
    /// Left and right, in a panel.
    Back,
    Forward,
    /// The size of the terminal has changed: the rows must be made again.
    Resized,
}

impl<'p> Dialog<'p> {
    /// Waits for its turn. The title is shown to a user who is typing. Keys pressed before are not read.
    pub(crate) async fn open(title: &str, printer: &'p Printer) -> io::Result<Self> {
        Self::open_with(title, false, printer).await
    }

    /// Like [`open`](Self::open), for what the user has just asked for.
    pub(crate) async fn open_wanted(title: &str, printer: &'p Printer) -> io::Result<Self> {
        Self::open_with(title, true, printer).await
    }

    async fn open_with(title: &str, is_wanted: bool, printer: &'p Printer) -> io::Result<Self> {
        live::announce(title, printer);
        let lock = live::lock_terminal(printer).await;
        let keys = match focus::request(title, is_wanted).await {
            Some(keys) if screen::is_active() => Keys::Chat(keys),
            _ => {
                terminal::discard_keys();
                Keys::Terminal(Keyboard::open()?)
            }
        };
        Ok(Self {
            printer,
            keys,
            rows: Vec::new(),
            _lock: lock,
        })
    }

    /// Whether it is a panel that can be redrawn.
    pub(crate) fn is_panel(&self) -> bool {
        matches!(self.keys, Keys::Chat(_))
    }

    /// Removes the rows of a panel, to say something else.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Adds a row.
    pub(crate) fn say(&mut self, row: Line) {
        if self.is_panel() {
            self.rows.push(row);
        } else {
            self.printer.ask(format!("{}\n", painted(&row)));
        }
    }

    /// Adds a row of text without a style.
    pub(crate) fn say_text(&mut self, text: &str) {
        self.say(vec![(Style::new(), text.to_owned())]);
    }

    /// Adds a text, wrapped and indented.
    pub(crate) fn say_wrapped(&mut self, text: &str) {
        let width = screen::size().columns.saturating_sub(1);
        for row in wrapped(text, "  ", width) {
            self.say(vec![(style::QUIET, row)]);
        }
    }

    /// The number of rows so far, for [`rewind`](Self::rewind).
    pub(crate) fn mark(&self) -> usize {
        self.rows.len()
    }

    /// Removes the rows of a panel that were added since the mark. What was printed stays.
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.rows.truncate(mark);
    }

    /// The rows of a panel below a rule that separates them from the conversation.
    fn framed(&self) -> Vec<Line> {
        let width = screen::size().columns.saturating_sub(1);
        let mut rows = vec![vec![(style::QUIET, "─".repeat(width))]];
        rows.extend(self.rows.iter().cloned());
        rows
    }

    pub(crate) async fn key(&mut self) -> io::Result<Key> {
        match &mut self.keys {
            Keys::Chat(keys) => Ok(match keys.recv().await {
                Some(Pressed::Key(key)) => dialog_key(key),
                Some(Pressed::Resized) => Key::Resized,
                Some(Pressed::Paste(_)) => Key::Other,
                None => Key::End,
            }),
            Keys::Terminal(keyboard) => keyboard.key().await,
        }
    }

    /// Lets the user choose. `selected` is what Enter chooses at first; `None` means that Enter chooses nothing.
    pub(crate) async fn choose(
        &mut self,
        choices: &[Choice],
        selected: Option<usize>,
    ) -> io::Result<Chosen> {
        if !self.is_panel() {
            return self.choose_plainly(choices, selected).await;
        }
        let mut at = selected;
        loop {
            let mut rows = self.framed();
            for (index, choice) in choices.iter().enumerate() {
                rows.extend(choice_rows(choice, at == Some(index)));
            }
            rows.push(vec![(style::QUIET, "  ↑↓ enter, or a key".to_owned())]);
            screen::set_panel(Some(Frame { rows, cursor: None }));
            let last = choices.len().saturating_sub(1);
            match self.key().await? {
                Key::Up => at = Some(at.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
                Key::Down | Key::Tab => at = Some(at.map_or(0, |at| (at + 1) % choices.len())),
                Key::Enter => {
                    if let Some(choice) = at.and_then(|at| choices.get(at)) {
                        return Ok(Chosen::Key(choice.key));
                    }
                }
                Key::Character(key) => {
                    let key = key.to_ascii_lowercase();
                    if choices.iter().any(|choice| choice.key == key) {
                        return Ok(Chosen::Key(key));
                    }
                }
                Key::Escape | Key::End => return Ok(Chosen::Left),
                Key::Left => return Ok(Chosen::Back),
                Key::Right => return Ok(Chosen::Forward),
                Key::Resized => return Ok(Chosen::Resized),
                _ => {}
            }
        }
    }

    async fn choose_plainly(
        &mut self,
        choices: &[Choice],
        selected: Option<usize>,
    ) -> io::Result<Chosen> {
        self.ask_plainly(choices, selected);
        let pressed = self.key().await?;
        if let Key::Character(character) = pressed {
            self.printer.ask(safe(&character.to_string()));
        }
        self.printer.ask("\n");
        let of_key = |key: char| choices.iter().find(|choice| choice.key == key);
        let chosen = match pressed {
            Key::Character(key) => of_key(key.to_ascii_lowercase()),
            Key::Enter => selected.and_then(|at| choices.get(at)),
            Key::Escape | Key::End => return Ok(Chosen::Left),
            _ => None,
        };
        Ok(chosen.map_or(Chosen::Other, |choice| Chosen::Key(choice.key)))
    }

    /// Prints the choices on as few lines as fit.
    fn ask_plainly(&self, choices: &[Choice], selected: Option<usize>) {
        let columns = screen::size().columns;
        let mut used = 0;
        for (index, choice) in choices.iter().enumerate() {
            // Announced elsewhere.
            if choice.words.is_empty() {
                continue;
            }
            let default = if selected == Some(index) {
                " (default)"
            } else {
                ""
            };
            let needed = choice.words.width() + default.len() + 4;
            if used > 0 && used + needed >= columns {
                self.printer.ask("\n");
                used = 0;
            }
            used += needed;
            let key = crate::printer::paint(style::NAME, choice.key);
            self.printer
                .ask(format!("  {key} {}{default}", choice.words));
        }
        self.printer.ask(" ");
    }

    /// Reads a line after a prompt, which must be sanitized. In a panel, `text` is there already and can be changed.
    pub(crate) async fn line(&mut self, prompt: &Line, text: &str) -> io::Result<Entered> {
        match &mut self.keys {
            Keys::Terminal(keyboard) => entry::line(keyboard, self.printer, &painted(prompt)).await,
            Keys::Chat(_) => Ok(self.line_in_panel(prompt, text).await),
        }
    }

    async fn line_in_panel(&mut self, prompt: &Line, text: &str) -> Entered {
        let mut input = Input::new(History::none());
        input.set(text);
        loop {
            self.draw_entry(prompt, &input);
            let Keys::Chat(keys) = &mut self.keys else {
                return Entered::Left;
            };
            match keys.recv().await {
                Some(Pressed::Key(key)) => match input.key(key) {
                    Edited::Submitted => break,
                    Edited::Changed => {}
                    Edited::Unused => {
                        if matches!(dialog_key(key), Key::Escape | Key::End) {
                            return Entered::Left;
                        }
                    }
                },
                Some(Pressed::Paste(pasted)) => input.paste(&pasted),
                Some(Pressed::Resized) => {}
                None => return Entered::Left,
            }
        }
        let mut row = prompt.clone();
        row.push((Style::new(), safe(input.text().0)));
        self.rows.push(row);
        Entered::Line(input.take())
    }

    /// Draws the panel with the line being typed after the prompt.
    fn draw_entry(&self, prompt: &Line, input: &Input) {
        let before: usize = prompt.iter().map(|(_, piece)| piece.width()).sum();
        let columns = screen::size().columns.saturating_sub(before).max(10);
        let (typed, (row, column)) = input.rows_without_mark(columns);
        let mut rows = self.framed();
        let first = rows.len();
        for (index, line) in typed.into_iter().enumerate() {
            let mut row = match index {
                0 => prompt.clone(),
                _ => vec![(Style::new(), " ".repeat(before))],
            };
            row.extend(line);
            rows.push(row);
        }
        let cursor = Some((first + row, before + column));
        screen::set_panel(Some(Frame { rows, cursor }));
    }
}

impl Drop for Dialog<'_> {
    fn drop(&mut self) {
        if self.is_panel() {
            screen::set_panel(None);
        }
    }
}

/// A choice, wrapped so that none of its words is cut.
fn choice_rows(choice: &Choice, is_selected: bool) -> Vec<Line> {
    let room = screen::size().columns.saturating_sub(8).max(20);
    let mark = if is_selected { "❯" } else { " " };
    let words_style = if is_selected {
        style::HINT
    } else {
        Style::new()
    };
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in choice.words.split(' ') {
        if !row.is_empty() && row.width() + 1 + word.width() > room {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
        // A word wider than a row is broken, not cut.
        while row.width() > room {
            let head = fitted(&row, room + 1).trim_end_matches('…').to_owned();
            if head.is_empty() {
                break;
            }
            row.drain(..head.len());
            rows.push(head);
        }
    }
    rows.push(row);
    let line = |(index, words): (usize, String)| {
        let (mark, key) = if index == 0 {
            (mark, choice.key.to_string())
        } else {
            (" ", " ".to_owned())
        };
        vec![
            (style::HINT, format!("{mark} ")),
            (style::NAME, key),
            (words_style, format!("  {words}")),
        ]
    };
    rows.into_iter().enumerate().map(line).collect()
}

/// A key as dialogs know it.
fn dialog_key(key: KeyEvent) -> Key {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('d') if is_control => Key::End,
        KeyCode::Char('u') if is_control => Key::EraseLine,
        KeyCode::Char('w') if is_control => Key::EraseWord,
        KeyCode::Char('p') if is_control => Key::Up,
        KeyCode::Char('n') if is_control => Key::Down,
        KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => Key::Other,
        KeyCode::Char(character) => Key::Character(character),
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Tab,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => Key::Other,
    }
}
