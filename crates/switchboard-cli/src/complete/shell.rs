//! What each shell sends and expects: the words of the line, and quoted candidates.

use std::borrow::Cow;

use clap_complete::Shell;
use switchboard_config::text::visible;
use switchboard_config::words;

use super::Candidate;
use crate::terminal::fitted;

/// Columns of a description beside its candidate.
const ABOUT_WIDTH: usize = 60;

/// The script that a shell loads; `None` for a shell with a generated one.
pub(crate) fn script(shell: Shell) -> Option<&'static str> {
    match shell {
        Shell::Bash => Some(include_str!("scripts/bash.sh")),
        Shell::Zsh => Some(include_str!("scripts/zsh.zsh")),
        Shell::Fish => Some(include_str!("scripts/fish.fish")),
        Shell::PowerShell => Some(include_str!("scripts/powershell.ps1")),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Bash,
    Zsh,
    Fish,
    PowerShell,
}

/// A command line up to the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    dialect: Dialect,
    /// The words, unquoted; the last is the one at the cursor.
    pub(super) words: Vec<String>,
    /// Bytes of the last word that the shell keeps: bash replaces only what follows a `=` or `:`.
    kept: usize,
}

impl Line {
    /// Reads what a script sends. `None` if it cannot be completed.
    pub(super) fn read(shell: &str, words: &[&str]) -> Option<Self> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (dialect, words, kept) = match (shell, words) {
            ("bash", [line, current]) => {
                let words = split(line)?;
                let last = words.last()?;
                let is_break = current.chars().all(|letter| matches!(letter, '=' | ':'));
                let typed = if is_break { "" } else { current };
                let kept = last.strip_suffix(typed)?.len();
                (Dialect::Bash, words, kept)
            }
            ("zsh", words) => (Dialect::Zsh, owned(words), 0),
            ("fish", words) => (Dialect::Fish, owned(words), 0),
            // Older versions drop an empty argument, so the last one has a letter before it.
            ("powershell", [words @ .., last]) => {
                let mut all: Vec<String> = owned(words);
                all.push(last.strip_prefix('=')?.to_owned());
                (Dialect::PowerShell, all, 0)
            }
            _ => return None,
        };
        (words.len() > 1).then_some(Self {
            dialect,
            words,
            kept,
        })
    }

    /// The word at the cursor.
    pub(super) fn current(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    /// A candidate as the script reads it.
    pub(super) fn answer(&self, candidate: &Candidate) -> String {
        let about: Vec<&str> = candidate.about.split_whitespace().collect();
        let about = about.join(" ");
        let about = visible(&about);
        let about = fitted(&about, ABOUT_WIDTH);
        let value = candidate.value.as_str();
        match self.dialect {
            Dialect::Bash => {
                let rest = value.get(self.kept..).unwrap_or_default();
                let end = if candidate.is_open { "" } else { " " };
                format!("{}{end}", in_posix(rest))
            }
            Dialect::Zsh => {
                let kind = if candidate.is_open { "open" } else { "done" };
                format!("{kind}\t{value}\t{about}")
            }
            Dialect::Fish => format!("{value}\t{about}"),
            Dialect::PowerShell => format!("{}\t{value}\t{about}", in_powershell(value)),
        }
    }
}

/// A word quoted for bash, which inserts it as it is.
fn in_posix(word: &str) -> Cow<'_, str> {
    let is_safe = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,".contains(letter);
    if word.is_empty() || word.chars().all(is_safe) {
        return Cow::Borrowed(word);
    }
    words::quote(word)
}

/// A word quoted for PowerShell, which inserts it as it is.
fn in_powershell(word: &str) -> Cow<'_, str> {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=+".contains(letter);
    if !word.is_empty() && word.chars().all(is_safe) {
        return Cow::Borrowed(word);
    }
    // PowerShell takes these for single quotes as well.
    let is_quote = |letter: char| matches!(letter, '\'' | '\u{2018}'..='\u{201b}');
    let mut quoted = String::from("'");
    for letter in word.chars() {
        if is_quote(letter) {
            quoted.push(letter);
        }
        quoted.push(letter);
    }
    quoted.push('\'');
    Cow::Owned(quoted)
}

/// Splits a line of bash up to the cursor. `None` if the last word has quotes or an expansion: what the shell would put
/// in its place is not known.
fn split(line: &str) -> Option<Vec<String>> {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| {
        let width = line.get(at..).and_then(|rest| rest.chars().next());
        at + width.map_or(1, char::len_utf8)
    });
    let (before, last) = (line.get(..start)?, line.get(start..)?);
    let is_escaped = before.trim_end().ends_with('\\');
    if is_escaped || last.contains(['\'', '"', '\\', '$', '`']) {
        return None;
    }
    let mut words = words::split(before)?;
    // Variables before the command.
    while words.first().is_some_and(|word| word.contains('=')) {
        words.remove(0);
    }
    words.push(last.to_owned());
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(shell: &str, words: &[&str], candidate: &Candidate) -> String {
        Line::read(shell, words).unwrap().answer(candidate)
    }

    #[test]
    fn bash_gets_what_follows_its_break_and_quoted() {
        let zone = Candidate::new("zone=Europe/Berlin", "");
        assert_eq!(
            answer("bash", &["s call t zone=Eu", "Eu"], &zone),
            "Europe/Berlin "
        );
        assert_eq!(
            answer("bash", &["s call t zone=", "="], &zone),
            "Europe/Berlin "
        );
        assert_eq!(
            answer("bash", &["s call t zo", "zo"], &zone),
            "zone=Europe/Berlin "
        );
        let open = Candidate::open("zone=", "");
        assert_eq!(answer("bash", &["X=1 s call t ", ""], &open), "zone=");
        let hostile = Candidate::new("a/$(touch x);`id`'\"", "");
        assert_eq!(
            answer("bash", &["s call ", ""], &hostile),
            "'a/$(touch x);`id`'\\''\"' "
        );
    }

    #[test]
    fn an_unfinished_quote_is_not_completed() {
        for line in ["s call \"a", "s call 'a b", "s call $HO", "s call a\\ b"] {
            assert_eq!(Line::read("bash", &[line, ""]), None, "{line}");
        }
        assert_eq!(Line::read("tcsh", &["s", "x"]), None);
    }

    #[test]
    fn powershell_gets_single_quotes() {
        let hostile = Candidate::new("a'$(x)\u{2019}", "line\nbreak");
        let expected = "'a''$(x)\u{2019}\u{2019}'\ta'$(x)\u{2019}\tline break";
        assert_eq!(
            answer("powershell", &["s", "call", "="], &hostile),
            expected
        );
    }
}
