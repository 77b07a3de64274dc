//! One server's tools: from the raw pages of `tools/list` to a list that is safe to offer.
//!
//! One pass over the bytes finds every field and looks the schemas over; nothing is copied but names. A tool that cannot
//! be offered is set aside alone, with the reason. The order is by name, because that is the one order that a server
//! cannot change from one listing to the next, and a changed order would cost the model its prompt cache.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;
use switchboard_config::text::visible;
use switchboard_protocol::param_headers::{AnnotationError, ParamHeaders};
use switchboard_protocol::trusted;
use switchboard_protocol::types::tool::{ListToolsResult, Tool};
use switchboard_protocol::types::{DecodeError, decode};

use super::canonical::Part;
use super::cursor::{Contents, Cursor, Malformed};
use super::disguise::{self, Disguise, TitleUse};
use super::exposed::exposed_name;
use super::rules::ToolRules;
use super::schema::{self, Examined, SchemaFinding, Verdict};
use super::suspicion;
use super::text::Tokens;
use super::tool::{self, CatalogTool, Hints, Span};
use crate::json::SharedJson;
use crate::names::{ServerName, ToolRef, WireName};

/// What one server offers, and what of it cannot be offered.
#[derive(Debug, Default)]
pub struct ServerTools {
    tools: Vec<CatalogTool>,
    aside: Vec<SetAside>,
    aside_untold: usize,
    withholds_instructions: bool,
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// What it calls itself, where that can be told; as the server wrote it.
    pub name: Option<String>,
    /// Why.
    pub reason: SetAsideReason,
}

/// Why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetAsideReason {
    /// `disabled_tools` names it.
    #[error("disabled by disabled_tools")]
    Disabled,
    /// `enabled_tools` does not name it.
    #[error("not among enabled_tools")]
    NotEnabled,
    /// `tools.NAME.hidden`.
    #[error("hidden by the configuration")]
    Hidden,
    /// It is no tool.
    #[error("{0}")]
    Unreadable(String),
    /// The server lists two tools of that name.
    #[error("the server lists another tool of the same name before it")]
    Duplicate,
    /// It pretends to be something else.
    #[error("{0}")]
    Disguise(#[from] Disguise),
    /// Its `x-mcp-header` annotations are invalid.
    #[error("{0}")]
    ParamHeaders(#[from] AnnotationError),
    /// No model provider would take its schema.
    #[error("{0}")]
    Schema(SchemaFinding),
    /// The server lists too many.
    #[error("the server lists more than {limit} tools")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Its definition is not the one that is pinned.
    #[error("it has changed since it was pinned: {}", listed(.parts))]
    Changed {
        /// The tool.
        tool: ToolRef,
        /// What of it has changed.
        parts: Vec<Part>,
    },
    /// Whether it has changed cannot be told.
    #[error("the pins of its server cannot be read, so nobody can tell whether it has changed")]
    PinsUnreadable,
    /// It has a text in it that no screen shows and every model reads.
    #[error("it has text in tag characters, which no screen shows and every model reads")]
    TagCharacters,
    /// Its exposed name is that of another tool.
    #[error("its exposed name is already that of {other}")]
    NameTaken {
        /// The other tool.
        other: ToolRef,
    },
}

impl fmt::Display for SetAside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{}: {}", visible(name), self.reason),
            None => write!(formatter, "{}", self.reason),
        }
    }
}

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// A connected server has sent it to this process.
    Live,
    /// It was kept on disk.
    Persisted,
}

/// How calls reach the server, as far as it matters to what can be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// HTTP of the stateless era, where arguments may have to be mirrored into headers.
    StatelessHttp,
    /// Any other way.
    Other,
}

/// How many of a server's tools are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Tools that are offered.
    pub max_tools: usize,
    /// Tools that are told as set aside; more are counted.
    pub max_aside: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            max_tools: 20_000,
            max_aside: 1_000,
        }
    }
}

impl ServerTools {
    /// Reads the pages, each the raw result of one `tools/list`, in their order.
    pub fn from_pages(
        server: &ServerName,
        pages: &[SharedJson],
        rules: &ToolRules,
        reach: Reach,
        provenance: Provenance,
        limits: ListLimits,
    ) -> Self {
        let mut builder = Builder {
            server,
            rules,
            reach,
            provenance,
            limits,
            built: Self::default(),
        };
        for (index, page) in pages.iter().enumerate() {
            if let Err(reason) = builder.page(page) {
                let reason = format!("page {}: {reason}", index + 1);
                builder
                    .built
                    .set_aside(None, SetAsideReason::Unreadable(reason), limits);
            }
        }
        let mut built = builder.finish();
        if suspicion::may_have_tags(pages) {
            built.set_aside_where(|tool| {
                suspicion::has_tags(tool).then_some(SetAsideReason::TagCharacters)
            });
        }
        built
    }

    /// The tools, ordered by name.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// The tool the server calls `name`.
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.position(name)
            .and_then(|position| self.tools.get(position))
    }

    /// What is not offered, in the server's order.
    pub fn aside(&self) -> &[SetAside] {
        &self.aside
    }

    /// How many more are not offered than [`aside`](Self::aside) tells.
    pub fn aside_untold(&self) -> usize {
        self.aside_untold
    }

    /// Whether the server's instructions are not to be shown, because they have changed since they were pinned.
    pub fn withholds_instructions(&self) -> bool {
        self.withholds_instructions
    }

    /// Says whether the server's instructions are withheld.
    pub(crate) fn withhold_instructions(&mut self, withholds: bool) {
        self.withholds_instructions = withholds;
    }

    /// Sets aside every tool for which there is a reason. They are asked for in the order of their names.
    pub(crate) fn set_aside_where(
        &mut self,
        mut reason: impl FnMut(&CatalogTool) -> Option<SetAsideReason>,
    ) {
        let mut aside = Vec::new();
        self.tools.retain(|tool| match reason(tool) {
            None => true,
            Some(reason) => {
                aside.push((tool.reference.tool.as_str().to_owned(), reason));
                false
            }
        });
        for (name, reason) in aside {
            self.set_aside(Some(name), reason, ListLimits::default());
        }
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.tools
            .binary_search_by(|tool| tool.reference.tool.as_str().cmp(name))
            .ok()
    }

    fn set_aside(&mut self, name: Option<String>, reason: SetAsideReason, limits: ListLimits) {
        if self.aside.len() < limits.max_aside {
            self.aside.push(SetAside { name, reason });
        } else {
            self.aside_untold += 1;
        }
    }
}

struct Builder<'b> {
    server: &'b ServerName,
    rules: &'b ToolRules,
    reach: Reach,
    provenance: Provenance,
    limits: ListLimits,
    built: ServerTools,
}

impl Builder<'_> {
    fn page(&mut self, page: &SharedJson) -> Result<(), DecodeError> {
        let (tools, aside) = (self.built.tools.len(), self.built.aside.len());
        if self.list(page) == Ok(true) {
            return Ok(());
        }
        self.built.tools.truncate(tools);
        self.built.aside.truncate(aside);
        self.odd_page(page)
    }

    /// Reads a page that has one list of tools; whether it is such a page.
    fn list(&mut self, page: &SharedJson) -> Result<bool, Malformed> {
        let mut cursor = Cursor::new(page.as_str());
        let mut lists = 0;
        cursor.enter(b'{')?;
        while let Some(key) = cursor.next_key()? {
            if !key.is("tools") {
                cursor.skip()?;
                continue;
            }
            lists += 1;
            cursor.enter(b'[')?;
            while cursor.next_item()? {
                let start = cursor.position();
                if let Ok(head) = Head::read(&mut cursor) {
                    self.item(page, &head);
                } else {
                    cursor.rewind(start);
                    let item = cursor.value()?;
                    self.unreadable(item);
                }
            }
        }
        Ok(lists == 1)
    }

    /// A page with no list of tools, or two: the protocol's own decoder knows what may still be meant.
    fn odd_page(&mut self, page: &SharedJson) -> Result<(), DecodeError> {
        decode::<ListToolsResult<'_>>(page.raw())?;
        // Of two lists the last counts; one tool may come without brackets around it; an empty object is an empty list.
        let listed = tool::field(page.as_str(), "tools").map_or("[]", RawValue::get);
        let mut cursor = Cursor::new(listed);
        let mut read = || {
            if cursor.peek() == b'{' {
                let head = Head::read(&mut cursor)?;
                if head.name.is_some() {
                    self.item(page, &head);
                }
                return Ok(());
            }
            cursor.enter(b'[')?;
            while cursor.next_item()? {
                let item = cursor.value()?;
                match Head::read(&mut Cursor::new(item)) {
                    Ok(head) => self.item(page, &head),
                    Err(Malformed) => self.unreadable(item),
                }
            }
            Ok::<_, Malformed>(())
        };
        // The decoder has read it, so this does not fail.
        let _ = read();
        Ok(())
    }

    fn item(&mut self, page: &SharedJson, head: &Head<'_>) {
        let Some(name) = head
            .name
            .map(Contents::decode)
            .filter(|name| !name.is_empty())
        else {
            return self.unreadable(head.text);
        };
        match self.tool(page, head, &name) {
            Ok(tool) => self.built.tools.push(tool),
            Err(reason) => self
                .built
                .set_aside(Some(name.into_owned()), reason, self.limits),
        }
    }

    fn tool(
        &self,
        page: &SharedJson,
        head: &Head<'_>,
        name: &str,
    ) -> Result<CatalogTool, SetAsideReason> {
        if let Some(reason) = self.rules.refuse(name) {
            return Err(reason);
        }
        if self.built.tools.len() >= self.limits.max_tools {
            let limit = self.limits.max_tools;
            return Err(SetAsideReason::TooMany { limit });
        }
        let title = head.title.map(Contents::decode);
        let title_use = disguise::judge_tool(name, title.as_deref())?;
        let definition = trusted(head.text).and_then(|value| page.part(value));
        let definition = definition.ok_or_else(|| unreadable_reason(head.text))?;
        let reference = ToolRef {
            server: self.server.clone(),
            tool: WireName::from(name),
        };
        let schema = self.schema(head)?;
        let exposed = exposed_name(self.server.as_str(), name);
        let described = match head.description.filter(|contents| !is_blank(*contents)) {
            Some(description) => tool::model_characters(description),
            None => tool::missing_description(&reference).chars().count(),
        };
        let schema_characters = match (&schema, head.input_schema) {
            (Some(mended), _) => mended.schema.as_str().chars().count(),
            (None, Some((schema, _))) => schema.chars().count(),
            (None, None) => schema::EMPTY.len(),
        };
        let cost = Tokens::of_characters(exposed.as_str().len() + described + schema_characters);
        Ok(CatalogTool {
            description: head.description.map_or(Span::default(), |description| {
                quoted_span(head.text, description)
            }),
            input_schema: head.input_schema.map_or(Span::default(), |(schema, _)| {
                Span::within(head.text, schema)
            }),
            may_claim: disguise::may_claim(name)
                || title.as_deref().is_some_and(disguise::may_claim),
            title_withheld: title_use == TitleUse::Withheld,
            reference,
            exposed,
            definition,
            mended: schema.map(Box::new),
            prepared: std::sync::OnceLock::new(),
            tokens: u32::try_from(cost.0).unwrap_or(u32::MAX),
            hints: head.annotations.map(Hints::read).unwrap_or_default(),
            provenance: self.provenance,
        })
    }

    fn schema(&self, head: &Head<'_>) -> Result<Option<schema::Mended>, SetAsideReason> {
        let Some((text, verdict)) = head.input_schema else {
            return Ok(None);
        };
        if verdict == Verdict::Clean {
            return Ok(None);
        }
        if self.reach == Reach::StatelessHttp
            && let Some(schema) = trusted(text)
        {
            ParamHeaders::from_schema(schema)?;
        }
        if verdict == Verdict::Mirrored {
            return Ok(None);
        }
        match schema::mend_doubtful(text) {
            Examined::Fine => Ok(None),
            Examined::Mended(mended) => Ok(Some(mended)),
            Examined::Refused(finding) => Err(SetAsideReason::Schema(finding)),
        }
    }

    /// What is no tool: the protocol's own decoder says why.
    fn unreadable(&mut self, item: &str) {
        let name = trusted(item)
            .filter(|item| item.get().starts_with('{'))
            .and_then(|item| tool::field(item.get(), "name"))
            .map(|name| name.get().chars().take(80).collect());
        self.built
            .set_aside(name, unreadable_reason(item), self.limits);
    }

    fn finish(self) -> ServerTools {
        let mut built = self.built;
        // Stable, so that of two tools with one name the first stays first.
        built
            .tools
            .sort_by(|left, right| left.reference.tool.cmp(&right.reference.tool));
        let mut duplicates = Vec::new();
        built.tools.dedup_by(|later, earlier| {
            let is_duplicate = later.reference.tool == earlier.reference.tool;
            if is_duplicate {
                duplicates.push(later.reference.tool.as_str().to_owned());
            }
            is_duplicate
        });
        for name in duplicates {
            built.set_aside(Some(name), SetAsideReason::Duplicate, self.limits);
        }
        built.tools.shrink_to_fit();
        built
    }
}

/// The fields of a tool as they stand in its text.
#[derive(Default)]
struct Head<'a> {
    text: &'a str,
    name: Option<Contents<'a>>,
    title: Option<Contents<'a>>,
    description: Option<Contents<'a>>,
    input_schema: Option<(&'a str, Verdict)>,
    annotations: Option<&'a str>,
}

impl<'a> Head<'a> {
    /// Reads a tool and moves past it. Of a field that is there twice the last counts, as for every common parser.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let mut head = Self::default();
        cursor.peek();
        let start = cursor.position();
        cursor.enter(b'{')?;
        while let Some(key) = cursor.next_key()? {
            let key = if key.has_escapes {
                key.decode()
            } else {
                Cow::Borrowed(key.escaped)
            };
            match &*key {
                "name" => head.name = optional_string(cursor)?,
                "title" => head.title = optional_string(cursor)?,
                "description" => head.description = optional_string(cursor)?,
                "inputSchema" => {
                    cursor.peek();
                    let from = cursor.position();
                    let verdict = schema::scan(cursor)?;
                    head.input_schema = cursor
                        .since(from)
                        .filter(|text| *text != "null")
                        .map(|text| (text, verdict));
                }
                "annotations" => {
                    let annotations = cursor.value()?;
                    head.annotations = Some(annotations).filter(|text| text.starts_with('{'));
                }
                _ => cursor.skip()?,
            }
        }
        head.text = cursor.since(start).ok_or(Malformed)?;
        if head.title.is_none()
            && let Some(annotations) = head.annotations
        {
            head.title = annotated_title(annotations);
        }
        Ok(head)
    }
}

fn optional_string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Contents<'a>>, Malformed> {
    if cursor.peek() == b'"' {
        return cursor.string().map(Some);
    }
    cursor.skip()?;
    Ok(None)
}

fn annotated_title(annotations: &str) -> Option<Contents<'_>> {
    memchr::memmem::find(annotations.as_bytes(), b"title")?;
    let title = tool::field(annotations, "title")?;
    Cursor::new(title.get()).string().ok()
}

/// The span of a string with its quotation marks.
fn quoted_span(whole: &str, contents: Contents<'_>) -> Span {
    Span::within(whole, contents.escaped).widened()
}

fn is_blank(contents: Contents<'_>) -> bool {
    if contents.has_escapes {
        contents.decode().trim().is_empty()
    } else {
        contents.escaped.trim().is_empty()
    }
}

fn listed(parts: &[Part]) -> String {
    let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    names.join(", ")
}

fn unreadable_reason(item: &str) -> SetAsideReason {
    let decoded = trusted(item).map(decode::<Tool<'_>>);
    SetAsideReason::Unreadable(match decoded {
        Some(Err(error)) => error.to_string(),
        Some(Ok(_)) => "its name is empty".to_owned(),
        None => "it cannot be read".to_owned(),
    })
}
