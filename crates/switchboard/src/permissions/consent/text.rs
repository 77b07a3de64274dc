//! Sanitizes text for a screen, and makes blank runs visible.

use std::fmt::Write as _;

use switchboard_config::text::is_invisible;
use unicode_width::UnicodeWidthChar as _;

/// The longest unchanged run of spaces: within a line, and at its start.
const SPACES: usize = 24;
const INDENT: usize = 48;
/// The longest unchanged run of line breaks.
const BREAKS: usize = 3;
/// Shorter runs of unusual blanks are escaped character by character.
const FEW: usize = 4;
/// The maximum number of combining marks per character; more could cover adjacent text.
const MARKS: usize = 3;

/// Text that is safe to display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sanitized {
    /// The text. Its only control characters are line breaks and tabs.
    pub text: String,
    /// The number of blanks replaced by a count.
    pub collapsed: usize,
}

/// Escapes control, invisible and unusual blank characters as `\u{a0}`, and replaces long runs of blanks by a mark with
/// their number, such as `[␣×3000]`. Everything else is unchanged.
pub fn sanitized(text: &str) -> Sanitized {
    let mut shown = String::with_capacity(text.len());
    let mut collapsed = 0;
    let mut marks = 0;
    let mut rest = text;
    let mut is_line_start = true;
    while let Some(character) = rest.chars().next() {
        if is_blank(character) {
            let end = rest
                .find(|character| !is_blank(character))
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            collapsed += blanks(run, is_line_start, &mut shown);
            rest = after;
            marks = 0;
        } else {
            marks = match character.width() {
                Some(0) => marks + 1,
                _ => 0,
            };
            if character.is_control() || is_invisible(character) || marks > MARKS {
                let _ = write!(shown, "{}", character.escape_unicode());
            } else {
                shown.push(character);
            }
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
        is_line_start = shown.ends_with('\n');
    }
    Sanitized {
        text: shown,
        collapsed,
    }
}

/// Writes a run of blanks. Returns the number of collapsed ones.
fn blanks(run: &str, is_line_start: bool, shown: &mut String) -> usize {
    let count = run.chars().count();
    let is_ordinary = run.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
    let breaks = run.bytes().filter(|byte| *byte == b'\n').count();
    let fits = |(index, line): (usize, &str)| {
        let most = if index > 0 || is_line_start {
            INDENT
        } else {
            SPACES
        };
        line.len() <= most
    };
    if is_ordinary && breaks <= BREAKS && run.split('\n').enumerate().all(fits) {
        shown.push_str(run);
        return 0;
    }
    if count <= FEW {
        for character in run.chars() {
            if matches!(character, ' ' | '\t' | '\n') {
                shown.push(character);
            } else {
                let _ = write!(shown, "{}", character.escape_unicode());
            }
        }
        return 0;
    }
    let mut kinds: Vec<(char, usize)> = Vec::new();
    for character in run.chars() {
        match kinds.iter_mut().find(|(kind, _)| *kind == character) {
            Some((_, count)) => *count += 1,
            None => kinds.push((character, 1)),
        }
    }
    let named = kinds.iter().map(|(kind, count)| match kind {
        ' ' => format!("␣×{count}"),
        '\n' => format!("⏎×{count}"),
        '\t' => format!("⇥×{count}"),
        other => format!("U+{:04X}×{count}", u32::from(*other)),
    });
    let _ = write!(shown, "[{}]", named.collect::<Vec<_>>().join(" "));
    // Preserve the line break.
    shown.push(if breaks > 0 { '\n' } else { ' ' });
    count
}

/// Whether a character is invisible: blanks of all scripts, and lookalikes.
pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}'
                | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFFC}' | '\u{13441}' | '\u{13442}' | '\u{16FE4}'
                | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
        )
        || (character.is_control() && !matches!(character, '\u{1b}' | '\u{9b}' | '\u{7}' | '\u{8}'))
}
