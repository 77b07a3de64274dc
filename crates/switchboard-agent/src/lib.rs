//! The agent: a model that uses the tools of a [`Host`](switchboard::Host).
//!
//! Owns model providers, the turn loop, built-in tools, sub-agents and sessions. It manages no connection, prints
//! nothing and reads no environment. Start with [`Agent`].
//!
//! | where | what |
//! |---|---|
//! | [`agent`], [`session`] | what an embedder holds: an agent, and its conversations |
//! | [`events`] | what happens in a turn, as it happens |
//! | [`message`] | what a conversation consists of |
//! | [`provider`] | the seam towards models, and one file for each kind of endpoint |
//! | [`tools`] | built-in tools |

pub mod agent;
pub mod events;
pub mod message;
pub mod provider;
pub mod session;
pub mod tools;

pub use agent::{Agent, AgentOptions};
pub use session::Session;
