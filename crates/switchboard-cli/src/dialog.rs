//! A question to the user: rows of text, then a line to type or a choice.
//!
//! In a chat it is a panel in place of the input, which disappears with its answer. Elsewhere, and on a terminal without
//! a movable cursor, it is printed line by line. Dropping it removes the panel and returns the keys.

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

/// Maximum length of a filter, in bytes.
const MAX_FILTER: usize = 100;

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
            _lock: lock.begin(),
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

    /// Lets the user pick one of many rows, starting at one. Typed letters filter them. `None` if the user leaves.
    pub(crate) async fn pick(&mut self, items: &[Line], at: usize) -> io::Result<Option<usize>> {
        if !self.is_panel() {
            return self.pick_plainly(items).await;
        }
        let mut filter = String::new();
        let mut at = at;
        loop {
            let is_there = |item: &Line| matches(&plain(item), &filter);
            let shown: Vec<usize> = (0..items.len())
                .filter(|index| items.get(*index).is_some_and(is_there))
                .collect();
            at = at.min(shown.len().saturating_sub(1));
            self.draw_list(items, &shown, at, &filter);
            let page = list_height();
            match self.key().await? {
                Key::Up => at = at.checked_sub(1).unwrap_or(shown.len().saturating_sub(1)),
                Key::Down | Key::Tab => at = (at + 1) % shown.len().max(1),
                Key::PageUp => at = at.saturating_sub(page),
                Key::PageDown => at = (at + page).min(shown.len().saturating_sub(1)),
                Key::Enter => {
                    if let Some(index) = shown.get(at) {
                        return Ok(Some(*index));
                    }
                }
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

    fn draw_list(&self, items: &[Line], shown: &[usize], at: usize, filter: &str) {
        let page = list_height();
        let first = (at + 1).saturating_sub(page);
        let mut rows = self.rows.clone();
        for (place, index) in shown.iter().enumerate().skip(first).take(page) {
            let is_selected = place == at;
            let mut row = vec![(
                style::HINT,
                if is_selected { "❯ " } else { "  " }.to_owned(),
            )];
            row.extend(items.get(*index).cloned().unwrap_or_default());
            rows.push(row);
        }
        if shown.is_empty() {
            rows.push(vec![(style::QUIET, "  no match".to_owned())]);
        }
        let below = shown.len().saturating_sub(first + page);
        let more = if below > 0 {
            format!(", {below} more below")
        } else {
            String::new()
        };
        let keys = if filter.is_empty() {
            format!("  ↑↓ enter, esc leaves, type to filter{more}")
        } else {
            format!("  filter: {filter}{more}")
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
            let mut rows = self.rows.clone();
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
        let mut rows = self.rows.clone();
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
