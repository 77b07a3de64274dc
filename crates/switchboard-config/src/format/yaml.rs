//! Parses YAML 1.2, for import only: builds the tree from the events of `granit-parser`.
//!
//! Aliases and merge keys are expanded, within limits. A value from an alias has the position of the alias. Values have
//! the types of the core schema: `yes` is text, `0777` is decimal, and infinity is a number.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::{Seen, Sink, empty_table};
use crate::tree::{Member, Node, Span, Value};

/// Maximum nesting depth; real files nest five or six levels.
const MAXIMUM_DEPTH: usize = 24;

/// Maximum size of a tree with its aliases expanded: each value counts one, and one for this many bytes of its text.
const MAXIMUM_SIZE: usize = 250_000;
const BYTES: usize = 64;

const TOO_MUCH: &str = "the file is nested too deep, or its aliases expand to too much";

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    let before = sink.diagnostics.len();
    match documents(text, sink) {
        Ok(first) => Some(first.unwrap_or_else(|| empty_table(text))),
        Err(Refused { at, message }) => {
            // Other findings do not matter if the file is not used.
            sink.diagnostics.truncate(before);
            let hint = "correct the YAML here; nothing of this file is used until then";
            sink.syntax(at, message, hint);
            None
        }
    }
}

/// The first document that is not empty. All documents must be valid.
fn documents<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Result<Option<Node<'a>>, Refused> {
    let options = granit_parser::options! { emit_unresolved_aliases: true };
    let mut first: Option<Node<'a>> = None;
    let mut has_more = false;
    let mut findings = sink.diagnostics.len();
    let mut tree = Tree::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| Refused::from_scan(text, &error))?;
        if !matches!(event, Event::DocumentEnd) {
            let at = Span::new(offset(text, span.start), offset(text, span.end));
            tree.take(event, at, sink)?;
            continue;
        }
        let document = std::mem::take(&mut tree).root;
        let document = document.filter(|root| root.value != Value::Null);
        match (&first, document) {
            (None, document) => first = document,
            (Some(_), None) => {}
            (Some(_), Some(further)) => {
                sink.diagnostics.truncate(findings);
                if !has_more {
                    has_more = true;
                    sink.syntax(
                        further.span,
                        "the file has more than one document; the first one is used",
                        "move the others to separate files",
                    );
                }
            }
        }
        findings = sink.diagnostics.len();
    }
    Ok(first)
}

/// The reason a file is not used.
struct Refused {
    at: Span,
    message: String,
}

impl Refused {
    fn new(at: Span, message: &str) -> Self {
        let message = message.to_owned();
        Self { at, message }
    }

    fn from_scan(text: &str, error: &ScanError) -> Self {
        let at = offset(text, *error.marker());
        let message = match error.kind() {
            ErrorKind::RecursionLimitExceeded => TOO_MUCH.to_owned(),
            kind => kind.to_string(),
        };
        Self {
            at: Span::new(at, at),
            message,
        }
    }
}

fn offset(text: &str, marker: Marker) -> usize {
    let from_characters = || {
        let at = text.char_indices().nth(marker.index());
        at.map_or(text.len(), |(at, _)| at)
    };
    let offset = marker.byte_offset().unwrap_or_else(from_characters);
    offset.min(text.len())
}

/// A document that is being built.
#[derive(Default)]
struct Tree<'a> {
    root: Option<Node<'a>>,
    open: Vec<Collection<'a>>,
    anchored: HashMap<usize, Anchored<'a>>,
    /// Size so far; see [`MAXIMUM_SIZE`].
    size: usize,
}

/// A list or mapping whose end has not been reached.
struct Collection<'a> {
    span: Span,
    /// Number of its anchor; 0 if it has none.
    anchor: usize,
    /// Size of the tree before it.
    before: usize,
    /// Levels of collections in it.
    height: usize,
    content: Content<'a>,
}

enum Content<'a> {
    List(Vec<Node<'a>>),
    Mapping(Mapping<'a>),
}

#[derive(Default)]
struct Mapping<'a> {
    /// The key whose value comes next.
    key: Option<Key<'a>>,
    /// In file order, duplicates included.
    members: Vec<Member<'a>>,
    /// Members from merge keys, which its own members override.
    merged: Vec<Member<'a>>,
}

struct Key<'a> {
    text: Cow<'a, str>,
    span: Span,
    /// Whether it is `<<`.
    is_merge: bool,
}

/// A value that aliases can refer to.
struct Anchored<'a> {
    node: Node<'a>,
    size: usize,
    /// Levels of collections, itself included.
    height: usize,
}

impl<'a> Tree<'a> {
    fn take(&mut self, event: Event<'a>, at: Span, sink: &mut Sink<'_, '_>) -> Result<(), Refused> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), at)
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::UnresolvedAlias(_) => Err(Refused::new(at, "alias references unknown anchor")),
            Event::SequenceStart(_, anchor, _) => self.begin(Content::List(Vec::new()), anchor, at),
            Event::MappingStart(_, anchor, _) => {
                self.begin(Content::Mapping(Mapping::default()), anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(sink),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: Span,
    ) -> Result<(), Refused> {
        let size = 1 + text.len() / BYTES;
        self.grow(size, at)?;
        let key = self.next_key().is_some().then(|| Key {
            is_merge: text == "<<" && style == ScalarStyle::Plain && tag.is_none(),
            text: text.clone(),
            span: at,
        });
        let is_typed = match tag.map(|tag| (tag, tag.core_suffix())) {
            None => style == ScalarStyle::Plain,
            Some((_, Some(suffix))) => suffix != "str",
            Some((tag, None)) => style == ScalarStyle::Plain && tag.original() != "!",
        };
        let value = if is_typed {
            typed(text)
        } else {
            Value::String(text)
        };
        let node = Node { span: at, value };
        if anchor != 0 {
            let node = node.clone();
            let anchored = Anchored {
                node,
                size,
                height: 0,
            };
            self.anchored.insert(anchor, anchored);
        }
        match (key, self.next_key()) {
            (Some(key), Some(next)) => {
                *next = Some(key);
                Ok(())
            }
            _ => self.add(node),
        }
    }

    fn alias(&mut self, anchor: usize, at: Span) -> Result<(), Refused> {
        let Some(anchored) = self.anchored.get(&anchor) else {
            return Err(Refused::new(at, "alias references the value that it is in"));
        };
        let height = anchored.height;
        let size = self.size + anchored.size;
        if self.open.len() + height > MAXIMUM_DEPTH || size > MAXIMUM_SIZE {
            return Err(Refused::new(at, TOO_MUCH));
        }
        let mut node = anchored.node.clone();
        self.size = size;
        if let Some(next) = self.next_key() {
            *next = Some(Key {
                text: as_key(node.value).ok_or_else(|| not_a_key(at))?,
                span: at,
                is_merge: false,
            });
            return Ok(());
        }
        move_to(&mut node, at);
        if let Some(open) = self.open.last_mut() {
            open.height = open.height.max(height);
        }
        self.add(node)
    }

    fn begin(&mut self, content: Content<'a>, anchor: usize, at: Span) -> Result<(), Refused> {
        if self.open.len() >= MAXIMUM_DEPTH {
            return Err(Refused::new(at, TOO_MUCH));
        }
        if self.next_key().is_some() {
            return Err(not_a_key(at));
        }
        let before = self.size;
        self.grow(1, at)?;
        self.open.push(Collection {
            span: at,
            anchor,
            before,
            height: 0,
            content,
        });
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink<'_, '_>) -> Result<(), Refused> {
        let Some(closed) = self.open.pop() else {
            return Ok(());
        };
        let value = match closed.content {
            Content::List(elements) => Value::Array(elements),
            Content::Mapping(mapping) => Value::Table(mapping.unique(sink)),
        };
        let node = Node {
            span: closed.span,
            value,
        };
        if closed.anchor != 0 {
            let anchored = Anchored {
                node: node.clone(),
                size: self.size - closed.before,
                height: closed.height + 1,
            };
            self.anchored.insert(closed.anchor, anchored);
        }
        if let Some(open) = self.open.last_mut() {
            open.height = open.height.max(closed.height + 1);
        }
        self.add(node)
    }

    /// The place of the next key, if a key is expected.
    fn next_key(&mut self) -> Option<&mut Option<Key<'a>>> {
        match &mut self.open.last_mut()?.content {
            Content::Mapping(mapping) if mapping.key.is_none() => Some(&mut mapping.key),
            _ => None,
        }
    }

    /// Adds a complete value to what is open.
    fn add(&mut self, node: Node<'a>) -> Result<(), Refused> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(elements)) => elements.push(node),
            Some(Content::Mapping(mapping)) => match mapping.key.take() {
                Some(key) if key.is_merge => mapping.merge(node)?,
                Some(key) => mapping.members.push(Member {
                    key: key.text,
                    key_span: key.span,
                    value: node,
                }),
                None => return Err(not_a_key(node.span)),
            },
        }
        Ok(())
    }

    fn grow(&mut self, size: usize, at: Span) -> Result<(), Refused> {
        self.size += size;
        if self.size > MAXIMUM_SIZE {
            return Err(Refused::new(at, TOO_MUCH));
        }
        Ok(())
    }
}

impl<'a> Mapping<'a> {
    fn merge(&mut self, node: Node<'a>) -> Result<(), Refused> {
        let mappings = match node.value {
            Value::Array(elements) => elements,
            _ => vec![node],
        };
        for mapping in mappings {
            let Value::Table(members) = mapping.value else {
                let message = "the value of `<<` must be a mapping or a list of mappings";
                return Err(Refused::new(mapping.span, message));
            };
            self.merged.extend(members);
        }
        Ok(())
    }

    /// The members of the table. Duplicate keys are reported.
    fn unique(self, sink: &mut Sink<'_, '_>) -> Vec<Member<'a>> {
        let mut members = Vec::with_capacity(self.members.len() + self.merged.len());
        let mut seen = Seen::default();
        for member in self.members {
            sink.push_unique(&mut members, &mut seen, member);
        }
        for member in self.merged {
            if seen.insert(&members, &member.key) {
                members.push(member);
            }
        }
        members
    }
}

fn not_a_key(at: Span) -> Refused {
    Refused::new(at, "a key must be text, not a list or a mapping")
}

/// The text of a key that is an alias; `None` if it refers to a list or a mapping.
fn as_key(value: Value<'_>) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::String(text) => text,
        Value::Null => Cow::Borrowed("null"),
        Value::Bool(value) => Cow::Owned(value.to_string()),
        Value::Integer(value) => Cow::Owned(value.to_string()),
        Value::Float(value) => Cow::Owned(value.to_string()),
        Value::Array(_) | Value::Table(_) => return None,
    })
}

/// Gives a value, and all in it, the position of an alias.
fn move_to(node: &mut Node<'_>, at: Span) {
    node.span = at;
    match &mut node.value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| move_to(element, at)),
        Value::Table(members) => {
            for member in members {
                member.key_span = at;
                move_to(&mut member.value, at);
            }
        }
        _ => {}
    }
}

/// The value of a scalar that is not quoted, by the core schema.
fn typed(text: Cow<'_, str>) -> Value<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Float(f64::NEG_INFINITY),
        number => match number_of(number) {
            Some(number) => number,
            None => Value::String(text),
        },
    }
}

/// A number; an integer that is too large is a float, as in every other format.
fn number_of(text: &str) -> Option<Value<'static>> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_number = digits.chars().all(|digit| digit.is_digit(radix));
            let number = is_number.then(|| i64::from_str_radix(digits, radix).ok())?;
            return number.map(Value::Integer);
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_digit();
    if !unsigned.is_empty() && unsigned.bytes().all(is_digit) {
        let number = text.parse().map(Value::Integer);
        return number.or_else(|_| text.parse().map(Value::Float)).ok();
    }
    // Rust also accepts names such as `inf`.
    let is_part = |byte| is_digit(byte) || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let has_digits = unsigned.starts_with(|first: char| first == '.' || first.is_ascii_digit());
    if !has_digits || !unsigned.bytes().all(is_part) {
        return None;
    }
    text.parse().map(Value::Float).ok()
}
