//! How each tool writes variables inside a text, and the way between its syntax and ours.
//!
//! A text becomes [`Piece`]s and pieces become text again. No tool can escape everything, so whoever renders
//! asks [`is_exact`] whether the tool would read back what was meant, and says so where it would not.

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
            Piece::Home => text.push_str(&match style {
                Style::Ours | Style::Literal => "${home}".to_owned(),
                Style::Colon(Colon::Editor) => "${userHome}".to_owned(),
                _ => variable(style, "HOME", None),
            }),
            Piece::Workspace => text.push_str(&match style {
                Style::Braces {
                    project: Some(name),
                } => format!("${{{name}:-.}}"),
                _ => "${workspaceFolder}".to_owned(),
            }),
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

/// The reference at the start of a text, and how many bytes it takes.
fn reference(style: Style, text: &str) -> Option<(Piece, usize)> {
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
        Style::Dollar => dollar(text),
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
            // A secret of the hub is named with its owner and package.
            Some((named(name.rsplit('/').next().unwrap_or(name)), length))
        }
    }
}

fn ours(text: &str) -> Option<(Piece, usize)> {
    if text.starts_with("$${") {
        return Some((Piece::Text("${".into()), 3));
    }
    let inner = text.strip_prefix("${")?;
    // Most texts that are no reference are told by their name, before the end is looked for.
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

/// `${NAME}` or `${NAME:-default}`, where a default is plain text up to the first brace.
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
    braces(text).or_else(|| {
        let name = leading_name(text.strip_prefix('$')?)?;
        let length = name.len() + 1;
        let name = name.to_owned();
        Some((
            Piece::Variable {
                name,
                default: None,
            },
            length,
        ))
    })
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
        // A command with no end runs to the end of the text: it must not come through as text.
        let length = end.map_or(text.len(), |end| end + 3);
        return Some((Piece::Foreign(Foreign::Command), length));
    }
    if let Some((inner, length)) = enclosed(text, "${", "}") {
        let (name, rest) = inner.split_at(leading_name(inner)?.len());
        // `${VAR:?message}` insists on a value, and so do we.
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

/// `$(echo WORDS)`, with words that are plain or variables, is the way Crush once documented to refer to a
/// variable. It is what its words are; nothing has to run.
fn echo(style: Style, text: &str) -> Option<(Vec<Piece>, usize)> {
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

/// A variable, or what it is when its name cannot be one of ours.
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

/// What stands between two marks at the start of a text, and the length of all of it.
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

pub(super) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(starts)
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_syntax_is_translated_into_ours() {
        let check = |style: Style, text: &str, expected: &str| {
            assert_eq!(
                render(Style::Ours, &parse(style, text)),
                expected,
                "{style:?} {text}"
            );
        };
        let claude = Style::Braces {
            project: Some("CLAUDE_PROJECT_DIR"),
        };
        check(Style::Literal, "${A} $B {env:C}", "$${A} $B {env:C}");
        check(claude, "x${A}y${B:-d e}", "x${A}y${B:-d e}");
        check(claude, "${A-b} ${env:C} $D ${", "$${A-b} $${env:C} $D $${");
        check(
            claude,
            "${CLAUDE_PROJECT_DIR:-.}/x ${CLAUDE_PROJECT_DIR}",
            "${workspaceFolder}/x ${workspaceFolder}",
        );
        check(
            claude,
            "${CLAUDE_PROJECT_DIR:-/tmp}",
            "${CLAUDE_PROJECT_DIR:-/tmp}",
        );
        check(claude, "${home}", "${env:home}");
        check(
            Style::Colon(Colon::Editor),
            "${env:A} ${B} ${workspaceFolder}${/}x",
            "${A} $${B} ${workspaceFolder}/x",
        );
        check(
            Style::Colon(Colon::Editor),
            "${userHome}/.env",
            "${home}/.env",
        );
        check(
            Style::Colon(Colon::Plain),
            "${env:A} ${workspaceFolder} ${input:x}",
            "${A} $${workspaceFolder} $${input:x}",
        );
        check(
            Style::Dollar,
            "$A ${B} $5 a$ ${C:-d}",
            "${A} ${B} $5 a$ ${C:-d}",
        );
        check(
            Style::Shell,
            r"\$A $B ${C:?no} ${D:-$E} \\ \n",
            r"$A ${B} ${C} ${D:-${E}} \ \n",
        );
        check(Style::Curly, "{env:A} {B} ${C}", "${A} {B} $${C}");
        check(
            Style::Secrets,
            "${{ secrets.A }} ${{secrets.o/p/B}} ${C}",
            "${A} ${B} $${C}",
        );
    }

    #[test]
    fn our_syntax_is_translated_into_each() {
        let check = |style: Style, text: &str, expected: &str, exact: bool| {
            let pieces = parse(Style::Ours, text);
            assert_eq!(render(style, &pieces), expected, "{style:?} {text}");
            assert_eq!(is_exact(style, &pieces), exact, "{style:?} {text}");
        };
        let kiro = Style::Braces { project: None };
        check(Style::Literal, "$${A} b", "${A} b", true);
        check(Style::Literal, "${A}", "${A}", false);
        check(kiro, "${A} ${B:-c} ${home}", "${A} ${B:-c} ${HOME}", false);
        check(kiro, "${A:-${B}}", "${A:-${B}}", false);
        check(kiro, "$${A}", "${A}", false);
        check(
            Style::Colon(Colon::Editor),
            "${A}${home}${workspaceFolder}",
            "${env:A}${userHome}${workspaceFolder}",
            true,
        );
        check(Style::Colon(Colon::Editor), "${A:-b}", "${env:A}", false);
        check(Style::Dollar, "${A} $B", "${A} $B", false);
        check(Style::Shell, r"$A ${B} \ `x`", r"\$A ${B} \ \`x\`", true);
        check(Style::Curly, "${A} {env:B}", "{env:A} {env:B}", false);
        check(
            Style::Secrets,
            "Bearer ${A}",
            "Bearer ${{ secrets.A }}",
            true,
        );
    }

    #[test]
    fn what_only_the_tool_knows_is_never_text() {
        let check = |style: Style, text: &str, expected: &[Piece]| {
            assert_eq!(parse(style, text), expected, "{style:?} {text}");
        };
        let foreign = |what: Foreign| Piece::Foreign(what);
        let text = |text: &str| Piece::Text(text.into());
        check(
            Style::Shell,
            "a $(cat $(x)) b",
            &[text("a "), foreign(Foreign::Command), text(" b")],
        );
        check(Style::Shell, "$(rm -rf", &[foreign(Foreign::Command)]);
        check(Style::Shell, "$(echo $(id))", &[foreign(Foreign::Command)]);
        check(Style::Shell, "`id`", &[foreign(Foreign::Command)]);
        check(Style::Shell, "${A:-$(id)}", &[foreign(Foreign::Other)]);
        check(Style::Shell, "${A%%x}", &[foreign(Foreign::Other)]);
        check(Style::Curly, "{file:~/t}", &[foreign(Foreign::File)]);
        check(
            Style::Colon(Colon::Editor),
            "${input:a-b}",
            &[foreign(Foreign::Input("a-b".into()))],
        );
        check(
            Style::Colon(Colon::Files),
            "${file:/t}",
            &[foreign(Foreign::File)],
        );
        check(
            Style::Colon(Colon::Plain),
            "${env:A(x)}",
            &[foreign(Foreign::Other)],
        );
    }

    #[test]
    fn long_texts_cost_little() {
        for style in [
            Style::Ours,
            Style::Braces { project: None },
            Style::Colon(Colon::Editor),
            Style::Dollar,
            Style::Shell,
            Style::Curly,
            Style::Secrets,
        ] {
            for part in ["${", "${A:-", "{env:", "${{ secrets.", "$${", "`", "\\"] {
                let text = part.repeat(5_000);
                let pieces = parse(style, &text);
                assert!(!pieces.is_empty(), "{style:?} {part}");
            }
        }
    }

    #[test]
    fn variables_are_named_after_what_they_replace() {
        assert_eq!(variable_name("github-token"), "GITHUB_TOKEN");
        assert_eq!(variable_name("a.b  c"), "A_B_C");
        assert_eq!(variable_name("1st"), "_1ST");
        assert_eq!(variable_name("§"), "VALUE");
    }
}
