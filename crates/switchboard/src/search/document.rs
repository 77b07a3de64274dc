//! Document of a tool for the search index: the texts that it can be found by.
//!
//! Extracts the texts from a tool's definition and truncates them: a description can have any length, and the purpose
//! of a tool is stated at its start.

use std::borrow::Cow;

use switchboard_protocol::cursor::{Cursor, Malformed};

use crate::catalog::CatalogTool;
use crate::names::{ExposedName, WireName};

/// Maximum length of an indexed description, in bytes.
pub(super) const MAX_DESCRIPTION: usize = 8 * 1024;

/// Maximum length of the indexed text of all parameters, in bytes.
const MAX_PARAMETERS: usize = 8 * 1024;

/// Maximum nesting of indexed parameters.
const MAX_DEPTH: usize = 4;

/// Texts of one tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Document<'a> {
    /// Exposed name.
    pub name: ExposedName,
    /// Wire name.
    pub tool: WireName,
    /// Display title.
    pub title: Cow<'a, str>,
    /// Description, in full.
    pub description: Cow<'a, str>,
    /// Names of the parameters, separated by spaces.
    pub parameter_names: Cow<'a, str>,
    /// Descriptions and choices of the parameters, separated by spaces.
    pub parameter_texts: Cow<'a, str>,
}

impl<'a> Document<'a> {
    /// Creates a document with names only.
    pub fn new(name: ExposedName, tool: WireName) -> Self {
        Self {
            name,
            tool,
            title: Cow::Borrowed(""),
            description: Cow::Borrowed(""),
            parameter_names: Cow::Borrowed(""),
            parameter_texts: Cow::Borrowed(""),
        }
    }

    /// Sets the title.
    #[must_use]
    pub fn titled(mut self, title: impl Into<Cow<'a, str>>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn described(mut self, description: impl Into<Cow<'a, str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds the parameters of a JSON schema. Unreadable parts are skipped.
    #[must_use]
    pub fn with_schema(mut self, schema: &str) -> Self {
        let mut parameters = Parameters::default();
        let _ = parameters.read(schema, 0);
        self.parameter_names = Cow::Owned(parameters.names);
        self.parameter_texts = Cow::Owned(parameters.texts);
        self
    }
}

impl<'a> From<&'a CatalogTool> for Document<'a> {
    fn from(tool: &'a CatalogTool) -> Self {
        Self::new(tool.exposed().clone(), tool.reference().tool.clone())
            .titled(tool.title().unwrap_or_default())
            .described(tool.description().unwrap_or_default())
            .with_schema(tool.input_schema().get())
    }
}

/// Truncates a text to at most `most` bytes.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut ends = (0..=most.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// Texts collected from a schema.
#[derive(Default)]
struct Parameters {
    names: String,
    texts: String,
}

impl Parameters {
    fn read(&mut self, schema: &str, depth: usize) -> Result<(), Malformed> {
        if depth > MAX_DEPTH || self.is_full() {
            return Ok(());
        }
        let mut cursor = Cursor::new(schema);
        if cursor.peek() != b'{' {
            return Ok(());
        }
        cursor.enter(b'{')?;
        while let Some(key) = cursor.next_key()? {
            if key.is("properties") && cursor.peek() == b'{' {
                self.properties(cursor.value()?, depth)?;
            } else if key.is("items") {
                self.read(cursor.value()?, depth + 1)?;
            } else if key.is("enum") && depth > 0 && cursor.peek() == b'[' {
                self.choices(cursor.value()?)?;
            } else if key.is("description") && depth > 0 && cursor.peek() == b'"' {
                append(&mut self.texts, &cursor.string()?.decode());
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    fn properties(&mut self, properties: &str, depth: usize) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(properties);
        cursor.enter(b'{')?;
        while let Some(name) = cursor.next_key()? {
            if self.is_full() {
                return Ok(());
            }
            append(&mut self.names, &name.decode());
            self.read(cursor.value()?, depth + 1)?;
        }
        Ok(())
    }

    fn choices(&mut self, choices: &str) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(choices);
        cursor.enter(b'[')?;
        while cursor.next_item()? && !self.is_full() {
            if cursor.peek() == b'"' {
                append(&mut self.texts, &cursor.string()?.decode());
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.names.len() + self.texts.len() >= MAX_PARAMETERS
    }
}

fn append(texts: &mut String, text: &str) {
    texts.push_str(beginning(text, MAX_PARAMETERS));
    texts.push(' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, names: &str, texts: &str) {
        let document = Document::new("mcp__a__b".into(), "b".into()).with_schema(schema);
        assert_eq!(document.parameter_names.trim(), names, "{schema}");
        assert_eq!(document.parameter_texts.trim(), texts, "{schema}");
    }

    #[test]
    fn parameters_are_found_wherever_they_stand() {
        check(
            r#"{"type": "object", "description": "arguments", "properties": {
                "city": {"type": "string", "description": "where \u0069t is"},
                "unit": {"enum": ["celsius", "kelvin", 5]},
                "days": {"type": "array", "items": {"properties": {"date": {"description": "of the day"}}}}
            }}"#,
            "city unit days date",
            "where it is celsius kelvin of the day",
        );
        check("{}", "", "");
    }

    #[test]
    fn what_is_no_schema_has_no_parameters() {
        for schema in [
            "",
            "true",
            "[]",
            "{\"properties\": 5}",
            "{\"properties\": {\"a\"",
            "nonsense",
        ] {
            let document = Document::new("mcp__a__b".into(), "b".into()).with_schema(schema);
            assert_eq!(document.parameter_texts.trim(), "", "{schema}");
        }
        check(
            r#"{"properties": {"a": true, "b": {"description": 5, "enum": {}}}}"#,
            "a b",
            "",
        );
    }

    #[test]
    fn depth_and_length_have_a_limit() {
        let mut schema = r#"{"description": "deep"}"#.to_owned();
        for _ in 0..1000 {
            schema = format!(r#"{{"properties": {{"a": {schema}}}}}"#);
        }
        let document = Document::new("mcp__a__b".into(), "b".into()).with_schema(&schema);
        assert_eq!(document.parameter_names.trim(), "a a a a a");
        let long = format!(
            r#"{{"properties": {{"a": {{"description": "{}"}}, "b": {{}}}}}}"#,
            "é".repeat(100_000)
        );
        let document = Document::new("mcp__a__b".into(), "b".into()).with_schema(&long);
        assert!(document.parameter_texts.len() <= MAX_PARAMETERS + 1);
        assert_eq!(document.parameter_names.trim(), "a");
    }
}
