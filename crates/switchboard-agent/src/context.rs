//! State that lasts as long as a session: its tools, folder and model.
//!
//! A sub-agent gets its own context, with a subset of the tools, on the same host.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use switchboard_config::sort;

use switchboard::internal::call::local::LocalTools;
use switchboard::internal::call::spill::SpillFolder;
use switchboard::internal::call::{CallContext, ToolSubset};
use switchboard::internal::permissions::NameGlob;
use switchboard::status::ServerStatus;
use switchboard_config::confusable::BUILT_INS;
use switchboard_store::Store;

use crate::agent::AgentOptions;
use crate::changes::Changes;
use crate::events::FailedServer;
use crate::instructions::Audience;
use crate::message::ToolDefinition;
use crate::provider::Provider;
use crate::session::{SessionError, SessionId};
use crate::sub_agents::SubAgents;
use crate::tools::mcp_resources::{ListMcpResources, ReadMcpResource};
use crate::tools::mcp_search::{self, Found, McpSearch};
use crate::tools::{self, LocalTool, agent};

/// Maximum nesting depth of sub-agents.
const MAX_DEPTH: u32 = 2;

/// What a session shares with its sub-agents.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) agents: Arc<SubAgents>,
    pub(crate) changes: Arc<Changes>,
}

impl Shared {
    /// Loads that of a stored session.
    pub(crate) async fn read(store: &dyn Store, id: &SessionId) -> Result<Self, SessionError> {
        Ok(Self {
            agents: Arc::new(SubAgents::read(store, id).await?),
            changes: Arc::new(Changes::read(store, id).await?),
        })
    }
}

pub(crate) struct AgentContext {
    pub(crate) options: Arc<AgentOptions>,
    pub(crate) id: SessionId,
    /// Passed to the host with every call.
    pub(crate) calls: CallContext,
    pub(crate) found: Found,
    pub(crate) shared: Shared,
    /// Built-in tools, including `Agent`, in the order of the request.
    definitions: Vec<ToolDefinition>,
    provider: RwLock<Arc<dyn Provider>>,
    depth: u32,
}

/// What differs between a session and its sub-agents.
struct Frame {
    provider: Arc<dyn Provider>,
    subset: ToolSubset,
    shared: Shared,
    depth: u32,
}

impl AgentContext {
    pub(crate) fn new(
        options: Arc<AgentOptions>,
        id: SessionId,
        workspace: &Path,
        shared: Shared,
    ) -> Self {
        let frame = Frame {
            provider: Arc::clone(&options.provider),
            subset: ToolSubset::default(),
            shared,
            depth: 0,
        };
        Self::with(options, id, workspace, frame)
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
            Frame {
                provider: self.provider(),
                subset,
                shared: self.shared.clone(),
                depth: self.depth + 1,
            },
        )
    }

    fn with(options: Arc<AgentOptions>, id: SessionId, workspace: &Path, frame: Frame) -> Self {
        let Frame {
            provider,
            subset,
            shared,
            depth,
        } = frame;
        let found = Found::default();
        let mut tools: Vec<Arc<dyn LocalTool>> = tools::standard(&options.shell, &shared.changes);
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
        sort::by_key(&mut definitions, place);
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
            shared,
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
