//! The agent: a model that uses the tools of a [`Host`](switchboard::Host).
//!
//! Owns model providers, the turn loop, built-in tools, sub-agents and sessions. It manages no connection, prints
//! nothing, and reads no environment but in [`Agent::from_env`]. Start with [`Agent`].
//!
//! | where | what |
//! |---|---|
//! | [`agent`], [`session`] | what an embedder holds: an agent, and its conversations |
//! | [`events`] | what happens in a turn, as it happens |
//! | [`message`] | what a conversation consists of |
//! | [`provider`] | the seam towards models, and one file for each kind of endpoint |
//! | [`tools`] | built-in tools |
//! | [`sampling`] | servers that ask the agent's model |
//! | [`startup`] | servers coming up before the first turn, and those that are not there |
//! | `context` | what a session has for its whole life |
//! | `turn`, `dispatch` | the loop; calls of the host, and what the model gets of them |
//! | `view`, `instructions` | the tools and texts that stand before every conversation, and stay as they are |
//! | `record`, `conversation` | what is kept of a session, and what follows from it |
//! | `compact`, `budget` | what is done when the window fills; what a turn may cost |

pub mod agent;
mod budget;
mod compact;
mod context;
mod conversation;
mod dispatch;
pub mod events;
mod instructions;
pub mod message;
pub mod provider;
mod record;
pub mod sampling;
pub mod session;
pub mod startup;
pub mod tools;
mod turn;
mod view;

pub use agent::{Agent, AgentOptions};
pub use session::Session;

/// The examples of the README are compiled with the documentation's tests, and the first of them is run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
