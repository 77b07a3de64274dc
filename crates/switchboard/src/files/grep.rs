//! Searches a file for a regular expression, incrementally.
//!
//! A file with a NUL byte counts as binary: the search ends there. UTF-16 with a byte order mark is decoded first.

use std::io::{self, Read};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink};

use super::FileError;
use crate::service::Cancellation;

/// The maximum length of a line, and of a file if matches may span lines.
const MAX_HEAP: usize = 32 * 1024 * 1024;

/// The options of a search.
#[derive(Debug, Clone, Copy)]
pub struct GrepOptions<'a> {
    /// A regular expression.
    pub pattern: &'a str,
    /// Whether to ignore case.
    pub ignore_case: bool,
    /// Whether matches may span lines.
    pub multiline: bool,
    /// Context lines before and after each match.
    pub context: usize,
    /// The maximum size of the compiled expression, in bytes.
    pub max_expression: usize,
}

/// A search that can be applied to many files.
#[derive(Debug)]
pub struct Grep {
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl Grep {
    /// Compiles the expression.
    pub fn new(options: &GrepOptions<'_>) -> Result<Self, grep_regex::Error> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(options.ignore_case)
            .multi_line(true)
            .size_limit(options.max_expression)
            .dfa_size_limit(options.max_expression);
        if options.multiline {
            builder.dot_matches_new_line(true);
        } else {
            // In this order: lines still end with a line feed, and a carriage return before it is ignored.
            builder.crlf(true).line_terminator(Some(b'\n'));
        }
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .before_context(options.context)
            .after_context(options.context)
            .multi_line(options.multiline)
            .heap_limit(Some(MAX_HEAP))
            .build();
        Ok(Self {
            matcher: builder.build(options.pattern)?,
            searcher,
        })
    }

    /// Passes the matches in a file to `sink`.
    pub fn search(
        &mut self,
        file: impl Read,
        cancellation: &Cancellation,
        sink: impl Sink<Error = io::Error>,
    ) -> Result<(), FileError> {
        let source = Cancellable { file, cancellation };
        let searched = self.searcher.search_reader(&self.matcher, source, sink);
        if cancellation.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        Ok(searched?)
    }
}

/// A reader that fails once the search is cancelled.
struct Cancellable<'a, R> {
    file: R,
    cancellation: &'a Cancellation,
}

impl<R: Read> Read for Cancellable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use grep_searcher::sinks::Lossy;

    use super::*;

    #[test]
    fn binary_files_are_passed_over_and_wide_text_is_decoded() {
        let check = |text: &[u8], expected: &[(u64, &str)]| {
            let options = GrepOptions {
                pattern: "a$",
                ignore_case: false,
                multiline: false,
                context: 0,
                max_expression: 1 << 20,
            };
            let mut found = Vec::new();
            let sink = Lossy(|line, text| {
                found.push((line, text.to_owned()));
                Ok(true)
            });
            let mut grep = Grep::new(&options).expect("a pattern");
            grep.search(text, &Cancellation::default(), sink)
                .expect("a file");
            let found: Vec<_> = found.iter().map(|(line, text)| (*line, &**text)).collect();
            assert_eq!(found, expected);
        };
        check(b"b\na\r\na", &[(2, "a\r\n"), (3, "a")]);
        check(b"a\n\0\n", &[]);
        check(b"\xff\xfea\0\n\0", &[(1, "a\n")]);
        check(b"", &[]);
    }
}
