//! Finds the ranges of secrets in a text, in one pass from left to right.
//!
//! Total: each step moves forward. Users approve commands as they are shown, so a range never includes a character that
//! could start another command (see [`Reading::Shell`]): in doubt, a command is shown rather than hidden.

use std::ops::Range;

use super::{address, names, shape};
use crate::expand::is_only_references;
use crate::secret::MASK;

/// How a text is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Possibly shell code that the user is asked to approve. A masked range contains no blank, no quote and nothing
    /// that ends or starts a command. Quotes are ignored: whether one opens or closes depends on comments and
    /// here-documents before it, and an attacker could hide a command in an apparently quoted value.
    Shell,
    /// A message or a log line, which is only read: a quoted value is masked up to its closing quote.
    Plain,
}

/// Authentication schemes that precede a credential.
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

/// Values that are not secret, whatever their name.
const NO_SECRETS: &[&str] = &["true", "false", "null", "none", "undefined", "yes", "no"];

/// Ranges of all secrets, in order and disjoint.
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
    /// Processes the text at an offset; returns the next offset.
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
            // A final dot ends the sentence, and is not part of the key.
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

    /// Finds the secrets of a URL; returns its end.
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

    /// `Bearer X`, without a name before it.
    fn after_scheme(&mut self, end: usize) -> usize {
        let start = self.past_blanks(end);
        if start == end {
            return end;
        }
        let value = start..self.end_of_value(start, None, false);
        let word = self.text.get(value.clone()).unwrap_or_default();
        // Texts with a name or a URL are processed separately.
        let is_read_apart = word.contains("://") || word.starts_with('-') || word.contains(MASK);
        if is_read_apart || is_reference(word) {
            return end;
        }
        let is_credential = match self.reading {
            Reading::Shell => word.len() > 6,
            // "Basic authentication" is not a credential.
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
        // `-u 1000:1000` is a user and a group, `--user https://…` a URL.
        let is_number = password.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || is_reference(password) || password.starts_with("//") {
            return end;
        }
        self.found.push(start + user.len() + 1..value_end);
        value_end
    }

    /// Masks the value of a name that announces a secret, if there is one.
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
            // In a shell, the text after a blank is a command, not the value.
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

    /// Masks the value at an offset; returns its end, or `None` if there is no value.
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
            // In a shell, the word ends before the credential.
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

    /// End of a value: at its closing quote, if quotes count, or with its word.
    fn end_of_value(&self, start: usize, quote: Option<Quote>, in_json: bool) -> usize {
        match (self.reading, quote) {
            (Reading::Plain, Some(quote)) => self.closing(start, quote),
            (reading, quote) => {
                let mut at = start;
                while let Some(byte) = self.bytes.get(at).copied() {
                    let ends_json =
                        in_json && quote.is_none() && matches!(byte, b',' | b'}' | b']');
                    let ends_list = reading == Reading::Plain && matches!(byte, b',' | b'}' | b']');
                    // Text that was quoted twice has backslashes before quotes.
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

    /// Offset of the closing quote, or of the line end.
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
        // The character after a backslash may have several bytes.
        (at..=self.bytes.len())
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(at)
    }

    /// Whether a command is embedded in a word here: `$(…)`, or a blank spelled `$IFS`.
    fn opens_command(&self, at: usize) -> bool {
        self.follows(at, b"$(") || self.follows(at, b"$IFS") || self.follows(at, b"${IFS")
    }

    /// Skips a quote: `"`, `'`, or either after a backslash or a dollar.
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

#[derive(Debug, Clone, Copy)]
enum Quote {
    Plain(u8),
    Escaped(u8),
}

/// Characters of flag, variable and header names.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Characters of keys.
fn is_key_byte(byte: u8) -> bool {
    is_name_byte(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

/// Characters that end a word, or could end its command.
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

/// Whether a value is only a reference: `${TOKEN}` or `$TOKEN`.
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
