//! Masks secrets in the consent view. A mask covers one word, never the text after it, which may be a command.

use switchboard_config::mask;
use switchboard_config::secret::MASK;

use super::super::condition::is_command_line;

/// Longer values are not masked as a whole because of their argument's name.
const LONGEST_SECRET: usize = 512;

/// Word boundaries in a command line. The next word is masked, or not, on its own.
fn ends(character: char) -> bool {
    super::text::is_blank(character)
        || matches!(
            character,
            ';' | '|' | '&' | '`' | '(' | ')' | '<' | '>' | '{' | '}' | '$'
        )
}

/// Formats the value of an argument; `true` if any part is masked.
pub(super) fn argument(key: &str, value: &str) -> (String, bool) {
    let is_blank = |character: char| super::text::is_blank(character);
    let is_word = !value.contains(is_blank) && value.chars().count() <= LONGEST_SECRET;
    if is_word && !key.is_empty() && !is_command_line(key) {
        // Masked because of its name alone.
        let shown = mask::named(key, value);
        if shown != value {
            return (shown.into_owned(), true);
        }
    }
    words(value, true)
}

/// Masks only words that look like secrets themselves, regardless of the preceding word.
pub(super) fn shapes(text: &str) -> (String, bool) {
    words(text, false)
}

/// Masks word by word. With `by_name`, also masks the word after a secret-sounding name: `--token x`, `TOKEN=x`.
fn words(text: &str, by_name: bool) -> (String, bool) {
    let mut shown = String::with_capacity(text.len());
    let mut is_masked = false;
    // Words separated only by blanks form a group; an operator starts a new one.
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

/// Masks one word, without the leading `+` or `-` of a diff line.
fn shape(word: &str) -> String {
    let bare = word.trim_start_matches(['+', '-']);
    let mark = word.get(..word.len() - bare.len()).unwrap_or_default();
    format!("{mark}{}", mask::argument(bare))
}
