//! The text that the user types: an editable buffer with undo, history and folded pastes. Nothing here prints.
//!
//! Editing is rustyline's: its line buffer and its history, without its reader, which would hold the terminal.

mod history;
mod layout;
mod vi;

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, Movement, Word};
use unicode_width::UnicodeWidthChar as _;

pub(crate) use self::history::History;
use self::vi::Vi;

/// Maximum size of the input, in bytes. Folded pastes count as one character.
const MAX_BYTES: usize = 256 * 1024;
/// Pasted texts with more lines or more characters are folded.
const MAX_PASTED_LINES: usize = 5;
const MAX_PASTED_CHARS: usize = 800;
/// Changes that can be undone.
const MAX_UNDO: usize = 200;
/// Placeholder of the first folded paste in the buffer; the next characters are those of the others. A private character that cannot be typed.
const FIRST_FOLD: u32 = 0xF_0000;
const LAST_FOLD: u32 = 0xF_FFFD;

pub(crate) struct Input {
    buffer: LineBuffer,
    /// The texts that folds stand for.
    folds: HashMap<char, String>,
    killed: Killed,
    undo: Vec<(String, usize)>,
    history: History,
    vi: Option<Vi>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// The text or the cursor may have changed.
    Changed,
    /// Enter on a complete text.
    Submitted,
    /// The key has no meaning here.
    Unused,
}

/// The text killed last, for Ctrl-Y.
#[derive(Debug, Default)]
struct Killed {
    text: String,
    is_killing: bool,
}

impl DeleteListener for Killed {
    fn start_killing(&mut self) {
        self.is_killing = true;
        self.text.clear();
    }

    fn delete(&mut self, _: usize, text: &str, _: Direction) {
        if self.is_killing {
            self.text.push_str(text);
        }
    }

    fn stop_killing(&mut self) {
        self.is_killing = false;
    }
}

impl ChangeListener for Killed {
    fn insert_char(&mut self, _: usize, _: char) {}

    fn insert_str(&mut self, _: usize, _: &str) {}

    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

impl Input {
    pub(crate) fn new(history: History) -> Self {
        Self {
            buffer: LineBuffer::with_capacity(MAX_BYTES),
            folds: HashMap::new(),
            killed: Killed::default(),
            undo: Vec::new(),
            history,
            vi: None,
        }
    }

    /// Switches between vi and Emacs keys. Returns whether they are now those of vi.
    pub(crate) fn toggle_vi(&mut self) -> bool {
        self.vi = match self.vi {
            Some(_) => None,
            None => Some(Vi::default()),
        };
        self.vi.is_some()
    }

    /// The mode of vi keys, for the status line.
    pub(crate) fn mode(&self) -> Option<&'static str> {
        self.vi.as_ref().map(Vi::name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The text with folds as they are, and the byte offset of the cursor.
    pub(crate) fn text(&self) -> (&str, usize) {
        (self.buffer.as_str(), self.buffer.pos())
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Replaces the text from `start` to the cursor.
    pub(crate) fn complete(&mut self, start: usize, text: &str) {
        self.remember();
        let end = self.buffer.pos();
        self.buffer.replace(start..end, text, &mut self.killed);
    }

    /// Replaces all of the text.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember();
        self.buffer.update(text, text.len(), &mut self.killed);
    }

    pub(crate) fn clear(&mut self) {
        self.buffer.update("", 0, &mut self.killed);
        self.folds.clear();
        self.undo.clear();
        self.history.leave();
        if let Some(vi) = &mut self.vi {
            *vi = Vi::default();
        }
    }

    /// Takes the text, with folds replaced by what was pasted, and adds it to the history.
    pub(crate) fn take(&mut self) -> String {
        let text = self.expanded();
        self.history.add(&text);
        self.clear();
        text.replace("\\\n", "\n")
    }

    fn expanded(&self) -> String {
        let mut text = String::new();
        for character in self.buffer.as_str().chars() {
            match self.folds.get(&character) {
                Some(pasted) => text.push_str(pasted),
                None => text.push(character),
            }
        }
        text
    }

    /// Inserts pasted text; a long one is folded.
    pub(crate) fn paste(&mut self, pasted: &str) {
        self.remember();
        let pasted = pasted.replace("\r\n", "\n").replace('\r', "\n");
        let pasted: String = pasted.chars().filter(|each| is_text(*each)).collect();
        let lines = pasted.lines().count();
        let is_long = lines > MAX_PASTED_LINES || pasted.chars().count() > MAX_PASTED_CHARS;
        let fold = (FIRST_FOLD..=LAST_FOLD)
            .filter_map(char::from_u32)
            .find(|each| !self.folds.contains_key(each));
        match fold {
            Some(fold) if is_long => {
                self.folds.insert(fold, pasted);
                let _ = self.buffer.insert(fold, 1, &mut self.killed);
            }
            _ => _ = self.buffer.yank(&pasted, 1, &mut self.killed),
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, event: KeyEvent) -> Edited {
        let is_plain = !event
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if let Some(mut vi) = self.vi.take() {
            let edited = is_plain.then(|| vi.key(event.code, self)).flatten();
            self.vi = Some(vi);
            if let Some(edited) = edited {
                return edited;
            }
        }
        match event.code {
            KeyCode::Enter if is_plain && !is_incomplete(self.buffer.as_str()) => {
                return Edited::Submitted;
            }
            KeyCode::Enter => self.insert('\n'),
            KeyCode::Char(key) if event.modifiers.contains(KeyModifiers::CONTROL) => {
                return self.control(key);
            }
            KeyCode::Char(key) if event.modifiers.contains(KeyModifiers::ALT) => {
                return self.alt(key);
            }
            KeyCode::Char(key) => self.insert(key),
            KeyCode::Backspace if !is_plain => self.kill(&Movement::BackwardWord(1, Word::Emacs)),
            KeyCode::Backspace => {
                self.remember();
                self.buffer.backspace(1, &mut self.killed);
            }
            KeyCode::Delete => {
                self.remember();
                let _ = self.buffer.delete(1, &mut self.killed);
            }
            KeyCode::Left if !is_plain => _ = self.buffer.move_to_prev_word(Word::Emacs, 1),
            KeyCode::Right if !is_plain => {
                _ = self.buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1);
            }
            KeyCode::Left => _ = self.buffer.move_backward(1),
            KeyCode::Right => _ = self.buffer.move_forward(1),
            KeyCode::Home => _ = self.buffer.move_home(),
            KeyCode::End => _ = self.buffer.move_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => return Edited::Unused,
        }
        Edited::Changed
    }

    fn control(&mut self, key: char) -> Edited {
        match key {
            'a' => _ = self.buffer.move_home(),
            'e' => _ = self.buffer.move_end(),
            'b' => _ = self.buffer.move_backward(1),
            'f' => _ = self.buffer.move_forward(1),
            'p' => self.up(),
            'n' => self.down(),
            'j' => self.insert('\n'),
            'h' => {
                self.remember();
                self.buffer.backspace(1, &mut self.killed);
            }
            'd' if !self.is_empty() => {
                self.remember();
                let _ = self.buffer.delete(1, &mut self.killed);
            }
            'k' => self.kill(&Movement::EndOfLine),
            'u' => self.kill(&Movement::BeginningOfLine),
            'w' => self.kill(&Movement::BackwardWord(1, Word::Big)),
            'y' => self.yank(),
            't' => {
                self.remember();
                self.buffer.transpose_chars(&mut self.killed);
            }
            '_' | '7' | '/' | 'z' => self.undo(),
            _ => return Edited::Unused,
        }
        Edited::Changed
    }

    fn alt(&mut self, key: char) -> Edited {
        match key {
            'b' => _ = self.buffer.move_to_prev_word(Word::Emacs, 1),
            'f' => _ = self.buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1),
            'd' => self.kill(&Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
            _ => return Edited::Unused,
        }
        Edited::Changed
    }

    fn insert(&mut self, key: char) {
        if is_text(key) {
            self.remember();
            let _ = self.buffer.insert(key, 1, &mut self.killed);
        }
    }

    fn kill(&mut self, movement: &Movement) {
        self.remember();
        self.killed.start_killing();
        self.buffer.kill(movement, &mut self.killed);
        self.killed.stop_killing();
    }

    fn yank(&mut self) {
        self.remember();
        let text = std::mem::take(&mut self.killed.text);
        let _ = self.buffer.yank(&text, 1, &mut self.killed);
        self.killed.text = text;
    }

    fn remember(&mut self) {
        let state = (self.buffer.as_str().to_owned(), self.buffer.pos());
        if self.undo.last().is_none_or(|(text, _)| *text != state.0) {
            self.undo.push(state);
            if self.undo.len() > MAX_UNDO {
                self.undo.remove(0);
            }
        }
    }

    fn undo(&mut self) {
        while let Some((text, position)) = self.undo.pop() {
            if text != self.buffer.as_str() {
                self.buffer.update(&text, position, &mut self.killed);
                return;
            }
        }
    }

    /// Moves to the line above, or to the earlier input from the first line.
    fn up(&mut self) {
        if self.move_lines(-1) {
            return;
        }
        let current = self.buffer.as_str().to_owned();
        if let Some(earlier) = self.history.earlier(&current) {
            self.buffer
                .update(&earlier, earlier.len(), &mut self.killed);
        }
    }

    /// Moves to the line below, or to the later input from the last line.
    fn down(&mut self) {
        if self.move_lines(1) {
            return;
        }
        if let Some(later) = self.history.later() {
            self.buffer.update(&later, later.len(), &mut self.killed);
        }
    }

    /// Moves the cursor between the lines of the text. Returns `false` at the first or last line.
    fn move_lines(&mut self, by: i8) -> bool {
        let (text, position) = (self.buffer.as_str(), self.buffer.pos());
        let start = text[..position].rfind('\n').map_or(0, |at| at + 1);
        let column = text[start..position].chars().count();
        let target = if by < 0 {
            let Some(end) = start.checked_sub(1) else {
                return false;
            };
            text[..end].rfind('\n').map_or(0, |at| at + 1)
        } else {
            match text[position..].find('\n') {
                Some(at) => position + at + 1,
                None => return false,
            }
        };
        let line = text[target..].split('\n').next().unwrap_or_default();
        let offset = line
            .char_indices()
            .nth(column)
            .map_or(line.len(), |(at, _)| at);
        self.buffer.set_pos(target + offset);
        true
    }
}

/// Whether a character may be in the input: none that is invisible, and none that stands for a fold.
fn is_text(character: char) -> bool {
    let is_fold = (FIRST_FOLD..=LAST_FOLD).contains(&u32::from(character));
    let is_shown = character == '\n' || character == '\t' || character.width().is_some();
    is_shown && !is_fold
}

/// Whether the input continues on another line.
pub(crate) fn is_incomplete(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    text.ends_with('\\') || fences.count() % 2 == 1
}

#[cfg(test)]
mod tests;
