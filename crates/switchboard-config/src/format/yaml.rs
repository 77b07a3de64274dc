//! Parses YAML 1.2 with `serde-saphyr`, for import only.
//!
//! The parser expands aliases and merge keys, within a budget that limits alias bombs. A value from an alias has the
//! position of the alias.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{
    DefaultMessageFormatter, Error, Location, MessageFormatter as _, Options, Spanned,
};

use super::{Seen, Sink, empty_table};
use crate::tree::{Member, Node, Span, Value};

/// Maximum nesting depth. The parser recurses and uses up to 40 KiB of stack per level, of the 2 MiB of a thread; real
/// files nest five or six levels.
const MAXIMUM_DEPTH: usize = 24;

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    let documents = serde_saphyr::from_multiple_with_options::<Spanned<Yaml<'a>>>(text, options());
    match documents {
        Ok(documents) => {
            let mut documents = documents.into_iter();
            let first = documents.next();
            if let Some(second) = documents.next() {
                sink.syntax(
                    span(text, &second.referenced),
                    "the file has more than one document; the first one is used",
                    "move the others to separate files",
                );
            }
            Some(first.map_or_else(|| empty_table(text), |first| node(text, first, sink)))
        }
        Err(error) => {
            let error = error.without_snippet();
            let at = error
                .location()
                .map_or_else(Span::default, |location| span(text, &location));
            sink.syntax(
                at,
                message(error),
                "correct the YAML here; nothing of this file is used until then",
            );
            None
        }
    }
}

fn message(error: &Error) -> String {
    // The position is reported separately. `Display` would bring code that draws excerpts into the program.
    let message = DefaultMessageFormatter.format_message(error);
    let message = message.lines().next().unwrap_or_default();
    // Inside an alias the kind of the error is lost, so match its text.
    if message.starts_with("budget breached") {
        return "the file is nested too deep, or its aliases expand to too much".to_owned();
    }
    let end = message.find(" at line ").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).to_owned()
}

/// YAML 1.2 core schema: `yes` is text, `0777` is decimal, and infinity is a number.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: MAXIMUM_DEPTH },
        // With this policy maps yield every pair, so that duplicates can be reported.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

enum Yaml<'a> {
    Plain(Value<'a>),
    Sequence(Vec<Spanned<Yaml<'a>>>),
    Mapping(Vec<(Spanned<Key<'a>>, Spanned<Yaml<'a>>)>),
}

/// A key, which is always text.
struct Key<'a>(Cow<'a, str>);

fn node<'a>(text: &str, yaml: Spanned<Yaml<'a>>, sink: &mut Sink<'_, '_>) -> Node<'a> {
    let at = span(text, &yaml.referenced);
    let value = match yaml.value {
        Yaml::Plain(value) => number_or_text(value, text, &yaml.defined),
        Yaml::Sequence(elements) => elements
            .into_iter()
            .map(|element| node(text, element, sink))
            .collect(),
        Yaml::Mapping(pairs) => {
            let mut members = Vec::with_capacity(pairs.len());
            let mut seen = Seen::default();
            for (key, value) in pairs {
                let member = Member {
                    key_span: span(text, &key.referenced),
                    key: key.value.0,
                    value: node(text, value, sink),
                };
                sink.push_unique(&mut members, &mut seen, member);
            }
            Value::Table(members)
        }
    };
    Node { span: at, value }
}

/// Corrects deviations of the parser from YAML 1.2: `012` is twelve and `1_000` is text.
fn number_or_text<'a>(value: Value<'a>, text: &str, location: &Location) -> Value<'a> {
    if !matches!(value, Value::Integer(_) | Value::Float(_)) {
        return value;
    }
    let Span { start, end } = span(text, location);
    let raw = text.get(start as usize..end as usize).unwrap_or_default();
    if raw.contains('_') {
        return raw.to_owned().into();
    }
    raw.parse::<i64>().map_or(value, Value::from)
}

fn span(text: &str, location: &Location) -> Span {
    let offset = |offset: Option<u64>| offset.and_then(|offset| usize::try_from(offset).ok());
    let start = offset(location.span().byte_offset()).unwrap_or_else(|| byte_at(text, location));
    let length = offset(location.span().byte_len()).unwrap_or_default();
    let end = (start + length).min(text.len());
    Span::new(start.min(end), end)
}

/// Byte offset of a line and column, for locations without one.
fn byte_at(text: &str, location: &Location) -> usize {
    let before = |count: u64| usize::try_from(count.saturating_sub(1)).unwrap_or_default();
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines
        .by_ref()
        .take(before(location.line()))
        .map(str::len)
        .sum();
    let line = lines.next().unwrap_or_default();
    let column = line.char_indices().nth(before(location.column()));
    start + column.map_or(line.trim_end().len(), |(at, _)| at)
}

impl<'de> Deserialize<'de> for Yaml<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "as in every other format")]
        let value = i64::try_from(value).map_or_else(|_| (value as f64).into(), Value::from);
        Ok(Yaml::Plain(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(value.into()))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Yaml::Plain(value.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(Yaml::Sequence(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Yaml::Mapping(pairs))
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(YamlVisitor)? {
            Yaml::Plain(Value::String(key)) => Ok(Key(key)),
            Yaml::Plain(Value::Bool(key)) => Ok(Key(Cow::Owned(key.to_string()))),
            Yaml::Plain(Value::Integer(key)) => Ok(Key(Cow::Owned(key.to_string()))),
            Yaml::Plain(Value::Float(key)) => Ok(Key(Cow::Owned(key.to_string()))),
            Yaml::Plain(Value::Null) => Ok(Key(Cow::Borrowed("null"))),
            _ => Err(D::Error::custom(
                "a key must be text, not a list or a mapping",
            )),
        }
    }
}
