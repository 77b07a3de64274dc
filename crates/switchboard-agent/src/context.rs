//! What a session has for its whole life, whatever is said in it: its tools, its folder, its model.
//!
//! A sub-agent has one of its own, with fewer tools, on the same host.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use switchboard::call::spill::SpillFolder;
use switchboard::catalog::impersonation::BUILT_INS;
use switchboard::permissions::NameGlob;
use switchboard::status::ServerStatus;

use crate::agent::AgentOptions;
use crate::dispatch::{BuiltIn, BuiltInKind};
use crate::events::FailedServer;
use crate::instructions::Audience;
use crate::message::ToolDefinition;
use crate::provider::Provider;
use crate::session::SessionId;
use crate::tools::mcp_resources::{ListMcpResources, ReadMcpResource};
use crate::tools::mcp_search::{self, Found, McpSearch};
use crate::tools::{self, Tool, agent};
use crate::view::Subset;

/// How deep agents may give tasks to agents.
const MAX_DEPTH: u32 = 2;

/// What a session, or a sub-agent, has.
pub(crate) struct AgentContext {
    pub(crate) options: Arc<AgentOptions>,
    pub(crate) id: SessionId,
    pub(crate) workspace: PathBuf,
    pub(crate) built_ins: Vec<BuiltIn>,
    pub(crate) subset: Subset,
    pub(crate) found: Found,
    pub(crate) spill: Option<SpillFolder>,
    provider: RwLock<Arc<dyn Provider>>,
    depth: u32,
}

impl AgentContext {
    /// Of a session.
    pub(crate) fn new(options: Arc<AgentOptions>, id: SessionId, workspace: &Path) -> Self {
        let provider = Arc::clone(&options.provider);
        Self::with(options, id, workspace, Subset::default(), provider, 0)
    }

    /// Of a sub-agent that may use no more than what fits the patterns.
    pub(crate) fn of_sub_agent(&self, patterns: Option<Vec<NameGlob>>) -> Self {
        let subset = match patterns {
            Some(patterns) => self.subset.narrowed(patterns),
            None => self.subset.clone(),
        };
        Self::with(
            Arc::clone(&self.options),
            self.id.clone(),
            &self.workspace,
            subset,
            self.provider(),
            self.depth + 1,
        )
    }

    fn with(
        options: Arc<AgentOptions>,
        id: SessionId,
        workspace: &Path,
        subset: Subset,
        provider: Arc<dyn Provider>,
        depth: u32,
    ) -> Self {
        let found = Found::default();
        let mut tools: Vec<Arc<dyn Tool>> = tools::standard(&options.shell);
        tools.push(Arc::new(ListMcpResources(options.host.clone())));
        tools.push(Arc::new(ReadMcpResource(options.host.clone())));
        tools.push(Arc::new(McpSearch {
            host: options.host.clone(),
            subset: subset.clone(),
            found: found.clone(),
        }));
        tools.extend(options.tools.iter().cloned());
        let mut built_ins: Vec<BuiltIn> = tools
            .into_iter()
            .map(|tool| BuiltIn::new(tool.definition(), BuiltInKind::Tool(tool)))
            .collect();
        if depth < MAX_DEPTH {
            built_ins.push(BuiltIn::new(agent::tool_definition(), BuiltInKind::Agent));
        }
        // The order is part of every request, so it may depend on nothing but the tools themselves.
        let place = |tool: &BuiltIn| {
            let place = BUILT_INS
                .iter()
                .position(|name| *name == tool.definition.name);
            place.unwrap_or(BUILT_INS.len())
        };
        built_ins.sort_by_key(place);
        built_ins.retain(|tool| {
            // Tools are found among those that one may use.
            tool.definition.name == mcp_search::NAME || subset.has(&tool.definition.name)
        });
        let spill = options.spill_folder.clone().map(SpillFolder::new);
        Self {
            options,
            id,
            workspace: workspace.to_owned(),
            built_ins,
            subset,
            found,
            spill,
            provider: RwLock::new(provider),
            depth,
        }
    }

    /// The model.
    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        let provider = self.provider.read();
        Arc::clone(&provider.unwrap_or_else(PoisonError::into_inner))
    }

    /// Uses another model.
    pub(crate) fn set_provider(&self, provider: Arc<dyn Provider>) {
        let mut current = self
            .provider
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = provider;
    }

    /// The built-in tool of that name.
    pub(crate) fn built_in(&self, name: &str) -> Option<&BuiltIn> {
        let mut built_ins = self.built_ins.iter();
        built_ins.find(|tool| tool.definition.name == name)
    }

    /// What the model is told of built-in tools, in order.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = ToolDefinition> {
        self.built_ins.iter().map(|tool| tool.definition.clone())
    }

    /// Every configured server whose tools are not there, with the reason, in the order of their names.
    pub(crate) fn failed_servers(&self) -> Vec<FailedServer> {
        let statuses = self.options.host.statuses();
        let absent = statuses.iter().filter_map(ServerStatus::absence);
        let mut failed: Vec<FailedServer> = absent.map(FailedServer::from).collect();
        let is_known = |name: &str| statuses.iter().any(|status| status.name.as_str() == name);
        let unavailable = self.options.unavailable.get().into_iter();
        failed.extend(unavailable.filter(|server| !is_known(&server.name)));
        failed.sort_by(|one, other| one.name.cmp(&other.name));
        failed
    }

    /// Who is told what to do.
    pub(crate) fn audience(&self) -> Audience {
        if self.depth == 0 {
            Audience::Agent
        } else {
            Audience::SubAgent
        }
    }
}
