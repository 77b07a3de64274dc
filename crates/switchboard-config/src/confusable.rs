//! Detects confusable names, by folding each name to what a reader sees.
//!
//! [`fold`] maps compatibility forms and look-alikes of other scripts to the letters they resemble, drops case, accents
//! and invisible characters, and unifies `i`, `l`, `1` and `|`, `o` and `0`, `rn` and `m`. Two server names with the
//! same [`server_key`] are confusable, or would give their tools the same prefix.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use crate::text::is_invisible;

/// Names of the built-in tools.
pub const BUILT_INS: [&str; 10] = [
    "Bash",
    "Read",
    "Write",
    "Edit",
    "Glob",
    "Grep",
    "Agent",
    "ListMcpResources",
    "ReadMcpResource",
    "McpSearch",
];

/// Prefix of the model-visible names of server tools.
const TOOL_PREFIX: &str = "mcp__";

/// The key shared by all server names that are confusable with each other.
pub fn server_key(name: &str) -> String {
    without_runs(&fold(name))
}

/// Whether a server name starts like the model-visible name of a tool.
pub fn has_tool_prefix(name: &str) -> bool {
    fold(name).starts_with(FOLDED_PREFIX.as_str())
}

/// The folded remainder of a text that starts like the model-visible name of a tool; `None` for other texts.
pub fn tool_claim(text: &str) -> Option<String> {
    let folded = fold(text);
    folded
        .strip_prefix(FOLDED_PREFIX.as_str())
        .map(str::to_owned)
}

/// Folds letters and digits to what they look like, and everything else to `_`.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(text, |character| folded.push(character));
    folded
}

/// The built-in tool that a text is confusable with, ignoring separators.
pub fn built_in(text: &str) -> Option<&'static str> {
    static FOLDED: LazyLock<Vec<(String, &'static str)>> = LazyLock::new(|| {
        let mut folded: Vec<_> = BUILT_INS.iter().map(|name| (fold(name), *name)).collect();
        folded.sort();
        folded
    });
    /// Maximum length of a folded built-in name; longer texts cannot match.
    const LONGEST: usize = 24;
    // Fast path: this runs for every tool name and title, and few start like a built-in.
    if text.is_ascii() {
        let start = folded_start(text)?;
        if !FOLDED
            .iter()
            .any(|(name, _)| name.as_bytes().starts_with(&start))
        {
            return None;
        }
    }
    let significant = |character: &char| character.is_alphanumeric();
    // Every significant character folds to at least one letter; marks and separators to none.
    if text.len() > LONGEST && text.chars().filter(significant).nth(LONGEST).is_some() {
        return None;
    }
    let mut buffer = [0_u8; LONGEST];
    let mut length = 0;
    let mut is_letters = true;
    fold_into(text, |character| {
        match (character, u8::try_from(character)) {
            ('_', _) => {}
            (_, Ok(byte)) if length < LONGEST => {
                buffer[length] = byte;
                length += 1;
            }
            _ => is_letters = false,
        }
    });
    let folded = is_letters.then(|| std::str::from_utf8(&buffer[..length]).ok())??;
    let position = FOLDED
        .binary_search_by(|(name, _)| name.as_str().cmp(folded))
        .ok()?;
    FOLDED.get(position).map(|(_, name)| *name)
}

/// The first two letters of a folded ASCII text; `None` if it has fewer, as every built-in has two.
fn folded_start(text: &str) -> Option<[u8; 2]> {
    let fold = |byte: u8| match byte.to_ascii_lowercase() {
        b'i' | b'l' | b'1' | b'|' => b'l',
        b'o' | b'0' => b'o',
        byte => byte,
    };
    let mut letters = text
        .bytes()
        .filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'|')
        .map(fold);
    match (letters.next()?, letters.next()) {
        (b'm', _) => Some(*b"rn"),
        (first, Some(b'm')) => Some([first, b'r']),
        (first, second) => Some([first, second?]),
    }
}

/// Removes leading and trailing `_` and collapses runs: `a`, `a_` and `_a` are equal, and `a__b` equals `a_b`.
pub fn without_runs(folded: &str) -> String {
    let words: Vec<&str> = folded.split('_').filter(|word| !word.is_empty()).collect();
    words.join("_")
}

static FOLDED_PREFIX: LazyLock<String> = LazyLock::new(|| fold(TOOL_PREFIX));

fn fold_into(text: &str, mut push: impl FnMut(char)) {
    let mut push = |character: char| match character {
        'a'..='h' | 'j' | 'k' | 'n' | 'p'..='z' | '2'..='9' => push(character),
        'i' | 'l' | '1' | '|' => push('l'),
        'o' | '0' => push('o'),
        'm' => {
            push('r');
            push('n');
        }
        _ if character.is_alphanumeric() => push(character),
        // An accent on the previous letter.
        _ if is_mark(character) => {}
        _ => push('_'),
    };
    if text.is_ascii() {
        text.bytes()
            .for_each(|byte| push(char::from(byte.to_ascii_lowercase())));
        return;
    }
    // Fold twice: some letters resemble ours only in upper case, others only in lower case.
    let plain: String = text
        .chars()
        .filter(|character| !is_invisible(*character) && !character.is_control())
        .nfkc()
        .collect();
    let lower: String = unicode_security::skeleton(&plain)
        .flat_map(char::to_lowercase)
        .collect();
    unicode_security::skeleton(&lower)
        .flat_map(char::to_lowercase)
        .for_each(&mut push);
}

fn is_mark(character: char) -> bool {
    unicode_normalization::char::is_combining_mark(character)
}
