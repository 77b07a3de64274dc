//! The native module of the Node package: converts values, and nothing else.
//!
//! The JavaScript in `lib/` owns promises, callbacks and classes; this module starts operations and reports back. All
//! reports of an environment (the main thread or a worker) go through one threadsafe function, so that a call costs one
//! message and results keep their order.
//!
//! | module | contents |
//! |---|---|
//! | `bridge` | the messages to JavaScript, operations under way, questions without an answer |
//! | `host` | the host and its events |
//! | `agent` | the agent, its sessions and turns |
//! | `values` | results, tools and failures |
#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments are converted from JavaScript into values of their own"
)]

mod agent;
mod bridge;
mod host;
mod values;
