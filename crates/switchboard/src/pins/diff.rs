//! Line-by-line differences between pinned and current definitions. All text is sanitized.

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_config::text::visible;

use crate::catalog::canonical::canonical;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The side it is on.
    pub side: Side,
    /// Its text, sanitized for terminals.
    pub text: String,
}

/// The side of a difference that a line is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In both.
    Both,
    /// Only in the pinned definition.
    Before,
    /// Only in the server's current definition.
    Now,
}

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// The maximum number of line pairs compared. Beyond it, everything between the first and the last change counts as
/// changed: correct, but not minimal.
const MAX_PAIRS: usize = 4_000_000;

/// The difference between two values: strings line by line, other values pretty-printed with sorted keys.
pub(crate) fn of_values(before: Option<&RawValue>, now: Option<&RawValue>) -> Vec<Line> {
    of_lines(&laid_out(before), &laid_out(now))
}

/// The difference between two texts.
pub(crate) fn of_texts(before: Option<&str>, now: Option<&str>) -> Vec<Line> {
    let lines = |text: Option<&str>| text.map_or_else(Vec::new, shown_lines);
    of_lines(&lines(before), &lines(now))
}

/// Formats a value as lines.
fn laid_out(value: Option<&RawValue>) -> Vec<String> {
    let Some(value) = value else {
        return Vec::new();
    };
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return shown_lines(&text);
    }
    // Canonicalize both sides, so that only real changes differ.
    let form = canonical(value.get());
    let parsed: Option<Value> = form.and_then(|form| serde_json::from_str(&form).ok());
    match parsed {
        Some(parsed) => shown_lines(&format!("{parsed:#}")),
        None => shown_lines(value.get()),
    }
}

fn shown_lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| visible(line).into_owned())
        .collect()
}

fn of_lines(before: &[String], now: &[String]) -> Vec<Line> {
    let same = |(left, right): &(&String, &String)| left == right;
    let head = before.iter().zip(now).take_while(same).count();
    let rest = (&before[head..], &now[head..]);
    let backwards = rest.0.iter().rev().zip(rest.1.iter().rev());
    let tail = backwards.take_while(same).count();
    let middle = (
        &before[head..before.len() - tail],
        &now[head..now.len() - tail],
    );
    let line = |side| {
        move |text: &String| Line {
            side,
            text: text.clone(),
        }
    };
    let mut lines: Vec<Line> = before[..head].iter().map(line(Side::Both)).collect();
    lines.extend(of_middle(middle.0, middle.1));
    lines.extend(before[before.len() - tail..].iter().map(line(Side::Both)));
    shortened(lines)
}

/// The longest common subsequence, by dynamic programming.
fn of_middle(before: &[String], now: &[String]) -> Vec<Line> {
    let line = |side, text: &String| Line {
        side,
        text: text.clone(),
    };
    if before.len().saturating_mul(now.len()) > MAX_PAIRS {
        let gone = before.iter().map(|text| line(Side::Before, text));
        return gone
            .chain(now.iter().map(|text| line(Side::Now, text)))
            .collect();
    }
    let width = now.len() + 1;
    let mut lengths = vec![0_u32; (before.len() + 1) * width];
    for row in (0..before.len()).rev() {
        for column in (0..now.len()).rev() {
            lengths[row * width + column] = if before[row] == now[column] {
                lengths[(row + 1) * width + column + 1] + 1
            } else {
                lengths[(row + 1) * width + column].max(lengths[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    while row < before.len() || column < now.len() {
        let both = row < before.len() && column < now.len();
        if both && before[row] == now[column] {
            lines.push(line(Side::Both, &before[row]));
            (row, column) = (row + 1, column + 1);
        } else if column == now.len()
            || (both && lengths[(row + 1) * width + column] >= lengths[row * width + column + 1])
        {
            lines.push(line(Side::Before, &before[row]));
            row += 1;
        } else {
            lines.push(line(Side::Now, &now[column]));
            column += 1;
        }
    }
    lines
}

/// Keeps only the lines near a change.
fn shortened(lines: Vec<Line>) -> Vec<Line> {
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.side != Side::Both)
        .map(|(index, _)| index)
        .collect();
    let is_near = |index: usize| {
        let next = changes.partition_point(|change| *change < index);
        let ahead = changes.get(next).map(|change| change - index);
        let behind = next
            .checked_sub(1)
            .and_then(|last| changes.get(last))
            .map(|change| index - change);
        ahead.is_some_and(|gap| gap <= CONTEXT) || behind.is_some_and(|gap| gap <= CONTEXT)
    };
    let mut skipped = false;
    let mut kept = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        if is_near(index) {
            if std::mem::take(&mut skipped) {
                kept.push(Line {
                    side: Side::Both,
                    text: "…".to_owned(),
                });
            }
            kept.push(line);
        } else {
            skipped = true;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the longest common subsequence, by trying everything.
    fn in_common(before: &[String], now: &[String]) -> usize {
        match (before.split_first(), now.split_first()) {
            (Some((first, before)), Some((other, now))) if first == other => {
                1 + in_common(before, now)
            }
            (Some((_, rest)), Some((_, others))) => {
                in_common(rest, now).max(in_common(before, others))
            }
            _ => 0,
        }
    }

    proptest::proptest! {
        #[test]
        fn a_difference_has_both_sides_and_as_much_in_common_as_there_is(
            before in proptest::collection::vec("[abc]", 0..7),
            now in proptest::collection::vec("[abc]", 0..7),
        ) {
            let lines = of_middle(&before, &now);
            let without = |side: Side| {
                let lines = lines.iter().filter(|line| line.side != side);
                lines.map(|line| line.text.clone()).collect::<Vec<_>>()
            };
            proptest::prop_assert_eq!(without(Side::Now), before.clone());
            proptest::prop_assert_eq!(without(Side::Before), now.clone());
            let both = lines.iter().filter(|line| line.side == Side::Both).count();
            proptest::prop_assert_eq!(both, in_common(&before, &now));
        }
    }

    fn shown(lines: &[Line]) -> String {
        let sign = |line: &Line| match line.side {
            Side::Both => ' ',
            Side::Before => '-',
            Side::Now => '+',
        };
        let lines = lines
            .iter()
            .map(|line| format!("{}{}", sign(line), line.text));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn check(before: Option<&str>, now: Option<&str>, expected: &str) {
        assert_eq!(shown(&of_texts(before, now)), expected);
    }

    #[test]
    fn lines_that_differ_stand_out_with_a_little_around_them() {
        check(Some("a"), Some("a"), "");
        check(None, Some("a\nb"), "+a\n+b");
        check(Some("a\nb"), None, "-a\n-b");
        check(Some("a\nb\nc"), Some("a\nx\nc"), " a\n-b\n+x\n c");
        check(
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9"),
            Some("1\n2\n3\n4\n5x\n6\n7\n8\n9\n10"),
            " …\n 3\n 4\n-5\n+5x\n 6\n 7\n 8\n 9\n+10".trim_start_matches('\n'),
        );
        check(
            Some("x\na\nb\nc"),
            Some("a\ny\nb\nc\nz"),
            "-x\n a\n+y\n b\n c\n+z",
        );
    }

    #[test]
    fn nothing_that_is_shown_can_do_anything() {
        check(
            Some("a"),
            Some("\u{1b}[2Ja\u{202e}"),
            "-a\n+\\u{1b}[2Ja\\u{202e}",
        );
    }

    #[test]
    fn a_schema_is_laid_out_with_its_keys_sorted() {
        let raw = |text: &'static str| switchboard_protocol::trusted(text);
        let lines = of_values(raw(r#"{"b":1,"a":[1]}"#), raw(r#"{"a":[1],"b":2}"#));
        assert_eq!(
            shown(&lines),
            "   ],\n…"
                .replace('…', "-  \"b\": 1\n+  \"b\": 2\n }")
                .replacen("   ]", " …\n     1\n   ]", 1)
        );
    }

    #[test]
    fn large_texts_are_compared_in_bounded_time() {
        let many = |prefix: &str| {
            let lines = (0..10_000).map(|index| format!("{prefix}{index}"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let lines = of_texts(Some(&many("a")), Some(&many("b")));
        assert_eq!(lines.len(), 20_000);
    }
}
