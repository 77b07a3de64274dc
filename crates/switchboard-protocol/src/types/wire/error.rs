//! Why something could not be decoded, and where.
//!
//! Owns [`DecodeError`] and the paths it points with. Errors are built only when something is wrong, so that the
//! clean path pays nothing for them.

use std::fmt;

use crate::printable::printable;

/// A value that does not have the form its type asks for.
///
/// Boxed inside, because the decoders return it from everywhere and it is rare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", Location(&self.0.path), self.0.kind)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    path: Path,
    kind: DecodeErrorKind,
}

impl DecodeError {
    /// An error at the value that is being decoded right now; [`DecodeError::at`] adds where that is.
    pub(crate) fn new(kind: DecodeErrorKind) -> Self {
        Self(Box::new(Inner {
            path: Path::default(),
            kind,
        }))
    }

    /// The same error, seen from one level further out.
    #[must_use]
    pub(crate) fn at(mut self, segment: Segment) -> Self {
        self.0.path.0.insert(0, segment);
        self
    }

    /// Where the value stands, seen from the value that was asked for.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What is wrong with it.
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.0.kind
    }

    /// Whether the reader lost its place, which no list may paper over.
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(self.0.kind, DecodeErrorKind::Malformed)
    }
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A field that the type cannot do without is not there.
    #[error("missing field `{field}`")]
    MissingField {
        /// The field's name on the wire.
        field: &'static str,
    },
    /// A value of another JSON type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What the type asks for.
        expected: &'static str,
        /// What the peer sent.
        found: Found,
    },
    /// The field that names the variant contradicts the type, or itself when it is there twice.
    #[error("expected `{field}` to be `{expected}`, found {found}")]
    WrongTag {
        /// The field's name on the wire.
        field: &'static str,
        /// The value this type has there.
        expected: &'static str,
        /// The value as the peer wrote it, cut short.
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
    /// Content blocks within content blocks beyond the limit.
    #[error("content nested deeper than {limit}")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// A `resultType` that no revision or extension we know defines.
    #[error("unknown `resultType` {found}")]
    UnknownResultType {
        /// The value as the peer wrote it, cut short.
        found: String,
    },
    /// A `resultType` we know that this method may not answer with.
    #[error("this method may not answer with `resultType` `{found}`")]
    UnexpectedResultType {
        /// The value the peer sent.
        found: &'static str,
    },
    /// The text is not the valid JSON it was taken for.
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
    /// The type of the value that starts with `byte`.
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

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A field of a type of ours.
    Field(&'static str),
    /// An entry of a list.
    Index(usize),
    /// A key the peer chose.
    Key(String),
}

/// The way from a value to a part of it, outermost step first: `content[2].annotations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(pub(crate) Vec<Segment>);

impl Path {
    /// The steps, outermost first.
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

/// A path as the head of a message; nothing for the value itself.
struct Location<'p>(&'p Path);

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.0.is_empty() {
            return Ok(());
        }
        write!(formatter, "{}: ", self.0)
    }
}

/// Shortens what a peer wrote for use in a message.
pub(crate) fn excerpt(text: &str) -> String {
    printable(text, 60)
}
