//! Parses shell command lines, for permission rules.
//!
//! Two parsers. [`plain`] is strict: it accepts only lines in which every command is a program with literal words, and
//! returns `None` otherwise, so `allow` rules can rely on it. [`parts`] is lenient: it finds every command that may
//! run, also in substitutions and behind wrappers, so `ask` and `deny` rules miss nothing. Nothing is expanded or run.
//! Both are total, and linear except for nesting.

mod parts;
mod programs;

pub use parts::{Part, Parts, parts};
pub use programs::{may_run_others, offered_prefix};

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without quotes and escapes.
    pub text: String,
    /// Whether the shell passes it on unchanged: no glob, tilde or variable.
    pub is_literal: bool,
}

/// A program with its words: no assignments before it, and no redirections except to `/dev/null` or between
/// descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Program and arguments. Never empty.
    pub words: Vec<Word>,
    /// The command as written, trimmed.
    pub text: String,
}

impl SimpleCommand {
    /// Whether the command starts with these words, all literal.
    pub fn begins_with<W: AsRef<str>>(&self, prefix: &[W]) -> bool {
        !prefix.is_empty()
            && self.words.len() >= prefix.len()
            && self
                .words
                .iter()
                .zip(prefix)
                .all(|(word, wanted)| word.is_literal && word.text == wanted.as_ref())
    }
}

/// A line of plain commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainLine {
    /// In order. Never empty.
    pub commands: Vec<SimpleCommand>,
    /// Whether anything joins, ends or backgrounds a command: `;`, `&`, `|`, `&&`, `||` or a line break between two.
    pub has_operators: bool,
}

impl PlainLine {
    /// The command, if it is the only one and the line has no operators.
    pub fn single(&self) -> Option<&SimpleCommand> {
        match &*self.commands {
            [command] if !self.has_operators => Some(command),
            _ => None,
        }
    }
}

/// Words of a line with a single plain command, if all are literal.
pub fn literal_words(line: &str) -> Option<Vec<String>> {
    let line = plain(line)?;
    let words = &line.single()?.words;
    let literal = words
        .iter()
        .map(|word| word.is_literal.then(|| word.text.clone()));
    literal.collect()
}

/// Reserved words, if unquoted at the start of a command.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

/// Parses the plain commands of a line; `None` if anything is uncertain: substitutions, groups, redirections to files,
/// here-documents, assignments, reserved words, unusual characters, unclosed quotes.
pub fn plain(line: &str) -> Option<PlainLine> {
    Reader {
        line,
        at: 0,
        commands: Vec::new(),
        has_operators: false,
    }
    .read()
}

struct Reader<'a> {
    line: &'a str,
    at: usize,
    commands: Vec<SimpleCommand>,
    has_operators: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Line,
    /// `;`, `&` or a line break: another command may follow.
    Separator,
    /// `&&`, `||` or `|`: another command must follow.
    Joiner,
}

#[derive(Default)]
struct Building {
    text: String,
    expands: bool,
    /// Whether any part was quoted or escaped, so that it is neither a reserved word nor a descriptor number.
    is_quoted: bool,
}

impl Reader<'_> {
    fn read(mut self) -> Option<PlainLine> {
        let mut must_follow = false;
        loop {
            self.skip_blank_lines();
            if self.peek().is_none() {
                break;
            }
            if !self.commands.is_empty() {
                self.has_operators = true;
            }
            let ended = self.command()?;
            must_follow = ended == Ended::Joiner;
            if ended == Ended::Line {
                break;
            }
        }
        if must_follow || self.commands.is_empty() {
            return None;
        }
        Some(PlainLine {
            commands: self.commands,
            has_operators: self.has_operators,
        })
    }

    fn peek(&self) -> Option<char> {
        self.line.get(self.at..)?.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_next = self
            .line
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(text));
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Skips blanks, line breaks and comments between commands.
    fn skip_blank_lines(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n') => self.at += 1,
                Some('#') => self.skip_comment(),
                _ if self.eat("\\\n") => {}
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|character| character != '\n') {
            self.bump();
        }
    }

    fn command(&mut self) -> Option<Ended> {
        let start = self.at;
        let mut words: Vec<Word> = Vec::new();
        let mut end = start;
        let ended = loop {
            match self.peek() {
                None => break Ended::Line,
                Some(' ' | '\t') => self.at += 1,
                Some('#') => self.skip_comment(),
                Some('\\') if self.eat("\\\n") => {}
                Some('\n') => {
                    self.at += 1;
                    break Ended::Separator;
                }
                Some(';') => {
                    self.at += 1;
                    // `;;` and `;&` belong to `case`.
                    if matches!(self.peek(), Some(';' | '&')) {
                        return None;
                    }
                    self.has_operators = true;
                    break Ended::Separator;
                }
                Some('&') => {
                    self.has_operators |= !self.line.get(self.at..)?.starts_with("&>");
                    if self.eat("&&") {
                        break Ended::Joiner;
                    }
                    self.at += 1;
                    if self.peek() == Some('>') {
                        self.both_outputs()?;
                        end = self.at;
                        continue;
                    }
                    break Ended::Separator;
                }
                Some('|') => {
                    self.has_operators = true;
                    if !self.eat("||") && !self.eat("|&") {
                        self.at += 1;
                    }
                    break Ended::Joiner;
                }
                Some('<' | '>') => {
                    self.redirection(None)?;
                    end = self.at;
                }
                Some(_) => {
                    let word = self.word()?;
                    let is_number = !word.is_quoted
                        && !word.text.is_empty()
                        && word.text.bytes().all(|byte| byte.is_ascii_digit());
                    if is_number && matches!(self.peek(), Some('<' | '>')) {
                        self.redirection(Some(&word.text))?;
                        end = self.at;
                        continue;
                    }
                    if words.is_empty() && !is_program(&word) {
                        return None;
                    }
                    words.push(Word {
                        is_literal: !word.expands,
                        text: word.text,
                    });
                    end = self.at;
                }
            }
        };
        if words.is_empty() {
            return None;
        }
        let text = self.line.get(start..end)?.trim_end_matches([' ', '\t']);
        self.commands.push(SimpleCommand {
            words,
            text: text.to_owned(),
        });
        Some(ended)
    }

    /// Parses `&>/dev/null` from its `>` on. It must end the command: shells without this operator treat the rest as
    /// another command.
    fn both_outputs(&mut self) -> Option<()> {
        if self.line.get(self.at..)?.starts_with(">&") {
            return None;
        }
        self.redirection(None)?;
        let rest = self.line.get(self.at..)?.trim_start_matches([' ', '\t']);
        let is_end = rest.is_empty() || rest.starts_with(['\n', ';', '&', '|']);
        is_end.then_some(())
    }

    /// Parses a redirection from its operator on: between descriptors, or with `/dev/null`.
    fn redirection(&mut self, descriptor: Option<&str>) -> Option<()> {
        if descriptor.is_some_and(|descriptor| descriptor.len() > 2) {
            return None;
        }
        let operator = self.bump()?;
        let appends = operator == '>' && self.eat(">");
        if !appends && self.eat("&") {
            let target = self.word()?;
            let is_descriptor = !target.is_quoted
                && !target.expands
                && (1..=2).contains(&target.text.len())
                && target.text.bytes().all(|byte| byte.is_ascii_digit());
            return is_descriptor.then_some(());
        }
        if matches!(self.peek(), Some('<' | '>' | '|' | '(' | '&')) {
            return None;
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let target = self.word()?;
        (target.text == "/dev/null" && !target.expands).then_some(())
    }

    /// Parses one word; `None` if there is none, or it is uncertain.
    fn word(&mut self) -> Option<Building> {
        let mut word = Building::default();
        let mut is_begun = false;
        while let Some(character) = self.peek() {
            match character {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' => break,
                '\'' => {
                    self.at += 1;
                    word.is_quoted = true;
                    loop {
                        match self.bump()? {
                            '\'' => break,
                            '\0' => return None,
                            inner => word.text.push(inner),
                        }
                    }
                }
                '"' => {
                    self.at += 1;
                    word.is_quoted = true;
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    self.at += 1;
                    match self.bump()? {
                        '\n' => {}
                        '\0' => return None,
                        escaped => {
                            word.is_quoted = true;
                            word.text.push(escaped);
                        }
                    }
                }
                '$' => {
                    self.at += 1;
                    self.variable(&mut word)?;
                }
                '*' | '?' | '[' | ']' | '~' => {
                    self.at += 1;
                    word.expands = true;
                    word.text.push(character);
                }
                plain if is_plain(plain) => {
                    self.at += plain.len_utf8();
                    word.text.push(plain);
                }
                _ => return None,
            }
            is_begun = true;
        }
        is_begun.then_some(word)
    }

    fn double_quoted(&mut self, word: &mut Building) -> Option<()> {
        loop {
            match self.bump()? {
                '"' => return Some(()),
                '\\' => match self.bump()? {
                    '\n' => {}
                    escaped @ ('"' | '\\' | '$' | '`') => word.text.push(escaped),
                    '\0' => return None,
                    other => word.text.extend(['\\', other]),
                },
                '$' => self.variable(word)?,
                '`' | '\0' => return None,
                inner => word.text.push(inner),
            }
        }
    }

    /// Parses a variable after its `$`, which must be a bare name: other forms may run something.
    fn variable(&mut self, word: &mut Building) -> Option<()> {
        word.expands = true;
        word.text.push('$');
        let start = self.at;
        let in_braces = self.eat("{");
        match self.bump()? {
            first if first.is_ascii_alphabetic() || first == '_' => {
                while self
                    .peek()
                    .is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
                {
                    self.at += 1;
                }
            }
            first if first.is_ascii_digit() => {}
            '?' | '#' | '@' | '*' | '-' | '$' | '!' if !in_braces => {}
            _ => return None,
        }
        if in_braces && self.bump()? != '}' {
            return None;
        }
        word.text.push_str(self.line.get(start..self.at)?);
        Some(())
    }
}

/// Whether a word at the start of a command is a program.
fn is_program(word: &Building) -> bool {
    let is_reserved = !word.is_quoted && RESERVED.contains(&word.text.as_str());
    // A quoted name makes `NAME=value` a word; reject it anyway.
    !is_reserved && !is_assignment(&word.text) && !word.text.is_empty()
}

/// Whether a text starts like an assignment: `NAME=`, `NAME+=`, `NAME[…]=`.
pub(crate) fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
}

/// Whether an unquoted character has no special meaning.
fn is_plain(character: char) -> bool {
    match character {
        '!' | '#' | '%' | '+' | ',' | '-' | '.' | '/' | ':' | '=' | '@' | '^' | '_' => true,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        // Blanks of other scripts may separate words in some locales.
        _ => {
            !character.is_whitespace()
                && !character.is_control()
                && !crate::text::is_invisible(character)
        }
    }
}

#[cfg(test)]
mod tests;
