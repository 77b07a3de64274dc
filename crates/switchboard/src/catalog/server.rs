//! Tools of one server: those that are offered, and those set aside with reasons.
//!
//! An unusable tool is set aside alone. Tools are sorted by name: a server cannot change that order between listings,
//! and a changed order would invalidate the model's prompt cache. `reader` builds the list from the pages of
//! `tools/list`.

use std::fmt;

use switchboard_config::text::visible;
use switchboard_protocol::param_headers::AnnotationError;

use super::canonical::Part;
use super::count::ToolCount;
use super::impersonation::Impersonation;
use super::reader::ToolReader;
use super::rules::ToolRules;
use super::schema::SchemaFinding;
use super::suspicion::{self, Flag};
use super::text::DescriptionLimit;
use super::tool::CatalogTool;
use crate::json::SharedJson;
use crate::names::{ServerName, ToolRef, WireName};

/// Tools of one server, offered and set aside.
#[derive(Debug, Default)]
pub struct ServerTools {
    pub(super) tools: Vec<CatalogTool>,
    pub(super) aside: Vec<SetAside>,
    aside_untold: usize,
    withholds_instructions: bool,
    /// Limit for the server's instructions.
    pub(super) description_limit: DescriptionLimit,
}

/// A tool, prompt or template that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Name as the server wrote it; `None` if it cannot be determined.
    pub name: Option<String>,
    /// Reason why it is not offered.
    pub reason: SetAsideReason,
}

/// Reason why something is set aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetAsideReason {
    /// Matched by `disabled_tools`.
    #[error("disabled by disabled_tools")]
    Disabled,
    /// Not matched by `enabled_tools`.
    #[error("not among enabled_tools")]
    NotEnabled,
    /// Hidden by `tools.NAME.hidden`.
    #[error("hidden by the configuration")]
    Hidden,
    /// Not a valid tool definition.
    #[error("{0}")]
    Unreadable(String),
    /// Same name as an earlier tool of the server.
    #[error("the server already lists a tool of the same name")]
    Duplicate,
    /// Impersonates a built-in or another server's tool.
    #[error("{0}")]
    Impersonation(#[from] Impersonation),
    /// Invalid `x-mcp-header` annotations.
    #[error("{0}")]
    ParamHeaders(#[from] AnnotationError),
    /// A schema that model providers reject and that cannot be repaired.
    #[error("{0}")]
    Schema(SchemaFinding),
    /// Nested too deeply to be parsed.
    #[error(
        "its definition is nested too deeply to be parsed; the server's maintainer has to flatten it"
    )]
    TooDeep,
    /// The server lists more tools than the limit.
    #[error("the server lists more than {limit} tools")]
    TooMany {
        /// Maximum number of tools.
        limit: usize,
    },
    /// The definition differs from its pin.
    #[error("it has changed since it was pinned: {}", listed(.parts))]
    Changed {
        /// Tool that changed.
        tool: ToolRef,
        /// Parts that changed.
        parts: Vec<Part>,
    },
    /// A pinned tool under another name.
    #[error("it was called {} when it was pinned", visible(.before.as_str()))]
    Renamed {
        /// Tool under its new name.
        tool: ToolRef,
        /// Pinned name.
        before: WireName,
    },
    /// A prompt or resource template that differs from its pin.
    #[error("it has changed since it was pinned: {}", .parts.join(", "))]
    ContentChanged {
        /// Its identifier on the command line.
        target: String,
        /// Parts that changed.
        parts: Vec<&'static str>,
    },
    /// The pins cannot be read, so it cannot be compared.
    #[error("cannot compare it with its pin: {}", visible(.why))]
    PinsUnreadable {
        /// Error of the pin store.
        why: String,
    },
    /// New, and its pin cannot be stored.
    #[error("cannot pin it: {}", visible(.why))]
    NotPinned {
        /// Error of the store.
        why: String,
    },
    /// Contains tag characters, which are invisible to users and readable by models.
    #[error("it contains text in tag characters, which no screen shows and every model reads")]
    TagCharacters,
    /// The exposed name belongs to another tool.
    #[error("its exposed name is already taken by {other}")]
    NameTaken {
        /// Tool that has the name.
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

/// Origin of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// Sent by a connected server to this process.
    Live,
    /// Read from the disk cache.
    Persisted,
}

/// Transport property that decides which tools can be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Stateless-era HTTP, where arguments may have to be mirrored into headers.
    StatelessHttp,
    /// Any other transport.
    Other,
}

/// Limits for a server's tool list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Maximum number of offered tools.
    pub max_tools: usize,
    /// Maximum number of listed set-aside tools; the rest are counted.
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
    /// Parses pages, each the raw result of one `tools/list`, in order.
    pub fn from_pages(
        server: &ServerName,
        pages: &[SharedJson],
        rules: &ToolRules,
        reach: Reach,
        provenance: Provenance,
        limits: ListLimits,
    ) -> Self {
        let mut reader = ToolReader::new(server, rules, reach, provenance, limits);
        for page in pages {
            reader.page(page);
        }
        reader.finish()
    }

    /// Offered tools, sorted by name.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// Returns the offered tool with that wire name.
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.position(name)
            .and_then(|position| self.tools.get(position))
    }

    /// Returns the suspicious passages of a tool. References to the server's other tools are not suspicious.
    ///
    /// Computed on each call: meant for display, not for every tool call.
    pub fn flags(&self, tool: &CatalogTool) -> Vec<Flag> {
        suspicion::of_tool(tool, &|name| self.get(name).is_some())
    }

    /// Tools that are set aside, in the server's order.
    pub fn aside(&self) -> &[SetAside] {
        &self.aside
    }

    /// Number of set-aside tools that [`aside`](Self::aside) omits.
    pub fn aside_untold(&self) -> usize {
        self.aside_untold
    }

    /// Counts the listed tools by status.
    pub fn count(&self) -> ToolCount {
        ToolCount::of(self.tools.len(), self.aside.iter(), self.aside_untold)
    }

    /// Whether the server's instructions are withheld because they differ from their pin.
    pub fn withholds_instructions(&self) -> bool {
        self.withholds_instructions
    }

    pub(crate) fn withhold_instructions(&mut self, withholds: bool) {
        self.withholds_instructions = withholds;
    }

    /// Sets aside every tool for which `reason` returns one. Tools are visited in name order.
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

    pub(super) fn set_aside(
        &mut self,
        name: Option<String>,
        reason: SetAsideReason,
        limits: ListLimits,
    ) {
        if self.aside.len() < limits.max_aside {
            self.aside.push(SetAside { name, reason });
        } else {
            self.aside_untold += 1;
        }
    }
}

fn listed(parts: &[Part]) -> String {
    let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    names.join(", ")
}
