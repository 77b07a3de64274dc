//! One tool of the catalogue.
//!
//! Holds the definition as a slice of its page and little else: a host may have ten thousand tools. Name, cost and
//! hints are parsed when the list is built; everything else is decoded on demand.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Contents, Cursor};
use switchboard_protocol::param_headers::ParamHeaders;
use switchboard_protocol::text::JsonStr;
use switchboard_protocol::trusted;
use switchboard_protocol::types::tool::{TaskSupport, ToolExecution};

use super::schema::{self, Repaired, SchemaFinding};
use super::server::Provenance;
use super::text::{self, DescriptionLimit, Tokens};
use crate::call::arguments::ArgumentCheck;
use crate::json::SharedJson;
use crate::names::{ExposedName, ToolRef};

/// A tool that can be offered to models and called.
#[derive(Debug)]
pub struct CatalogTool {
    pub(super) reference: ToolRef,
    pub(super) exposed: ExposedName,
    pub(super) definition: SharedJson,
    pub(super) description: Span,
    pub(super) input_schema: Span,
    pub(super) repaired: Option<Box<Repaired>>,
    pub(super) prepared: OnceLock<Box<Prepared>>,
    pub(super) tokens: u32,
    pub(super) description_limit: DescriptionLimit,
    pub(super) hints: Hints,
    pub(super) provenance: Provenance,
    pub(super) trusts_annotations: bool,
    pub(super) title_withheld: bool,
    pub(super) may_claim: bool,
}

/// Byte range in a definition. Definitions are parts of messages, which are far smaller than 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// Cached data for calls.
#[derive(Debug)]
pub(super) struct Prepared {
    check: ArgumentCheck,
    headers: ParamHeaders,
    must_be_task: bool,
}

/// A tool as a model sees it.
#[derive(Debug, Clone)]
pub struct ModelTool<'a> {
    /// Exposed name.
    pub name: &'a str,
    /// Description, sanitized and truncated.
    pub description: Cow<'a, str>,
    /// JSON Schema of the arguments, in a form that providers accept.
    pub input_schema: &'a RawValue,
}

/// Behaviour hints as stated by the server; for display only. `None`: not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// The tool has no side effects.
    pub read_only: Option<bool>,
    /// The tool may make destructive changes.
    pub destructive: Option<bool>,
    /// Repeated calls with the same arguments have no further effect.
    pub idempotent: Option<bool>,
    /// The tool interacts with external entities.
    pub open_world: Option<bool>,
}

/// Hints sent by a connected server in this process, whose entry says `trust_annotations`. Only these may be used for
/// decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedAnnotations(Hints);

impl TrustedAnnotations {
    /// Whether the tool has no side effects. Defaults to false.
    pub fn is_read_only(self) -> bool {
        self.0.read_only == Some(true)
    }

    /// Whether the tool may make destructive changes. Defaults to true, unless it is read-only.
    pub fn is_destructive(self) -> bool {
        !self.is_read_only() && self.0.destructive != Some(false)
    }

    /// Whether a call may be repeated. Defaults to false, unless it is read-only.
    pub fn is_idempotent(self) -> bool {
        self.is_read_only() || self.0.idempotent == Some(true)
    }

    /// Whether the tool interacts with external entities. Defaults to true.
    pub fn is_open_world(self) -> bool {
        self.0.open_world != Some(false)
    }
}

impl CatalogTool {
    /// Server name and wire name.
    pub fn reference(&self) -> &ToolRef {
        &self.reference
    }

    /// Name that the model calls.
    pub fn exposed(&self) -> &ExposedName {
        &self.exposed
    }

    /// Definition as the server wrote it.
    pub fn definition(&self) -> &SharedJson {
        &self.definition
    }

    /// Whether the definition comes from a connected server or from the disk cache.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// Display title, not sanitized; `None` also if it imitates a built-in's name.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        if self.title_withheld {
            return None;
        }
        self.field("title").and_then(text_of).or_else(|| {
            let annotations = self.field("annotations")?;
            field(annotations.get(), "title").and_then(text_of)
        })
    }

    /// Description in full, as the server wrote it.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        text_of(self.description.of(self.definition.as_str())?)
    }

    /// Description for the model: sanitized, truncated, never empty.
    pub fn model_description(&self) -> Cow<'_, str> {
        let limit = self.description_limit;
        match self.description() {
            Some(Cow::Borrowed(full)) if !full.trim().is_empty() => text::for_model(full, limit),
            Some(Cow::Owned(full)) if !full.trim().is_empty() => {
                Cow::Owned(text::for_model(&full, limit).into_owned())
            }
            _ => Cow::Owned(missing_description(&self.reference, limit)),
        }
    }

    /// JSON Schema of the arguments as the server wrote it; calls are validated against it.
    pub fn input_schema(&self) -> &RawValue {
        self.input_schema
            .of(self.definition.as_str())
            .or_else(|| trusted(schema::EMPTY))
            .unwrap_or(RawValue::NULL)
    }

    /// JSON Schema of the arguments in a form that model providers accept.
    pub(crate) fn model_schema(&self) -> &RawValue {
        match &self.repaired {
            Some(repaired) => repaired.schema.raw(),
            None => self.input_schema(),
        }
    }

    /// Problems repaired in the model's schema.
    pub(crate) fn schema_findings(&self) -> &[SchemaFinding] {
        self.repaired
            .as_ref()
            .map_or(&[], |repaired| &repaired.findings)
    }

    /// JSON Schema of the structured results, if it is an object.
    pub fn output_schema(&self) -> Option<&RawValue> {
        self.field("outputSchema")
            .filter(|schema| schema.get().starts_with('{'))
    }

    /// Name, description and schema for a model.
    pub fn model_view(&self) -> ModelTool<'_> {
        ModelTool {
            name: self.exposed.as_str(),
            description: self.model_description(),
            input_schema: self.model_schema(),
        }
    }

    /// Token cost of the model view.
    pub fn tokens(&self) -> Tokens {
        Tokens(u64::from(self.tokens))
    }

    /// Hints as stated by the server, for display. Decisions use [`trusted_annotations`](Self::trusted_annotations).
    pub fn hints(&self) -> Hints {
        self.hints
    }

    /// Hints that may be used for decisions; `None` for a definition from the disk cache, and for a server whose
    /// annotations are not trusted.
    pub fn trusted_annotations(&self) -> Option<TrustedAnnotations> {
        match self.provenance {
            Provenance::Live if self.trusts_annotations => Some(TrustedAnnotations(self.hints)),
            Provenance::Live | Provenance::Persisted => None,
        }
    }

    /// Whether the tool has no side effects, as far as its server is trusted.
    pub fn is_read_only(&self) -> bool {
        self.trusted_annotations()
            .is_some_and(TrustedAnnotations::is_read_only)
    }

    /// Argument validator, compiled on first use.
    pub(crate) fn argument_check(&self) -> &ArgumentCheck {
        &self.prepared().check
    }

    /// Arguments that are mirrored into HTTP headers, parsed on first use.
    #[doc(hidden)]
    pub fn param_headers(&self) -> &ParamHeaders {
        &self.prepared().headers
    }

    /// Whether calls must be tasks (2025-11-25), parsed on first use.
    pub(crate) fn must_be_task(&self) -> bool {
        self.prepared().must_be_task
    }

    /// Returns a field of the definition by its wire name.
    pub fn field(&self, name: &str) -> Option<&RawValue> {
        field(self.definition.as_str(), name)
    }

    fn prepared(&self) -> &Prepared {
        self.prepared.get_or_init(|| {
            let schema = self.input_schema();
            let support = self.field("execution").and_then(|raw| {
                let decoded: Option<ToolExecution<'_>> =
                    switchboard_protocol::types::decode(raw).ok();
                decoded?.task_support
            });
            Box::new(Prepared {
                check: ArgumentCheck::compile(schema),
                headers: ParamHeaders::from_schema(schema).unwrap_or_default(),
                must_be_task: support == Some(TaskSupport::Required),
            })
        })
    }
}

impl Span {
    /// Range of `part` in `whole`; empty if `part` is not a slice of it.
    pub(super) fn within(whole: &str, part: &str) -> Self {
        let place = || {
            let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
            Some(Self {
                start: u32::try_from(start).ok()?,
                end: u32::try_from(start + part.len()).ok()?,
            })
        };
        place().unwrap_or_default()
    }

    /// Adds one byte on each side, for the quotation marks of a string.
    pub(super) fn widened(self) -> Self {
        Self {
            start: self.start.saturating_sub(1),
            end: self.end.saturating_add(1),
        }
    }

    fn of(self, whole: &str) -> Option<&RawValue> {
        let part = whole.get(self.start as usize..self.end as usize)?;
        if part.is_empty() { None } else { trusted(part) }
    }
}

impl Hints {
    /// Parses the hints of an `annotations` object. Values that are not booleans are ignored.
    pub(super) fn read(annotations: &str) -> Self {
        let mut hints = Self::default();
        let mut cursor = Cursor::new(annotations);
        let mut read = || {
            cursor.enter(b'{')?;
            while let Some(key) = cursor.next_key()? {
                let value = match cursor.value()? {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => None,
                };
                match &*key.decode() {
                    "readOnlyHint" => hints.read_only = value,
                    "destructiveHint" => hints.destructive = value,
                    "idempotentHint" => hints.idempotent = value,
                    "openWorldHint" => hints.open_world = value,
                    _ => {}
                }
            }
            Ok::<_, switchboard_protocol::cursor::Malformed>(())
        };
        let _ = read();
        hints
    }
}

/// Number of characters of the model description.
pub(super) fn model_characters(description: Contents<'_>, limit: DescriptionLimit) -> usize {
    text::for_model(&description.decode(), limit)
        .chars()
        .count()
}

/// Whether a definition is plain ASCII without escapes, so that each byte is one displayed character. JSON strings
/// cannot contain raw control characters, except for DEL.
pub(super) fn is_simple(definition: &str) -> bool {
    // No early exit: the loop can then be vectorised.
    let is_odd = |byte: u8| byte >= 0x7F || byte == b'\\';
    !definition
        .bytes()
        .fold(false, |found, byte| found | is_odd(byte))
}

/// Replacement for a missing description.
pub(super) fn missing_description(reference: &ToolRef, limit: DescriptionLimit) -> String {
    let sentence = format!("MCP tool {} from {}", reference.tool, reference.server);
    text::for_model(&sentence, limit).into_owned()
}

/// Returns the last field of that name in an object.
pub(crate) fn field<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    let mut cursor = Cursor::new(object);
    cursor.enter(b'{').ok()?;
    let mut found = None;
    while let Some(key) = cursor.next_key().ok()? {
        let value = cursor.value().ok()?;
        if key.is(name) {
            found = Some(value);
        }
    }
    found.and_then(trusted)
}

fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<JsonStr<'_>>(value.get())
        .ok()
        .map(JsonStr::into_decoded)
}
