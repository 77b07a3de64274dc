//! State that lasts as long as a session: its tools, folder and model.
//!
//! A sub-agent gets its own context, with a subset of the tools, on the same host.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use switchboard::internal::call::local::LocalTools;
use switchboard::internal::call::spill::SpillFolder;
use switchboard::internal::call::{CallContext, ToolSubset};
use switchboard::internal::permissions::NameGlob;
use switchboard::status::ServerStatus;
use switchboard_config::confusable::BUILT_INS;

use crate::agent::AgentOptions;
use crate::events::FailedServer;
use crate::instructions::Audience;
use crate::message::ToolDefinition;
use crate::provider::Provider;
use crate::session::SessionId;
use crate::tools::mcp_resources::{ListMcpResources, ReadMcpResource};
use crate::tools::mcp_search::{self, Found, McpSearch};
use crate::tools::{self, LocalTool, agent};

/// Maximum nesting depth of sub-agents.
const MAX_DEPTH: u32 = 2;

pub(crate) struct AgentContext {
    pub(crate) options: Arc<AgentOptions>,
    pub(crate) id: SessionId,
    /// Passed to the host with every call.
    pub(crate) calls: CallContext,
    pub(crate) found: Found,
    /// Built-in tools, including `Agent`, in the order of the request.
    definitions: Vec<ToolDefinition>,
    provider: RwLock<Arc<dyn Provider>>,
    depth: u32,
}

impl AgentContext {
    pub(crate) fn new(options: Arc<AgentOptions>, id: SessionId, workspace: &Path) -> Self {
        let provider = Arc::clone(&options.provider);
        Self::with(options, id, workspace, ToolSubset::default(), provider, 0)
    }

    /// Creates the context of a sub-agent, limited to the tools that match the patterns.
    pub(crate) fn of_sub_agent(&self, patterns: Option<Vec<NameGlob>>) -> Self {
        let subset = match patterns {
            Some(patterns) => self.calls.subset.narrowed(patterns),
            None => self.calls.subset.clone(),
        };
        Self::with(
            Arc::clone(&self.options),
            self.id.clone(),
            &self.calls.workspace,
            subset,
            self.provider(),
            self.depth + 1,
        )
    }

    fn with(
        options: Arc<AgentOptions>,
        id: SessionId,
        workspace: &Path,
        subset: ToolSubset,
        provider: Arc<dyn Provider>,
        depth: u32,
    ) -> Self {
        let found = Found::default();
        let mut tools: Vec<Arc<dyn LocalTool>> = tools::standard(&options.shell);
        tools.push(Arc::new(ListMcpResources(options.host.clone())));
        tools.push(Arc::new(ReadMcpResource(options.host.clone())));
        tools.push(Arc::new(McpSearch {
            host: options.host.clone(),
            subset: subset.clone(),
            found: found.clone(),
        }));
        tools.extend(options.tools.iter().cloned());
        // `McpSearch` is always offered; its hits are filtered by the subset.
        let is_used = |name: &str| name == mcp_search::NAME || subset.has(name);
        tools.retain(|tool| is_used(&tool.definition().name));
        let tools = LocalTools::new(tools);
        let mut definitions: Vec<ToolDefinition> = tools.definitions().cloned().collect();
        if depth < MAX_DEPTH && is_used(agent::NAME) {
            definitions.push(agent::tool_definition());
        }
        // The order is part of every request, so it must depend on the tools alone: anything else breaks prompt
        // caching.
        let place = |tool: &ToolDefinition| {
            let place = BUILT_INS.iter().position(|name| *name == tool.name);
            place.unwrap_or(BUILT_INS.len())
        };
        definitions.sort_by_key(place);
        let calls = CallContext {
            session: id.to_string(),
            tools,
            subset,
            workspace: workspace.to_owned(),
            max_output_tokens: options.max_output_tokens,
            spill: options.spill_folder.clone().map(SpillFolder::new),
        };
        Self {
            options,
            id,
            calls,
            found,
            definitions,
            provider: RwLock::new(provider),
            depth,
        }
    }

    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        let provider = self.provider.read();
        Arc::clone(&provider.unwrap_or_else(PoisonError::into_inner))
    }

    /// Switches the model.
    pub(crate) fn set_provider(&self, provider: Arc<dyn Provider>) {
        let mut current = self
            .provider
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = provider;
    }

    /// The built-in tool of that name.
    pub(crate) fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        self.definitions.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn definitions(&self) -> impl Iterator<Item = ToolDefinition> {
        self.definitions.iter().cloned()
    }

    /// Configured servers without available tools, with the reason, sorted by name.
    pub(crate) fn failed_servers(&self) -> Vec<FailedServer> {
        let statuses = self.options.host.statuses();
        let absent = statuses.iter().filter_map(ServerStatus::absence);
        absent.map(FailedServer::from).collect()
    }

    /// Which system prompt the model gets.
    pub(crate) fn audience(&self) -> Audience {
        if self.depth == 0 {
            Audience::Agent
        } else {
            Audience::SubAgent
        }
    }
}
