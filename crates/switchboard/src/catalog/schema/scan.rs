//! Fast scan of a schema's text that decides whether it needs a closer check.
//!
//! Accepts the subset of JSON Schema that nearly all tools use. Anything not known to be safe (references, combinators
//! at the root, escapes in keys, unusual forms) is doubtful, which does not mean invalid.

use switchboard_protocol::cursor::{Contents, Cursor, Malformed};
use switchboard_protocol::param_headers::ANNOTATION;

use super::super::text;
use super::{MAX_BYTES, MAX_DEPTH, is_property_name};

/// Result of the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::catalog) enum ScanResult {
    /// Accepted by every provider, without header annotations.
    Clean,
    /// Accepted by every provider, with header annotations.
    Mirrored,
    /// Needs a full check.
    Doubtful,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Inner,
}

/// Ends a scan early: something is doubtful, or the text is not JSON.
struct Doubt;

impl From<Malformed> for Doubt {
    fn from(_: Malformed) -> Self {
        Self
    }
}

pub(super) fn scan(cursor: &mut Cursor<'_>) -> Result<ScanResult, Malformed> {
    cursor.peek();
    let start = cursor.position();
    let mut is_mirrored = false;
    let clean = schema(cursor, Place::Root, 0, &mut is_mirrored).is_ok();
    if clean && cursor.position() - start <= MAX_BYTES {
        return Ok(if is_mirrored {
            ScanResult::Mirrored
        } else {
            ScanResult::Clean
        });
    }
    cursor.rewind(start);
    cursor.skip()?;
    Ok(ScanResult::Doubtful)
}

fn schema(
    cursor: &mut Cursor<'_>,
    place: Place,
    depth: usize,
    is_mirrored: &mut bool,
) -> Result<(), Doubt> {
    if depth > MAX_DEPTH {
        return Err(Doubt);
    }
    match (cursor.peek(), place) {
        (b'{', _) => cursor.enter(b'{')?,
        (b't' | b'f', Place::Inner) => return Ok(cursor.skip()?),
        _ => return Err(Doubt),
    }
    let mut described = Described::default();
    while let Some(key) = cursor.next_key()? {
        if key.has_escapes {
            return Err(Doubt);
        }
        keyword(
            cursor,
            key.escaped,
            place,
            depth,
            &mut described,
            is_mirrored,
        )?;
    }
    if place == Place::Root && described.type_name != Some("object") {
        return Err(Doubt);
    }
    if described.is_array && !described.has_items {
        return Err(Doubt);
    }
    Ok(())
}

#[derive(Default)]
struct Described<'a> {
    /// Type, if it is a single one.
    type_name: Option<&'a str>,
    is_array: bool,
    has_items: bool,
}

fn keyword<'a>(
    cursor: &mut Cursor<'a>,
    name: &str,
    place: Place,
    depth: usize,
    described: &mut Described<'a>,
    is_mirrored: &mut bool,
) -> Result<(), Doubt> {
    match name {
        "type" => types(cursor, described),
        "description" | "title" | "$comment" | "format" | "pattern" | "$schema" => {
            plain_text(cursor.string()?)
        }
        "properties" => {
            cursor.enter(b'{')?;
            while let Some(name) = cursor.next_key()? {
                if name.has_escapes || !is_property_name(name.escaped) {
                    return Err(Doubt);
                }
                schema(cursor, Place::Inner, depth + 1, is_mirrored)?;
            }
            Ok(())
        }
        "required" => strings(cursor),
        "items" => {
            described.has_items = true;
            schema(cursor, Place::Inner, depth + 1, is_mirrored)
        }
        "additionalProperties" | "not" | "propertyNames" | "contains" => {
            schema(cursor, Place::Inner, depth + 1, is_mirrored)
        }
        "anyOf" | "oneOf" | "allOf" if place == Place::Inner => schemas(cursor, depth, is_mirrored),
        "enum" => {
            cursor.enter(b'[')?;
            let mut is_empty = true;
            while cursor.next_item()? {
                is_empty = false;
                data(cursor)?;
            }
            if is_empty { Err(Doubt) } else { Ok(()) }
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => match cursor.peek() {
            b'-' | b'0'..=b'9' => Ok(cursor.skip()?),
            _ => Err(Doubt),
        },
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            let written = cursor.value()?;
            if written.bytes().all(|byte| byte.is_ascii_digit()) {
                Ok(())
            } else {
                Err(Doubt)
            }
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => match cursor.peek() {
            b't' | b'f' => Ok(cursor.skip()?),
            _ => Err(Doubt),
        },
        "examples" if cursor.peek() != b'[' => Err(Doubt),
        "const" | "default" | "examples" | "example" | "nullable" => data(cursor),
        ANNOTATION => {
            *is_mirrored = true;
            data(cursor)
        }
        _ => Err(Doubt),
    }
}

fn types<'a>(cursor: &mut Cursor<'a>, described: &mut Described<'a>) -> Result<(), Doubt> {
    if cursor.peek() == b'[' {
        cursor.enter(b'[')?;
        let mut is_empty = true;
        while cursor.next_item()? {
            is_empty = false;
            described.is_array |= type_name(cursor.string()?)? == "array";
        }
        return if is_empty { Err(Doubt) } else { Ok(()) };
    }
    let name = type_name(cursor.string()?)?;
    described.is_array |= name == "array";
    described.type_name = Some(name);
    Ok(())
}

fn type_name(name: Contents<'_>) -> Result<&str, Doubt> {
    match name.escaped {
        "string" | "number" | "integer" | "boolean" | "object" | "array" | "null" => {
            Ok(name.escaped)
        }
        _ => Err(Doubt),
    }
}

fn schemas(cursor: &mut Cursor<'_>, depth: usize, is_mirrored: &mut bool) -> Result<(), Doubt> {
    cursor.enter(b'[')?;
    let mut is_empty = true;
    while cursor.next_item()? {
        is_empty = false;
        schema(cursor, Place::Inner, depth + 1, is_mirrored)?;
    }
    if is_empty { Err(Doubt) } else { Ok(()) }
}

fn strings(cursor: &mut Cursor<'_>) -> Result<(), Doubt> {
    cursor.enter(b'[')?;
    while cursor.next_item()? {
        plain_text(cursor.string()?)?;
    }
    Ok(())
}

/// Arbitrary data: only its texts are checked.
fn data(cursor: &mut Cursor<'_>) -> Result<(), Doubt> {
    match cursor.peek() {
        b'"' => plain_text(cursor.string()?),
        b'{' | b'[' => {
            let written = cursor.value()?;
            if text::is_plain(written) && !written.contains("\\u") {
                Ok(())
            } else {
                Err(Doubt)
            }
        }
        _ => Ok(cursor.skip()?),
    }
}

/// Accepts a text that can be shown unchanged. `\u` escapes need a closer check.
fn plain_text(contents: Contents<'_>) -> Result<(), Doubt> {
    if contents.has_escapes && memchr::memmem::find(contents.escaped.as_bytes(), b"\\u").is_some() {
        return Err(Doubt);
    }
    if contents.escaped.is_ascii() || text::is_plain(contents.escaped) {
        Ok(())
    } else {
        Err(Doubt)
    }
}
