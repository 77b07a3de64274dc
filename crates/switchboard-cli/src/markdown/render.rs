//! Renders one Markdown unit into terminal rows.

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use switchboard::internal::catalog::text::neutralise;

use super::highlight::Language;
use super::table::Table;
use super::wrap::{Margin, wrap};
use super::{Look, style};
use crate::live::Line;

/// Deeper nesting gets no further indentation.
const MAX_DEPTH: usize = 12;

pub(super) fn code(line: &str, language: Language, look: Look) -> Line {
    // The width of a tab depends on the terminal, so tabs are expanded.
    let line = line.replace('\t', "    ");
    let mut row = vec![(style::PLAIN, "  ".to_owned())];
    row.extend(match (look.styled, language) {
        (false, _) => vec![(style::PLAIN, line)],
        // Without rules for its language, code has one colour.
        (true, Language::Plain) => vec![(style::CODE, line)],
        (true, language) => language.paint(&line, style::PLAIN),
    });
    trim(&mut row);
    row
}

/// Walks the parser's events of one unit.
pub(super) struct Renderer {
    look: Look,
    rows: Vec<Line>,
    /// Text that is not in a row yet.
    text: Vec<(Style, String)>,
    /// The prefixes of each row, outermost first.
    margins: Vec<Margin>,
    /// The active styles, each applied on top of the one before.
    styles: Vec<Style>,
    /// The next numbers of the open lists, outermost first; `None` for bullet lists.
    lists: Vec<Option<u64>>,
    /// The URLs of open links, with their start index in `text`.
    links: Vec<(String, usize)>,
    table: Option<Table>,
    code: bool,
    /// The language of the open code block.
    language: Language,
    /// Whether an empty row precedes the next text.
    gap: bool,
}

impl Renderer {
    pub(super) fn rows(source: &str, look: Look) -> Vec<Line> {
        let mut renderer = Self {
            look,
            rows: Vec::new(),
            text: Vec::new(),
            margins: Vec::new(),
            styles: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            table: None,
            code: false,
            language: Language::Plain,
            gap: false,
        };
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        for event in Parser::new_ext(source, options) {
            renderer.event(event);
        }
        renderer.end_text();
        renderer.rows.iter_mut().for_each(trim);
        renderer.rows
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code => self.code_text(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.add(&text),
            Event::Code(text) => {
                if self.look.styled {
                    self.styles.push(style::CODE);
                    self.add(&text);
                    self.styles.pop();
                } else {
                    self.add(&format!("`{text}`"));
                }
            }
            Event::SoftBreak => self.add(" "),
            Event::HardBreak => self.add("\n"),
            Event::Rule => {
                self.end_text();
                self.space();
                let margin = self.margin();
                let width = self.look.width.min(40);
                let mut row = margin.first;
                row.push((style::QUIET, "─".repeat(width)));
                self.rows.push(row);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.add(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_text();
                if self.look.styled {
                    let underlined = level == HeadingLevel::H1;
                    let heading = style::HEADING;
                    self.styles.push(if underlined {
                        heading.underline()
                    } else {
                        heading
                    });
                } else {
                    self.add(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                let bar: Line = vec![(style::QUIET, "│ ".to_owned())];
                self.margins.push(Margin {
                    first: bar.clone(),
                    others: bar,
                });
            }
            Tag::CodeBlock(kind) => {
                self.end_text();
                self.space();
                self.code = true;
                // Indented code needs no extra gap.
                self.language = match kind {
                    CodeBlockKind::Fenced(info) => Language::of(&info),
                    CodeBlockKind::Indented => {
                        self.gap = false;
                        Language::Plain
                    }
                };
            }
            Tag::List(first) => {
                self.end_text();
                self.gap = false;
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.emphasise(Style::new().italic(), "*"),
            Tag::Strong => self.emphasise(Style::new().bold(), "**"),
            Tag::Strikethrough => self.emphasise(Style::new().strikethrough(), "~~"),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.text.len()));
                self.styles.push(Style::new().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.add("[image: ");
                self.links.push((dest_url.into_string(), self.text.len()));
                self.styles.push(Style::new());
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead => {
                self.styles.push(style::HEADING);
                self.start_row();
            }
            Tag::TableRow => self.start_row(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_text();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_text();
                if self.look.styled {
                    self.styles.pop();
                }
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.margins.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.code = false;
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.end_text();
                self.lists.pop();
            }
            TagEnd::Item => {
                // An empty item still gets its marker.
                let has_mark = |margin: &Margin| margin.first != margin.others;
                if !self.text.is_empty() || self.margins.last().is_some_and(has_mark) {
                    self.flush();
                }
                self.margins.pop();
                self.gap = false;
            }
            TagEnd::Emphasis => self.emphasised("*"),
            TagEnd::Strong => self.emphasised("**"),
            TagEnd::Strikethrough => self.emphasised("~~"),
            TagEnd::Link => self.end_link(false),
            TagEnd::Image => self.end_link(true),
            TagEnd::TableHead => {
                self.styles.pop();
            }
            TagEnd::TableCell => {
                let text = std::mem::take(&mut self.text);
                let cell = one_row(text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.space();
                    let margin = self.margin();
                    let lines = table.lines(&margin, self.look.width);
                    self.rows.extend(lines);
                    self.gap = true;
                }
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.end_text();
        let is_nested = self.lists.len() > 1;
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ if is_nested => "◦ ".to_owned(),
            _ => "• ".to_owned(),
        };
        let indent = " ".repeat(mark.chars().count());
        let nested = self.margins.len() < MAX_DEPTH;
        self.margins.push(Margin {
            first: vec![(style::QUIET, mark)],
            others: if nested {
                vec![(style::PLAIN, indent)]
            } else {
                Line::new()
            },
        });
    }

    fn start_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn emphasise(&mut self, style: Style, mark: &str) {
        if self.look.styled {
            self.styles.push(style);
        } else {
            self.add(mark);
        }
    }

    fn emphasised(&mut self, mark: &str) {
        if self.look.styled {
            self.styles.pop();
        } else {
            self.add(mark);
        }
    }

    /// Appends the link's target if it differs from the link's text.
    fn end_link(&mut self, is_image: bool) {
        self.styles.pop();
        let Some((address, start)) = self.links.pop() else {
            return;
        };
        if is_image {
            self.add("]");
        }
        let label = self.text.get(start..).unwrap_or_default();
        let label: String = label.iter().map(|(_, text)| text.as_str()).collect();
        let plain = address.strip_prefix("mailto:").unwrap_or(&address);
        if label != plain && !address.is_empty() {
            self.styles.push(style::QUIET);
            self.add(&format!(" ({address})"));
            self.styles.pop();
        }
    }

    fn add(&mut self, text: &str) {
        // Character references are decoded by the parser, so neutralise their result here.
        let text = neutralise(text);
        let style = self
            .styles
            .iter()
            .fold(Style::new(), |below, above| over(below, *above));
        match self.text.last_mut() {
            Some((last, before)) if *last == style && self.links.is_empty() => {
                before.push_str(&text);
            }
            _ => self.text.push((style, text.into_owned())),
        }
    }

    fn code_text(&mut self, text: &str) {
        for line in neutralise(text).lines() {
            let mut row = self.margin().first;
            row.extend(code(line, self.language, self.look));
            self.rows.push(row);
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.flush();
        }
    }

    /// Wraps the buffered text into rows.
    fn flush(&mut self) {
        self.space();
        let text = std::mem::take(&mut self.text);
        let margin = self.margin();
        self.rows.extend(wrap(&text, &margin, self.look.width));
    }

    fn space(&mut self) {
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            let margins = self.margins.iter();
            let row: Line = margins.flat_map(|margin| margin.others.clone()).collect();
            let is_blank = row.iter().all(|(_, text)| text.trim().is_empty());
            self.rows.push(if is_blank { Line::new() } else { row });
        }
    }

    /// The margin for the next text. Item markers precede only the first row.
    fn margin(&mut self) -> Margin {
        let mut combined = Margin::default();
        for margin in &mut self.margins {
            combined.first.extend(margin.first.iter().cloned());
            combined.others.extend(margin.others.iter().cloned());
            margin.first.clone_from(&margin.others);
        }
        combined
    }
}

fn trim(row: &mut Line) {
    while let Some((_, text)) = row.last_mut() {
        text.truncate(text.trim_end_matches(' ').len());
        if !text.is_empty() {
            break;
        }
        row.pop();
    }
}

/// Replaces the line breaks of a table cell.
fn one_row(text: Vec<(Style, String)>) -> Line {
    text.into_iter()
        .map(|(style, text)| (style, text.replace('\n', " ")))
        .collect()
}

/// Combines two styles; `above` takes precedence.
fn over(below: Style, above: Style) -> Style {
    let style = Style::new() | (below.get_effects() | above.get_effects());
    style
        .fg_color(above.get_fg_color().or(below.get_fg_color()))
        .bg_color(above.get_bg_color().or(below.get_bg_color()))
}
