//! The tools that a model is told of, in an order that only ever grows at its end.
//!
//! Owns the list that stands in every request. Providers keep what they have read of a request, from its beginning up to
//! the first difference; so built-in tools come first in a fixed order, then the tools of servers by name, then what came
//! later in the order in which it came. A tool goes only between turns: when its server no longer has it, has failed, or
//! is switched off. One whose server is being reconnected stays where it is.

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

/// The share of the window that definitions may take before they are searched for, in per cent.
const SEARCH_PERCENT: u8 = 10;

/// What a session shows its model.
#[derive(Debug, Default)]
pub(crate) struct View {
    definitions: Vec<ToolDefinition>,
    sources: Vec<Source>,
    places: HashMap<String, usize>,
    is_searching: bool,
    /// Tools that belong to the view as soon as they are there: those of a resumed session, and those that were found.
    wanted: Vec<String>,
    /// What the view was last brought up to date with.
    seen: Option<Arc<Catalog>>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    BuiltIn,
    Server(ServerName),
}

/// What there is to show.
pub(crate) struct Offer<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) statuses: &'a [ServerStatus],
    pub(crate) subset: &'a ToolSubset,
    pub(crate) model: &'a Model,
    /// Whether another model was asked before.
    pub(crate) is_new_model: bool,
    pub(crate) mode: SearchMode,
    /// The smallest window with which tools are searched for by themselves.
    pub(crate) min_window: u64,
}

/// When a view is brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Between two turns: tools may come, change and go.
    Turn,
    /// Between two requests of a turn: tools may come.
    Request,
}

/// What has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) began_search: bool,
}

impl Change {
    /// Whether nothing has.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.began_search
    }
}

impl View {
    /// A view of built-in tools, in this order, to which those of a stored session are added as they come.
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
            // Whoever never searches has no use for the tool that does; for others it stands where it came.
            if definition.name != mcp_search::NAME {
                view.push(definition, Source::BuiltIn);
            }
        }
        view
    }

    /// The tools in the order in which the model is told of them.
    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Whether the model is told of a tool of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whether tools of servers are searched for.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// What all of it costs.
    pub(crate) fn tokens(&self) -> Tokens {
        let definitions = self.definitions.iter();
        definitions
            .map(|tool| {
                let characters = [&tool.name, &tool.description, tool.input_schema.get()]
                    .map(|text| text.chars().count());
                Tokens::of_characters(characters.iter().sum())
            })
            .sum()
    }

    /// Adds tools that were found, or that the model knows all the same, from the next request on.
    pub(crate) fn want(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.has(&name) && !self.wanted.contains(&name) {
                self.wanted.push(name);
                self.seen = None;
            }
        }
    }

    /// Brings the view up to date.
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
                // A model that is asked for the first time has kept nothing, and may have no room for what is listed.
                change.removed.extend(self.drop_listed());
            }
            // Whoever may use none but certain tools finds none but those.
            self.wanted.insert(0, search.name.clone());
        }
        self.add_new(offer, search, &mut change);
        self.seen = Some(Arc::clone(offer.catalog));
        change
    }

    /// Takes out what is gone for good, and replaces what has changed where it stands: what a provider has kept ends
    /// there in any case.
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
                    // It belongs to the view again when its server does.
                    if offer.has_failed(server) {
                        self.wanted.push(definition.name.clone());
                    }
                    removed.push(definition.name);
                }
            }
        }
        removed
    }

    /// Takes out all tools of servers.
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
    /// Whether tools of servers are to be searched for.
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

    /// Whether a server that is not connected is about to be, or will be on its next use.
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
