//! The catalogue of all connected servers: an immutable snapshot with one order and one name registry.
//!
//! Servers and tools are sorted by name, regardless of the connection order, so that the same servers yield the same
//! text for a model on every turn and run. Names are looked up here and never parsed. Conflicts between servers are
//! resolved here: a tool that claims to be another server's, and two tools with one exposed name, of which the first in
//! order wins.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::quality::RandomState;
use switchboard_config::text::visible;

use super::count::ToolCount;
use super::impersonation::{Impersonation, KnownServers, NameOrTitle};
use super::server::{ServerTools, SetAside, SetAsideReason};
use super::suspicion::Flag;
use super::text::{self, Tokens};
use super::tool::CatalogTool;
use crate::names::{ExposedName, ServerName, ToolRef};

/// Maximum number of suggestions in an error.
const MAX_SUGGESTIONS: usize = 3;

/// Minimum similarity of a suggestion.
const ALIKE: f64 = 0.75;

/// Maximum length of a query that is compared with names, in characters.
const MAX_QUERY: usize = 160;

/// Tools of all connected servers.
#[derive(Debug, Default)]
pub struct Catalog {
    servers: Vec<CatalogServer>,
    by_exposed: ExposedMap,
}

/// Position of each tool, as server and index. Looked up on every call, hence the fast hash, with random seeds.
type ExposedMap = HashMap<ExposedName, (u32, u32), RandomState>;

/// One server of the catalogue.
#[derive(Debug)]
pub struct CatalogServer {
    name: ServerName,
    tools: Arc<ServerTools>,
    instructions: Option<Arc<str>>,
    /// Tools that conflict with another server's, by position.
    withheld: Vec<(usize, SetAside)>,
    tokens: Tokens,
}

/// Remedy if something new cannot be pinned.
pub const NOT_PINNED_HINT: &str = "make the state folder writable, or set SWITCHBOARD_STATE_DIR to one that is; `pins = \"best-effort\"` in your [settings] offers new tools without a pin";

/// Remedy if the pins cannot be read.
pub const PINS_UNREADABLE_HINT: &str =
    "repair or move the state database; run `switchboard doctor` for details";

/// Error of a tool lookup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// No tool has this name.
    #[error("no tool named \"{}\"", visible(.name))]
    Unknown {
        /// Name that was looked up, truncated.
        name: String,
        /// Similar exposed names, most similar first.
        nearest: Vec<ExposedName>,
    },
    /// Several tools match.
    #[error("\"{}\" is ambiguous", visible(.name))]
    Ambiguous {
        /// Name that was looked up, truncated.
        name: String,
        /// Exposed names of the matching tools.
        candidates: Vec<ExposedName>,
    },
    /// The tool exists and is set aside.
    #[error("the tool \"{}\" is set aside: {reason}", visible(.name))]
    SetAside {
        /// Name that was looked up, truncated.
        name: String,
        /// Reason why it is set aside.
        reason: SetAsideReason,
    },
}

impl LookupError {
    /// Returns a remedy for users and models, if one is known.
    pub fn hint(&self) -> Option<String> {
        let list = |names: &[ExposedName]| {
            names
                .iter()
                .map(ExposedName::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self {
            Self::Unknown { nearest, .. } if nearest.is_empty() => None,
            Self::Unknown { nearest, .. } => Some(format!("did you mean {}?", list(nearest))),
            Self::Ambiguous { candidates, .. } => Some(format!("use one of {}", list(candidates))),
            Self::SetAside {
                reason: SetAsideReason::Changed { tool, .. } | SetAsideReason::Renamed { tool, .. },
                ..
            } => Some(format!(
                "the user has to review the change with `switchboard pins diff {tool}` and approve it"
            )),
            Self::SetAside {
                reason: SetAsideReason::NotPinned { .. },
                ..
            } => Some(NOT_PINNED_HINT.to_owned()),
            Self::SetAside {
                reason: SetAsideReason::PinsUnreadable { .. },
                ..
            } => Some(PINS_UNREADABLE_HINT.to_owned()),
            Self::SetAside { .. } => None,
        }
    }
}

impl Catalog {
    /// Builds the catalogue. `known` are all configured servers; a server that is not admitted there is skipped.
    #[doc(hidden)]
    pub fn assemble(
        known: &KnownServers,
        offers: impl IntoIterator<Item = (ServerName, Arc<ServerTools>, Option<Arc<str>>)>,
    ) -> Self {
        let mut servers: Vec<CatalogServer> = offers
            .into_iter()
            .filter(|(name, ..)| known.is_admitted(name))
            .map(|(name, tools, instructions)| CatalogServer {
                name,
                tools,
                instructions,
                withheld: Vec::new(),
                tokens: Tokens::default(),
            })
            .collect();
        servers.sort_by(|left, right| left.name.cmp(&right.name));
        // Each server is connected once; of two entries the first is used.
        servers.dedup_by(|later, earlier| later.name == earlier.name);

        let count = servers
            .iter()
            .map(|server| server.tools.tools().len())
            .sum();
        let mut by_exposed: ExposedMap =
            ExposedMap::with_capacity_and_hasher(count, RandomState::default());
        let lists: Vec<Arc<ServerTools>> = servers
            .iter()
            .map(|server| Arc::clone(&server.tools))
            .collect();
        for (position, server) in servers.iter_mut().enumerate() {
            for (index, tool) in server.tools.tools().iter().enumerate() {
                match refuse(known, tool, &by_exposed, &lists) {
                    None => {
                        let place = (to_u32(position), to_u32(index));
                        by_exposed.insert(tool.exposed().clone(), place);
                        server.tokens += tool.tokens();
                    }
                    Some(reason) => {
                        let name = Some(tool.reference().tool.as_str().to_owned());
                        server.withheld.push((index, SetAside { name, reason }));
                    }
                }
            }
        }
        Self {
            servers,
            by_exposed,
        }
    }

    /// Servers, sorted by name.
    pub fn servers(&self) -> &[CatalogServer] {
        &self.servers
    }

    /// Returns the server with that name.
    pub fn server(&self, name: &str) -> Option<&CatalogServer> {
        self.servers
            .binary_search_by(|server| server.name.as_str().cmp(name))
            .ok()
            .and_then(|position| self.servers.get(position))
    }

    /// All offered tools in catalogue order.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogTool> {
        self.servers.iter().flat_map(CatalogServer::tools)
    }

    /// Number of offered tools.
    pub fn len(&self) -> usize {
        self.by_exposed.len()
    }

    /// Whether no tools are offered.
    pub fn is_empty(&self) -> bool {
        self.by_exposed.is_empty()
    }

    /// Returns the tool with that exposed name.
    pub fn exposed(&self, name: &str) -> Option<&CatalogTool> {
        let (server, tool) = *self.by_exposed.get(name)?;
        self.servers
            .get(server as usize)?
            .tools
            .tools()
            .get(tool as usize)
    }

    /// Returns the offered tool with that reference.
    pub fn get(&self, reference: &ToolRef) -> Option<&CatalogTool> {
        self.server(reference.server.as_str())?
            .get(reference.tool.as_str())
    }

    /// Finds a tool by exposed name, `server/tool` or `server.tool`.
    pub fn find(&self, name: &str) -> Result<&CatalogTool, LookupError> {
        if let Some(tool) = self.exposed(name) {
            return Ok(tool);
        }
        let found: Vec<&CatalogTool> = splits(name)
            .filter_map(|(server, tool)| self.server(server)?.get(tool))
            .collect();
        match found.as_slice() {
            [tool] => Ok(tool),
            [] => Err(self.unknown(name)),
            several => Err(LookupError::Ambiguous {
                name: shortened(name),
                candidates: several.iter().map(|tool| tool.exposed().clone()).collect(),
            }),
        }
    }

    /// All set-aside tools, with their servers.
    pub fn aside(&self) -> impl Iterator<Item = (&ServerName, &SetAside)> {
        self.servers
            .iter()
            .flat_map(|server| server.aside().map(|aside| (&server.name, aside)))
    }

    /// Token cost of all tool definitions for a model.
    pub fn tokens(&self) -> Tokens {
        self.servers.iter().map(|server| server.tokens).sum()
    }

    fn unknown(&self, name: &str) -> LookupError {
        let aside = splits(name).find_map(|(server, tool)| {
            let mut aside = self.server(server)?.aside();
            aside.find(|aside| aside.name.as_deref() == Some(tool))
        });
        let aside = aside.or_else(|| {
            self.aside().find_map(|(server, aside)| {
                let tool = aside.name.as_deref()?;
                let exposed = super::exposed::exposed_name(server.as_str(), tool);
                (exposed.as_str() == name).then_some(aside)
            })
        });
        match aside {
            Some(aside) => LookupError::SetAside {
                name: shortened(name),
                reason: aside.reason.clone(),
            },
            None => LookupError::Unknown {
                name: shortened(name),
                nearest: self.nearest(name),
            },
        }
    }

    fn nearest(&self, name: &str) -> Vec<ExposedName> {
        let query = text::first_characters(name, MAX_QUERY).to_lowercase();
        // `server/tool` and `server.tool` are compared in the exposed form.
        let as_exposed = query.replacen(['/', '.'], super::exposed::SEPARATOR, 1);
        let mut scored: Vec<(f64, &ExposedName)> = Vec::new();
        for tool in self.iter() {
            let exposed = tool.exposed().as_str();
            let short = exposed
                .strip_prefix(super::exposed::PREFIX)
                .unwrap_or(exposed);
            let own = tool.reference().tool.as_str();
            let likeness = likeness(&as_exposed, short)
                .max(likeness(&query, exposed))
                .max(likeness(&query, own));
            if likeness >= ALIKE {
                scored.push((likeness, tool.exposed()));
            }
        }
        scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
        scored
            .into_iter()
            .take(MAX_SUGGESTIONS)
            .map(|(_, name)| name.clone())
            .collect()
    }
}

impl CatalogServer {
    /// Name of the server.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Offered tools, sorted by name.
    pub fn tools(&self) -> impl Iterator<Item = &CatalogTool> {
        let mut withheld = self.withheld.iter().map(|(index, _)| *index).peekable();
        self.tools
            .tools()
            .iter()
            .enumerate()
            .filter(move |(index, _)| withheld.next_if_eq(index).is_none())
            .map(|(_, tool)| tool)
    }

    /// Returns the suspicious passages of a tool. References to the server's other tools are not suspicious.
    pub fn flags(&self, tool: &CatalogTool) -> Vec<Flag> {
        self.tools.flags(tool)
    }

    /// Returns the offered tool with that wire name.
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        let position = self.tools.position(name)?;
        let is_withheld = self
            .withheld
            .binary_search_by_key(&position, |(index, _)| *index)
            .is_ok();
        if is_withheld {
            None
        } else {
            self.tools.tools().get(position)
        }
    }

    /// Tools that are listed but not offered.
    pub fn aside(&self) -> impl Iterator<Item = &SetAside> {
        self.tools
            .aside()
            .iter()
            .chain(self.withheld.iter().map(|(_, aside)| aside))
    }

    /// Counts the listed tools by status.
    pub fn count(&self) -> ToolCount {
        let offered = self.tools.tools().len() - self.withheld.len();
        ToolCount::of(offered, self.aside(), self.tools.aside_untold())
    }

    /// Whether its instructions are withheld because they differ from their pin.
    pub fn withholds_instructions(&self) -> bool {
        self.tools.withholds_instructions()
    }

    /// Token cost of its tools.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// All usable tools, including those that conflict with another server's.
    pub(crate) fn list(&self) -> &Arc<ServerTools> {
        &self.tools
    }

    /// Positions in [`list`](Self::list) that conflict with another server's tools.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = usize> {
        self.withheld.iter().map(|(index, _)| *index)
    }

    pub(crate) fn shared_instructions(&self) -> Option<&Arc<str>> {
        self.instructions.as_ref()
    }

    /// Instructions in full, as the server wrote them.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Instructions for a model: sanitized and truncated.
    pub fn model_instructions(&self) -> Option<std::borrow::Cow<'_, str>> {
        let instructions = self.instructions.as_deref()?.trim();
        let limit = self.tools.description_limit;
        (!instructions.is_empty()).then(|| text::for_model(instructions, limit))
    }
}

fn refuse(
    known: &KnownServers,
    tool: &CatalogTool,
    taken: &ExposedMap,
    lists: &[Arc<ServerTools>],
) -> Option<SetAsideReason> {
    if tool.may_claim {
        let server = &tool.reference().server;
        let claim = |what: NameOrTitle, text: &str| {
            let other = known.claimed(server, text)?.clone();
            Some(SetAsideReason::Impersonation(Impersonation::OthersTool {
                what,
                other,
            }))
        };
        let claimed = claim(NameOrTitle::Name, tool.reference().tool.as_str())
            .or_else(|| claim(NameOrTitle::Title, &tool.title()?));
        if claimed.is_some() {
            return claimed;
        }
    }
    let (server, index) = *taken.get(tool.exposed())?;
    let other = lists.get(server as usize)?.tools().get(index as usize)?;
    Some(SetAsideReason::NameTaken {
        other: other.reference().clone(),
    })
}

/// Similarity of a lower-case query and a name, from 0 to 1. Very different lengths are not compared.
fn likeness(query: &str, name: &str) -> f64 {
    let (shorter, longer) = (query.len().min(name.len()), query.len().max(name.len()));
    // Both are about a hundred bytes, so the conversion is exact.
    #[expect(clippy::cast_precision_loss, reason = "names and queries are short")]
    let most = if longer == 0 {
        0.0
    } else {
        shorter as f64 / longer as f64
    };
    if most < ALIKE {
        return 0.0;
    }
    strsim::normalized_levenshtein(query, &name.to_lowercase())
}

/// Every split into `server/tool` or `server.tool`; names may contain both characters.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.match_indices(['/', '.'])
        .take(MAX_QUERY)
        .map(|(at, separator)| (&name[..at], &name[at + separator.len()..]))
}

fn shortened(name: &str) -> String {
    text::first_characters(name, MAX_QUERY).to_owned()
}

/// Cannot overflow: servers and tools are bounded.
fn to_u32(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
