//! Renders tables: in columns if they fit, else row by row.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::style;
use super::wrap::{Margin, columns, wrap};
use crate::live::Line;

const GAP: usize = 2;

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
            self.in_columns(&widths, margin)
        } else {
            self.as_lists(margin, width)
        }
    }

    fn in_columns(&self, widths: &[usize], margin: &Margin) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = before(margin, lines.is_empty());
            for (column, width) in widths.iter().enumerate() {
                let empty = Line::new();
                let cell = row.get(column).unwrap_or(&empty);
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
            lines.push(line);
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
