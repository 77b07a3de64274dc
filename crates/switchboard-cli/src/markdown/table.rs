//! Renders tables: in columns, with wrapped cells if need be; row by row if the columns would be too narrow.

use anstyle::Style;
use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr as _;

use super::style;
use super::wrap::{Margin, columns, wrap};
use crate::live::Line;

const GAP: usize = 2;
/// Columns are not made narrower than this, nor than their content.
const NARROWEST: usize = 12;

/// A parsed table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the heading.
    pub(super) rows: Vec<Vec<Line>>,
}

impl Table {
    /// Renders the table into terminal rows.
    pub(super) fn lines(&self, margin: &Margin, width: usize) -> Vec<Line> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        let gaps = GAP * widths.len().saturating_sub(1);
        let needed = widths.iter().sum::<usize>() + gaps + columns(&margin.others);
        if needed <= width {
            return self.in_columns(&widths, margin);
        }
        let room = width.saturating_sub(gaps + columns(&margin.others));
        match self.narrowed(widths, room) {
            Some(widths) => self.in_columns(&widths, margin),
            None => self.as_lists(margin, width),
        }
    }

    /// Takes space from the widest columns until the sum fits. `None` if a column would be too narrow, or narrower than
    /// one of its words.
    fn narrowed(&self, mut widths: Vec<usize>, room: usize) -> Option<Vec<usize>> {
        let mut least: Vec<usize> = widths.iter().map(|width| NARROWEST.min(*width)).collect();
        for row in &self.rows {
            for (least, cell) in least.iter_mut().zip(row) {
                let text: String = cell.iter().map(|(_, text)| text.as_str()).collect();
                let words = text.split_whitespace().map(str::width);
                *least = (*least).max(words.max().unwrap_or_default());
            }
        }
        while widths.iter().sum::<usize>() > room {
            let columns = widths.iter_mut().zip(&least);
            let flexible = columns.filter(|(width, least)| **width > **least);
            let (widest, _) = flexible.max_by_key(|(width, _)| **width)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn in_columns(&self, widths: &[usize], margin: &Margin) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| {
                    if columns(cell) <= *width {
                        vec![cell.clone()]
                    } else {
                        wrap(cell, &Margin::default(), *width)
                    }
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for part in 0..height {
                let cell = |column: usize| cells.get(column).and_then(|rows| rows.get(part));
                lines.push(self.row(cell, widths, before(margin, lines.is_empty())));
            }
            if index == 0 {
                let mut rule = before(margin, false);
                let dashes = widths.iter().map(|width| "─".repeat((*width).max(1)));
                let dashes: Vec<String> = dashes.collect();
                rule.push((style::QUIET, dashes.join(&" ".repeat(GAP))));
                lines.push(rule);
            }
        }
        lines
    }

    /// Adds one terminal row of the cells to the margin.
    fn row<'c>(
        &self,
        cell: impl Fn(usize) -> Option<&'c Line>,
        widths: &[usize],
        mut line: Line,
    ) -> Line {
        let empty = Line::new();
        for (column, width) in widths.iter().enumerate() {
            let cell = cell(column).unwrap_or(&empty);
            let space = width.saturating_sub(columns(cell));
            let left = match self.alignments.get(column) {
                Some(Alignment::Right) => space,
                Some(Alignment::Center) => space / 2,
                _ => 0,
            };
            let is_last = column + 1 == widths.len();
            let right = if is_last { 0 } else { space - left + GAP };
            line.push((Style::new(), " ".repeat(left)));
            line.extend(cell.iter().cloned());
            line.push((Style::new(), " ".repeat(right)));
        }
        line.retain(|(_, text)| !text.is_empty());
        line
    }

    /// Renders each row as a list of `heading: cell` lines.
    fn as_lists(&self, margin: &Margin, width: usize) -> Vec<Line> {
        let Some((heading, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines: Vec<Line> = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut text = heading.get(column).cloned().unwrap_or_default();
                text.push((style::QUIET, ": ".to_owned()));
                text.extend(cell.iter().cloned());
                let mut others = before(margin, false);
                others.push((Style::new(), "  ".to_owned()));
                let margin = Margin {
                    first: before(margin, lines.is_empty()),
                    others,
                };
                lines.extend(wrap(&text, &margin, width));
            }
        }
        lines
    }
}

fn before(margin: &Margin, is_first: bool) -> Line {
    if is_first {
        margin.first.clone()
    } else {
        margin.others.clone()
    }
}
