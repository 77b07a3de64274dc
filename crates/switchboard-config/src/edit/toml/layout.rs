//! Positions of sections, statements and inline tables in a TOML file.

use std::ops::Range;

use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};
use toml_parser::{Raw, Source};

use crate::edit::braces::{Braces, Entry, Place};

/// Maximum depth of the parser that read the file.
const DEPTH: u32 = 80;

/// Sections in order. The first, without a header, is the root.
pub(super) struct Sections(Vec<Section>);

#[derive(Default)]
pub(super) struct Section {
    pub(super) header: Option<Range<usize>>,
    pub(super) path: Vec<String>,
    /// Whether the header has double brackets.
    pub(super) is_element: bool,
    pub(super) entries: Vec<Entry>,
}

impl Sections {
    /// Parses a text that is known to be valid TOML.
    pub(super) fn parse(text: &str) -> Self {
        let source = Source::new(text);
        let tokens = source.lex().into_vec();
        let mut events = Vec::new();
        parse_document(
            &tokens,
            &mut RecursionGuard::new(&mut events, DEPTH),
            &mut (),
        );
        let mut reader = Reader {
            text,
            events: events.into_iter(),
        };
        reader.sections()
    }

    pub(super) fn get(&self, section: usize) -> Option<&Section> {
        self.0.get(section)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &Section)> {
        self.0.iter().enumerate()
    }

    pub(super) fn entries(&self, section: usize) -> &[Entry] {
        self.get(section)
            .map(|section| section.entries.as_slice())
            .unwrap_or_default()
    }

    /// Sections of each element of an array of tables.
    pub(super) fn elements(&self, path: &[&str]) -> Vec<Range<usize>> {
        let mut elements: Vec<Range<usize>> = Vec::new();
        for (index, section) in self.iter() {
            if !section.is_under(path) {
                continue;
            }
            match elements.last_mut() {
                Some(last) if section.path.len() > path.len() => last.end = index + 1,
                _ => elements.push(index..index + 1),
            }
        }
        elements
    }
}

impl Section {
    pub(super) fn is_under(&self, path: &[&str]) -> bool {
        self.path.len() >= path.len() && self.path.iter().zip(path).all(|(l, r)| l == r)
    }

    /// Whether a statement of this section defines the path, or a part of it.
    pub(super) fn entry_is_under(&self, entry: &Entry, path: &[&str]) -> bool {
        let whole = || self.path.iter().chain(&entry.path);
        whole().count() >= path.len() && whole().zip(path).all(|(l, r)| l == r)
    }

    /// Number of keys of a statement, counted from the root, if the path leads to or through it.
    pub(super) fn entry_leads_to(&self, entry: &Entry, path: &[&str]) -> Option<usize> {
        let length = self.path.len() + entry.path.len();
        let leads = length <= path.len() && self.entry_is_under(entry, path.get(..length)?);
        leads.then_some(length)
    }
}

struct Reader<'t> {
    text: &'t str,
    events: std::vec::IntoIter<Event>,
}

impl Reader<'_> {
    fn sections(&mut self) -> Sections {
        let mut sections = Vec::new();
        let mut current = Section::default();
        let mut key = Key::default();
        while let Some(event) = self.events.next() {
            match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    sections.push(std::mem::take(&mut current));
                    current.is_element = event.kind() == EventKind::ArrayTableOpen;
                    current.header = Some(event.span().start()..event.span().end());
                    key = Key::default();
                }
                EventKind::StdTableClose | EventKind::ArrayTableClose => {
                    current.path = std::mem::take(&mut key).path;
                    if let Some(header) = &mut current.header {
                        header.end = event.span().end();
                    }
                }
                EventKind::SimpleKey => key.push(self.text, &event),
                EventKind::KeyValSep => {
                    if let Some(value) = self.value() {
                        current.entries.push(std::mem::take(&mut key).entry(value));
                    }
                }
                _ => {}
            }
        }
        sections.push(current);
        Sections(sections)
    }

    fn value(&mut self) -> Option<Place> {
        while let Some(event) = self.events.next() {
            let span = event.span();
            match event.kind() {
                EventKind::Scalar => return Some(plain(span.start()..span.end())),
                EventKind::ArrayOpen => return self.array(span.start()).map(plain),
                EventKind::InlineTableOpen => return self.table(span.start()),
                _ => {}
            }
        }
        None
    }

    /// Skips the rest of an array.
    fn array(&mut self, start: usize) -> Option<Range<usize>> {
        let mut depth = 1;
        for event in self.events.by_ref() {
            match event.kind() {
                EventKind::ArrayOpen => depth += 1,
                EventKind::ArrayClose => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(start..event.span().end());
            }
        }
        None
    }

    fn table(&mut self, start: usize) -> Option<Place> {
        let mut entries = Vec::new();
        let mut key = Key::default();
        while let Some(event) = self.events.next() {
            let span = event.span();
            match event.kind() {
                EventKind::SimpleKey => key.push(self.text, &event),
                EventKind::KeyValSep => {
                    let value = self.value()?;
                    entries.push(std::mem::take(&mut key).entry(value));
                }
                EventKind::InlineTableClose => {
                    return Some(Place {
                        range: start..span.end(),
                        braces: Some(Braces {
                            open: start + 1,
                            close: span.start(),
                            entries,
                        }),
                    });
                }
                _ => {}
            }
        }
        None
    }
}

#[derive(Default)]
struct Key {
    path: Vec<String>,
    start: usize,
}

impl Key {
    fn push(&mut self, text: &str, event: &Event) {
        let span = event.span();
        if self.path.is_empty() {
            self.start = span.start();
        }
        let raw = text.get(span.start()..span.end()).unwrap_or_default();
        let mut part = String::new();
        Raw::new_unchecked(raw, event.encoding(), span).decode_key(&mut part, &mut ());
        self.path.push(part);
    }

    fn entry(self, value: Place) -> Entry {
        Entry {
            path: self.path,
            start: self.start,
            value,
        }
    }
}

fn plain(range: Range<usize>) -> Place {
    Place {
        range,
        braces: None,
    }
}
