//! The tool `Grep`: lines that match a regular expression, in many files or one.
//!
//! Files are searched in the order of their paths, each piece by piece, until there are enough matches. Binary files
//! are passed over.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::find;
use switchboard::internal::find::{IgnoreRules, Walk, Walked};
use switchboard::permissions::SecretPlaces;
use switchboard::service::Cancellation;

use super::files::{open, resolve, shown};
use super::glob::{MAX_FILES, note_passed_over};
use super::prepare::{arguments, blocking, definition, first, limit, or_told, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// How many matches or files are listed unless another number is asked for, and at most.
const USUAL_LIMIT: usize = 100;
const MAX_LIMIT: usize = 2000;
/// How many lines around a match may be asked for.
const MAX_CONTEXT: usize = 20;
/// How much of a line is shown, in characters.
const MAX_LINE: usize = 500;
/// The longest line that is searched, and the largest file where matches may span lines.
const MAX_HEAP: usize = 32 * 1024 * 1024;
/// The largest regular expression, compiled.
const MAX_EXPRESSION: usize = 4 * 1024 * 1024;
/// What is left for remarks of ours.
const ROOM_FOR_REMARKS: usize = 400;

const DESCRIPTION: &str = "Search files for a regular expression (Rust syntax). Files that git ignores and binary files are left out.";

const SCHEMA: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"Regular expression"},"path":{"type":"string","description":"File or folder; the workspace when absent"},"glob":{"type":"string","description":"Only files that match, such as *.rs or src/**/*.ts"},"mode":{"type":"string","enum":["content","files","count"],"description":"Matching lines (default), only the files, or the number of matching lines in each"},"ignore_case":{"type":"boolean"},"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show around each match"},"multiline":{"type":"boolean","description":"Matches may span lines"},"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"At most so many matches or files; 100 when absent"}},"required":["pattern"],"additionalProperties":false}"#;

/// The tool.
pub(super) struct Grep;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    multiline: bool,
    limit: Option<usize>,
}

/// What is told of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

impl LocalTool for Grep {
    fn definition(&self) -> ToolDefinition {
        definition("Grep", DESCRIPTION, SCHEMA)
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        or_told(async move {
            let wanted: Arguments = arguments(raw)?;
            let start = resolve(wanted.path.as_deref().unwrap_or("."), context)?;
            let (workspace, characters) = (context.workspace.clone(), limit(context));
            let secrets = Arc::clone(&context.secrets);
            let output = blocking(move |cancellation| {
                let found = grep(
                    &wanted,
                    &start,
                    &workspace,
                    characters,
                    &secrets,
                    cancellation,
                );
                found.map_or_else(LocalOutput::error, LocalOutput::text)
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

fn grep(
    wanted: &Arguments,
    start: &Path,
    workspace: &Path,
    characters: usize,
    secrets: &SecretPlaces,
    cancellation: &Cancellation,
) -> Result<String, String> {
    let expression = expression(wanted)?;
    let (mut files, walked) = files(wanted, start, workspace, cancellation)?;
    let found_files = files.len();
    let real = start.canonicalize().unwrap_or_else(|_| start.to_owned());
    files.retain(|path| {
        let inner = path.strip_prefix(start).unwrap_or(path);
        let path = if inner.as_os_str().is_empty() {
            real.clone()
        } else {
            real.join(inner)
        };
        !secrets.skips(&path, &real)
    });
    let passed_over = found_files - files.len();
    let context = match wanted.mode {
        Mode::Content => wanted.context.min(MAX_CONTEXT),
        Mode::Files | Mode::Count => 0,
    };
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .multi_line(wanted.multiline)
        .heap_limit(Some(MAX_HEAP))
        .build();
    let mut found = Found {
        mode: wanted.mode,
        text: String::new(),
        room: characters.saturating_sub(ROOM_FOR_REMARKS),
        left: wanted.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT),
        is_full: false,
    };
    let mut skipped = 0_usize;
    for path in files {
        if found.is_full {
            break;
        }
        let Ok((file, _)) = open(&path) else {
            skipped += 1;
            continue;
        };
        let mut matches = Matches {
            found: &mut found,
            name: shown(&path, workspace),
            count: 0,
            is_named: false,
        };
        let reader = Cancellable { file, cancellation };
        let outcome = searcher.search_reader(&expression, reader, &mut matches);
        matches.finish();
        if cancellation.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        // Lines too long to be searched, or no longer readable.
        skipped += usize::from(outcome.is_err());
    }
    let mut text = found.text;
    if text.is_empty() {
        remark(&mut text, "nothing matches");
    }
    if found.is_full {
        remark(
            &mut text,
            "there may be more; narrow with path, glob or pattern, or raise limit",
        );
    }
    note_passed_over(&mut text, passed_over);
    if walked == Walked::Partly {
        let note = format!("only {MAX_FILES} files were looked at; name a folder in path");
        remark(&mut text, &note);
    }
    if skipped > 0 {
        let note = format!("{skipped} files could not be searched: unreadable, or lines too long");
        remark(&mut text, &note);
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn expression(wanted: &Arguments) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(wanted.ignore_case)
        .multi_line(true)
        .size_limit(MAX_EXPRESSION)
        .dfa_size_limit(MAX_EXPRESSION);
    if wanted.multiline {
        builder.dot_matches_new_line(true);
    } else {
        // In this order: the end of a line is still the line feed, and the carriage return before it does not count.
        builder.crlf(true).line_terminator(Some(b'\n'));
    }
    builder.build(&wanted.pattern).map_err(|error| {
        let hint = if error.to_string().contains("not allowed") {
            "; set multiline for matches that span lines"
        } else {
            "; escape characters that mean themselves, such as \\( or \\{"
        };
        format!("the pattern cannot be used: {error}{hint}")
    })
}

/// The files to search, by path.
fn files(
    wanted: &Arguments,
    start: &Path,
    workspace: &Path,
    cancellation: &Cancellation,
) -> Result<(Vec<PathBuf>, Walked), String> {
    let filter = wanted.glob.as_deref().map(find::filter).transpose();
    let filter = filter.map_err(|error| error.to_string())?;
    let name = shown(start, workspace);
    let metadata = start
        .metadata()
        .map_err(|error| format!("{name}: {error}"))?;
    if metadata.is_file() {
        // Named outright, so it counts even if git ignores it.
        return Ok((vec![start.to_owned()], Walked::Whole));
    }
    let folder = super::glob::check_folder(start, workspace)?;
    let walk = Walk {
        root: &folder,
        under: None,
        rules: IgnoreRules::OfRepository,
        max_files: MAX_FILES,
    };
    let mut files = Vec::new();
    let walked = find::walk(&walk, cancellation, |entry| {
        let inner = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
        if filter.as_ref().is_none_or(|filter| filter.is_match(inner)) {
            files.push(entry.path().to_owned());
        }
    });
    if walked == Walked::Cancelled {
        return Err("cancelled".to_owned());
    }
    files.sort_unstable();
    Ok((files, walked))
}

/// What was found in all files so far.
struct Found {
    mode: Mode,
    text: String,
    /// How many more characters, and how many more matches or files there may be.
    room: usize,
    left: usize,
    is_full: bool,
}

impl Found {
    /// Adds a line, or sees that there is no room for it.
    fn add(&mut self, line: &str) -> bool {
        let characters = line.chars().count() + 1;
        if characters > self.room {
            self.is_full = true;
            return false;
        }
        self.room -= characters;
        self.text.push_str(line);
        self.text.push('\n');
        true
    }
}

/// What is found in one file.
struct Matches<'a> {
    found: &'a mut Found,
    name: String,
    count: u64,
    is_named: bool,
}

impl Matches<'_> {
    fn lines(&mut self, bytes: &[u8], number: Option<u64>, mark: char) -> bool {
        if !self.is_named {
            self.is_named = true;
            if !self.found.add(&self.name) {
                return false;
            }
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        for (number, line) in (number.unwrap_or_default()..).zip(lines) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let kept = String::from_utf8_lossy(line.get(..MAX_LINE * 4).unwrap_or(line));
            let mut entry = format!("{number}{mark}{}", first(&kept, MAX_LINE));
            if kept.chars().nth(MAX_LINE).is_some() || line.len() > MAX_LINE * 4 {
                // Writing into a text does not fail.
                let _ = write!(entry, " [… line of {} bytes cut]", line.len());
            }
            if !self.found.add(&entry) {
                return false;
            }
        }
        true
    }

    /// Adds what is only known at the end of a file.
    fn finish(self) {
        let line = match self.found.mode {
            _ if self.count == 0 => return,
            Mode::Content => {
                if self.is_named {
                    self.found.add("");
                }
                return;
            }
            Mode::Files => self.name,
            Mode::Count => format!("{}: {}", self.name, self.count),
        };
        if self.found.left == 0 {
            self.found.is_full = true;
        } else if self.found.add(&line) {
            self.found.left -= 1;
        }
    }
}

impl Sink for Matches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        match self.found.mode {
            Mode::Files => Ok(false),
            Mode::Count => Ok(true),
            Mode::Content if self.found.left == 0 => {
                self.found.is_full = true;
                Ok(false)
            }
            Mode::Content => {
                self.found.left -= 1;
                Ok(self.lines(found.bytes(), found.line_number(), ':'))
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // What leads to a match that is too much is not shown either.
        if self.found.left == 0 && *context.kind() == grep_searcher::SinkContextKind::Before {
            return Ok(true);
        }
        Ok(self.lines(context.bytes(), context.line_number(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.found.add("--"))
    }
}

/// A file that ends when nobody waits any longer.
struct Cancellable<'a> {
    file: File,
    cancellation: &'a Cancellation,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
