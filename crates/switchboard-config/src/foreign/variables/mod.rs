//! How each tool writes variables inside a text, and the way between its syntax and ours.
//!
//! A text becomes [`Piece`]s and pieces become text again. No tool can escape everything, so whoever renders
//! asks [`is_exact`] whether the tool would read back what was meant, and says so where it would not.

mod syntax;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use syntax::{echo, reference};

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Plain text.
    Text(String),
    /// An environment variable, and what stands in for it when it is not set.
    Variable {
        name: String,
        default: Option<Vec<Piece>>,
    },
    /// The user's home folder.
    Home,
    /// The project's folder.
    Workspace,
    /// Something that only the tool itself can work out.
    Foreign(Foreign),
}

/// What only the tool itself can work out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Foreign {
    /// An answer that the tool asks the user for.
    Input(String),
    /// The output of a command.
    Command,
    /// The content of a file.
    File,
    /// A setting or a property of the tool.
    Other,
}

/// A syntax of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// None: every text is what it says.
    Literal,
    /// Ours: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${home}`, `${workspaceFolder}`, `$${` for `${`.
    Ours,
    /// `${VAR}` and `${VAR:-default}`, with the variable that holds the project's folder, if there is one.
    Braces { project: Option<&'static str> },
    /// `${env:VAR}`, and a few names that depend on the tool.
    Colon(Colon),
    /// `$VAR`, `${VAR}` and `${VAR:-default}`.
    Dollar,
    /// `$VAR` and `${ VAR }`.
    Spaced,
    /// What a shell expands in a here-document. Commands are recognised so that they are never run.
    Shell,
    /// `{env:VAR}` and `{file:PATH}`.
    Curly,
    /// `${{ secrets.VAR }}`.
    Secrets,
}

/// Which names a tool has beside `${env:VAR}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colon {
    /// None.
    Plain,
    /// `${file:PATH}`.
    Files,
    /// Those of an editor: `${workspaceFolder}`, `${userHome}`, `${input:ID}`, `${command:ID}` and so on.
    Editor,
}

/// A reference longer than this is text; it bounds what a hostile text can cost.
const LONGEST: usize = 2048;
const DEEPEST: usize = 16;

/// Cuts a text into its pieces.
pub(super) fn parse(style: Style, text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = matches!(first, '$' | '{' | '\\' | '`')
            .then(|| {
                let one = |(piece, length)| (vec![piece], length);
                echo(style, rest).or_else(|| reference(style, rest).map(one))
            })
            .flatten();
        let (found, length) =
            found.unwrap_or_else(|| (vec![Piece::Text(first.into())], first.len_utf8()));
        pieces.extend(found);
        rest = rest.get(length..).unwrap_or_default();
    }
    merged(pieces)
}

/// The pieces with no empty text, and no text next to text.
pub(super) fn merged(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (merged.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, Piece::Text(text)) if text.is_empty() => {}
            (_, piece) => merged.push(piece),
        }
    }
    merged
}

/// The text of pieces.
pub(super) fn render(style: Style, pieces: &[Piece]) -> String {
    let mut text = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        let is_last = index + 1 == pieces.len();
        match piece {
            Piece::Text(literal) if style == Style::Ours => {
                text.push_str(&literal.replace("${", "$${"));
            }
            Piece::Text(literal) if style == Style::Shell => {
                text.push_str(&escaped_for_shell(literal, is_last));
            }
            Piece::Text(literal) => text.push_str(literal),
            Piece::Variable { name, default } => {
                let default = default.as_deref();
                text.push_str(&variable(style, name, default));
            }
            Piece::Home => match style {
                Style::Ours | Style::Literal => text.push_str("${home}"),
                Style::Colon(Colon::Editor) => text.push_str("${userHome}"),
                _ => text.push_str(&variable(style, "HOME", None)),
            },
            Piece::Workspace => match style {
                Style::Braces {
                    project: Some(name),
                } => text.extend(["${", name, ":-.}"]),
                _ => text.push_str("${workspaceFolder}"),
            },
            Piece::Foreign(_) => {}
        }
    }
    text
}

/// Whether the text that pieces are rendered to is read back as the same pieces.
pub(super) fn is_exact(style: Style, pieces: &[Piece]) -> bool {
    parse(style, &render(style, pieces)) == pieces
}

/// The name of an environment variable made of any text: `github-token` becomes `GITHUB_TOKEN`.
pub(super) fn variable_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_uppercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    match name.chars().next() {
        None => "VALUE".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name.to_owned(),
    }
}

/// Names of variables that were given out, so that no two things share one.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// How often a base was asked for, so that finding a free number stays cheap.
    counts: HashMap<String, usize>,
}

impl Names {
    /// The name itself, or with a number behind it when it is taken.
    pub(super) fn unique(&mut self, base: &str) -> String {
        let count = self.counts.entry(base.to_owned()).or_default();
        loop {
            *count += 1;
            let name = match *count {
                1 => base.to_owned(),
                count => format!("{base}_{count}"),
            };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn variable(style: Style, name: &str, default: Option<&[Piece]>) -> String {
    let braces = |name: &str, default: Option<&[Piece]>, inner: Style| match default {
        Some(default) => format!("${{{name}:-{}}}", render(inner, default)),
        None => format!("${{{name}}}"),
    };
    match style {
        Style::Ours if matches!(name, "home" | "workspaceFolder") => {
            braces(&format!("env:{name}"), default, Style::Ours)
        }
        Style::Ours | Style::Literal => braces(name, default, Style::Ours),
        Style::Shell => braces(name, default, Style::Shell),
        Style::Braces { .. } | Style::Dollar => braces(name, default, Style::Literal),
        // The others have no defaults.
        Style::Spaced => format!("${{{name}}}"),
        Style::Colon(_) => format!("${{env:{name}}}"),
        Style::Curly => format!("{{env:{name}}}"),
        Style::Secrets => format!("${{{{ secrets.{name} }}}}"),
    }
}

fn escaped_for_shell(literal: &str, is_last: bool) -> String {
    let mut escaped = String::with_capacity(literal.len());
    let mut characters = literal.chars().peekable();
    while let Some(character) = characters.next() {
        let special = match character {
            '$' | '`' => true,
            '\\' => characters
                .peek()
                .map_or(!is_last, |next| matches!(next, '$' | '`' | '\\')),
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

pub(super) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(starts)
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
