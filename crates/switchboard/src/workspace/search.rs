//! The tools of the embedded server: glob, grep, `read_file`.
//!
//! Input and output are bounded; a result that reaches a limit says so, with a hint how to narrow the request.

use std::borrow::Cow;
use std::error::Error;

use grep_searcher::sinks::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_protocol::types::Raw;
use switchboard_protocol::types::tool::CallToolResult;

use super::root::{MAX_WHOLE, Root, WorkspaceError};
use crate::files::{
    self, FileError, Grep as Search, GrepOptions, Line, LineRange, ReadEnd, read_lines,
};
use crate::service::{Cancellation, error_result, text_block, text_result};

/// The maximum number of paths or matches in a result.
const MAX_RESULTS: usize = 1000;
/// The default number of matches.
const USUAL_MATCHES: usize = 100;
/// The default number of lines.
const USUAL_LINES: u64 = 2000;
/// The maximum size of a result's text, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// The maximum number of bytes scanned for lines.
const MAX_SCAN: u64 = 64 * 1024 * 1024;
/// The number of bytes searched and shown per line.
const MAX_LINE: usize = 64 * 1024;
const SHOWN_LINE: usize = 500;
/// The maximum size of a compiled regular expression. Together with the limit on lines, this bounds the time per match.
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
) -> Result<CallToolResult<'static>, WorkspaceError> {
    let matcher = files::pattern(&arguments.pattern).map_err(|error| unusable(&error))?;
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
    line: u64,
    text: String,
}

pub(super) fn grep(
    arguments: &Grep,
    root: &Root,
    cancellation: &Cancellation,
) -> Result<CallToolResult<'static>, WorkspaceError> {
    let options = GrepOptions {
        pattern: &arguments.pattern,
        ignore_case: arguments.ignore_case,
        multiline: false,
        context: 0,
        max_expression: MAX_EXPRESSION,
    };
    let mut search = Search::new(&options).map_err(|error| unusable(&error))?;
    let filter = arguments.glob.as_deref().map(files::filter).transpose();
    let filter = filter.map_err(|error| unusable(&error))?;
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
        // Too large, unreadable, or deleted since it was listed.
        let Ok(bytes) = root.read(&path) else {
            skipped += 1;
            continue;
        };
        let lines = cut_lines(&bytes);
        cut |= *lines != *bytes;
        let sink = Bytes(|line, bytes| {
            matches.push(Match {
                path: path.clone(),
                line,
                text: Line::whole(bytes).text(SHOWN_LINE).text,
            });
            Ok(matches.len() <= limit)
        });
        match search.search(&*lines, cancellation, sink) {
            Ok(()) => {}
            Err(error @ FileError::Cancelled) => return Err(WorkspaceError::of(&path, &error)),
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
        cut.then(|| format!("only the first {MAX_LINE} bytes of very long lines were searched")),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("\n"));
    Ok(answer(
        text.join("\n"),
        note,
        &Matches { matches, truncated },
    ))
}

/// Truncates lines to [`MAX_LINE`].
fn cut_lines(text: &[u8]) -> Cow<'_, [u8]> {
    let lines = || text.split_inclusive(|byte| *byte == b'\n');
    if lines().all(|line| line.len() <= MAX_LINE) {
        return text.into();
    }
    let cut = |line| match <[u8]>::get(line, ..MAX_LINE) {
        Some(start) if line.len() > MAX_LINE => [start, b"\n"].concat(),
        _ => line.to_vec(),
    };
    lines().flat_map(cut).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

pub(super) fn read_file(
    arguments: &ReadFile,
    root: &Root,
    cancellation: &Cancellation,
) -> Result<CallToolResult<'static>, WorkspaceError> {
    let path = &*arguments.path;
    let range = LineRange {
        first: arguments.offset.unwrap_or(1).max(1),
        count: arguments.limit.unwrap_or(USUAL_LINES).max(1),
        max_bytes: MAX_SCAN,
    };
    let fail = |error: FileError| WorkspaceError::of(path, &error);
    let mut file = root.open(path)?;
    let beginning = files::beginning(&mut file).map_err(|error| fail(error.into()))?;
    if files::is_binary(&beginning) {
        return Err(WorkspaceError::new(
            path,
            "a binary file; read it as a resource to get its bytes",
        ));
    }
    let mut text = Vec::new();
    let ended = read_lines(file, &range, MAX_TEXT + 1, cancellation, |_, line| {
        let left = MAX_TEXT - text.len();
        text.extend_from_slice(line.start.get(..left).unwrap_or(line.start));
        line.length <= left
    });
    let mut stopped = match ended.map_err(fail)? {
        ReadEnd::File(_) => None,
        ReadEnd::Range(next) => Some(format!("more follows: read on with offset {next}")),
        ReadEnd::Full(line) => Some(format!(
            "cut at {MAX_TEXT} bytes, in line {line}: read on with offset, or use grep"
        )),
        ReadEnd::MaxBytes => Some(format!(
            "only the first {MAX_SCAN} bytes are read: use grep"
        )),
    };
    if text.is_empty() && range.first > 1 {
        let reason = stopped.unwrap_or_else(|| format!("it has fewer than {} lines", range.first));
        return Ok(error_result(format!("{path}: {reason}")));
    }
    let decoded = String::from_utf8(text).unwrap_or_else(|binary| {
        let note = "bytes that are not UTF-8 are shown as \u{fffd}";
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

/// Builds a result with text and structured content, and a note in a separate block.
fn answer<T: Serialize>(text: String, note: Option<String>, data: &T) -> CallToolResult<'static> {
    let mut result = text_result(text);
    result
        .content
        .extend(note.map(|note| text_block(format!("[{note}]"))));
    result.structured_content = Raw::from_serialize(data).ok();
    result
}

fn unusable(error: &dyn Error) -> WorkspaceError {
    WorkspaceError::new("pattern", error.to_string())
}
