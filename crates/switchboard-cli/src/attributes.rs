//! Asks the terminal for its primary device attributes, which say whether it shows sixel graphics.
//!
//! The answer arrives among the keys. This reads the terminal until then, and passes on every key that comes before it;
//! the next reader of the terminal skips an answer that comes too late, as crossterm does.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

/// Asks for the attributes.
pub(crate) const QUERY: &str = "\u{1b}[c";
/// Time for the answer to arrive.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that follow an escape within this time belong to the same key.
const ESCAPE_PATIENCE: Duration = Duration::from_millis(50);
/// The attribute of a terminal with sixel graphics.
const SIXEL: &str = "4";
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Reads the terminal until it has answered or time is up. Returns whether it shows sixel graphics.
pub(crate) fn read(mut pass_on: impl FnMut(Event)) -> std::io::Result<bool> {
    let end = std::time::Instant::now() + PATIENCE;
    let mut decoder = Decoder::default();
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        let wait = match decoder.is_idle() {
            true if left.is_zero() => return Ok(false),
            true => left,
            // A key that has begun is read to its end.
            false => ESCAPE_PATIENCE,
        };
        match crate::terminal::byte_within(wait)? {
            Some(byte) => match decoder.push(byte) {
                Some(Decoded::Event(event)) => pass_on(event),
                Some(Decoded::Attributes { sixel }) => return Ok(sixel),
                None => {}
            },
            None => {
                if let Some(event) = decoder.give_up() {
                    pass_on(event);
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Decoded {
    Event(Event),
    Attributes { sixel: bool },
}

/// Decodes the keys that a user can press before the answer arrives.
#[derive(Debug, Default)]
struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    fn is_idle(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next byte. Returns what it completes.
    fn push(&mut self, byte: u8) -> Option<Decoded> {
        // A second escape is the beginning of the next key.
        if byte == 0x1b && self.bytes == [0x1b] {
            return Some(key(KeyCode::Esc, KeyModifiers::NONE));
        }
        self.bytes.push(byte);
        let decoded = match self.bytes.as_slice() {
            [0x1b] | [0x1b, b'[' | b'O'] => return None,
            bytes if bytes.starts_with(PASTE_BEGINS) => {
                let text = bytes.strip_prefix(PASTE_BEGINS)?.strip_suffix(PASTE_ENDS)?;
                let text = String::from_utf8_lossy(text).into_owned();
                Some(Decoded::Event(Event::Paste(text)))
            }
            [0x1b, b'[' | b'O', sequence @ ..] => {
                if !(0x40..0x7f).contains(&byte) {
                    return None;
                }
                if sequence == b"200~" {
                    return None;
                }
                sequence_key(sequence)
            }
            [0x1b, rest @ ..] => plain(rest, KeyModifiers::ALT).ok()?,
            bytes => plain(bytes, KeyModifiers::NONE).ok()?,
        };
        self.bytes.clear();
        decoded
    }

    /// Ends a key that is not continued.
    fn give_up(&mut self) -> Option<Event> {
        if self.bytes.starts_with(PASTE_BEGINS) {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        (bytes == [0x1b]).then(|| Event::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)))
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Decoded {
    Decoded::Event(Event::Key(KeyEvent::new(code, modifiers)))
}

/// The rest of a character has not arrived.
struct Incomplete;

/// A key without a sequence of its own; `None` if it has no meaning.
fn plain(bytes: &[u8], modifiers: KeyModifiers) -> Result<Option<Decoded>, Incomplete> {
    let control = |letter: u8| {
        let letter = char::from(letter);
        key(KeyCode::Char(letter), modifiers | KeyModifiers::CONTROL)
    };
    Ok(match *bytes {
        [b'\r'] => Some(key(KeyCode::Enter, modifiers)),
        [b'\t'] => Some(key(KeyCode::Tab, modifiers)),
        [0x7f] => Some(key(KeyCode::Backspace, modifiers)),
        [0] => Some(control(b' ')),
        [byte @ 0x01..=0x1a] => Some(control(byte - 1 + b'a')),
        [byte @ 0x1c..=0x1f] => Some(control(byte - 0x1c + b'4')),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.chars().next().map(|character| {
                let shift = if character.is_uppercase() {
                    KeyModifiers::SHIFT
                } else {
                    KeyModifiers::NONE
                };
                key(KeyCode::Char(character), modifiers | shift)
            }),
            Err(error) if error.error_len().is_none() => return Err(Incomplete),
            Err(_) => None,
        },
    })
}

/// What follows `ESC [` or `ESC O`; `None` if it has no meaning here.
fn sequence_key(sequence: &[u8]) -> Option<Decoded> {
    if let Some(answer) = sequence.strip_prefix(b"?") {
        let answer = std::str::from_utf8(answer.strip_suffix(b"c")?).ok()?;
        let sixel = answer
            .split(';')
            .skip(1)
            .any(|attribute| attribute == SIXEL);
        return Some(Decoded::Attributes { sixel });
    }
    let code = match sequence {
        b"A" => KeyCode::Up,
        b"B" => KeyCode::Down,
        b"C" => KeyCode::Right,
        b"D" => KeyCode::Left,
        b"H" | b"1~" | b"7~" => KeyCode::Home,
        b"F" | b"4~" | b"8~" => KeyCode::End,
        b"3~" => KeyCode::Delete,
        b"5~" => KeyCode::PageUp,
        b"6~" => KeyCode::PageDown,
        b"Z" => KeyCode::BackTab,
        _ => return None,
    };
    Some(key(code, KeyModifiers::NONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<Decoded> {
        let mut decoder = Decoder::default();
        let mut all: Vec<_> = bytes
            .iter()
            .filter_map(|byte| decoder.push(*byte))
            .collect();
        all.extend(decoder.give_up().map(Decoded::Event));
        all
    }

    #[test]
    fn the_answer_is_found_among_keys_and_no_key_is_lost() {
        let pressed = |code| key(code, KeyModifiers::NONE);
        let letter = |letter| pressed(KeyCode::Char(letter));
        let answer = |sixel| Decoded::Attributes { sixel };
        let check = |bytes: &str, expected: &[Decoded]| {
            assert_eq!(decoded(bytes.as_bytes()), expected, "{bytes:?}");
        };
        check("\u{1b}[?62;4;22c", &[answer(true)]);
        check("\u{1b}[?64;22;14;44c", &[answer(false)]);
        // The first number is the model of the terminal.
        check("\u{1b}[?4c", &[answer(false)]);
        check(
            "hé\u{1b}[?1;4c漢\r",
            &[
                letter('h'),
                letter('é'),
                answer(true),
                letter('漢'),
                pressed(KeyCode::Enter),
            ],
        );
        check(
            "\u{1b}[A\u{1b}OD\u{1b}[3~\u{1b}[99;5X\u{1b}",
            &[KeyCode::Up, KeyCode::Left, KeyCode::Delete, KeyCode::Esc].map(pressed),
        );
        check("\u{1b}\u{1b}", &[KeyCode::Esc, KeyCode::Esc].map(pressed));
        check("\u{1b}\r", &[key(KeyCode::Enter, KeyModifiers::ALT)]);
        check("\u{4}", &[key(KeyCode::Char('d'), KeyModifiers::CONTROL)]);
        check(
            "\u{1b}[200~a\u{1b}[?4;4c\rb\u{1b}[201~c",
            &[
                Decoded::Event(Event::Paste("a\u{1b}[?4;4c\rb".to_owned())),
                letter('c'),
            ],
        );
        assert_eq!(decoded(b"\xff\xfea"), [letter('a')]);
    }
}
