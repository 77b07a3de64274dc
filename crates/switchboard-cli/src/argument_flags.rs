//! Lets `call`, `prompt` and `permissions explain` take the arguments of a tool as flags: `--timezone UTC`.
//!
//! Only the tool's schema knows those flags, so they are moved behind `--` before the command line is parsed. Flags of
//! the command itself stay flags; `key=value` and `--` reach an argument with the name of one.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

use crate::cli;

/// The commands whose words may be flags of a tool.
const COMMANDS: [&[&str]; 3] = [&["call"], &["prompt"], &["permissions", "explain"]];

/// Moves words that are not flags of the program behind `--`.
pub(crate) fn moved(words: Vec<OsString>) -> Vec<OsString> {
    let names = |word: &OsString| {
        COMMANDS
            .iter()
            .any(|path| path.iter().any(|name| word == *name))
    };
    if !words.iter().any(names) {
        return words;
    }
    let program = &cli::command();
    let Some((command, start)) = find(&words, program) else {
        return words;
    };
    let known = Known {
        arguments: program
            .get_arguments()
            .chain(command.get_arguments())
            .collect(),
    };
    let (before, after) = words.split_at(start);
    let mut flags: Vec<OsString> = before.to_vec();
    let mut moved: Vec<OsString> = Vec::new();
    let mut is_foreign = false;
    let mut after = after.iter();
    while let Some(word) = after.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            moved.extend(after.cloned());
            break;
        }
        if let Some(argument) = known.flag(text) {
            flags.push(word.clone());
            if takes_value(argument) && !has_value(text, argument) {
                flags.extend(after.next().cloned());
            }
        } else {
            is_foreign |= text.starts_with("--");
            moved.push(word.clone());
            // The value of a flag, even one such as -5.
            let next = after.as_slice().first().and_then(|next| next.to_str());
            let is_bare = text.starts_with("--") && !text.contains('=');
            if is_bare && next.is_some_and(|next| !next.starts_with("--") && next.starts_with('-'))
            {
                moved.extend(after.next().cloned());
            }
        }
    }
    if !is_foreign {
        return words;
    }
    flags.push("--".into());
    flags.extend(moved);
    flags
}

/// The command that the words name, and the index of the first word after it and its first positional word.
fn find<'p>(words: &[OsString], program: &'p Command) -> Option<(&'p Command, usize)> {
    let global = Known {
        arguments: program.get_arguments().collect(),
    };
    let mut path: Vec<&str> = Vec::new();
    let mut index = 1;
    while let Some(word) = words.get(index) {
        let text = word.to_str()?;
        if let Some(argument) = global.flag(text) {
            let skipped = takes_value(argument) && !has_value(text, argument);
            index += 1 + usize::from(skipped);
            continue;
        }
        path.push(text);
        index += 1;
        if COMMANDS.contains(&path.as_slice()) {
            let mut command = program;
            for name in &path {
                command = command.find_subcommand(name)?;
            }
            return Some((command, index));
        }
        let is_start = COMMANDS.iter().any(|command| command.starts_with(&path));
        if !is_start {
            return None;
        }
    }
    None
}

struct Known<'p> {
    arguments: Vec<&'p Arg>,
}

impl Known<'_> {
    /// The flag of the program that a word is.
    fn flag(&self, word: &str) -> Option<&Arg> {
        if let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            let name = name.split('=').next().unwrap_or(name);
            if name == "help" {
                return self.arguments.first().copied();
            }
            let is_it = |argument: &&&Arg| argument.get_long() == Some(name);
            return self.arguments.iter().find(is_it).copied();
        }
        let letter = word.strip_prefix('-')?.chars().next()?;
        if letter == 'h' {
            return self.arguments.first().copied();
        }
        let is_it = |argument: &&&Arg| argument.get_short() == Some(letter);
        self.arguments.iter().find(is_it).copied()
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values() && argument.get_long().is_some()
}

/// Whether a word is a flag together with its value: `--timeout=5`, `-ofile`.
fn has_value(word: &str, argument: &Arg) -> bool {
    if matches!(word, "--help" | "-h") {
        return true;
    }
    match word.strip_prefix("--") {
        Some(long) => long.contains('='),
        None => argument.get_short().is_some() && word.len() > 2,
    }
}

/// Whether a word of the command line is `--json` before any `--`.
pub(crate) fn wants_json(words: &[OsString]) -> bool {
    let mut words = words
        .iter()
        .take_while(|word| word.as_os_str() != OsStr::new("--"));
    words.any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words = line.split(' ').map(OsString::from).collect();
        let found = moved(words);
        let found: Vec<_> = found.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn flags_of_a_tool_are_moved_behind_the_others() {
        check(
            "s call t --zone UTC --json",
            "s call --json -- t --zone UTC",
        );
        check(
            "s --cwd call call t --zone=UTC",
            "s --cwd call call -- t --zone=UTC",
        );
        check(
            "s call t a=1 --n -5 --timeout 3 -ofile b",
            "s call --timeout 3 -ofile -- t a=1 --n -5 b",
        );
        check(
            "s call --output x t --a -- --json",
            "s call --output x -- t --a --json",
        );
        check(
            "s permissions explain t --path a",
            "s permissions explain -- t --path a",
        );
        check("s prompt a/b --city X -v", "s prompt -v -- a/b --city X");
    }

    #[test]
    fn other_command_lines_are_left_alone() {
        for line in [
            "s call t a=1 --json",
            "s call t --timeout 5",
            "s call --help",
            "s call t -- --zone UTC",
            "s tools --nope",
            "s mcp add x --nope",
            "s --nope call t --x",
            "s",
        ] {
            check(line, line);
        }
    }
}
