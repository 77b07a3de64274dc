//! Lenient parser: finds every command that a line may run.

use super::{Word, is_assignment, may_run_others};

/// Maximum nesting depth of code in arguments (`sh -c '…'`, here-documents for a shell).
const DEEPEST: usize = 4;
/// Maximum nesting depth of substitutions.
const MOST_OPEN: usize = 64;
/// Maximum number of words behind a wrapper that may start the command.
const MOST_STARTS: usize = 64;

/// A command that a line may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Program and arguments, without assignments, reserved words and quotes.
    pub words: Vec<Word>,
    /// The command as written, from its first word on.
    pub text: String,
}

/// The commands that a line may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Commands of substitutions come before those that contain them.
    pub commands: Vec<Part>,
    /// Whether the whole line was parsed. If not, there may be more commands.
    pub is_whole: bool,
}

impl Part {
    /// Whether this may run a command that starts with these words: directly, by program name, or behind a program that
    /// runs others. `None` if an expanding word makes it uncertain.
    pub fn may_begin_with<W: AsRef<str>>(&self, prefix: &[W]) -> Option<bool> {
        let runs_others = self
            .words
            .first()
            .is_some_and(|word| may_run_others(&word.text));
        let starts = if runs_others { MOST_STARTS } else { 1 };
        let mut is_unclear = false;
        for start in 0..self.words.len().min(starts) {
            let rest = self.words.get(start..).unwrap_or_default();
            match begins(rest, prefix) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_unclear = true,
            }
        }
        if is_unclear || self.words.len() > starts && runs_others {
            return None;
        }
        Some(false)
    }

    /// Texts to match a pattern against: the command as written, and its unquoted words from each possible start of the
    /// command.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let runs_others = self
            .words
            .first()
            .is_some_and(|word| may_run_others(&word.text));
        let starts = if runs_others { MOST_STARTS } else { 1 };
        let joined = (0..self.words.len().min(starts)).map(|start| {
            let rest = self.words.get(start..).unwrap_or_default();
            let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
            rest.join(" ")
        });
        std::iter::once(self.text.clone()).chain(joined)
    }
}

/// Whether the words start with the prefix; the program is compared by name, ignoring case.
fn begins<W: AsRef<str>>(words: &[Word], prefix: &[W]) -> Option<bool> {
    for (index, wanted) in prefix.iter().enumerate() {
        let Some(word) = words.get(index) else {
            return Some(false);
        };
        if !word.is_literal {
            return None;
        }
        let wanted = wanted.as_ref();
        let name = word.text.rsplit('/').next().unwrap_or_default();
        let is_same = word.text.eq_ignore_ascii_case(wanted)
            || (index == 0 && name.eq_ignore_ascii_case(wanted));
        if !is_same {
            return Some(false);
        }
    }
    Some(true)
}

/// Finds the commands of a line, also in substitutions, groups, and code passed to a shell.
pub fn parts(line: &str) -> Parts {
    let mut parts = Parts {
        commands: Vec::new(),
        is_whole: true,
    };
    let mut texts = vec![(line.to_owned(), 0)];
    while let Some((text, depth)) = texts.pop() {
        let mut scanner = Scanner::new(&text);
        scanner.scan();
        parts.is_whole &= scanner.is_whole;
        let runs_others = |part: &Part| part.words.iter().any(|word| may_run_others(&word.text));
        let any_runs_others = scanner.commands.iter().any(runs_others);
        for part in &scanner.commands {
            if !runs_others(part) {
                continue;
            }
            // A word passed to a shell may be a line of code.
            let lines = part.words.iter().skip(1).filter(|word| {
                word.text.contains(|character: char| {
                    character.is_whitespace() || ";|&()`$<>".contains(character)
                })
            });
            for word in lines {
                if depth < DEEPEST && word.text.len() < text.len() {
                    texts.push((word.text.clone(), depth + 1));
                } else {
                    parts.is_whole = false;
                }
            }
        }
        if any_runs_others {
            for body in std::mem::take(&mut scanner.bodies) {
                if depth < DEEPEST && body.len() < text.len() {
                    texts.push((body, depth + 1));
                } else {
                    parts.is_whole = false;
                }
            }
        }
        parts.commands.append(&mut scanner.commands);
    }
    parts
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Line,
    /// `$(`, `<(`, `>(`, `(`.
    Parenthesis,
    Backtick,
}

/// A command being parsed, with its enclosing delimiter.
struct Frame {
    open: Open,
    /// Whether the position is within double quotes, which a substitution suspends.
    in_quotes: bool,
    words: Vec<Written>,
    word: Option<Written>,
    start: Option<usize>,
    end: usize,
    /// Whether the next word is the target of a redirection, not part of the command.
    is_target: bool,
}

#[derive(Default)]
struct Written {
    text: String,
    expands: bool,
    /// Whether anything before its first `=` was quoted or escaped: then it is neither reserved nor an assignment.
    is_quoted: bool,
}

impl Written {
    fn into_word(self) -> Word {
        Word {
            text: self.text,
            is_literal: !self.expands,
        }
    }
}

/// A pending here-document, which starts after the line.
struct Document {
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
}

struct Scanner<'a> {
    line: &'a str,
    at: usize,
    frames: Vec<Frame>,
    documents: Vec<Document>,
    commands: Vec<Part>,
    bodies: Vec<String>,
    is_whole: bool,
}

impl Frame {
    fn new(open: Open) -> Self {
        Self {
            open,
            in_quotes: false,
            words: Vec::new(),
            word: None,
            start: None,
            end: 0,
            is_target: false,
        }
    }
}

impl<'a> Scanner<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            line,
            at: 0,
            frames: vec![Frame::new(Open::Line)],
            documents: Vec::new(),
            commands: Vec::new(),
            bodies: Vec::new(),
            is_whole: true,
        }
    }

    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::new(Open::Line));
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The current word; starts one if there is none.
    fn word(&mut self) -> &mut Written {
        let at = self.at;
        let frame = self.frame();
        frame.start.get_or_insert(at);
        frame.word.get_or_insert_default()
    }

    /// The current word, marked as quoted.
    fn quoted_word(&mut self) -> &mut Written {
        let word = self.word();
        word.is_quoted |= !word.text.contains('=');
        word
    }

    fn expands(&mut self) {
        self.word().expands = true;
    }

    fn scan(&mut self) {
        while let Some(character) = self.rest().chars().next() {
            let next = self.rest().chars().nth(1);
            if self.frame().in_quotes {
                self.quoted(character, next);
            } else {
                self.unquoted(character, next);
            }
        }
        let is_closed = self.frames.len() == 1 && !self.frame().in_quotes;
        self.is_whole &= is_closed && self.documents.is_empty();
        while !self.frames.is_empty() {
            self.end_command();
            self.frames.pop();
        }
    }

    fn unquoted(&mut self, character: char, next: Option<char>) {
        match character {
            '\\' => {
                let escaped = next.unwrap_or('\\');
                // Nested substitutions in backticks are not followed.
                self.is_whole &= escaped != '`' || self.frame().open != Open::Backtick;
                if escaped != '\n' {
                    self.quoted_word().text.push(escaped);
                }
                self.at += 1 + next.map_or(0, char::len_utf8);
            }
            '\'' => self.single_quoted(1),
            '"' => {
                self.quoted_word();
                self.frame().in_quotes = true;
                self.at += 1;
            }
            '$' if next == Some('\'') => {
                // Its escapes may spell anything.
                self.quoted_word().expands = true;
                self.ansi_quoted();
            }
            '$' | '`' => self.substitution(character, next),
            ' ' | '\t' => {
                self.end_word();
                self.at += 1;
            }
            '\n' => {
                self.end_command();
                self.at += 1;
                self.take_documents();
            }
            ';' | '&' | '|' => {
                self.end_command();
                self.at += 1;
            }
            '(' => {
                self.end_command();
                self.at += 1;
                self.open(Open::Parenthesis);
            }
            ')' => {
                self.end_command();
                self.at += 1;
                if self.frame().open == Open::Parenthesis {
                    self.frames.pop();
                }
            }
            '<' | '>' => self.redirection(character, next),
            '#' if self.frame().word.is_none() => {
                let comment = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += comment;
            }
            '*' | '?' | '[' | '~' | '{' => {
                let is_group = character == '{'
                    && self.frame().word.is_none()
                    && next.is_none_or(|next| next.is_ascii_whitespace());
                if is_group {
                    self.end_command();
                } else {
                    let word = self.word();
                    word.text.push(character);
                    word.expands = true;
                }
                self.at += 1;
            }
            other => {
                self.word().text.push(other);
                self.at += other.len_utf8();
            }
        }
    }

    fn quoted(&mut self, character: char, next: Option<char>) {
        match character {
            '"' => {
                self.frame().in_quotes = false;
                self.at += 1;
            }
            '\\' => {
                match next {
                    Some('\n') => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.word().text.push(escaped),
                    Some(other) => self.word().text.extend(['\\', other]),
                    None => self.word().text.push('\\'),
                }
                self.at += 1 + next.map_or(0, char::len_utf8);
            }
            '$' | '`' => self.substitution(character, next),
            other => {
                self.word().text.push(other);
                self.at += other.len_utf8();
            }
        }
    }

    fn single_quoted(&mut self, skip: usize) {
        self.quoted_word();
        self.at += skip;
        let rest = self.rest();
        if let Some(end) = rest.find('\'') {
            self.word()
                .text
                .push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
        } else {
            self.word().text.push_str(rest);
            self.at = self.line.len();
            self.is_whole = false;
        }
    }

    fn ansi_quoted(&mut self) {
        self.at += 2;
        loop {
            let Some(character) = self.rest().chars().next() else {
                self.is_whole = false;
                return;
            };
            self.at += character.len_utf8();
            match character {
                '\'' => return,
                '\\' => {
                    let escaped = self.rest().chars().next();
                    self.at += escaped.map_or(0, char::len_utf8);
                    self.word().text.extend(escaped);
                }
                other => self.word().text.push(other),
            }
        }
    }

    fn substitution(&mut self, character: char, next: Option<char>) {
        if character == '`' {
            let is_end = self.frame().open == Open::Backtick && !self.frame().in_quotes;
            if is_end {
                self.end_command();
                self.frames.pop();
                self.at += 1;
            } else {
                self.expands();
                self.at += 1;
                self.open(Open::Backtick);
            }
            return;
        }
        match next {
            Some('(') => {
                self.expands();
                self.at += 2;
                self.open(Open::Parenthesis);
            }
            // A name with an optional operation; substitutions in it are found with the rest of the word.
            Some(name)
                if name == '{' || name.is_ascii_alphanumeric() || "_?#@*-$!".contains(name) =>
            {
                self.expands();
                self.word().text.push('$');
                self.at += 1;
                if name == '{' || "?#@*-$!".contains(name) {
                    self.word().text.push(name);
                    self.at += 1;
                }
            }
            _ => {
                // In `$[…]`, an old syntax for arithmetic, `<<` does not start a here-document.
                self.is_whole &= next != Some('[');
                self.word().text.push('$');
                self.at += 1;
            }
        }
    }

    fn redirection(&mut self, character: char, next: Option<char>) {
        if next == Some('(') {
            self.expands();
            self.at += 2;
            self.open(Open::Parenthesis);
            return;
        }
        let is_number = |word: &mut Written| word.text.bytes().all(|byte| byte.is_ascii_digit());
        let is_subscript = |word: &Written| word.text.contains('[');
        let is_arithmetic =
            self.frames.len() > 2 || self.frame().word.as_ref().is_some_and(is_subscript);
        self.frame().word.take_if(is_number);
        self.end_word();
        if self.rest().starts_with("<<<") {
            self.at += 3;
            self.frame().is_target = true;
        } else if self.rest().starts_with("<<") {
            // If it may be a bit shift, the following lines may not be a document.
            self.is_whole &= !is_arithmetic;
            self.at += 2;
            self.document();
        } else {
            self.frame().is_target = true;
            self.at += 1;
            let rest = self.rest();
            let operator = rest.starts_with(['>', '&', '|']);
            if operator && !(character == '<' && rest.starts_with('|')) {
                self.at += 1;
            }
        }
    }

    /// Parses the delimiter of a here-document.
    fn document(&mut self) {
        let strips_tabs = self.rest().starts_with('-');
        self.at += usize::from(strips_tabs);
        let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.at += blanks;
        let (mut delimiter, mut is_quoted, mut quote) = (String::new(), false, None);
        while let Some(character) = self.rest().chars().next() {
            match (quote, character) {
                (None, '\'' | '"') => (quote, is_quoted) = (Some(character), true),
                (Some(open), close) if open == close => quote = None,
                (None, '\\') => {
                    is_quoted = true;
                    self.at += 1;
                    let escaped = self.rest().chars().next();
                    delimiter.extend(escaped);
                    self.at += escaped.map_or(0, char::len_utf8);
                    continue;
                }
                (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => break,
                (_, other) => delimiter.push(other),
            }
            self.at += character.len_utf8();
        }
        self.documents.push(Document {
            delimiter,
            strips_tabs,
            is_quoted,
        });
    }

    /// Parses the here-documents that start on this line.
    fn take_documents(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            let mut body = String::new();
            let mut is_ended = false;
            let mut rest = self.rest();
            while !rest.is_empty() {
                let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
                let (line, after) = rest.split_at(end);
                self.at += line.len();
                rest = after;
                let bare = line.strip_suffix('\n').unwrap_or(line);
                let bare = if document.strips_tabs {
                    bare.trim_start_matches('\t')
                } else {
                    bare
                };
                if bare == document.delimiter {
                    is_ended = true;
                    break;
                }
                body.push_str(line);
            }
            self.is_whole &= is_ended;
            if !document.is_quoted && body.contains(['$', '`']) {
                // Only substitutions in it are run.
                let quoted = format!("\"{}\"", body.replace('"', "\\\""));
                let mut inner = Scanner::new(&quoted);
                inner.scan();
                self.is_whole &= inner.is_whole;
                inner.commands.pop();
                self.commands.append(&mut inner.commands);
            }
            self.bodies.push(body);
        }
    }

    fn open(&mut self, open: Open) {
        if self.frames.len() < MOST_OPEN {
            self.frames.push(Frame::new(open));
        } else {
            self.is_whole = false;
        }
    }

    fn end_word(&mut self) {
        let at = self.at;
        let frame = self.frame();
        if let Some(word) = frame.word.take() {
            frame.end = at;
            if std::mem::take(&mut frame.is_target) {
                // A shell reads commands from it.
                self.bodies.push(word.text);
            } else {
                frame.words.push(word);
            }
        }
    }

    /// Ends the current command, if any, without leading words that are not the program.
    fn end_command(&mut self) {
        /// Words that may precede a command.
        const BEFORE: [&str; 8] = ["!", "do", "elif", "else", "if", "then", "until", "while"];
        self.end_word();
        let frame = self.frame();
        frame.is_target = false;
        let words = std::mem::take(&mut frame.words);
        let (start, end) = (frame.start.take(), frame.end);
        let text = start.and_then(|start| self.line.get(start..end));
        let mut text = text.unwrap_or_default().trim();
        let is_before =
            |word: &&Written| BEFORE.contains(&word.text.as_str()) || is_assignment(&word.text);
        let skipped = words.iter().take_while(is_before).count();
        let quoted: Vec<bool> = words.iter().map(|word| word.is_quoted).collect();
        let words: Vec<Word> = words.into_iter().map(Written::into_word).collect();
        for (index, is_quoted) in quoted.into_iter().take(skipped).enumerate() {
            // A quoted reserved word or name is a program: `\! x`. So consider both interpretations.
            if is_quoted {
                let words = words.get(index..).unwrap_or_default().to_vec();
                let text = text.to_owned();
                self.commands.push(Part { words, text });
            }
            let after = text
                .split_once([' ', '\t'])
                .map(|(_, after)| after.trim_start());
            text = after.unwrap_or(text);
        }
        let words: Vec<Word> = words.into_iter().skip(skipped).collect();
        // The parentheses of its patterns are unbalanced, so the nesting is unknown.
        self.is_whole &= words.first().is_none_or(|word| word.text != "case");
        if !words.is_empty() {
            let text = text.to_owned();
            self.commands.push(Part { words, text });
        }
    }
}
