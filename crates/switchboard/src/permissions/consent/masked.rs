//! Secrets in what is shown for approval. A mask covers one word, never what follows it: that may be a command.

use switchboard_config::mask;
use switchboard_config::secret::MASK;

use super::super::condition::is_command_line;

/// A longer value is none that is hidden as a whole because of what its argument is called.
const LONGEST_SECRET: usize = 512;

/// What ends a word in a command line. Whatever follows is masked, or not, for itself.
fn ends(character: char) -> bool {
    character.is_whitespace()
        || super::text::is_blank(character)
        || matches!(
            character,
            ';' | '|' | '&' | '`' | '(' | ')' | '<' | '>' | '{' | '}' | '$'
        )
}

/// The value of an argument, and whether something in it is masked.
pub(super) fn argument(key: &str, value: &str) -> (String, bool) {
    let is_blank = |character: char| super::text::is_blank(character);
    let is_word = !value.contains(is_blank) && value.chars().count() <= LONGEST_SECRET;
    if is_word && !key.is_empty() && !is_command_line(key) {
        // By its name alone.
        let shown = mask::named(key, value);
        if shown != value {
            return (shown.into_owned(), true);
        }
    }
    words(value, true)
}

/// A text in which only what looks like a secret by itself is masked, whatever stands before it.
pub(super) fn shapes(text: &str) -> (String, bool) {
    words(text, false)
}

/// Masks word by word. With `by_name`, also what follows a name that sounds secret: `--token x`, `TOKEN=x`.
fn words(text: &str, by_name: bool) -> (String, bool) {
    let mut shown = String::with_capacity(text.len());
    let mut is_masked = false;
    // Words with nothing but blanks between them belong together; an operator begins anew.
    let mut group: Vec<String> = Vec::new();
    let mut gaps: Vec<String> = Vec::new();
    let mut flush = |group: &mut Vec<String>, gaps: &mut Vec<String>, shown: &mut String| {
        let masked = if by_name {
            mask::arguments(group)
        } else {
            group.iter().map(|word| shape(word)).collect()
        };
        let mut follows_scheme = false;
        for ((word, masked), gap) in group.iter().zip(masked).zip(gaps.iter()) {
            let is_credential = follows_scheme && word.len() > 6;
            let masked = if is_credential { MASK } else { &masked };
            is_masked |= masked != word;
            shown.push_str(masked);
            shown.push_str(gap);
            let bare = word.trim_start_matches(['"', '\'']);
            follows_scheme =
                bare.eq_ignore_ascii_case("bearer") || bare.eq_ignore_ascii_case("basic");
        }
        group.clear();
        gaps.clear();
    };
    let ends_word = |character: char| {
        ends(character)
            || (!by_name && matches!(character, '=' | '"' | '\'' | ',' | ':' | '[' | ']'))
    };
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends_word).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let gap_end = after
            .find(|character| !ends_word(character))
            .unwrap_or(after.len());
        let (gap, next) = after.split_at(gap_end);
        if word.is_empty() {
            shown.push_str(gap);
        } else {
            group.push(word.to_owned());
            gaps.push(gap.to_owned());
        }
        if gap
            .chars()
            .any(|character| !matches!(character, ' ' | '\t'))
            || next.is_empty()
        {
            flush(&mut group, &mut gaps, &mut shown);
        }
        rest = next;
    }
    flush(&mut group, &mut gaps, &mut shown);
    (shown, is_masked)
}

/// A word of a text. What a line of a difference begins with is no part of it.
fn shape(word: &str) -> String {
    let bare = word.trim_start_matches(['+', '-']);
    let mark = word.get(..word.len() - bare.len()).unwrap_or_default();
    format!("{mark}{}", mask::argument(bare))
}
