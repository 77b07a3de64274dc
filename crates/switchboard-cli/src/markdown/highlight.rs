//! Colours for code: comments, strings, numbers and keywords, line by line, by a few rules that fit most languages.

use anstyle::{AnsiColor, Style};

use crate::live::Line;

const COMMENT: Style = Style::new().dimmed();
const STRING: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Cyan.on_default();
const KEYWORD: Style = AnsiColor::Magenta.on_default();
const STRING_IN_DIFF: Style = AnsiColor::Yellow.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// How a language marks comments. `None` of the others has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// `//`
    Slashes,
    /// `#`
    Hash,
    /// `--`
    Dashes,
    /// Lines that start with `+` and `-`.
    Diff,
    Plain,
}

/// Words with a meaning in many languages.
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "new",
    "nil",
    "none",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "select",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "typeof",
    "undefined",
    "use",
    "using",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "UPDATE",
    "DELETE",
    "CREATE",
    "TABLE",
    "JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "VALUES",
    "SET",
    "ORDER",
    "BY",
    "GROUP",
    "LIMIT",
];

impl Language {
    /// The language of a fence, by the first word after it.
    pub(super) fn of(info: &str) -> Self {
        let name = info
            .trim()
            .split([' ', ',', '{'])
            .next()
            .unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "rust" | "rs" | "c" | "cpp" | "c++" | "h" | "java" | "kotlin" | "swift" | "go"
            | "js" | "javascript" | "jsx" | "ts" | "typescript" | "tsx" | "json" | "jsonc"
            | "csharp" | "cs" | "scala" | "dart" | "zig" | "php" | "proto" => Self::Slashes,
            "python" | "py" | "sh" | "bash" | "zsh" | "shell" | "console" | "ruby" | "rb"
            | "perl" | "toml" | "yaml" | "yml" | "ini" | "make" | "makefile" | "dockerfile"
            | "r" | "hcl" | "nix" | "elixir" => Self::Hash,
            "sql" | "lua" | "haskell" | "hs" => Self::Dashes,
            "diff" | "patch" => Self::Diff,
            _ => Self::Plain,
        }
    }

    /// A line of code in colours.
    pub(super) fn paint(self, line: &str, plain: Style) -> Line {
        let comment = match self {
            Self::Slashes => "//",
            Self::Hash => "#",
            Self::Dashes => "--",
            Self::Diff => {
                let style = match line.chars().next() {
                    Some('+') => ADDED,
                    Some('-') => REMOVED,
                    Some('@') => PLACE,
                    _ => plain,
                };
                return vec![(style, line.to_owned())];
            }
            Self::Plain => return vec![(plain, line.to_owned())],
        };
        let mut row = Line::new();
        let mut rest = line;
        let mut is_after_word = false;
        while let Some(first) = rest.chars().next() {
            // A # within a word, as in `$#` or a URL, starts no comment.
            let (length, style) = if rest.starts_with(comment) && !(is_after_word && comment == "#")
            {
                (rest.len(), COMMENT)
            } else if matches!(first, '"' | '\'' | '`') && !is_after_word {
                string(rest, first).map_or((1, plain), |length| (length, STRING))
            } else if is_word(first) {
                let length = rest.find(|each| !is_word(each)).unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default();
                (length, word_style(word, plain))
            } else {
                (first.len_utf8(), plain)
            };
            is_after_word = is_word(first);
            let (piece, after) = rest.split_at(length);
            match row.last_mut() {
                Some((last, text)) if *last == style => text.push_str(piece),
                _ => row.push((style, piece.to_owned())),
            }
            rest = after;
        }
        row
    }
}

/// Colours for the lines of a diff: by what happens to a line, and by the language of its file.
pub(crate) struct DiffColors {
    language: Language,
    /// For unchanged lines.
    plain: Style,
}

impl DiffColors {
    pub(crate) fn new(plain: Style) -> Self {
        Self {
            language: Language::Plain,
            plain,
        }
    }

    /// The next line of the diff, which must be sanitized.
    pub(crate) fn line(&mut self, line: &str) -> Line {
        if let Some(path) = line.strip_prefix("+++ ") {
            let extension = path.rsplit(['/', '.']).next().unwrap_or_default();
            self.language = match Language::of(extension) {
                Language::Diff => Language::Plain,
                language => language,
            };
            return vec![(ADDED, line.to_owned())];
        }
        let (mark, plain) = match line.chars().next() {
            Some('+') => ("+", ADDED),
            Some(' ') => (" ", self.plain),
            // Of what is removed, that it is matters more than what it says.
            _ => return Language::Diff.paint(line, self.plain),
        };
        let mut row = vec![(plain, mark.to_owned())];
        let code = self
            .language
            .paint(line.get(1..).unwrap_or_default(), plain);
        // Green means added.
        row.extend(code.into_iter().map(|(style, text)| match style {
            STRING if plain != ADDED => (STRING_IN_DIFF, text),
            style => (style, text),
        }));
        row
    }
}

fn word_style(word: &str, plain: Style) -> Style {
    if word.starts_with(|first: char| first.is_ascii_digit()) {
        NUMBER
    } else if KEYWORDS.contains(&word) {
        KEYWORD
    } else {
        plain
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of a string with its quotes; `None` if it does not end on this line.
fn string(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_the_colours_of_its_language() {
        let plain = Style::new();
        let mut colors = DiffColors::new(plain);
        let mut check = |line: &str, expected: &[(Style, &str)]| {
            let row = colors.line(line);
            let row: Vec<(Style, &str)> = row
                .iter()
                .map(|(style, text)| (*style, text.as_str()))
                .collect();
            assert_eq!(row, expected, "{line}");
        };
        check(" return 1", &[(plain, " "), (plain, "return 1")]);
        check("--- src/a.py", &[(REMOVED, "--- src/a.py")]);
        check("+++ src/a.py", &[(ADDED, "+++ src/a.py")]);
        check("@@ -1 +1 @@", &[(PLACE, "@@ -1 +1 @@")]);
        check("-return 1", &[(REMOVED, "-return 1")]);
        check(
            "+return 1",
            &[
                (ADDED, "+"),
                (KEYWORD, "return"),
                (ADDED, " "),
                (NUMBER, "1"),
            ],
        );
        check(
            " return x",
            &[(plain, " "), (KEYWORD, "return"), (plain, " x")],
        );
        check(" \"a\"", &[(plain, " "), (STRING_IN_DIFF, "\"a\"")]);
        check("", &[(plain, "")]);
    }

    #[test]
    fn code_has_colours_and_stays_the_same_text() {
        let check = |info: &str, line: &str, expected: &[(Style, &str)]| {
            let plain = Style::new();
            let row = Language::of(info).paint(line, plain);
            let row: Vec<(Style, &str)> = row
                .iter()
                .map(|(style, text)| (*style, text.as_str()))
                .collect();
            assert_eq!(row, expected, "{line}");
        };
        let plain = Style::new();
        check(
            "rust",
            "let x = \"a // b\"; // c",
            &[
                (KEYWORD, "let"),
                (plain, " x = "),
                (STRING, "\"a // b\""),
                (plain, "; "),
                (COMMENT, "// c"),
            ],
        );
        check("rust,ignore", "&'a str", &[(plain, "&'a str")]);
        check(
            "py",
            "n = 12 # it's",
            &[
                (plain, "n = "),
                (NUMBER, "12"),
                (plain, " "),
                (COMMENT, "# it's"),
            ],
        );
        check("sh", "echo a#b", &[(plain, "echo a#b")]);
        check("diff", "+new", &[(ADDED, "+new")]);
        check("unknown", "let x", &[(plain, "let x")]);
        check(
            "js",
            "'\\'漢' + `open",
            &[(STRING, "'\\'漢'"), (plain, " + `open")],
        );
    }
}
