//! Shell completion: `switchboard __complete SHELL WORDS…` prints the candidates for the last word.
//!
//! Reads the configuration and the cache. Starts no server, fetches nothing, writes no file, and prints no errors: a
//! shell would show them in the middle of a command line.

mod position;
mod shell;
mod source;

use std::ffi::OsString;
use switchboard_config::sort;

use clap::Command;

use crate::cli::{self, GlobalFlags};
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;
use position::Position;
use source::Known;

pub(crate) use shell::script;

/// The first argument that makes the program complete.
pub(crate) const ARGUMENT: &str = "__complete";
/// Most candidates that are printed.
const MAX_CANDIDATES: usize = 1_000;
/// Longest candidate, in bytes.
const MAX_BYTES: usize = 300;

/// A candidate for the last word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    value: String,
    about: String,
    /// Whether the word goes on: `time/`, `zone=`.
    is_open: bool,
}

impl Candidate {
    fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            about: about.into(),
            is_open: false,
        }
    }

    /// A candidate after which the word goes on.
    fn open(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            is_open: true,
            ..Self::new(value, about)
        }
    }
}

/// Answers a shell. Always succeeds: without candidates, a shell offers its own.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let Some((shell, words)) = arguments.split_first() else {
        return Exit::Usage;
    };
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let (Some(shell), Some(words)) = (shell.to_str(), words) else {
        return Exit::Done;
    };
    if let Some(line) = shell::Line::read(shell, &words) {
        let found = candidates(&line.words);
        let fitting = found
            .into_iter()
            .filter(|candidate| candidate.value.starts_with(line.current()) && is_plain(candidate));
        let mut text = String::new();
        for candidate in fitting.take(MAX_CANDIDATES) {
            text.push_str(&line.answer(&candidate));
            text.push('\n');
        }
        let _ = Printer::raw(text.as_bytes());
    }
    Exit::Done
}

/// Whether a candidate is one line of visible text. A server chooses its names, and a shell must not see others.
fn is_plain(candidate: &Candidate) -> bool {
    let is_hidden =
        |letter: char| letter.is_control() || switchboard_config::text::is_invisible(letter);
    candidate.value.len() <= MAX_BYTES && !candidate.value.contains(is_hidden)
}

/// All candidates for the last word.
fn candidates(words: &[String]) -> Vec<Candidate> {
    let mut program = cli::command();
    program.build();
    let Some((current, before)) = words.split_last() else {
        return Vec::new();
    };
    let position = Position::of(&program, before);
    if let Some(flag) = position.awaited {
        return source::flag_values(flag, &known(&position));
    }
    if current.starts_with('-') && !position.is_literal {
        if let Some((name, _)) = current.split_once('=') {
            let name = name.trim_start_matches('-');
            let Some(flag) = position.flag(name) else {
                return source::arguments(&position, current, &known(&position));
            };
            let values = source::flag_values(flag, &known(&position)).into_iter();
            return values
                .map(|each| Candidate {
                    value: format!("--{name}={}", each.value),
                    ..each
                })
                .collect();
        }
        let mut found = flags(&position);
        found.extend(source::arguments(&position, current, &known(&position)));
        return found;
    }
    let mut found = subcommands(&position);
    if found.is_empty() {
        found = source::positional(&position, current, &known(&position));
    }
    found
}

/// The flags of the command and of the program.
fn flags(position: &Position<'_>) -> Vec<Candidate> {
    let shown = position.flags.iter().filter(|flag| !flag.is_hide_set());
    let mut found: Vec<Candidate> = shown
        .filter_map(|flag| {
            let name = flag.get_long()?;
            let about = flag.get_help().map(ToString::to_string);
            Some(Candidate::new(
                format!("--{name}"),
                about.unwrap_or_default(),
            ))
        })
        .collect();
    sort::by(&mut found, |one, other| one.value.cmp(&other.value));
    found.dedup_by(|one, other| one.value == other.value);
    found
}

fn subcommands(position: &Position<'_>) -> Vec<Candidate> {
    let is_shown = |command: &&Command| !command.is_hide_set();
    let candidate = |command: &Command| {
        let about = command.get_about().map(ToString::to_string);
        Candidate::new(command.get_name(), about.unwrap_or_default())
    };
    if !position.positional.is_empty() {
        return Vec::new();
    }
    let commands = position.command.get_subcommands();
    commands.filter(is_shown).map(candidate).collect()
}

/// What is configured and cached, under the global flags of the line.
fn known(position: &Position<'_>) -> Known {
    let value = |name: &'static str| {
        position
            .values
            .iter()
            .filter(move |(flag, _)| *flag == name)
    };
    let flags = GlobalFlags {
        cwd: value("cwd").next_back().map(|(_, value)| value.into()),
        config: value("config").map(|(_, value)| value.into()).collect(),
        no_project: position.switches.contains(&"no-project"),
        trust_project: position.switches.contains(&"trust-project"),
        quiet: true,
        ..GlobalFlags::default()
    };
    Context::new(flags).map_or_else(|_| Known::default(), Known::read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &[&str]) -> Vec<String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let current = words.last().cloned().unwrap_or_default();
        let found = candidates(&words).into_iter().map(|each| each.value);
        found.filter(|value| value.starts_with(&current)).collect()
    }

    #[test]
    fn commands_and_flags_are_completed() {
        assert_eq!(values(&["switchboard", "comp"]), ["completions"]);
        assert_eq!(values(&["switchboard", "mcp", "ena"]), ["enable"]);
        assert_eq!(values(&["switchboard", "call", "--time"]), ["--timeout"]);
        assert_eq!(
            values(&["switchboard", "--cwd", "x", "mcp", "lis"]),
            ["list"]
        );
        assert_eq!(values(&["switchboard", "--color", "al"]), ["always"]);
        assert_eq!(values(&["switchboard", "--color=al"]), ["--color=always"]);
        assert_eq!(
            values(&["switchboard", "audit", "--decision", "d"]),
            ["deny"]
        );
        assert_eq!(values(&["switchboard", "completions", "b"]), ["bash"]);
        assert_eq!(
            values(&["switchboard", "config", "set", "audit_max_b"]),
            ["audit_max_bytes"]
        );
    }

    #[test]
    fn a_name_that_is_not_one_line_of_text_is_left_out() {
        for value in [
            "a\nb",
            "a\u{1b}[2J",
            "a\tb",
            "a\u{202e}b",
            &"x".repeat(MAX_BYTES + 1),
        ] {
            assert!(!is_plain(&Candidate::new(value, "")), "{value:?}");
        }
        assert!(is_plain(&Candidate::new("größe $(x)", "")));
    }
}
