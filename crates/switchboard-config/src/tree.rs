//! Syntax tree shared by all configuration formats.
//!
//! TOML, JSON(C), HCL and YAML are all parsed into [`Node`]s, so later stages are format-independent. Nodes borrow from
//! the file's text and store their byte range; the meaning of keys is not known here.

use std::borrow::Cow;

/// A range of bytes in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span from byte offsets. Files are far smaller than 4 GiB; larger offsets saturate.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(end).unwrap_or(u32::MAX),
        }
    }

    /// The smallest span that covers both.
    fn and(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// Byte range of the value.
    pub span: Span,
    /// The parsed value.
    pub value: Value<'a>,
}

/// Content of a [`Node`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`, which TOML does not have.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// Text, with escapes decoded and `${…}` as written.
    String(Cow<'a, str>),
    /// An ordered sequence.
    Array(Vec<Node<'a>>),
    /// Members in file order. Duplicate keys are reported by the parser and dropped.
    Table(Vec<Member<'a>>),
}

/// One `key = value` of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// Decoded key.
    pub key: Cow<'a, str>,
    /// Position of the key.
    pub key_span: Span,
    /// The value, with its own position.
    pub value: Node<'a>,
}

impl Member<'_> {
    /// Span of all its contents. The own span of a TOML table is only its header.
    pub fn extent(&self) -> Span {
        self.key_span.and(self.value.extent())
    }
}

impl<'a> Node<'a> {
    /// Span of all its contents.
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

    /// A node without a position, for values to be written.
    pub fn detached(value: impl Into<Value<'a>>) -> Self {
        Self {
            span: Span::default(),
            value: value.into(),
        }
    }

    /// A table without a position.
    pub fn table(members: impl IntoIterator<Item = (impl Into<Cow<'a, str>>, Node<'a>)>) -> Self {
        let member = |(key, value): (_, Node<'a>)| Member {
            key: Into::into(key),
            key_span: Span::default(),
            value,
        };
        Self::detached(Value::Table(members.into_iter().map(member).collect()))
    }

    /// The members; `None` if it is not a table.
    pub fn as_table(&self) -> Option<&[Member<'a>]> {
        match &self.value {
            Value::Table(members) => Some(members),
            _ => None,
        }
    }

    /// The elements; `None` if it is not an array.
    pub fn as_array(&self) -> Option<&[Node<'a>]> {
        match &self.value {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text; `None` if it is not a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value; `None` if it is not a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a key; `None` if it is not a table, or has no such key.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.as_table()?
            .iter()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node<'a>> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Type name for messages.
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
