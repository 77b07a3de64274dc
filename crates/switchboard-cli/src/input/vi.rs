//! vi keys: normal and insert mode.

use crossterm::event::KeyCode;
use rustyline::{At, CharSearch, Movement, Word};

use super::{Edited, Input};

#[derive(Debug, Default)]
pub(super) struct Vi {
    is_normal: bool,
    /// Keys of a command that is not complete, such as `d` or `2f`.
    pending: String,
}

impl Vi {
    pub(super) fn name(&self) -> &'static str {
        if self.is_normal { "normal" } else { "insert" }
    }

    /// Handles a key; `None` leaves it to the usual keys.
    pub(super) fn key(&mut self, code: KeyCode, input: &mut Input) -> Option<Edited> {
        match code {
            KeyCode::Esc if self.is_normal && self.pending.is_empty() => None,
            KeyCode::Esc => {
                if !self.is_normal {
                    input.buffer.move_backward(1);
                }
                self.is_normal = true;
                self.pending.clear();
                Some(Edited::Changed)
            }
            KeyCode::Char(key) if self.is_normal => {
                self.pending.push(key);
                let pending = std::mem::take(&mut self.pending);
                if self.command(&pending, input).is_none() && pending.len() < 8 {
                    self.pending = pending;
                }
                Some(Edited::Changed)
            }
            _ => None,
        }
    }

    /// Runs a command; `None` if more keys belong to it.
    fn command(&mut self, keys: &str, input: &mut Input) -> Option<()> {
        let digits = keys
            .find(|key: char| !key.is_ascii_digit())
            .unwrap_or(keys.len());
        // A leading 0 is a movement.
        let (count, keys) = if keys.starts_with('0') {
            (1, keys)
        } else {
            let (count, keys) = keys.split_at(digits);
            (count.parse().unwrap_or(1).clamp(1, 1_000), keys)
        };
        let mut letters = keys.chars();
        let key = letters.next()?;
        let rest = letters.as_str();
        match key {
            'd' | 'c' | 'y' => return self.operator(key, count, rest, input),
            'r' => {
                let with = rest.chars().next()?;
                input.remember();
                let _ = input.buffer.delete(1, &mut input.killed);
                let _ = input.buffer.insert(with, 1, &mut input.killed);
                input.buffer.move_backward(1);
            }
            'i' => self.is_normal = false,
            'a' => {
                input.buffer.move_forward(1);
                self.is_normal = false;
            }
            'I' => {
                input.buffer.move_home();
                self.is_normal = false;
            }
            'A' => {
                input.buffer.move_end();
                self.is_normal = false;
            }
            'o' => {
                input.buffer.move_end();
                input.insert('\n');
                self.is_normal = false;
            }
            'O' => {
                input.buffer.move_home();
                input.insert('\n');
                input.buffer.move_backward(1);
                self.is_normal = false;
            }
            'x' => input.kill(&Movement::ForwardChar(count)),
            'X' => input.kill(&Movement::BackwardChar(count)),
            'D' => input.kill(&Movement::EndOfLine),
            'C' => {
                input.kill(&Movement::EndOfLine);
                self.is_normal = false;
            }
            's' => {
                input.kill(&Movement::ForwardChar(count));
                self.is_normal = false;
            }
            'p' => {
                input.buffer.move_forward(1);
                input.yank();
            }
            'P' => input.yank(),
            'u' => input.undo(),
            'j' => input.down(),
            'k' => input.up(),
            'G' => _ = input.buffer.move_buffer_end(),
            'g' => {
                rest.chars().next()?;
                input.buffer.move_buffer_start();
            }
            _ => travel(&movement(keys, count)?, input),
        }
        Some(())
    }

    fn operator(
        &mut self,
        operator: char,
        count: u16,
        rest: &str,
        input: &mut Input,
    ) -> Option<()> {
        let first = rest.chars().next()?;
        let movement = if first == operator {
            Movement::WholeLine
        } else {
            movement(rest, count)?
        };
        // In vi, `cw` leaves the blank after the word.
        let movement = match movement {
            Movement::ForwardWord(count, At::Start, word) if operator == 'c' => {
                Movement::ForwardWord(count, At::AfterEnd, word)
            }
            Movement::ForwardWord(count, At::Start, word) if is_last(count, word, input) => {
                Movement::EndOfBuffer
            }
            other => other,
        };
        if operator == 'y' {
            if let Some(text) = input.buffer.copy(&movement) {
                input.killed.text = text;
            }
        } else {
            input.kill(&movement);
        }
        if operator == 'c' {
            self.is_normal = false;
        }
        Some(())
    }
}

/// Whether no word starts after this many words: the movement then ends on the last character, not after it.
fn is_last(count: u16, word: Word, input: &mut Input) -> bool {
    let before = input.buffer.pos();
    input.buffer.move_to_next_word(At::Start, word, count);
    let after = input.buffer.pos();
    input.buffer.set_pos(before);
    let text = input.buffer.as_str();
    let is_blank = |text: &str| text.ends_with(char::is_whitespace);
    let is_end = text[after..].chars().count() <= 1;
    is_end && !is_blank(&text[..after])
}

/// The movement that keys mean; `None` if more keys belong to it or none does.
fn movement(keys: &str, count: u16) -> Option<Movement> {
    let mut letters = keys.chars();
    let key = letters.next()?;
    Some(match key {
        'h' => Movement::BackwardChar(count),
        'l' | ' ' => Movement::ForwardChar(count),
        'w' => Movement::ForwardWord(count, At::Start, Word::Vi),
        'W' => Movement::ForwardWord(count, At::Start, Word::Big),
        'e' => Movement::ForwardWord(count, At::BeforeEnd, Word::Vi),
        'E' => Movement::ForwardWord(count, At::BeforeEnd, Word::Big),
        'b' => Movement::BackwardWord(count, Word::Vi),
        'B' => Movement::BackwardWord(count, Word::Big),
        '0' => Movement::BeginningOfLine,
        '^' => Movement::ViFirstPrint,
        '$' => Movement::EndOfLine,
        'f' | 'F' | 't' | 'T' => {
            let target = letters.next()?;
            let search = match key {
                'f' => CharSearch::Forward(target),
                'F' => CharSearch::Backward(target),
                't' => CharSearch::ForwardBefore(target),
                _ => CharSearch::BackwardAfter(target),
            };
            Movement::ViCharSearch(count, search)
        }
        _ => return None,
    })
}

fn travel(movement: &Movement, input: &mut Input) {
    let buffer = &mut input.buffer;
    let _ = match movement {
        Movement::BackwardChar(count) => buffer.move_backward(*count),
        Movement::ForwardChar(count) => buffer.move_forward(*count),
        Movement::ForwardWord(count, at, word) => buffer.move_to_next_word(*at, *word, *count),
        Movement::BackwardWord(count, word) => buffer.move_to_prev_word(*word, *count),
        Movement::BeginningOfLine | Movement::ViFirstPrint => buffer.move_home(),
        Movement::EndOfLine => buffer.move_end(),
        Movement::ViCharSearch(count, search) => buffer.move_to(*search, *count),
        _ => false,
    };
}
