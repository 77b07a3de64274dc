//! The tree that every configuration format is parsed into.
//!
//! TOML, JSON(C), HCL and YAML differ in spelling, not in what a server entry says, so all of them become
//! a [`Node`] here and every rule above this module is written once. Nodes borrow from the file's text and
//! remember the bytes they came from; nothing here knows what a key means.

use std::borrow::Cow;

/// A range of bytes in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from byte offsets. Files are capped far below 4 GiB; an offset past that saturates.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(end).unwrap_or(u32::MAX),
        }
    }

    /// The smallest span with both in it.
    fn and(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// One value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// The bytes of the value.
    pub span: Span,
    /// What stands there.
    pub value: Value<'a>,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`, which only JSON, HCL and YAML have.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// Text, with the format's escapes undone and `${…}` left as written.
    String(Cow<'a, str>),
    /// An ordered sequence.
    Array(Vec<Node<'a>>),
    /// Members in the order of the file. Duplicate keys are reported by the parser, not kept.
    Table(Vec<Member<'a>>),
}

/// One `key = value` of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// The key.
    pub key: Cow<'a, str>,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node<'a>,
}

impl Member<'_> {
    /// The bytes from the first to the last of everything in it. A TOML table's own span is its header alone.
    pub fn extent(&self) -> Span {
        self.key_span.and(self.value.extent())
    }
}

impl<'a> Node<'a> {
    /// The bytes from the first to the last of everything in it.
    pub fn extent(&self) -> Span {
        match &self.value {
            Value::Array(elements) => elements
                .iter()
                .fold(self.span, |span, element| span.and(element.extent())),
            Value::Table(members) => members
                .iter()
                .fold(self.span, |span, member| span.and(member.extent())),
            _ => self.span,
        }
    }

    /// A node that stands in no file, for values that are about to be written.
    pub fn detached(value: impl Into<Value<'a>>) -> Self {
        Self {
            span: Span::default(),
            value: value.into(),
        }
    }

    /// A table that stands in no file.
    pub fn table(members: impl IntoIterator<Item = (impl Into<Cow<'a, str>>, Node<'a>)>) -> Self {
        let member = |(key, value): (_, Node<'a>)| Member {
            key: Into::into(key),
            key_span: Span::default(),
            value,
        };
        Self::detached(Value::Table(members.into_iter().map(member).collect()))
    }

    /// The members, when this is a table.
    pub fn as_table(&self) -> Option<&[Member<'a>]> {
        match &self.value {
            Value::Table(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, when this is an array.
    pub fn as_array(&self) -> Option<&[Node<'a>]> {
        match &self.value {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, when this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The member of that key, when this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.as_table()?
            .iter()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node<'a>> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// What kind of value this is, in words a person uses.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::String(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Value::String(Cow::Owned(value))
    }
}

impl<'a> FromIterator<Node<'a>> for Value<'a> {
    fn from_iter<I: IntoIterator<Item = Node<'a>>>(elements: I) -> Self {
        Value::Array(elements.into_iter().collect())
    }
}
