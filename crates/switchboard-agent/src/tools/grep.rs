//! The `Grep` tool: searches files for a regular expression.
//!
//! Files are searched in path order until the limit is reached. Binary files are skipped.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::files::{self, FileError, Grep as Search, GrepOptions, Line, Listing};
use switchboard::permissions::SecretPlaces;
use switchboard::service::Cancellation;

use super::files::{numbered, open, resolve, shown};
use super::glob::{list, note_left_out};
use super::prepare::{arguments, blocking, definition, limit, output_or_error, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// Default and maximum number of listed matches or files.
const USUAL_LIMIT: usize = 100;
const MAX_LIMIT: usize = 2000;
/// Maximum number of context lines.
const MAX_CONTEXT: usize = 20;
/// Maximum characters shown per line.
const MAX_LINE: usize = 500;
/// Maximum size of the compiled expression, in bytes.
const MAX_EXPRESSION: usize = 4 * 1024 * 1024;
/// Characters reserved for notes.
const ROOM_FOR_REMARKS: usize = 400;

const DESCRIPTION: &str = "Search files for a regular expression (Rust syntax). Files that git ignores and binary files are left out.";

const SCHEMA: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"Regular expression"},"path":{"type":"string","description":"File or folder; the workspace when absent"},"glob":{"type":"string","description":"Only files that match, such as *.rs or src/**/*.ts"},"mode":{"type":"string","enum":["content","files","count"],"description":"Matching lines (default), only the files, or the number of matching lines in each"},"ignore_case":{"type":"boolean"},"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show around each match"},"multiline":{"type":"boolean","description":"Matches may span lines"},"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"At most so many matches or files; 100 when absent"}},"required":["pattern"],"additionalProperties":false}"#;

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
        output_or_error(async move {
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
    let mut search = search(wanted)?;
    let files = files(wanted, start, workspace, secrets, cancellation)?;
    let mut found = Found {
        mode: wanted.mode,
        text: String::new(),
        room: characters.saturating_sub(ROOM_FOR_REMARKS),
        left: wanted.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT),
        is_full: false,
    };
    let mut skipped = 0_usize;
    for path in &files.paths {
        if found.is_full {
            break;
        }
        let Ok((file, _)) = open(path) else {
            skipped += 1;
            continue;
        };
        let mut matches = Matches {
            found: &mut found,
            name: shown(path, workspace),
            count: 0,
            is_named: false,
        };
        let searched = search.search(file, cancellation, &mut matches);
        matches.finish();
        match searched {
            Ok(()) => {}
            Err(error @ FileError::Cancelled) => return Err(error.to_string()),
            // Lines too long to search, or a read error.
            Err(_) => skipped += 1,
        }
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
    note_left_out(&mut text, &files);
    if skipped > 0 {
        let note = format!("{skipped} files could not be searched: unreadable, or lines too long");
        remark(&mut text, &note);
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn search(wanted: &Arguments) -> Result<Search, String> {
    let options = GrepOptions {
        pattern: &wanted.pattern,
        ignore_case: wanted.ignore_case,
        multiline: wanted.multiline,
        context: match wanted.mode {
            Mode::Content => wanted.context.min(MAX_CONTEXT),
            Mode::Files | Mode::Count => 0,
        },
        max_expression: MAX_EXPRESSION,
    };
    Search::new(&options).map_err(|error| {
        let hint = if error.to_string().contains("not allowed") {
            "; set multiline for matches that span lines"
        } else {
            "; escape characters that mean themselves, such as \\( or \\{"
        };
        format!("the pattern cannot be used: {error}{hint}")
    })
}

/// Files to search, in path order.
fn files(
    wanted: &Arguments,
    start: &Path,
    workspace: &Path,
    secrets: &SecretPlaces,
    cancellation: &Cancellation,
) -> Result<Listing, String> {
    let filter = wanted.glob.as_deref().map(files::filter).transpose();
    let filter = filter.map_err(|error| error.to_string())?;
    let listing = list(start, false, secrets, cancellation, |path| {
        // A file given as `path` is searched even if the glob does not match it.
        let is_named = path.as_os_str().is_empty();
        is_named || filter.as_ref().is_none_or(|filter| filter.is_match(path))
    });
    listing.map_err(|error| {
        let name = shown(start, workspace);
        match error {
            FileError::Special => format!("{name} is not a folder"),
            FileError::Cancelled => error.to_string(),
            _ => format!("{name}: {error}"),
        }
    })
}

/// Output of all files so far.
struct Found {
    mode: Mode,
    text: String,
    /// Remaining characters, and remaining matches or files.
    room: usize,
    left: usize,
    is_full: bool,
}

impl Found {
    /// Adds a line; `false` if it does not fit.
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

/// Matches in one file.
struct Matches<'a> {
    found: &'a mut Found,
    name: String,
    count: u64,
    is_named: bool,
}

impl Matches<'_> {
    fn lines(&mut self, number: Option<u64>, bytes: &[u8], mark: char) -> bool {
        if !self.is_named {
            self.is_named = true;
            if !self.found.add(&self.name) {
                return false;
            }
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        (number.unwrap_or_default()..)
            .zip(lines)
            .all(|(number, line)| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let text = Line::whole(line).text(MAX_LINE);
                self.found.add(&numbered(number, mark, &text, line.len()))
            })
    }

    /// Adds the summary of a file.
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
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
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
                Ok(self.lines(found.line_number(), found.bytes(), ':'))
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        // Skip the context before a match that exceeds the limit.
        if self.found.left == 0 && *context.kind() == SinkContextKind::Before {
            return Ok(true);
        }
        Ok(self.lines(context.line_number(), context.bytes(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        Ok(self.found.add("--"))
    }
}
