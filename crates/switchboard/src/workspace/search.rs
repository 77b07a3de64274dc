//! The three tools: finding files, searching in them, reading them.
//!
//! Each is bounded in what it reads and in what it answers, and says so where a bound was met, with how to narrow.

use std::io::{BufRead as _, BufReader};

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use switchboard_protocol::types::Raw;
use switchboard_protocol::types::tool::CallToolResult;

use super::files::{FileError, FileErrorKind, MAX_WHOLE, Root, io_kind};
use crate::find;
use crate::service::{Cancellation, error_result, text_block, text_result};

/// How many paths or matches one answer has at most.
const MAX_RESULTS: usize = 1000;
/// How many matches are listed unless more are asked for.
const USUAL_MATCHES: usize = 100;
/// How many lines are read unless more are asked for.
const USUAL_LINES: usize = 2000;
/// How many bytes of text one answer has at most.
const MAX_TEXT: usize = 256 * 1024;
/// How far into a file lines are counted.
const MAX_SCAN: usize = 64 * 1024 * 1024;
/// How much of a line is searched, and how much of it is shown.
const MAX_LINE: usize = 64 * 1024;
const SHOWN_LINE: usize = 500;
/// The largest regular expression, compiled. Together with the bound on lines it bounds the time of one look.
const MAX_EXPRESSION: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Glob {
    pattern: String,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Found {
    paths: Vec<String>,
    truncated: bool,
}

pub(super) fn glob(
    arguments: &Glob,
    root: &Root,
    cancellation: &Cancellation,
) -> Result<CallToolResult<'static>, FileError> {
    let matcher = find::pattern(&arguments.pattern).map_err(|error| unreadable(&error))?;
    let limit = arguments.limit.unwrap_or(MAX_RESULTS).min(MAX_RESULTS);
    let (mut paths, complete) = root.files(None, cancellation, |path| matcher.is_match(path))?;
    let truncated = paths.len() > limit || !complete;
    paths.truncate(limit);
    let mut text = paths.join("\n");
    if paths.is_empty() {
        text.push_str("no file matches");
    }
    let note = truncated.then(|| "there may be more files: narrow the pattern".to_owned());
    Ok(answer(text, note, &Found { paths, truncated }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grep {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Matches {
    matches: Vec<Match>,
    truncated: bool,
}

#[derive(Serialize)]
struct Match {
    path: String,
    line: usize,
    text: String,
}

pub(super) fn grep(
    arguments: &Grep,
    root: &Root,
    cancellation: &Cancellation,
) -> Result<CallToolResult<'static>, FileError> {
    let expression = RegexBuilder::new(&arguments.pattern)
        .case_insensitive(arguments.ignore_case)
        .size_limit(MAX_EXPRESSION)
        .build()
        .map_err(|error| FileErrorKind::Invalid(error.to_string()).at("pattern"))?;
    let filter = arguments.glob.as_deref().map(find::filter).transpose();
    let filter = filter.map_err(|error| unreadable(&error))?;
    let limit = arguments.limit.unwrap_or(USUAL_MATCHES).min(MAX_RESULTS);
    let (files, complete) = root.files(arguments.path.as_deref(), cancellation, |path| {
        filter.as_ref().is_none_or(|filter| filter.is_match(path))
    })?;
    let mut matches = Vec::new();
    let mut skipped = 0_usize;
    let mut cut = false;
    for path in files {
        if matches.len() > limit {
            break;
        }
        match root.read(&path, cancellation) {
            Ok(bytes) if !is_binary(&bytes) => {
                let left = limit + 1 - matches.len();
                cut |= search(&expression, &path, &bytes, left, cancellation, &mut matches)?;
            }
            Ok(_) => {}
            Err(FileError {
                kind: FileErrorKind::Cancelled,
                path,
            }) => return Err(FileErrorKind::Cancelled.at(path)),
            // Too large, not allowed, or gone since it was listed.
            Err(_) => skipped += 1,
        }
    }
    let truncated = matches.len() > limit || !complete;
    matches.truncate(limit);
    let mut text: Vec<String> = matches
        .iter()
        .map(|found| format!("{}:{}: {}", found.path, found.line, found.text))
        .collect();
    if text.is_empty() {
        text.push("nothing matches".to_owned());
    }
    let notes = [
        truncated
            .then(|| "there may be more matches: narrow with path, glob or pattern".to_owned()),
        (skipped > 0).then(|| {
            format!(
                "{skipped} files were not searched: unreadable, or larger than {MAX_WHOLE} bytes"
            )
        }),
        cut.then(|| format!("of very long lines only the first {MAX_LINE} bytes were searched")),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("\n"));
    Ok(answer(
        text.join("\n"),
        note,
        &Matches { matches, truncated },
    ))
}

/// Adds the lines of one file that match, at most `left`; tells whether a line was too long to be searched whole.
fn search(
    expression: &Regex,
    path: &str,
    bytes: &[u8],
    left: usize,
    cancellation: &Cancellation,
    matches: &mut Vec<Match>,
) -> Result<bool, FileError> {
    let full = matches.len() + left;
    let mut cut = false;
    // What follows the last line end is no line.
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if cancellation.is_cancelled() {
            return Err(FileErrorKind::Cancelled.at(path));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let searched = line.get(..MAX_LINE).unwrap_or(line);
        cut |= searched.len() < line.len();
        if !bytes.is_empty() && expression.is_match(searched) {
            let shown = searched.get(..SHOWN_LINE * 4).unwrap_or(searched);
            matches.push(Match {
                path: path.to_owned(),
                line: index + 1,
                text: String::from_utf8_lossy(shown)
                    .chars()
                    .take(SHOWN_LINE)
                    .collect(),
            });
            if matches.len() >= full {
                break;
            }
        }
    }
    Ok(cut)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

pub(super) fn read_file(
    arguments: &ReadFile,
    root: &Root,
    cancellation: &Cancellation,
) -> Result<CallToolResult<'static>, FileError> {
    let path = &*arguments.path;
    let first = arguments.offset.unwrap_or(1).max(1);
    let end = first.saturating_add(arguments.limit.unwrap_or(USUAL_LINES).max(1));
    let mut reader = BufReader::with_capacity(MAX_LINE, root.open(path)?);
    let mut text = Vec::new();
    let (mut line, mut scanned) = (1_usize, 0_usize);
    let mut stopped = None;
    while stopped.is_none() {
        if cancellation.is_cancelled() {
            return Err(FileErrorKind::Cancelled.at(path));
        }
        let chunk = reader.fill_buf().map_err(|error| io_kind(error).at(path))?;
        if chunk.is_empty() {
            break;
        }
        if is_binary(chunk) {
            return Err(FileErrorKind::Binary.at(path));
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if line >= end {
                stopped = Some(format!("more follows: read on with offset {line}"));
                break;
            }
            if line >= first {
                let left = MAX_TEXT - text.len();
                text.extend_from_slice(piece.get(..left).unwrap_or(piece));
                if piece.len() > left {
                    stopped = Some(format!(
                        "cut at {MAX_TEXT} bytes, in line {line}: read on with offset, or use grep"
                    ));
                    break;
                }
            }
            line += usize::from(piece.ends_with(b"\n"));
        }
        let length = chunk.len();
        reader.consume(length);
        scanned += length;
        if scanned > MAX_SCAN && stopped.is_none() {
            stopped = Some(format!(
                "only the first {MAX_SCAN} bytes are read: use grep"
            ));
        }
    }
    if text.is_empty() && first > 1 {
        let reason = stopped.unwrap_or_else(|| format!("it has fewer than {first} lines"));
        return Ok(error_result(format!("{path}: {reason}")));
    }
    let decoded = String::from_utf8(text).unwrap_or_else(|binary| {
        let note = "bytes that are no UTF-8 are shown as \u{fffd}";
        stopped = Some(
            stopped
                .take()
                .map_or(note.to_owned(), |stop| format!("{stop}\n{note}")),
        );
        String::from_utf8_lossy(binary.as_bytes()).into_owned()
    });
    let mut result = text_result(decoded);
    result
        .content
        .extend(stopped.map(|note| text_block(format!("[{note}]"))));
    Ok(result)
}

/// An answer in words and as data, with what else there is to say in a block of its own.
fn answer<T: Serialize>(text: String, note: Option<String>, data: &T) -> CallToolResult<'static> {
    let mut result = text_result(text);
    result
        .content
        .extend(note.map(|note| text_block(format!("[{note}]"))));
    result.structured_content = Raw::from_serialize(data).ok();
    result
}

fn unreadable(error: &globset::Error) -> FileError {
    FileErrorKind::Invalid(error.to_string()).at("pattern")
}

/// Text has no zero byte near its beginning, and nearly everything else has.
fn is_binary(bytes: &[u8]) -> bool {
    let start = bytes.get(..8192).unwrap_or(bytes);
    memchr::memchr(0, start).is_some()
}
