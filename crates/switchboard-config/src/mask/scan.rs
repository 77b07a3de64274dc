//! Finds the secrets of a text: one pass from left to right, which gives the places of what has to be masked.
//!
//! It is a total function: each step goes forward, nothing is fed back, and what is not masked is kept byte by byte.
//! A person approves what is shown of a command, so a place never reaches past a character that could begin another
//! command (see [`Reading::Shell`]): where hiding too much and showing too much are the choices, a command is shown.

use std::ops::Range;

use super::{address, names, shape};
use crate::expand::is_only_references;
use crate::secret::MASK;

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Perhaps a text for a shell, which somebody is asked to approve. A place that is masked has no blank, no quote
    /// and nothing that ends a command or starts another one. Quotes are not believed: whether one opens or closes
    /// depends on comments and here-documents before it, and an author who knows more of shells than this function
    /// could hide a command in what it takes for a quoted value.
    Shell,
    /// A message or a log line, which is only read: a quoted value is masked up to its closing quote.
    Plain,
}

/// Words that stand before a credential in an `Authorization` header.
const SCHEMES: &[&str] = &[
    "Bearer",
    "Basic",
    "Token",
    "ApiKey",
    "Digest",
    "Negotiate",
    "DPoP",
    "Key",
];

/// Values that are no secret, whatever their name says.
const NO_SECRETS: &[&str] = &["true", "false", "null", "none", "undefined", "yes", "no"];

/// The places of all secrets in a text, in order and apart from each other.
pub(super) fn secrets(text: &str, reading: Reading) -> Vec<Range<usize>> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        reading,
        found: Vec::new(),
    };
    let mut at = 0;
    while at < scanner.bytes.len() {
        let next = scanner.step(at);
        debug_assert!(next > at, "each step goes forward");
        at = next.max(at + 1);
    }
    scanner.found
}

pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    bytes: &'t [u8],
    reading: Reading,
    found: Vec<Range<usize>>,
}

impl Scanner<'_> {
    /// Reads what begins at a place, and says where to go on.
    fn step(&mut self, at: usize) -> usize {
        if !self.bytes.get(at).copied().is_some_and(is_name_byte) {
            return at + 1;
        }
        let end = self.end_of(at, is_name_byte);
        let Some(run) = self.text.get(at..end) else {
            return end;
        };
        if self.follows(end, b"://") {
            return self.address(at, end + "://".len());
        }
        if shape::begins_like_a_key(run) {
            let end = self.end_of(end, is_key_byte);
            let key = self.text.get(at..end).unwrap_or_default();
            // The full stop after a key ends the sentence.
            self.found.push(at..at + key.trim_end_matches('.').len());
            return end;
        }
        if is_scheme(run) {
            return self.after_scheme(end);
        }
        if is_user_flag(run) {
            return self.user(end);
        }
        if names::sounds_secret(run) {
            return self.named(run, end);
        }
        end
    }

    /// An address: what of it is secret, to its end.
    fn address(&mut self, start: usize, authority: usize) -> usize {
        let mut end = authority;
        while let Some(byte) = self.bytes.get(end).copied() {
            let opens_command = self.reading == Reading::Shell && self.opens_command(end);
            if self.ends_address(byte) || opens_command {
                break;
            }
            end += 1;
        }
        let places = self
            .text
            .get(start..end)
            .map(address::secrets)
            .unwrap_or_default();
        let places = places
            .into_iter()
            .map(|place| place.start + start..place.end + start);
        self.found.extend(places);
        end
    }

    /// `Bearer X`, with no name before it.
    fn after_scheme(&mut self, end: usize) -> usize {
        let start = self.past_blanks(end);
        if start == end {
            return end;
        }
        let value = start..self.end_of_value(start, None, false);
        let word = self.text.get(value.clone()).unwrap_or_default();
        // What has a name or an address in it is read for itself.
        let is_read_apart = word.contains("://") || word.starts_with('-') || word.contains(MASK);
        if is_read_apart || is_reference(word) {
            return end;
        }
        let is_credential = match self.reading {
            Reading::Shell => word.len() > 6,
            // "Basic authentication" is no credential.
            Reading::Plain => {
                word.len() >= 20
                    || (word.len() > 6 && word.bytes().any(|byte| byte.is_ascii_digit()))
            }
        };
        if is_credential {
            let end = value.end;
            self.found.push(value);
            return end;
        }
        end
    }

    /// `-u me:password`.
    fn user(&mut self, end: usize) -> usize {
        let start = match self.bytes.get(end) {
            Some(b'=') => end + 1,
            _ => self.past_blanks(end),
        };
        if start == end {
            return end;
        }
        let start = self.past_quote(start).map_or(start, |(start, _)| start);
        let value_end = self.end_of_value(start, None, false);
        let word = self.text.get(start..value_end).unwrap_or_default();
        let Some((user, password)) = word.split_once(':') else {
            return end;
        };
        // `-u 1000:1000` is a user and a group, `--user https://…` an address.
        let is_number = password.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || is_reference(password) || password.starts_with("//") {
            return end;
        }
        self.found.push(start + user.len() + 1..value_end);
        value_end
    }

    /// The value that belongs to a name which announces a secret, if there is one.
    fn named(&mut self, name: &str, end: usize) -> usize {
        let (after_name, is_quoted_name) = match self.past_quote(end) {
            Some((after, _)) => (after, true),
            None => (end, false),
        };
        let is_plain = self.reading == Reading::Plain;
        let separator = if is_plain || is_quoted_name {
            self.past_blanks(after_name)
        } else {
            after_name
        };
        let start = match self.bytes.get(separator) {
            Some(b':') => self.past_blanks(separator + 1),
            // A shell takes what follows a blank for a command, and not for the value.
            Some(b'=') if !is_plain && !is_quoted_name => separator + 1,
            Some(b'=') => {
                let arrow = usize::from(self.bytes.get(separator + 1) == Some(&b'>'));
                self.past_blanks(separator + 1 + arrow)
            }
            _ if name.starts_with('-') => {
                let start = self.past_blanks(end);
                let next = self.past_quote(start).map_or(start, |(start, _)| start);
                if start == end || self.bytes.get(next) == Some(&b'-') {
                    return end;
                }
                start
            }
            _ => return end,
        };
        self.value(start, is_quoted_name).unwrap_or(end)
    }

    /// Masks the value that begins at a place. Says where it ends, or nothing if there is none.
    fn value(&mut self, start: usize, in_json: bool) -> Option<usize> {
        let (start, quote) = match self.past_quote(start) {
            Some((start, quote)) => (start, Some(quote)),
            None => (start, None),
        };
        let end = self.end_of_value(start, quote, in_json);
        let word = self.text.get(start..end)?;
        let scheme = SCHEMES.iter().find_map(|scheme| {
            let head = word.get(..scheme.len())?;
            let rest = word.get(scheme.len()..)?;
            let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
            (ends && head.eq_ignore_ascii_case(scheme)).then_some(scheme.len())
        });
        let (start, end) = match scheme {
            // In a shell the word ends before the credential.
            Some(length) => {
                let credential = self.past_blanks(start + length);
                let is_apart = credential > start + length;
                if is_apart && credential >= end {
                    (credential, self.end_of_value(credential, quote, in_json))
                } else if is_apart {
                    (credential, end)
                } else {
                    return Some(end.max(start + length)).filter(|end| *end > start);
                }
            }
            None => (start, end),
        };
        let secret = self.text.get(start..end)?;
        if secret.is_empty() {
            return None;
        }
        let is_no_secret = NO_SECRETS
            .iter()
            .any(|word| word.eq_ignore_ascii_case(secret));
        if !is_no_secret && !is_reference(secret) {
            self.found.push(start..end);
        }
        Some(end)
    }

    /// Where a value ends: at its closing quote, if it is believed to be one, or with its word.
    fn end_of_value(&self, start: usize, quote: Option<Quote>, in_json: bool) -> usize {
        match (self.reading, quote) {
            (Reading::Plain, Some(quote)) => self.closing(start, quote),
            (reading, quote) => {
                let mut at = start;
                while let Some(byte) = self.bytes.get(at).copied() {
                    let ends_json =
                        in_json && quote.is_none() && matches!(byte, b',' | b'}' | b']');
                    let ends_list = reading == Reading::Plain && matches!(byte, b',' | b'}' | b']');
                    // A backslash stands before a quote in a text that was quoted twice.
                    let ends_escaped = byte == b'\\'
                        && matches!(self.bytes.get(at + 1), Some(b'"' | b'\'' | b'\n'));
                    if ends_word(byte)
                        || ends_json
                        || ends_list
                        || ends_escaped
                        || self.opens_command(at)
                    {
                        break;
                    }
                    at += 1;
                }
                at
            }
        }
    }

    /// Where the quote closes, or the line ends.
    fn closing(&self, start: usize, quote: Quote) -> usize {
        let mut at = start;
        while let Some(byte) = self.bytes.get(at).copied() {
            match (byte, quote) {
                (b'\n', _) => break,
                (b'\\', Quote::Escaped(inner)) if self.bytes.get(at + 1) == Some(&inner) => break,
                (b'\\', Quote::Plain(b'"')) => at += 1,
                (byte, Quote::Plain(inner)) if byte == inner => break,
                _ => {}
            }
            at += 1;
        }
        let at = at.min(self.bytes.len());
        // After a backslash the next character may be one of several bytes.
        (at..=self.bytes.len())
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(at)
    }

    /// Whether a command is put into a word here: `$(…)`, or a blank that is spelled `$IFS`.
    fn opens_command(&self, at: usize) -> bool {
        self.follows(at, b"$(") || self.follows(at, b"$IFS") || self.follows(at, b"${IFS")
    }

    /// Past a quote, if there is one: `"`, `'`, or either after a backslash or a dollar.
    fn past_quote(&self, at: usize) -> Option<(usize, Quote)> {
        match (self.bytes.get(at), self.bytes.get(at + 1)) {
            (Some(quote @ (b'"' | b'\'')), _) => Some((at + 1, Quote::Plain(*quote))),
            (Some(b'\\'), Some(quote @ (b'"' | b'\''))) => Some((at + 2, Quote::Escaped(*quote))),
            (Some(b'$'), Some(quote @ (b'"' | b'\''))) => Some((at + 2, Quote::Plain(*quote))),
            _ => None,
        }
    }

    fn past_blanks(&self, at: usize) -> usize {
        self.end_of(at, |byte| matches!(byte, b' ' | b'\t'))
    }

    fn follows(&self, at: usize, text: &[u8]) -> bool {
        self.bytes
            .get(at..)
            .is_some_and(|rest| rest.starts_with(text))
    }

    fn end_of(&self, start: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| !belongs(*byte));
        start + length.unwrap_or(rest.len())
    }

    fn ends_address(&self, byte: u8) -> bool {
        match self.reading {
            Reading::Shell => ends_word(byte),
            Reading::Plain => {
                byte.is_ascii_whitespace()
                    || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
            }
        }
    }
}

/// A quote that was opened.
#[derive(Debug, Clone, Copy)]
enum Quote {
    Plain(u8),
    Escaped(u8),
}

/// What a name of a flag, a variable or a header consists of.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// What a key may have besides.
fn is_key_byte(byte: u8) -> bool {
    is_name_byte(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

/// What ends a word, or could end the command that it is part of.
fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || byte == 0x0B
        || matches!(
            byte,
            b'"' | b'\'' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' | b'`'
        )
}

fn is_scheme(run: &str) -> bool {
    run.eq_ignore_ascii_case("Bearer") || run.eq_ignore_ascii_case("Basic")
}

fn is_user_flag(run: &str) -> bool {
    matches!(run, "-u" | "--user" | "--proxy-user" | "--userinfo")
}

/// Whether a value only says where a secret is: `${TOKEN}` or `$TOKEN`.
pub(super) fn is_reference(value: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    value.strip_prefix('$').is_some_and(is_name) || is_only_references(value)
}
