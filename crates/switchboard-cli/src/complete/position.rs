//! Finds the position of the cursor in a command line: the command, its words so far, and the flag that awaits a value.

use clap::{Arg, Command};

/// The position after some words.
pub(super) struct Position<'p> {
    pub(super) command: &'p Command,
    /// The names that lead to the command, without the program's.
    pub(super) path: Vec<&'p str>,
    /// The flags of the command and of the program.
    pub(super) flags: Vec<&'p Arg>,
    /// Words that are neither flags nor commands.
    pub(super) positional: Vec<String>,
    /// Flags with their values.
    pub(super) values: Vec<(&'p str, String)>,
    /// Flags without values.
    pub(super) switches: Vec<&'p str>,
    /// The flag whose value comes next.
    pub(super) awaited: Option<&'p Arg>,
    /// Whether `--` was typed, so that no flags follow.
    pub(super) is_literal: bool,
}

impl<'p> Position<'p> {
    /// The position after these words, the first of which is the program.
    pub(super) fn of(program: &'p Command, words: &[String]) -> Self {
        let mut position = Self {
            command: program,
            path: Vec::new(),
            flags: program.get_arguments().collect(),
            positional: Vec::new(),
            values: Vec::new(),
            switches: Vec::new(),
            awaited: None,
            is_literal: false,
        };
        for word in words.iter().skip(1) {
            position.take(word);
        }
        position
    }

    fn take(&mut self, word: &str) {
        if let Some(flag) = self.awaited.take() {
            self.values
                .push((flag.get_long().unwrap_or_default(), word.to_owned()));
        } else if self.is_literal {
            self.positional.push(word.to_owned());
        } else if word == "--" {
            self.is_literal = true;
        } else if let Some(name) = word.strip_prefix("--") {
            self.take_flag(name, word);
        } else if let Some(letter) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) {
            let flag = self
                .flags
                .iter()
                .find(|flag| flag.get_short() == Some(letter));
            let awaits = |flag: &&&Arg| flag.get_action().takes_values() && word.len() == 2;
            self.awaited = flag.filter(awaits).copied();
        } else if let Some(command) = self.subcommand(word) {
            self.command = command;
            self.path.push(command.get_name());
            self.flags.extend(command.get_arguments());
        } else {
            self.positional.push(word.to_owned());
        }
    }

    fn take_flag(&mut self, name: &str, word: &str) {
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, None),
        };
        match (self.flag(name), value) {
            (Some(flag), Some(value)) => {
                self.values
                    .push((flag.get_long().unwrap_or_default(), value.to_owned()));
            }
            (Some(flag), None) if flag.get_action().takes_values() => self.awaited = Some(flag),
            (Some(flag), None) => self.switches.extend(flag.get_long()),
            // The flag of a tool, or the words of `mcp add`.
            (None, _) => self.positional.push(word.to_owned()),
        }
    }

    /// The flag of this name.
    pub(super) fn flag(&self, name: &str) -> Option<&'p Arg> {
        let is_it = |flag: &&&Arg| flag.get_long() == Some(name);
        self.flags.iter().find(is_it).copied()
    }

    fn subcommand(&self, word: &str) -> Option<&'p Command> {
        if !self.positional.is_empty() {
            return None;
        }
        self.command.find_subcommand(word)
    }
}
