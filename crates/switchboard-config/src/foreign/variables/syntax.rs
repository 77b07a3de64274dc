//! Parses a reference at the start of a text, for each variable syntax.

use super::{Colon, DEEPEST, Foreign, LONGEST, Piece, Style, is_name, parse};

/// The reference at the start of a text, and its length in bytes.
pub(super) fn reference(style: Style, text: &str) -> Option<(Piece, usize)> {
    match style {
        Style::Literal => None,
        Style::Ours => ours(text),
        Style::Braces { project } => braces(text).map(|(piece, length)| match piece {
            Piece::Variable { name, default }
                if project == Some(name.as_str())
                    && default
                        .as_deref()
                        .is_none_or(|default| default == [Piece::Text(".".into())]) =>
            {
                (Piece::Workspace, length)
            }
            piece => (piece, length),
        }),
        Style::Colon(names) => {
            let (inner, length) = enclosed(text, "${", "}")?;
            colon(names, inner).map(|piece| (piece, length))
        }
        Style::Dollar => braces(text).or_else(|| dollar(text)),
        Style::Spaced => match enclosed(text, "${", "}") {
            Some((inner, length)) if is_name(inner.trim()) => Some((named(inner.trim()), length)),
            _ => dollar(text),
        },
        Style::Shell => shell(text),
        Style::Curly => {
            let (inner, length) = enclosed(text, "{", "}")?;
            let piece = match inner.split_once(':')? {
                ("env", name) => named(name),
                ("file", _) => Piece::Foreign(Foreign::File),
                _ => return None,
            };
            Some((piece, length))
        }
        Style::Secrets => {
            let (inner, length) = enclosed(text, "${{", "}}")?;
            let inner = inner.trim();
            let name = inner
                .strip_prefix("secrets.")
                .or_else(|| inner.strip_prefix("inputs."))?;
            // A hub secret is prefixed with its owner and package.
            Some((named(name.rsplit('/').next().unwrap_or(name)), length))
        }
    }
}

fn ours(text: &str) -> Option<(Piece, usize)> {
    if text.starts_with("$${") {
        return Some((Piece::Text("${".into()), 3));
    }
    let inner = text.strip_prefix("${")?;
    // Check the name first: it rules out most texts before searching for the end.
    leading_name(inner)?;
    let mut depth = 0_usize;
    let end = inner.bytes().take(LONGEST).position(|byte| match byte {
        b'{' => {
            depth += 1;
            false
        }
        b'}' if depth == 0 => true,
        b'}' => {
            depth -= 1;
            false
        }
        _ => false,
    })?;
    let inner = inner.get(..end)?;
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if inner.matches("${").count() > DEEPEST {
        return None;
    }
    let piece = match (name, default) {
        ("home", None) => Piece::Home,
        ("workspaceFolder", None) => Piece::Workspace,
        _ => {
            let name = name.strip_prefix("env:").unwrap_or(name);
            is_name(name).then(|| Piece::Variable {
                name: name.to_owned(),
                default: default.map(|default| parse(Style::Ours, default)),
            })?
        }
    };
    Some((piece, end + 3))
}

/// `${NAME}` or `${NAME:-default}`; a default is plain text up to the first brace.
fn braces(text: &str) -> Option<(Piece, usize)> {
    let (inner, length) = enclosed(text, "${", "}")?;
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let default = default.map(|default| match default {
        "" => Vec::new(),
        default => vec![Piece::Text(default.to_owned())],
    });
    is_name(name).then(|| {
        let name = name.to_owned();
        (Piece::Variable { name, default }, length)
    })
}

fn dollar(text: &str) -> Option<(Piece, usize)> {
    let name = leading_name(text.strip_prefix('$')?)?;
    Some((named(name), name.len() + 1))
}

fn shell(text: &str) -> Option<(Piece, usize)> {
    if let Some(escaped) = text.strip_prefix('\\') {
        let character = escaped
            .chars()
            .next()
            .filter(|next| matches!(next, '$' | '`' | '\\'))?;
        return Some((Piece::Text(character.into()), 2));
    }
    if text.starts_with('`') {
        let (_, length) = enclosed(text, "`", "`")?;
        return Some((Piece::Foreign(Foreign::Command), length));
    }
    if let Some(inner) = text.strip_prefix("$(") {
        let mut depth = 1_usize;
        let end = inner.bytes().take(LONGEST).position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        // An unclosed command extends to the end of the text: it must not be imported as text.
        let length = end.map_or(text.len(), |end| end + 3);
        return Some((Piece::Foreign(Foreign::Command), length));
    }
    if let Some((inner, length)) = enclosed(text, "${", "}") {
        let (name, rest) = inner.split_at(leading_name(inner)?.len());
        // `${VAR:?message}` requires a value, as `${VAR}` does here.
        if rest.is_empty() || rest.starts_with(":?") || rest.starts_with('?') {
            return Some((named(name), length));
        }
        let Some(default) = rest
            .strip_prefix(":-")
            .filter(|default| !default.contains("$("))
        else {
            return Some((Piece::Foreign(Foreign::Other), length));
        };
        let name = name.to_owned();
        let default = Some(parse(Style::Shell, default));
        return Some((Piece::Variable { name, default }, length));
    }
    dollar(text)
}

/// `$(echo WORDS)`, with literal words or variables, is how Crush once documented references to variables. It is
/// replaced by its words; nothing is run.
pub(super) fn echo(style: Style, text: &str) -> Option<(Vec<Piece>, usize)> {
    if style != Style::Shell {
        return None;
    }
    let (words, length) = enclosed(text, "$(echo ", ")")?;
    let pieces = parse(Style::Dollar, words.trim());
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || " _-./:@%+=,".contains(character);
    let is_safe = |piece: &Piece| match piece {
        Piece::Text(text) => text.chars().all(is_plain) && !text.contains("  "),
        piece => matches!(piece, Piece::Variable { default: None, .. }),
    };
    (pieces.iter().all(is_safe) && !words.trim().starts_with('-')).then_some((pieces, length))
}

fn colon(names: Colon, inner: &str) -> Option<Piece> {
    if let Some(name) = inner.strip_prefix("env:") {
        return Some(named(name));
    }
    let piece = match (names, inner) {
        (Colon::Editor, "workspaceFolder") => Piece::Workspace,
        (Colon::Editor, "userHome") => Piece::Home,
        (Colon::Editor, "/" | "pathSeparator") => Piece::Text("/".into()),
        (Colon::Editor, "workspaceFolderBasename" | "cwd" | "file" | "execPath") => {
            Piece::Foreign(Foreign::Other)
        }
        (Colon::Editor, _) => match inner.split_once(':')? {
            ("input", id) => Piece::Foreign(Foreign::Input(id.to_owned())),
            ("command", _) => Piece::Foreign(Foreign::Command),
            ("config" | "workspaceFolder", _) => Piece::Foreign(Foreign::Other),
            _ => return None,
        },
        (Colon::Files, _) if inner.starts_with("file:") => Piece::Foreign(Foreign::File),
        _ => return None,
    };
    Some(piece)
}

/// A variable, or [`Foreign::Other`] if the name is not valid for us.
fn named(name: &str) -> Piece {
    if is_name(name) {
        let name = name.to_owned();
        Piece::Variable {
            name,
            default: None,
        }
    } else {
        Piece::Foreign(Foreign::Other)
    }
}

/// The text between two delimiters at the start, and the total length.
fn enclosed<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, usize)> {
    let inner = text.strip_prefix(open)?;
    let mut near = LONGEST.min(inner.len());
    while !inner.is_char_boundary(near) {
        near -= 1;
    }
    let end = inner.get(..near)?.find(close)?;
    Some((inner.get(..end)?, open.len() + end + close.len()))
}

fn leading_name(text: &str) -> Option<&str> {
    let end = text
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .unwrap_or(text.len());
    text.get(..end).filter(|name| is_name(name))
}
