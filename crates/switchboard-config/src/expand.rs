//! Expands `${…}` in values: environment variables, defaults, and a few names of our own.
//!
//! The syntax is the same in every format. An unset variable without a default is an error, never an empty text. Values
//! of variables are not expanded again, so they cannot loop or inject a reference.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use thiserror::Error;

use crate::tree::Span;

/// Snapshot of the process environment; this module does not read the environment itself.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// `None` if the variable is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

/// Values available to references.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'v> {
    /// Environment variables.
    pub environment: &'v Environment,
    /// `${workspaceFolder}`.
    pub workspace: &'v Path,
    /// `${home}`.
    pub home: &'v Path,
    /// `${pluginRoot}`, in files of a plugin.
    pub plugin_root: Option<&'v Path>,
}

/// Why a text could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A variable is not set and has no default.
    #[error("the environment variable `{0}` is not set")]
    Missing(String),
    /// A reference is not closed.
    #[error("`${{` is not closed")]
    Unclosed,
    /// The text between the braces is not a valid reference.
    #[error("`${{{0}}}` is not a variable")]
    Malformed(String),
}

impl ExpandError {
    /// Suggested fix.
    pub fn hint(&self) -> String {
        match self {
            ExpandError::Missing(name) => format!("set {name}, or give a default: ${{{name}:-default}}"),
            ExpandError::Unclosed => "close it with `}`, or write `$${` for a literal `${`".to_owned(),
            ExpandError::Malformed(_) => {
                "write ${VAR}, ${VAR:-default}, ${env:VAR}, ${workspaceFolder} or ${home}, or `$${` for a literal `${`"
                    .to_owned()
            }
        }
    }
}

/// How far after the start of a value to search for its references, in bytes.
const NEAR: usize = 64 * 1024;

impl ExpandError {
    /// Position of the reference in the file, given the position of the value. `None` if it is written in an
    /// unrecognised way, such as with escapes.
    pub(crate) fn place(&self, text: &str, value: Span) -> Option<Span> {
        let start = value.start as usize;
        let end = (text.len().min(start + NEAR)..=text.len()).find(|at| text.is_char_boundary(*at));
        let near = text.get(start..end?)?;
        let spellings = match self {
            ExpandError::Missing(name) => vec![
                format!("${{{name}}}"),
                format!("${{{name}:"),
                format!("${{env:{name}"),
                format!("env(\"{name}\")"),
            ],
            ExpandError::Malformed(inner) => vec![format!("${{{inner}}}")],
            ExpandError::Unclosed => vec!["${".to_owned()],
        };
        let found = spellings
            .iter()
            .filter_map(|spelling| near.find(spelling).map(|at| (at, spelling.len())));
        let (at, length) = found.min()?;
        Some(Span::new(start + at, start + at + length))
    }
}

/// Replaces every reference by its value, and `$${` by `${`.
pub fn expand<'t>(text: &'t str, variables: &Variables<'_>) -> Result<Cow<'t, str>, ExpandError> {
    if !text.contains("${") {
        return Ok(Cow::Borrowed(text));
    }
    let mut expanded = String::with_capacity(text.len() + 16);
    for piece in pieces(text) {
        match piece? {
            Piece::Text(literal) => expanded.push_str(literal),
            Piece::Reference(reference) => expanded.push_str(&reference.value(variables)?),
        }
    }
    Ok(Cow::Owned(expanded))
}

/// Names of the references in a text, in order: `VAR`, `workspaceFolder`, `home`. Malformed references are skipped.
pub fn references(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = vec![text];
    while let Some(text) = rest.pop() {
        for piece in pieces(text).flatten() {
            if let Piece::Reference(reference) = piece {
                names.push(reference.name);
                rest.extend(reference.default);
            }
        }
    }
    names
}

/// Whether a text only refers to a secret: references, and at most an HTTP authentication scheme. A default would be
/// part of the secret, so a reference with one does not count.
pub(crate) fn is_only_references(text: &str) -> bool {
    let mut found = false;
    for piece in pieces(text) {
        match piece {
            Ok(Piece::Text(literal)) => {
                let word = literal.trim();
                if !(word.is_empty()
                    || ["Bearer", "Basic", "token"]
                        .iter()
                        .any(|known| known.eq_ignore_ascii_case(word)))
                {
                    return false;
                }
            }
            Ok(Piece::Reference(Reference { default: None, .. })) => found = true,
            _ => return false,
        }
    }
    found
}

enum Piece<'t> {
    Text(&'t str),
    Reference(Reference<'t>),
}

struct Reference<'t> {
    name: &'t str,
    /// Whether the name has the prefix `env:`, so that it can only be a variable.
    explicit: bool,
    default: Option<&'t str>,
}

impl<'t> Reference<'t> {
    fn parse(inner: &'t str) -> Option<Self> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let (name, explicit) = match name.strip_prefix("env:") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let mut bytes = name.bytes();
        let starts = bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (starts && goes_on).then_some(Self {
            name,
            explicit,
            default,
        })
    }

    fn value<'v>(&self, variables: &Variables<'v>) -> Result<Cow<'v, str>, ExpandError>
    where
        't: 'v,
    {
        match self.name {
            "workspaceFolder" if !self.explicit => {
                return Ok(variables.workspace.to_string_lossy());
            }
            "home" if !self.explicit => return Ok(variables.home.to_string_lossy()),
            // `CLAUDE_PLUGIN_ROOT` is used by plugins for Claude Code.
            "pluginRoot" | "CLAUDE_PLUGIN_ROOT" => {
                if let Some(root) = variables.plugin_root {
                    return Ok(root.to_string_lossy());
                }
            }
            _ => {}
        }
        match (variables.environment.get(self.name), self.default) {
            // As in a shell, a default also replaces an empty variable.
            (None | Some(""), Some(default)) => expand(default, variables),
            (Some(value), _) => Ok(Cow::Borrowed(value)),
            (None, None) => Err(ExpandError::Missing(self.name.to_owned())),
        }
    }
}

/// Splits a text into literal parts and references.
fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, ExpandError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = rest.find("${") else {
            return Some(Ok(Piece::Text(std::mem::take(&mut rest))));
        };
        // `$${` is a literal `${`: drop the first dollar.
        if at > 0 && rest.as_bytes().get(at - 1) == Some(&b'$') {
            if let Some(before) = rest.get(..at - 1).filter(|before| !before.is_empty()) {
                rest = rest.get(at - 1..).unwrap_or_default();
                return Some(Ok(Piece::Text(before)));
            }
            let (literal, after) = rest.get(1..).unwrap_or_default().split_at(2);
            rest = after;
            return Some(Ok(Piece::Text(literal)));
        }
        if at > 0 {
            let (literal, after) = rest.split_at(at);
            rest = after;
            return Some(Ok(Piece::Text(literal)));
        }
        let inner = rest.get(2..).unwrap_or_default();
        let Some(end) = closing_brace(inner) else {
            rest = "";
            return Some(Err(ExpandError::Unclosed));
        };
        let (inner, after) = inner.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let malformed = || ExpandError::Malformed(inner.to_owned());
        Some(
            Reference::parse(inner)
                .map(Piece::Reference)
                .ok_or_else(malformed),
        )
    })
}

/// Maximum nesting depth of references in defaults, and thus of the recursion.
const DEEPEST: usize = 16;

/// Offset of the brace that closes a reference, skipping nested references.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if depth == DEEPEST => return None,
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        [
            ("A", "1"),
            ("EMPTY", ""),
            ("REF", "${A}"),
            ("home", "x"),
            ("B_2", "two"),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn references_become_what_they_refer_to() {
        let check = |text: &str, expected: Result<&str, ExpandError>| {
            let variables = Variables {
                environment: &environment(),
                workspace: Path::new("/ws"),
                home: Path::new("/home/me"),
                plugin_root: None,
            };
            let expanded = expand(text, &variables).map(Cow::into_owned);
            assert_eq!(expanded, expected.map(String::from), "{text}");
        };
        let missing = |name: &str| Err(ExpandError::Missing(name.into()));
        let malformed = |inner: &str| Err(ExpandError::Malformed(inner.into()));
        check("plain $A {A}", Ok("plain $A {A}"));
        check("${A}", Ok("1"));
        check("x${A}y${B_2}z", Ok("x1ytwoz"));
        check("${env:A}", Ok("1"));
        check("${A:-no}", Ok("1"));
        check("${NONE:-yes}", Ok("yes"));
        check("${NONE:-}", Ok(""));
        check("${env:NONE:-yes}", Ok("yes"));
        check("${EMPTY}", Ok(""));
        check("${EMPTY:-full}", Ok("full"));
        check("${NONE:-${A}}", Ok("1"));
        check("${NONE:-${NONE2:-deep}}", Ok("deep"));
        check("${NONE:-{\"json\":1}}", Ok("{\"json\":1}"));
        check("${NONE:-https://x/${A}:80}", Ok("https://x/1:80"));
        // Values are not expanded.
        check("${REF}", Ok("${A}"));
        check("${workspaceFolder}/x", Ok("/ws/x"));
        check("${home}", Ok("/home/me"));
        check("${env:home}", Ok("x"));
        check("$${A}", Ok("${A}"));
        check("a$${A} ${A}", Ok("a${A} 1"));
        check("$$${A}", Ok("$${A}"));
        check("$", Ok("$"));
        check("${NONE}", missing("NONE"));
        check("${env:NONE}", missing("NONE"));
        check("${NONE:-${NONE2}}", missing("NONE2"));
        check("${", Err(ExpandError::Unclosed));
        check("a ${A", Err(ExpandError::Unclosed));
        check(
            &("${X:-".repeat(10_000) + &"}".repeat(10_000)),
            Err(ExpandError::Unclosed),
        );
        check("${}", malformed(""));
        check("${A B}", malformed("A B"));
        check("${1A}", malformed("1A"));
        check("${input:token}", malformed("input:token"));
        check("${A-b}", malformed("A-b"));
    }

    #[test]
    fn a_reference_is_found_in_the_text_of_its_value() {
        let check = |error: ExpandError, text: &str, expected: Option<&str>| {
            let start = text.find('=').unwrap();
            let place = error.place(text, Span::new(start, start + 1));
            let found = place.map(|span| &text[span.start as usize..span.end as usize]);
            assert_eq!(found, expected, "{text}");
        };
        let missing = || ExpandError::Missing("A".into());
        check(missing(), "${A} = [\"${AB}\",\n\"${A}\"]", Some("${A}"));
        check(missing(), "= \"${A:-${B}}\"", Some("${A:"));
        check(missing(), "= env(\"A\")", Some("env(\"A\")"));
        check(missing(), "= \"\\u0024{A}\"", None);
        check(missing(), &format!("= {}${{A}}", "ü".repeat(NEAR)), None);
        check(
            ExpandError::Malformed("x y".into()),
            "= ${x y}",
            Some("${x y}"),
        );
        check(ExpandError::Unclosed, "= a ${x", Some("${"));
    }

    #[test]
    fn only_a_bare_reference_may_be_shown() {
        for shown in ["${TOKEN}", "Bearer ${TOKEN}", "${A}${B}", " ${env:A} "] {
            assert!(is_only_references(shown), "{shown}");
        }
        for hidden in [
            "",
            "sk-123",
            "Bearer abc",
            "x${A}",
            "${TOKEN:-sk-123}",
            "${TOKEN",
            "$${A}",
        ] {
            assert!(!is_only_references(hidden), "{hidden}");
        }
    }

    #[test]
    fn referenced_names_are_listed() {
        assert_eq!(
            references("${A} $${B} ${env:C:-${D}} ${x y}"),
            ["A", "C", "D"]
        );
    }
}
