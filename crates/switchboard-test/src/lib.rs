//! Support for the tests and benchmarks of the other crates. An internal crate, never published.
//!
//! | where | what |
//! |---|---|
//! | [`shared`] | the protocol's schemas and examples, if they are next to the repository |
//! | [`mod@skipped`] | reports checks that are skipped on this machine |
//! | [`authorization`] | a fake MCP server that requires a login, with its authorization server |
//! | [`scripted`] | scripted MCP servers over every transport, with fault injection |
//! | `hosted` | tests with a host: server specs, events, leak checks (feature `host`) |
//! | [`model`] | a scripted model endpoint in the wire formats of Anthropic and `OpenAI` |
//! | [`interop`] | third-party servers, from npm and `PyPI` |
//! | [`mod@bench`] | shared code of the benchmark clients of `cargo xtask bench` |
//! | `src/bin` | `scripted-server`, `rmcp-server`, `echo-server`, `conformance-client`, `conformance-server`, and the clients of the benchmark |
//!
//! All but [`shared`], [`mod@skipped`] and [`authorization`] needs the feature `servers`, so that the tests of small
//! crates build fast.

pub mod authorization;
pub mod shared;
pub mod skipped;

#[cfg(feature = "servers")]
pub mod bench;
#[cfg(all(feature = "servers", feature = "host"))]
pub mod hosted;
#[cfg(feature = "servers")]
pub mod interop;
#[cfg(feature = "servers")]
pub mod model;
#[cfg(feature = "servers")]
pub mod scripted;
#[cfg(feature = "servers")]
pub mod tool_sets;
