//! Masks secrets in displayed text: arguments, URLs, scripts, parts of files, messages.
//!
//! Heuristic: only the text itself indicates a secret; [`crate::redact`] masks known values. `names` recognises names
//! that announce a secret, `shape` the appearance of keys, `scan` finds secrets in a text, `address` in a URL.
//!
//! All functions are total and linear: texts come from models, servers and repositories. Masking a masked text may mask
//! more, since a mask changes its context; it never reveals more.

mod address;
mod names;
mod scan;
mod shape;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use crate::expand::is_only_references;
use crate::secret::MASK;

use scan::Reading;

pub(crate) use address::url_signature;
pub(crate) use names::{is_harmless_header, sounds_secret};

/// Masks the values of flags with secret names, headers, and texts that look like keys. References such as `${TOKEN}`
/// are shown.
pub fn arguments(arguments: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(arguments.len());
    let mut before = Before::Nothing;
    for argument in arguments {
        shown.push(masked(argument, in_list(argument, before)).into_owned());
        before = Before::next(argument);
    }
    shown
}

/// What the previous argument implies for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A flag with a secret value.
    SecretFlag,
    /// A flag with a header as value.
    HeaderFlag,
    /// A flag with user and password as value.
    UserFlag,
    /// A flag with program code as value.
    CodeFlag,
}

impl Before {
    fn next(argument: &str) -> Self {
        if !argument.starts_with('-') || argument.contains('=') {
            return Self::Nothing;
        }
        let letters = argument.trim_start_matches('-');
        match letters {
            "H" | "header" | "headers" | "http-header" | "add-header" | "proxy-header"
            | "request-header" => Self::HeaderFlag,
            "u" | "user" | "proxy-user" => Self::UserFlag,
            "e" | "eval" | "command" | "Command" => Self::CodeFlag,
            // `-c`, `-lc`
            _ if letters.len() <= 4 && letters.ends_with('c') => Self::CodeFlag,
            _ if sounds_secret(letters) => Self::SecretFlag,
            _ => Self::Nothing,
        }
    }
}

/// Ranges of the secrets in an argument of a list.
fn in_list(argument: &str, before: Before) -> Vec<Range<usize>> {
    if is_script(argument) || before == Before::CodeFlag {
        return scan::secrets(argument, Reading::Shell);
    }
    match before {
        Before::SecretFlag if !argument.starts_with('-') => return value(argument, 0),
        Before::HeaderFlag => return header(argument, 0),
        Before::UserFlag if !argument.starts_with('-') => {
            let password = argument.split_once(':').filter(|(_, password)| {
                !password.starts_with("//") && !password.bytes().all(|byte| byte.is_ascii_digit())
            });
            if let Some((user, _)) = password {
                return value(argument, user.len() + 1);
            }
        }
        _ => {}
    }
    let flag = argument
        .split_once('=')
        .filter(|_| argument.starts_with('-'));
    match flag {
        Some((name, _)) if Before::next(name) == Before::HeaderFlag => {
            header(argument, name.len() + 1)
        }
        Some((name, _)) if sounds_secret(name) => value(argument, name.len() + 1),
        _ if argument.starts_with("-H") && argument.contains(':') => header(argument, 2),
        _ => in_argument(argument),
    }
}

/// Masks one argument without its context. It may be shell code.
pub fn argument(argument: &str) -> Cow<'_, str> {
    masked(argument, in_argument(argument))
}

fn in_argument(argument: &str) -> Vec<Range<usize>> {
    // Commit hashes and project ids are not secret, and a file name contains a dot.
    let is_id = shape::is_uuid(argument)
        || (shape::is_hex(argument) && matches!(argument.len(), 0..=31 | 40 | 64));
    if !is_id && !argument.contains(['.', ':', '=']) && shape::is_token(argument) {
        return value(argument, 0);
    }
    scan::secrets(argument, Reading::Shell)
}

/// Masks a named value, such as a variable or a member of a JSON object.
pub fn named<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    if sounds_secret(name) && !is_script(value) {
        masked(value, self::value(value, 0))
    } else {
        argument(value)
    }
}

/// Masks everything in a message or log line that is secret by name or appearance.
pub fn message(text: &str) -> Cow<'_, str> {
    masked(text, places_in_message(text))
}

/// Whether an argument is shell code. It is shown in full for approval, so that code cannot be hidden behind `--token
/// 'x; …'`.
fn is_script(argument: &str) -> bool {
    let in_words = argument.contains(|character: char| character.is_whitespace())
        || argument.contains("$IFS")
        || argument.contains("${IFS");
    in_words && argument.contains([';', '|', '&', '`', '\n', '(', '<', '>'])
}

/// Range of the secret in a header, `Name: value`, that starts at an offset of an argument.
fn header(argument: &str, offset: usize) -> Vec<Range<usize>> {
    let text = argument.get(offset..).unwrap_or_default();
    let Some((name, rest)) = text.split_once([':', '=']) else {
        return in_argument(argument);
    };
    if is_harmless_header(name) {
        return Vec::new();
    }
    let blanks = rest.len() - rest.trim_start().len();
    let start = offset + name.len() + 1 + blanks;
    let secret = argument.get(start..).unwrap_or_default();
    // `Bearer` is not secret, and helps to recognise the header.
    let scheme = secret.split_once(' ').map(|(scheme, _)| scheme);
    let is_word = |scheme: &&str| scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
    match scheme.filter(is_word) {
        Some(scheme) if !is_only_references(secret) => value(argument, start + scheme.len() + 1),
        _ => value(argument, start),
    }
}

/// Masks a name that has its value joined to it, a common mistake.
pub fn name(name: &str) -> Cow<'_, str> {
    match name.split_once([':', '=']) {
        _ if shape::begins_like_a_key(name) => Cow::Borrowed(MASK),
        Some((before, _)) => Cow::Owned(format!("{before}: {MASK}")),
        None => Cow::Borrowed(name),
    }
}

/// Whether masking would hide part of a command line.
pub(crate) fn hides_in_line(line: &str) -> bool {
    let words = crate::words::split(line).unwrap_or_else(|| vec![line.to_owned()]);
    arguments(&words) != words
}

/// Secrets in arguments, for [`crate::redact`].
pub(crate) fn secrets_of_arguments(arguments: &[String]) -> Vec<&str> {
    let mut secrets = Vec::new();
    let mut before = Before::Nothing;
    for argument in arguments {
        let places = in_list(argument, before).into_iter();
        secrets.extend(places.filter_map(|place| argument.get(place)));
        before = Before::next(argument);
    }
    secrets
}

/// Secrets in a URL, for [`crate::redact`].
pub(crate) fn secrets_of_url(address: &str) -> Vec<&str> {
    if !address.contains("://") {
        return Vec::new();
    }
    let places = address::secrets(address).into_iter();
    let parts = places.filter_map(|place| address.get(place));
    // A password is also secret without its user name.
    parts
        .flat_map(|part| {
            [
                Some(part),
                part.split_once(':').map(|(_, password)| password),
            ]
        })
        .flatten()
        .collect()
}

/// Secrets in one value, for [`crate::redact`].
pub(crate) fn secrets_of_argument(argument: &str) -> Vec<&str> {
    let places = in_argument(argument).into_iter();
    places.filter_map(|place| argument.get(place)).collect()
}

/// Ranges of text in a message that are secret by name or appearance.
pub(crate) fn places_in_message(text: &str) -> Vec<Range<usize>> {
    scan::secrets(text, Reading::Plain)
}

/// Masks a part of a file: quoted texts are treated as arguments, or as the values of the names before them.
pub fn text(source: &str) -> String {
    let mut shown = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let quoted = quoted(line);
        let texts: Vec<String> = quoted
            .iter()
            .map(|range| line.get(range.clone()).unwrap_or_default().to_owned())
            .collect();
        let mut end = 0;
        let mut before = "";
        for (range, as_argument) in quoted.iter().zip(arguments(&texts)) {
            let gap = line.get(end..range.start).unwrap_or_default();
            let inner = line.get(range.clone()).unwrap_or_default();
            shown.push_str(&masked(gap, scan::secrets(gap, Reading::Shell)));
            match key_of(gap, before) {
                Some(key) if sounds_secret(key) => shown.push_str(&named(key, inner)),
                _ => shown.push_str(&as_argument),
            }
            before = inner;
            end = range.end;
        }
        let rest = line.get(end..).unwrap_or_default();
        shown.push_str(&masked(rest, scan::secrets(rest, Reading::Shell)));
    }
    shown
}

/// The key of a quoted value: the text before `=` or `:`, quoted or not.
fn key_of<'t>(gap: &'t str, quoted_before: &'t str) -> Option<&'t str> {
    let gap = gap.trim_end_matches(['"', '\'']).trim_end();
    let before = gap.strip_suffix(['=', ':'])?.trim_end();
    let is_separator =
        |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '-' | '.'));
    match before.rsplit(is_separator).next() {
        Some("") | None => Some(quoted_before),
        Some(key) => Some(key),
    }
}

/// Ranges of the quoted texts in a line, without quotes. An unclosed one extends to the end.
fn quoted(line: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open: Option<(u8, usize)> = None;
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match open {
            None if matches!(byte, b'"' | b'\'') => open = Some((byte, at + 1)),
            Some(_) if escaped => escaped = false,
            Some((b'"', _)) if byte == b'\\' => escaped = true,
            Some((quote, start)) if byte == quote => {
                ranges.push(start..at);
                open = None;
            }
            _ => {}
        }
    }
    ranges.extend(open.map(|(_, start)| start..line.trim_end().len().max(start)));
    ranges
}

/// Masks user names, passwords, tokens in path segments, and query values that are secret by name or appearance.
pub fn url(address: &str) -> Cow<'_, str> {
    masked(address, address::secrets(address))
}

/// Range of a value from an offset to the end of the text; empty if it is only a reference.
fn value(text: &str, start: usize) -> Vec<Range<usize>> {
    let secret = text.get(start..).unwrap_or_default();
    if secret.is_empty() || is_only_references(secret) {
        Vec::new()
    } else {
        vec![Range {
            start,
            end: text.len(),
        }]
    }
}

/// Replaces these ranges by masks.
pub(crate) fn masked(text: &str, places: Vec<Range<usize>>) -> Cow<'_, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for place in places {
        shown.push_str(text.get(end..place.start).unwrap_or_default());
        shown.push_str(MASK);
        end = place.end;
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}
