//! List of tools in each request; it only grows at its end within a turn.
//!
//! Providers cache the prefix of a request up to the first difference. So built-in tools come first in a fixed order,
//! then server tools by name, then later ones in order of arrival. Tools are removed only between turns: when the
//! server no longer has them, has failed, or is switched off. Tools of a server that is reconnecting stay.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard::ServerName;
use switchboard::catalog::{Catalog, CatalogTool, Tokens};
use switchboard::internal::call::ToolSubset;
use switchboard::status::{ServerState, ServerStatus};

use crate::agent::SearchMode;
use crate::message::ToolDefinition;
use crate::provider::Model;
use crate::tools::mcp_search;

/// Share of the context window, in per cent, above which tools are found by search.
const SEARCH_PERCENT: u8 = 10;

#[derive(Debug, Default)]
pub(crate) struct View {
    definitions: Vec<ToolDefinition>,
    sources: Vec<Source>,
    places: HashMap<String, usize>,
    is_searching: bool,
    /// Tools to add as soon as they are available: those of a resumed session, and found ones.
    wanted: Vec<String>,
    /// Catalog of the last update.
    seen: Option<Arc<Catalog>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    BuiltIn,
    Server(ServerName),
}

/// Input of an update.
pub(crate) struct Offer<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) statuses: &'a [ServerStatus],
    pub(crate) subset: &'a ToolSubset,
    pub(crate) model: &'a Model,
    /// Whether the previous request used another model.
    pub(crate) is_new_model: bool,
    pub(crate) mode: SearchMode,
    /// Minimum context window for automatic tool search.
    pub(crate) min_window: u64,
}

/// When a view is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Between turns: tools may be added, changed and removed.
    Turn,
    /// Between requests of a turn: tools may be added.
    Request,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) began_search: bool,
}

impl Change {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.began_search
    }
}

impl View {
    /// Starts with built-in tools, in this order. Tools of a resumed session are added as they become available.
    pub(crate) fn new(
        built_ins: impl IntoIterator<Item = ToolDefinition>,
        viewed: &[String],
        is_searching: bool,
    ) -> Self {
        let mut view = Self {
            is_searching,
            wanted: viewed.to_vec(),
            ..Self::default()
        };
        for definition in built_ins {
            // `McpSearch` is added only when search starts.
            if definition.name != mcp_search::NAME {
                view.push(definition, Source::BuiltIn);
            }
        }
        view
    }

    /// In the order of the request.
    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whether server tools are found by search instead of being listed.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Estimated cost of all definitions.
    pub(crate) fn tokens(&self) -> Tokens {
        let definitions = self.definitions.iter();
        definitions.map(definition_tokens).sum()
    }

    /// Adds tools that were found, or called without being listed, from the next request on.
    pub(crate) fn want(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.has(&name) && !self.wanted.contains(&name) {
                self.wanted.push(name);
                self.seen = None;
            }
        }
    }

    pub(crate) fn update(
        &mut self,
        offer: &Offer<'_>,
        search: &ToolDefinition,
        moment: Moment,
    ) -> Change {
        let mut change = Change::default();
        let seen = self.seen.as_ref();
        if moment == Moment::Request && seen.is_some_and(|seen| Arc::ptr_eq(seen, offer.catalog)) {
            return change;
        }
        if moment == Moment::Turn {
            change.removed = self.drop_gone(offer);
        }
        if !self.is_searching && offer.wants_search() {
            self.is_searching = true;
            change.began_search = true;
            if moment == Moment::Turn && offer.is_new_model {
                // A new model has an empty cache, and may have no room for the listed tools.
                change.removed.extend(self.drop_listed());
            }
            // Search results are filtered by the subset.
            self.wanted.insert(0, search.name.clone());
        }
        self.add_new(offer, search, &mut change);
        self.seen = Some(Arc::clone(offer.catalog));
        change
    }

    /// Removes tools that are gone, and replaces changed definitions in place: the cached prefix ends there anyway.
    fn drop_gone(&mut self, offer: &Offer<'_>) -> Vec<String> {
        let mut removed = Vec::new();
        let tools = std::mem::take(&mut self.definitions);
        let sources = std::mem::take(&mut self.sources);
        self.places.clear();
        for (definition, source) in tools.into_iter().zip(sources) {
            let Source::Server(server) = &source else {
                self.push(definition, source);
                continue;
            };
            match offer.catalog.exposed(&definition.name) {
                Some(tool) => {
                    let source = Source::Server(tool.reference().server.clone());
                    let newer = definition_of(tool);
                    let same = newer == definition;
                    self.push(if same { definition } else { newer }, source);
                }
                None if offer.may_return(server) => self.push(definition, source),
                None => {
                    // Added again when the server is back.
                    if offer.has_failed(server) {
                        self.wanted.push(definition.name.clone());
                    }
                    removed.push(definition.name);
                }
            }
        }
        removed
    }

    /// Removes all server tools.
    fn drop_listed(&mut self) -> Vec<String> {
        let tools = std::mem::take(&mut self.definitions);
        let sources = std::mem::take(&mut self.sources);
        self.places.clear();
        let mut removed = Vec::new();
        for (definition, source) in tools.into_iter().zip(sources) {
            match source {
                Source::BuiltIn => self.push(definition, source),
                Source::Server(_) => removed.push(definition.name),
            }
        }
        removed
    }

    fn add_new(&mut self, offer: &Offer<'_>, search: &ToolDefinition, change: &mut Change) {
        let catalog = Arc::clone(offer.catalog);
        for name in std::mem::take(&mut self.wanted) {
            match catalog.exposed(&name) {
                Some(tool) => self.add(tool, offer, change),
                None if name == search.name => {
                    if !self.has(&name) {
                        self.push(search.clone(), Source::BuiltIn);
                        change.added.push(name);
                    }
                }
                None => self.wanted.push(name),
            }
        }
        if !self.is_searching {
            let mut rest: Vec<&CatalogTool> = catalog.iter().collect();
            rest.sort_by(|left, right| left.exposed().cmp(right.exposed()));
            for tool in rest {
                self.add(tool, offer, change);
            }
        }
    }

    fn add(&mut self, tool: &CatalogTool, offer: &Offer<'_>, change: &mut Change) {
        let name = tool.exposed().as_str();
        if !self.has(name) && offer.subset.has(name) {
            let source = Source::Server(tool.reference().server.clone());
            self.push(definition_of(tool), source);
            change.added.push(name.to_owned());
        }
    }

    fn push(&mut self, definition: ToolDefinition, source: Source) {
        if self.has(&definition.name) {
            return;
        }
        self.places
            .insert(definition.name.clone(), self.definitions.len());
        self.definitions.push(definition);
        self.sources.push(source);
    }
}

impl Offer<'_> {
    /// Whether to find server tools by search.
    fn wants_search(&self) -> bool {
        let percent = match self.mode {
            SearchMode::On => return self.model.tools,
            SearchMode::Off => return false,
            SearchMode::Auto => SEARCH_PERCENT,
            SearchMode::AutoFrom(percent) => percent,
        };
        let tools = self.catalog.iter();
        let usable = tools.filter(|tool| self.subset.has(tool.exposed().as_str()));
        let cost: Tokens = usable.map(CatalogTool::tokens).sum();
        let share = u128::from(self.model.window) * u128::from(percent);
        self.model.tools
            && self.model.window >= self.min_window
            && cost.0 > 0
            && u128::from(cost.0) * 100 >= share
    }

    fn state_of(&self, server: &ServerName) -> Option<&ServerState> {
        let mut statuses = self.statuses.iter();
        let status = statuses.find(|status| status.name == *server);
        status.map(|status| &status.state)
    }

    /// Whether a disconnected server is about to reconnect, or will on its next use.
    fn may_return(&self, server: &ServerName) -> bool {
        let state = self.state_of(server);
        state.is_some_and(|state| state.waits_for_use() || !state.is_settled())
    }

    fn has_failed(&self, server: &ServerName) -> bool {
        matches!(self.state_of(server), Some(ServerState::Failed { .. }))
    }
}

fn definition_of(tool: &CatalogTool) -> ToolDefinition {
    let view = tool.model_view();
    ToolDefinition {
        name: view.name.to_owned(),
        description: view.description.into_owned(),
        input_schema: view.input_schema.to_owned(),
    }
}
/// Estimated cost of a definition.
pub(crate) fn definition_tokens(tool: &ToolDefinition) -> Tokens {
    let texts = [&tool.name, &tool.description, tool.input_schema.get()];
    let characters = texts.map(|text| text.chars().count());
    Tokens::of_characters(characters.iter().sum())
}
