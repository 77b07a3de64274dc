//! An agent on a Switchboard [`Host`]: a model that calls the tools of MCP servers. It has model providers, built-in
//! tools for files and commands, sub-agents, and sessions that survive a crash.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use switchboard::Host;
//! use switchboard_agent::Agent;
//!
//! let host = Host::from_config(".").await?;
//! let agent = Agent::from_env(host).await?;
//! let reply = agent.session(".").send("What is this folder about?").await?;
//! println!("{}", reply.response);
//! # Ok(())
//! # }
//! ```
//!
//! Permission rules of the host decide what the model may call; a call that needs approval is denied unless the host has
//! an [`Approver`]. The crate prints nothing, and reads the environment only in [`Agent::from_env`].
//!
//! | where | what |
//! |---|---|
//! | [`Agent`], [`AgentOptions`] | an agent and its options |
//! | [`Session`], [`Prompt`], [`Reply`] | one agent session, what it is sent and what it returns |
//! | [`SessionEvent`] | the events of a turn, from [`Session::stream`] |
//! | [`message`] | the messages of a session |
//! | [`provider`] | the interface to models, and the providers for Anthropic and OpenAI-compatible endpoints |
//! | [`Sampler`], [`Consent`] | sampling requests of servers, answered with the agent's model |
//!
//! [`Host`]: switchboard::Host
//! [`Approver`]: switchboard::Approver

mod agent;
mod budget;
mod changes;
mod compact;
mod context;
mod conversation;
mod dispatch;
mod events;
mod instructions;
mod lock;
pub mod message;
pub mod provider;
mod record;
mod sampling;
mod session;
mod startup;
mod sub_agents;
mod tools;
mod turn;
mod view;
mod window;

pub use agent::{Agent, AgentOptions, SearchMode, SessionSummary};
pub use changes::{FileChange, UndoError};
pub use events::{CallSummary, EndReason, FailedServer, Reply, SessionEvent};
pub use sampling::{Consent, Sampler, SamplingQuestion};
pub use session::{Prompt, Session, SessionError, SessionId};
pub use sub_agents::{SubAgentState, SubAgentSummary};
pub use tools::Shell;
pub use window::{ToolUse, WindowUse};

/// Re-exports for the tests of this crate. No stability is promised.
#[doc(hidden)]
pub mod internal {
    use std::sync::Arc;

    use crate::tools::{self, LocalTool, Shell};

    /// The built-in tools of a new session.
    pub fn standard(shell: &Shell) -> Vec<Arc<dyn LocalTool>> {
        tools::standard(shell, &Arc::default())
    }
}

/// Compiles the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
