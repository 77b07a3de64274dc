//! `x-mcp-header`: tool parameters mirrored into `Mcp-Param-*` headers.
//!
//! Parses the annotations of an input schema, creates a client's headers for given arguments, and checks a server's
//! received headers. Used only for HTTP in the stateless era. A tool with invalid annotations is set aside with the
//! reason, without affecting the others.

use std::{borrow::Cow, collections::HashSet};

use memchr::memmem;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    decimal::Decimal,
    headers::{Header, HeaderMismatch, Mismatch, PARAM_PREFIX, ReceivedHeaders},
    printable::printable,
    raw,
};

/// The schema keyword for mirrored parameters.
pub const ANNOTATION: &str = "x-mcp-header";

/// The largest magnitude of an integer that every peer can represent: 2^53 − 1.
const SAFE_INTEGER: i128 = (1 << 53) - 1;

/// The annotated parameters of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    root: Node,
}

/// A property on the path to annotated ones; children are sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// The complete header name.
    header: Option<String>,
    children: Vec<(String, Node)>,
}

/// An annotation that makes its tool unusable over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{ANNOTATION} at `{path}`: {problem}")]
#[non_exhaustive]
pub struct AnnotationError {
    /// JSON pointer into the schema.
    pub path: String,
    /// The violated rule.
    pub problem: AnnotationProblem,
}

/// The ways in which an annotation can be invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationProblem {
    /// The schema cannot be parsed, usually because it is nested too deep.
    #[error("cannot parse the schema")]
    UnreadableSchema,
    /// Not a string.
    #[error("must be a string")]
    NotAString,
    /// An empty string.
    #[error("must not be empty")]
    Empty,
    /// Not an HTTP token.
    #[error("`{}` is not a valid header name", printable(.0, 80))]
    NotAToken(String),
    /// The name is used twice, ignoring case.
    #[error("`{0}` is used more than once")]
    Duplicate(String),
    /// The parameter is not a string, an integer or a boolean.
    #[error("only a string, an integer or a boolean can be mirrored")]
    NotPrimitive,
    /// Not reachable from the root through `properties` alone.
    #[error("must be on a property that is reached from the root by `properties` alone")]
    NotReachable,
}

/// An argument that cannot be mirrored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument for {header}: {problem}")]
#[non_exhaustive]
pub struct MirrorError {
    /// The header of the parameter.
    pub header: String,
    /// The violated rule.
    pub problem: MirrorProblem,
}

/// The reasons an argument cannot be mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorProblem {
    /// An array, an object or a fraction.
    #[error("must be a string, an integer or a boolean")]
    NotPrimitive,
    /// An integer beyond ±(2^53 − 1).
    #[error("the integer is beyond what every peer can represent")]
    UnsafeInteger,
    /// A string that is not valid Unicode.
    #[error("the string is not valid Unicode")]
    NotText,
}

impl ParamHeaders {
    /// Parses the annotations of an input schema. A schema without any costs one search and no decoding.
    pub fn from_schema(schema: &RawValue) -> Result<Self, AnnotationError> {
        let text = schema.get().as_bytes();
        // A key can be spelled with escapes, which only decoding resolves.
        if memmem::find(text, ANNOTATION.as_bytes()).is_none()
            && memmem::find(text, b"\\u").is_none()
        {
            return Ok(Self::default());
        }
        let schema: Value = serde_json::from_str(schema.get()).map_err(|_| AnnotationError {
            path: String::new(),
            problem: AnnotationProblem::UnreadableSchema,
        })?;
        let mut reader = SchemaReader {
            path: String::new(),
            seen: HashSet::new(),
        };
        let root = match &schema {
            Value::Object(schema) => reader.reachable(schema, Position::Root)?,
            _ => Node::default(),
        };
        Ok(Self { root })
    }

    /// Whether no parameter is mirrored.
    pub fn is_empty(&self) -> bool {
        self.root.children.is_empty()
    }

    /// The headers for these arguments; absent and `null` values have none.
    pub fn headers(&self, arguments: Option<&RawValue>) -> Result<Vec<Header>, MirrorError> {
        let mut headers = Vec::new();
        self.root.visit(arguments, &mut |name, value| {
            match value.map(mirrored).transpose() {
                Ok(Some(Some(text))) => headers.push(Header::new(name.to_owned(), &text)),
                Ok(_) => {}
                Err(problem) => {
                    return Err(MirrorError {
                        header: name.to_owned(),
                        problem,
                    });
                }
            }
            Ok(())
        })?;
        Ok(headers)
    }

    /// Checks the headers of a request against its arguments.
    ///
    /// Integers compare as numbers (`42.0` equals `42`). An argument that cannot be mirrored requires no header: it is
    /// invalid by the schema anyway.
    pub fn check(
        &self,
        received: &ReceivedHeaders<'_>,
        arguments: Option<&RawValue>,
    ) -> Result<(), HeaderMismatch> {
        self.root.visit(arguments, &mut |name, value| {
            let body = value.and_then(|value| mirrored(value).ok().flatten());
            let numeric = value.is_some_and(is_number);
            let mismatch = match (received.get(name)?, body) {
                (Some(header), Some(body))
                    if header == body || (numeric && same_number(&header, &body)) =>
                {
                    return Ok(());
                }
                (None, None) => return Ok(()),
                (Some(header), Some(body)) => Mismatch::Differs {
                    header: header.into_owned(),
                    body: body.into_owned(),
                },
                (Some(header), None) => Mismatch::Unexpected {
                    header: header.into_owned(),
                },
                (None, Some(body)) => Mismatch::Missing {
                    body: body.into_owned(),
                },
            };
            Err(HeaderMismatch::new(name, mismatch))
        })
    }
}

impl Node {
    /// Calls `visit` for each annotated property with its value in `arguments`.
    ///
    /// One shallow pass per object on an annotated path; the recursion is as deep as the schema, whose depth
    /// `serde_json` has limited.
    fn visit<E>(
        &self,
        arguments: Option<&RawValue>,
        visit: &mut impl FnMut(&str, Option<&RawValue>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.children.is_empty() {
            return Ok(());
        }
        let mut values = vec![None; self.children.len()];
        if let Some(arguments) = arguments {
            raw::for_each_member(arguments, |member| {
                let position = raw::string(member.key).and_then(|key| {
                    self.children
                        .binary_search_by(|(name, _)| name.as_str().cmp(&key))
                        .ok()
                });
                if let Some(value) = position.and_then(|position| values.get_mut(position)) {
                    *value = Some(member.value);
                }
            });
        }
        for ((_, child), value) in self.children.iter().zip(values) {
            if let Some(header) = &child.header {
                visit(header, value)?;
            }
            child.visit(value, visit)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    Property,
}

/// Walks a schema; recursion is limited by the depth `serde_json` accepts.
struct SchemaReader {
    path: String,
    /// Lower-case names already in use.
    seen: HashSet<String>,
}

impl SchemaReader {
    /// The root schema, or one reachable from it through `properties` alone.
    fn reachable(
        &mut self,
        schema: &Map<String, Value>,
        position: Position,
    ) -> Result<Node, AnnotationError> {
        let mut node = Node::default();
        for (keyword, value) in schema {
            match keyword.as_str() {
                ANNOTATION if position == Position::Root => {
                    return Err(self.fail(AnnotationProblem::NotReachable));
                }
                ANNOTATION => node.header = Some(self.annotation(schema, value)?),
                "properties" => {
                    let Value::Object(properties) = value else {
                        continue;
                    };
                    for (name, property) in properties {
                        let Value::Object(property) = property else {
                            continue;
                        };
                        let child = self.within(&["properties", name], |reader| {
                            reader.reachable(property, Position::Property)
                        })?;
                        if child.header.is_some() || !child.children.is_empty() {
                            node.children.push((name.clone(), child));
                        }
                    }
                }
                _ => self.within(&[keyword], |reader| {
                    reader.unreachable_keyword(keyword, value)
                })?,
            }
        }
        node.children
            .sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(node)
    }

    /// A keyword below which annotations are not allowed.
    fn unreachable_keyword(&mut self, keyword: &str, value: &Value) -> Result<(), AnnotationError> {
        match (keyword, value) {
            // Data, not schemas: they cannot contain annotations.
            ("default" | "const" | "enum" | "examples" | "example" | "required", _) => Ok(()),
            // Maps from names to schemas: a name is not a keyword.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(schemas),
            ) => schemas.iter().try_for_each(|(name, schema)| {
                self.within(&[name], |reader| reader.unreachable(schema))
            }),
            (_, value) => self.unreachable(value),
        }
    }

    fn unreachable(&mut self, schema: &Value) -> Result<(), AnnotationError> {
        match schema {
            Value::Object(schema) if schema.contains_key(ANNOTATION) => {
                Err(self.fail(AnnotationProblem::NotReachable))
            }
            Value::Object(schema) => schema.iter().try_for_each(|(keyword, value)| {
                self.within(&[keyword], |reader| {
                    reader.unreachable_keyword(keyword, value)
                })
            }),
            Value::Array(schemas) => schemas
                .iter()
                .try_for_each(|schema| self.unreachable(schema)),
            _ => Ok(()),
        }
    }

    fn annotation(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
    ) -> Result<String, AnnotationError> {
        let Value::String(name) = value else {
            return Err(self.fail(AnnotationProblem::NotAString));
        };
        if name.is_empty() {
            return Err(self.fail(AnnotationProblem::Empty));
        }
        if !name.bytes().all(is_token_character) {
            return Err(self.fail(AnnotationProblem::NotAToken(name.clone())));
        }
        if !is_mirrorable_type(schema.get("type")) {
            return Err(self.fail(AnnotationProblem::NotPrimitive));
        }
        if !self.seen.insert(name.to_ascii_lowercase()) {
            return Err(self.fail(AnnotationProblem::Duplicate(name.clone())));
        }
        Ok(format!("{PARAM_PREFIX}{name}"))
    }

    fn within<T>(&mut self, keys: &[&str], inner: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        for key in keys {
            self.path.push('/');
            self.path
                .push_str(&key.replace('~', "~0").replace('/', "~1"));
        }
        let outcome = inner(self);
        self.path.truncate(length);
        outcome
    }

    fn fail(&self, problem: AnnotationProblem) -> AnnotationError {
        AnnotationError {
            path: self.path.clone(),
            problem,
        }
    }
}

/// `"string"`, `"integer"` or `"boolean"`, or a list of them with `"null"`; a `null` value has no header.
fn is_mirrorable_type(declared: Option<&Value>) -> bool {
    let primitive = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "boolean"));
    match declared {
        Some(Value::Array(names)) => {
            names.iter().any(primitive)
                && names
                    .iter()
                    .all(|name| primitive(name) || name.as_str() == Some("null"))
        }
        Some(name) => primitive(name),
        None => false,
    }
}

/// A character of an HTTP token (RFC 9110, section 5.6.2).
fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The header text of a value; `None` for `null`.
fn mirrored(value: &RawValue) -> Result<Option<Cow<'_, str>>, MirrorProblem> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b't' | b'f') => Ok(Some(Cow::Borrowed(text))),
        Some(b'"') => raw::string(value).map(Some).ok_or(MirrorProblem::NotText),
        _ => {
            let decimal = Decimal::parse(text).ok_or(MirrorProblem::NotPrimitive)?;
            match decimal.to_integer() {
                Some(integer) if integer.abs() <= SAFE_INTEGER => {
                    Ok(Some(Cow::Owned(integer.to_string())))
                }
                Some(_) => Err(MirrorProblem::UnsafeInteger),
                None if decimal.is_integer() => Err(MirrorProblem::UnsafeInteger),
                None => Err(MirrorProblem::NotPrimitive),
            }
        }
    }
}

fn is_number(value: &RawValue) -> bool {
    value
        .get()
        .starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

fn same_number(left: &str, right: &str) -> bool {
    let left = Decimal::parse(left);
    left.is_some() && left == Decimal::parse(right)
}
