//! One server's tools: a list that is safe to offer, and what was set aside.
//!
//! A tool that cannot be offered is set aside alone, with the reason. The order is by name, because that is the one order
//! that a server cannot change from one listing to the next, and a changed order would cost the model its prompt cache.
//! How the list comes from the pages of `tools/list` is `reader`'s business.

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

/// What one server offers, and what of it cannot be offered.
#[derive(Debug, Default)]
pub struct ServerTools {
    pub(super) tools: Vec<CatalogTool>,
    pub(super) aside: Vec<SetAside>,
    aside_untold: usize,
    withholds_instructions: bool,
    /// Of the server's instructions.
    pub(super) description_limit: DescriptionLimit,
}

/// A tool, prompt or template that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// What it calls itself, where that can be told; as the server wrote it.
    pub name: Option<String>,
    /// Why.
    pub reason: SetAsideReason,
}

/// Why something is not offered.
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
    Impersonation(#[from] Impersonation),
    /// Its `x-mcp-header` annotations are invalid.
    #[error("{0}")]
    ParamHeaders(#[from] AnnotationError),
    /// No model provider would take its schema.
    #[error("{0}")]
    Schema(SchemaFinding),
    /// It is nested too deep to be read.
    #[error(
        "its definition is nested too deep to be read; the server's maintainer has to flatten it"
    )]
    TooDeep,
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
    /// It is a pinned tool under another name.
    #[error("it was called {} when it was pinned", visible(.before.as_str()))]
    Renamed {
        /// The tool.
        tool: ToolRef,
        /// The name that is pinned.
        before: WireName,
    },
    /// A prompt or resource template is not the one that is pinned.
    #[error("it has changed since it was pinned: {}", .parts.join(", "))]
    ContentChanged {
        /// How it is named on the command line.
        target: String,
        /// What of it has changed.
        parts: Vec<&'static str>,
    },
    /// Whether it has changed cannot be told.
    #[error("cannot compare it with its pin: {}", visible(.why))]
    PinsUnreadable {
        /// What is wrong with the pins.
        why: String,
    },
    /// It is new and cannot be pinned.
    #[error("cannot pin it: {}", visible(.why))]
    NotPinned {
        /// What is wrong with the store.
        why: String,
    },
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
        let mut reader = ToolReader::new(server, rules, reach, provenance, limits);
        for page in pages {
            reader.page(page);
        }
        reader.finish()
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

    /// What in a tool of this server looks suspicious. Advice on how to use the server's other tools does not.
    ///
    /// Computed each time: this is for people who look, not for every call.
    pub fn flags(&self, tool: &CatalogTool) -> Vec<Flag> {
        suspicion::of_tool(tool, &|name| self.get(name).is_some())
    }

    /// What is not offered, in the server's order.
    pub fn aside(&self) -> &[SetAside] {
        &self.aside
    }

    /// How many more are not offered than [`aside`](Self::aside) tells.
    pub fn aside_untold(&self) -> usize {
        self.aside_untold
    }

    /// How many tools the server lists, by what becomes of them.
    pub fn count(&self) -> ToolCount {
        ToolCount::of(self.tools.len(), self.aside.iter(), self.aside_untold)
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
