//! Variable syntax of other tools, and its conversion to and from ours.
//!
//! A text is parsed into [`Piece`]s and rendered again. No tool can escape everything, so callers of [`render`] check
//! [`is_exact`] and report texts that would not read back equal.

mod syntax;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use syntax::{echo, reference};

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// An environment variable, with an optional default.
    Variable {
        name: String,
        default: Option<Vec<Piece>>,
    },
    /// Home folder of the user.
    Home,
    /// Project folder.
    Workspace,
    /// A value that only the tool itself can compute.
    Foreign(Foreign),
}

/// Kind of a value that only the tool itself can compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Foreign {
    /// A value that the tool prompts for.
    Input(String),
    /// Output of a command.
    Command,
    /// Contents of a file.
    File,
    /// A setting or property of the tool.
    Other,
}

/// A variable syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// No variables.
    Literal,
    /// Ours: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${home}`, `${workspaceFolder}`, `$${` for `${`.
    Ours,
    /// `${VAR}` and `${VAR:-default}`. `project` is the variable that holds the project folder.
    Braces { project: Option<&'static str> },
    /// `${env:VAR}`, and a few tool-specific names.
    Colon(Colon),
    /// `$VAR`, `${VAR}` and `${VAR:-default}`.
    Dollar,
    /// `$VAR` and `${ VAR }`.
    Spaced,
    /// Expansion as in a here-document. Commands are recognised so that they are never run.
    Shell,
    /// `{env:VAR}` and `{file:PATH}`.
    Curly,
    /// `${{ secrets.VAR }}`.
    Secrets,
}

/// Names that a tool supports besides `${env:VAR}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colon {
    Plain,
    /// `${file:PATH}`.
    Files,
    /// Names of an editor: `${workspaceFolder}`, `${userHome}`, `${input:ID}`, `${command:ID}` and so on.
    Editor,
}

/// Maximum length of a reference; longer ones are text. Bounds the cost of hostile input.
const LONGEST: usize = 2048;
const DEEPEST: usize = 16;

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

/// Drops empty texts and joins adjacent ones.
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

/// Whether the rendered text parses back into the same pieces.
pub(super) fn is_exact(style: Style, pieces: &[Piece]) -> bool {
    parse(style, &render(style, pieces)) == pieces
}

/// Converts a text to a variable name: `github-token` becomes `GITHUB_TOKEN`.
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

/// Allocates unique variable names.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// Number of requests per base name, to find a free suffix quickly.
    counts: HashMap<String, usize>,
}

impl Names {
    /// Returns the name, with a numeric suffix if it is taken.
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
        // The others do not support defaults.
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
