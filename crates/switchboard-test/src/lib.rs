//! Support for the tests and benchmarks of the other crates, and a dependency of nothing else.
//!
//! | where | what |
//! |---|---|
//! | [`shared`] | the protocol's schemas and examples, where they lie beside the repository |
//! | [`mod@skipped`] | checks that cannot be made on this machine, and how that is told |
//! | [`authorization`] | an MCP server behind a login, with its authorization server |
//! | [`scripted`] | servers that do what a script says, over every transport, with faults to arm |
//! | `hosted` | a host in a test: its servers, what it tells, what it holds (feature `host`) |
//! | [`model`] | a model that says what a script says, in the wire formats of both kinds of endpoint |
//! | [`interop`] | the servers of others, from npm and `PyPI` |
//! | [`mod@bench`] | what the clients of `cargo xtask bench` have in common |
//! | `src/bin` | `scripted-server`, `rmcp-server`, `echo-server`, `conformance-client`, `conformance-server`, and the clients of the benchmark |
//!
//! All but [`shared`], [`mod@skipped`] and [`authorization`] is behind the feature `servers`, so that the tests of small crates stay cheap.

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
