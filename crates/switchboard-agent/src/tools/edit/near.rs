//! Explains why a text was not found in a file, by showing the nearest match.

use std::fmt::Write as _;

use switchboard::service::Cancellation;

use crate::tools::prepare::first;

/// Minimum similarity of a line.
const ALIKE: f64 = 0.6;
/// Maximum number of compared lines, and of characters per line.
const MAX_LINES: usize = 20_000;
const MAX_COMPARED: usize = 200;
/// Maximum number of lines shown.
const MAX_SHOWN: usize = 20;

pub(super) fn explain(file: &str, wanted: &str, cancellation: &Cancellation) -> String {
    let lines: Vec<&str> = file.lines().collect();
    let asked: Vec<&str> = wanted.lines().collect();
    if has_line_numbers(&asked) {
        return "old_string not found; leave out the line numbers of Read".to_owned();
    }
    if let Some(start) = same_but_white_space(&lines, &asked) {
        let shown = show(&lines, start, asked.len());
        return format!(
            "old_string differs from the file in white space only; the file has:\n{shown}"
        );
    }
    match nearest(&lines, &asked, cancellation) {
        Some(start) => {
            let shown = show(&lines, start, asked.len());
            format!("old_string not found; nearest match:\n{shown}")
        }
        None => "old_string not found, nor anything similar; read the file again".to_owned(),
    }
}

/// Whether each line starts with a line number, as in the output of `Read`.
fn has_line_numbers(asked: &[&str]) -> bool {
    let has_number = |line: &&str| {
        let digits = line.trim_start().split('\t').next().unwrap_or_default();
        line.contains('\t')
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    !asked.is_empty() && asked.iter().all(has_number)
}

/// First line of a match that differs only in white space.
fn same_but_white_space(lines: &[&str], asked: &[&str]) -> Option<usize> {
    let bare = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let asked: Vec<String> = asked.iter().map(|line| bare(line)).collect();
    if asked.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(|line| bare(line)).collect();
    let anchor = asked.iter().position(|line| !line.is_empty())?;
    let wanted = asked.get(anchor)?;
    // Search for the first non-blank line alone, so that a long text costs no more than a short one.
    let mut starts = (0..lines.len()).filter(|line| {
        lines.get(*line) == Some(wanted)
            && line
                .checked_sub(anchor)
                .and_then(|start| lines.get(start..start + asked.len()))
                == Some(&asked)
    });
    starts.next().map(|line| line - anchor)
}

/// Start of the text if the line most similar to its longest line is aligned with it.
fn nearest(lines: &[&str], asked: &[&str], cancellation: &Cancellation) -> Option<usize> {
    let (anchor, wanted) = asked
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let wanted = first(wanted.trim(), MAX_COMPARED);
    if wanted.is_empty() {
        return None;
    }
    let mut best: Option<(f64, usize)> = None;
    for (number, line) in lines.iter().enumerate().take(MAX_LINES) {
        if cancellation.is_cancelled() {
            return None;
        }
        let line = first(line.trim(), MAX_COMPARED);
        // Lines of very different lengths cannot be similar.
        if line.len() * 2 < wanted.len() || wanted.len() * 2 < line.len() {
            continue;
        }
        let alike = strsim::normalized_levenshtein(wanted, line);
        if alike >= ALIKE && best.is_none_or(|(most, _)| alike > most) {
            best = Some((alike, number));
        }
    }
    best.map(|(_, number)| number.saturating_sub(anchor))
}

fn show(lines: &[&str], start: usize, count: usize) -> String {
    let mut shown = String::new();
    let window = lines.iter().enumerate().skip(start);
    for (index, line) in window.take(count.clamp(1, MAX_SHOWN)) {
        let line = first(line, MAX_COMPARED);
        // Writing to a `String` cannot fail.
        let _ = writeln!(shown, "{}\t{line}", index + 1);
    }
    shown.truncate(shown.trim_end().len());
    shown
}
