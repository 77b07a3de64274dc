//! The last output of a chat, kept so that it can be printed again in another width.

use std::collections::VecDeque;

use anstream::adapter::strip_str;
use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::live::Line;
use crate::markdown::{Look, Markdown};
use crate::printer::paint;

/// Bytes kept. More than any screen shows.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Debug)]
enum Piece {
    /// Printed text, with its styles.
    Printed(String),
    /// Rows of a text that is still being received.
    Stream(Vec<Line>),
    /// A complete text, as Markdown.
    Text(String),
}

#[derive(Debug)]
pub(super) struct Transcript {
    pieces: VecDeque<Piece>,
    bytes: usize,
    is_styled: bool,
    /// Whether pieces were dropped.
    is_cut: bool,
}

/// The end of the output in a given size.
pub(super) struct Tail {
    pub(super) text: String,
    /// Whether nothing was left out, so that older content of the terminal may be on the screen.
    pub(super) is_all: bool,
}

impl Transcript {
    pub(super) fn new(is_styled: bool) -> Self {
        Self {
            pieces: VecDeque::new(),
            bytes: 0,
            is_styled,
            is_cut: false,
        }
    }

    /// Adds printed text: above a text that is still being received, which stays in one piece.
    pub(super) fn printed(&mut self, text: &str) {
        let stream = match self.pieces.back() {
            Some(Piece::Stream(_)) => self.pieces.pop_back(),
            _ => None,
        };
        self.add(Piece::Printed(text.to_owned()));
        self.pieces.extend(stream);
    }

    /// Adds rows to the text that is being received.
    pub(super) fn streamed(&mut self, rows: &[Line]) {
        if rows.is_empty() {
            return;
        }
        match self.pieces.back_mut() {
            Some(Piece::Stream(before)) => before.extend(rows.iter().cloned()),
            _ => self.pieces.push_back(Piece::Stream(rows.to_vec())),
        }
    }

    pub(super) fn replace_stream(&mut self, rows: Vec<Line>) {
        if let Some(Piece::Stream(before)) = self.pieces.back_mut() {
            *before = rows;
        }
    }

    /// Replaces the rows of the received text by its source.
    pub(super) fn end_stream(&mut self, source: &str) {
        if let Some(Piece::Stream(_)) = self.pieces.back() {
            self.pieces.pop_back();
            self.add(Piece::Text(source.to_owned()));
        }
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += piece.bytes();
        self.pieces.push_back(piece);
        while self.bytes > MAX_BYTES && self.pieces.len() > 1 {
            if let Some(dropped) = self.pieces.pop_front() {
                self.bytes = self.bytes.saturating_sub(dropped.bytes());
            }
            self.is_cut = true;
        }
    }

    /// The last rows, wrapped to `columns`.
    pub(super) fn tail(&self, columns: usize, rows: usize) -> Tail {
        let mut lines: Vec<String> = Vec::new();
        let mut used = 0;
        for piece in self.pieces.iter().rev() {
            for line in piece.lines(columns, self.is_styled).into_iter().rev() {
                let width = strip_str(&line).to_string().width();
                let height = width.div_ceil(columns.max(1)).max(1);
                if used + height > rows {
                    lines.reverse();
                    return Tail {
                        text: lines.concat(),
                        is_all: false,
                    };
                }
                used += height;
                lines.push(line);
            }
        }
        lines.reverse();
        Tail {
            text: lines.concat(),
            is_all: !self.is_cut,
        }
    }
}

impl Piece {
    fn bytes(&self) -> usize {
        match self {
            Self::Printed(text) | Self::Text(text) => text.len(),
            Self::Stream(_) => 0,
        }
    }

    /// Its lines, each with a line break.
    fn lines(&self, columns: usize, styled: bool) -> Vec<String> {
        match self {
            Self::Printed(text) => text.split_inclusive('\n').map(str::to_owned).collect(),
            Self::Stream(rows) => rows.iter().map(|row| line_text(row, styled)).collect(),
            Self::Text(source) => {
                let look = Look {
                    width: columns.saturating_sub(1),
                    styled,
                };
                let mut markdown = Markdown::new(look);
                let mut rows = markdown.push(source);
                rows.extend(markdown.finish());
                rows.iter().map(|row| line_text(row, styled)).collect()
            }
        }
    }
}

/// A line as text, with a line break.
pub(super) fn line_text(line: &Line, styled: bool) -> String {
    let piece = |(style, text): &(Style, String)| {
        if styled {
            paint(*style, text)
        } else {
            text.clone()
        }
    };
    line.iter().map(piece).collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_printed_meanwhile_does_not_split_the_text_that_is_received() {
        let mut transcript = Transcript::new(false);
        let row = |text: &str| vec![(Style::new(), text.to_owned())];
        transcript.streamed(&[row("one")]);
        transcript.printed("meanwhile\n");
        transcript.streamed(&[row("two")]);
        assert_eq!(transcript.tail(80, 10).text, "meanwhile\none\ntwo\n");
        transcript.end_stream("one  \ntwo");
        assert_eq!(transcript.tail(80, 10).text, "meanwhile\none\ntwo\n");
    }

    #[test]
    fn the_last_rows_are_wrapped_again() {
        let mut transcript = Transcript::new(false);
        transcript.printed("one\n");
        transcript.streamed(&[vec![(Style::new(), "part".to_owned())]]);
        transcript.end_stream("a long paragraph that needs more than one row in a narrow terminal");
        transcript.printed("two\n");
        let wide = transcript.tail(80, 10);
        assert!(wide.is_all);
        assert_eq!(wide.text.lines().count(), 3);
        let narrow = transcript.tail(30, 10);
        assert_eq!(narrow.text.lines().count(), 5);
        let low = transcript.tail(30, 2);
        assert!(!low.is_all);
        assert!(low.text.ends_with("terminal\ntwo\n"), "{:?}", low.text);
    }
}
