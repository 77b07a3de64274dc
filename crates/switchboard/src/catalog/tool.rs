//! One tool of the catalogue.
//!
//! Holds the definition as a slice of the page it came with, and little beside it: a host may have ten thousand of
//! these. Name, cost and hints are read when the list is built; everything else is decoded when somebody asks.

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

/// A tool that may be offered and called.
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
    pub(super) title_withheld: bool,
    pub(super) may_claim: bool,
}

/// A part of a definition, in bytes. Definitions are parts of messages, which are far smaller than 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// What calls need of a tool again and again.
#[derive(Debug)]
pub(super) struct Prepared {
    check: ArgumentCheck,
    headers: ParamHeaders,
    must_be_task: bool,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone)]
pub struct ModelTool<'a> {
    /// The name to call it by.
    pub name: &'a str,
    /// What it does: harmless text of bounded length.
    pub description: Cow<'a, str>,
    /// The schema of its arguments, in a form that providers take.
    pub input_schema: &'a RawValue,
}

/// How a tool behaves, by its server's word; for showing only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice does no more than once.
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed world.
    pub open_world: Option<bool>,
}

/// Hints that a connected server has given in this process. Decisions may rest on these, and on no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveAnnotations(Hints);

impl LiveAnnotations {
    /// Whether it changes nothing. Not so, if nothing is said.
    pub fn is_read_only(self) -> bool {
        self.0.read_only == Some(true)
    }

    /// Whether it may destroy something. It may, if nothing is said; a read-only tool does not.
    pub fn is_destructive(self) -> bool {
        !self.is_read_only() && self.0.destructive != Some(false)
    }

    /// Whether a call may be repeated. Not so, if nothing is said; a read-only call may.
    pub fn is_idempotent(self) -> bool {
        self.is_read_only() || self.0.idempotent == Some(true)
    }

    /// Whether it reaches beyond a closed world. It does, if nothing is said.
    pub fn is_open_world(self) -> bool {
        self.0.open_world != Some(false)
    }
}

impl CatalogTool {
    /// The server and the tool as the wire has them.
    pub fn reference(&self) -> &ToolRef {
        &self.reference
    }

    /// The name the model calls it by.
    pub fn exposed(&self) -> &ExposedName {
        &self.exposed
    }

    /// The whole definition as the server wrote it.
    pub fn definition(&self) -> &SharedJson {
        &self.definition
    }

    /// Whether the definition comes from a connected server or from disk.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// Its name for people, not neutralised. A title that reads like a built-in's name is not one.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        if self.title_withheld {
            return None;
        }
        self.field("title").and_then(text_of).or_else(|| {
            let annotations = self.field("annotations")?;
            field(annotations.get(), "title").and_then(text_of)
        })
    }

    /// What it does, in full and as the server wrote it.
    pub fn description(&self) -> Option<Cow<'_, str>> {
        text_of(self.description.of(self.definition.as_str())?)
    }

    /// What a model is told about it.
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

    /// The schema of its arguments as the server wrote it: what calls are checked against.
    pub fn input_schema(&self) -> &RawValue {
        self.input_schema
            .of(self.definition.as_str())
            .or_else(|| trusted(schema::EMPTY))
            .unwrap_or(RawValue::NULL)
    }

    /// The schema of its arguments in a form that model providers take.
    pub(crate) fn model_schema(&self) -> &RawValue {
        match &self.repaired {
            Some(repaired) => repaired.schema.raw(),
            None => self.input_schema(),
        }
    }

    /// What was repaired in the schema for the model.
    pub(crate) fn schema_findings(&self) -> &[SchemaFinding] {
        self.repaired
            .as_ref()
            .map_or(&[], |repaired| &repaired.findings)
    }

    /// The schema of its structured results.
    pub fn output_schema(&self) -> Option<&RawValue> {
        self.field("outputSchema")
            .filter(|schema| schema.get().starts_with('{'))
    }

    /// All of what a model is told.
    pub fn model_view(&self) -> ModelTool<'_> {
        ModelTool {
            name: self.exposed.as_str(),
            description: self.model_description(),
            input_schema: self.model_schema(),
        }
    }

    /// What it costs to tell a model of it.
    pub fn tokens(&self) -> Tokens {
        Tokens(u64::from(self.tokens))
    }

    /// How it behaves by its server's word, for showing. Decisions use [`live_annotations`](Self::live_annotations).
    pub fn hints(&self) -> Hints {
        self.hints
    }

    /// The hints of a connected server; `None` for a definition that was kept on disk.
    pub fn live_annotations(&self) -> Option<LiveAnnotations> {
        match self.provenance {
            Provenance::Live => Some(LiveAnnotations(self.hints)),
            Provenance::Persisted => None,
        }
    }

    /// The check of arguments, compiled on first use.
    pub(crate) fn argument_check(&self) -> &ArgumentCheck {
        &self.prepared().check
    }

    /// Which arguments are mirrored into HTTP headers, read on first use.
    #[doc(hidden)]
    pub fn param_headers(&self) -> &ParamHeaders {
        &self.prepared().headers
    }

    /// Whether calls of it must be tasks (2025-11-25), read on first use.
    pub(crate) fn must_be_task(&self) -> bool {
        self.prepared().must_be_task
    }

    /// A field of the definition, by its name on the wire.
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
    /// The place of `part` in `whole`; nothing where it lies elsewhere.
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

    /// One byte more on each side: a string with its quotation marks.
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
    /// Reads the hints of an `annotations` object. What is no boolean says nothing.
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

/// How many characters a model is told of a description that stands in the definition like this.
pub(super) fn model_characters(description: Contents<'_>, limit: DescriptionLimit) -> usize {
    text::for_model(&description.decode(), limit)
        .chars()
        .count()
}

/// Whether a definition is written in nothing but plain ASCII: every text in it stands there as it is shown, one byte
/// for each character. JSON cannot have control characters in it without escapes, except for DEL.
pub(super) fn is_simple(definition: &str) -> bool {
    // To the end in any case: without a way out, the loop is vectorised.
    let is_odd = |byte: u8| byte >= 0x7F || byte == b'\\';
    !definition
        .bytes()
        .fold(false, |found, byte| found | is_odd(byte))
}

/// What stands in for a description.
pub(super) fn missing_description(reference: &ToolRef, limit: DescriptionLimit) -> String {
    let sentence = format!("MCP tool {} from {}", reference.tool, reference.server);
    text::for_model(&sentence, limit).into_owned()
}

/// The last field of that name of an object.
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
