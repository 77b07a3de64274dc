//! Decode errors and the paths to their values.
//!
//! Errors are built only on failure, so that valid input costs nothing.

use std::fmt;

use crate::printable::printable;

/// A value that does not match its type.
///
/// Boxed, because decoders return it everywhere and it is rare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", Location(&self.0.path), self.0.kind)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    path: Path,
    kind: DecodeErrorKind,
}

impl DecodeError {
    /// An error at the current value; [`DecodeError::at`] adds its path.
    pub(crate) fn new(kind: DecodeErrorKind) -> Self {
        Self(Box::new(Inner {
            path: Path::default(),
            kind,
        }))
    }

    /// Prepends a segment to the path.
    #[must_use]
    pub(crate) fn at(mut self, segment: Segment) -> Self {
        self.0.path.0.insert(0, segment);
        self
    }

    /// The path from the decoded value to the error.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The cause of the error.
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.0.kind
    }

    /// Whether the JSON is malformed, which lists must not ignore.
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(self.0.kind, DecodeErrorKind::Malformed)
    }
}

/// The cause of a decode error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A required field is missing.
    #[error("missing field `{field}`")]
    MissingField {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// A value of another JSON type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The expected JSON type.
        expected: &'static str,
        /// The JSON type found.
        found: Found,
    },
    /// The tag field contradicts the type, or another occurrence of itself.
    #[error("expected `{field}` to be `{expected}`, found {found}")]
    WrongTag {
        /// The field's name on the wire.
        field: &'static str,
        /// The value that this type requires.
        expected: &'static str,
        /// The value found, truncated.
        found: String,
    },
    /// A list with more entries than the limits allow.
    #[error("more than {limit} entries")]
    TooManyItems {
        /// The limit in force.
        limit: usize,
    },
    /// An object with more unknown fields than the limits allow.
    #[error("more than {limit} unknown fields")]
    TooManyFields {
        /// The limit in force.
        limit: usize,
    },
    /// Content blocks nested beyond the limit.
    #[error("content nested deeper than {limit}")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// A `resultType` that no known revision or extension defines.
    #[error("unknown `resultType` {found}")]
    UnknownResultType {
        /// The value found, truncated.
        found: String,
    },
    /// A known `resultType` that this method must not return.
    #[error("this method may not answer with `resultType` `{found}`")]
    UnexpectedResultType {
        /// The value found.
        found: &'static str,
    },
    /// The text is not valid JSON.
    #[error("malformed JSON")]
    Malformed,
}

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are JSON's own type names")]
pub enum Found {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Found {
    /// The type of a value that starts with `byte`.
    pub(crate) fn from_first_byte(byte: u8) -> Self {
        match byte {
            b'n' => Self::Null,
            b't' | b'f' => Self::Boolean,
            b'"' => Self::String,
            b'[' => Self::Array,
            b'{' => Self::Object,
            _ => Self::Number,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// One segment of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A known field of a type.
    Field(&'static str),
    /// An entry of a list, counted from 0.
    Index(usize),
    /// A key chosen by the peer.
    Key(String),
}

/// The path from a value to a part of it, outermost segment first: `content[2].annotations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(pub(crate) Vec<Segment>);

impl Path {
    /// The segments, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if position == 0 => formatter.write_str(name)?,
                Segment::Field(name) => write!(formatter, ".{name}")?,
                Segment::Index(index) => write!(formatter, "[{index}]")?,
                Segment::Key(key) => write!(formatter, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

/// A path as the prefix of a message; empty for the value itself.
struct Location<'p>(&'p Path);

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.0.is_empty() {
            return Ok(());
        }
        write!(formatter, "{}: ", self.0)
    }
}

/// Shortens a peer's text for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    printable(text, 60)
}
