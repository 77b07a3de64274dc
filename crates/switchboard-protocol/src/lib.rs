//! JSON-RPC and MCP messages of every revision from 2024-11-05 to 2026-07-28, decoded leniently and without copying. The
//! crate does no I/O, starts no task, reads no clock and has no state.
//!
//! ```
//! use switchboard_protocol::Revision;
//!
//! let revision: Option<Revision> = "2025-06-18".parse().ok();
//! assert!(revision.is_some());
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`parse()`] | bytes to [`Incoming`] messages, leniently; deviations are reported as quirks |
//! | [`message`], [`id`], [`error`] | the envelope: requests, notifications, responses, ids, error objects |
//! | [`encode`] | complete messages appended to a buffer, each on one line |
//! | [`limits`] | limits on size, depth and count, and the depth scan |
//! | [`method`], [`revision`] | the methods and features of each revision |
//! | [`meta`] | the `_meta` of each era, merged into raw params and parsed |
//! | [`headers`], [`param_headers`] | HTTP headers to send and to check, `x-mcp-header` mirroring |
//! | [`cursor`] | walks valid JSON text without copying |
//! | [`types`], [`text`] | the MCP types, the union of all revisions; strings that are unescaped lazily |
//! | [`negotiate`] | era and revision negotiation, client side |
//! | [`serve`] | era and revision negotiation, server side |

pub mod cursor;
pub mod encode;
pub mod error;
pub mod headers;
pub mod id;
pub mod limits;
pub mod message;
pub mod meta;
pub mod method;
pub mod negotiate;
pub mod param_headers;
pub mod parse;
pub mod revision;
pub mod serve;
pub mod text;
pub mod types;

mod decimal;
mod macros;
mod printable;
mod prune;
mod raw;
mod salvage;
mod scan;
mod string_scan;

pub use error::{ErrorCode, ErrorObject};
pub use id::RequestId;
pub use limits::Limits;
pub use message::{Incoming, Message, Quirk, Quirks, Received};
pub use method::Method;
pub use parse::{ParseError, ParseErrorKind, parse};
pub use prune::{TOO_DEEP, shallow_page};
pub use raw::trusted;
pub use revision::{Era, Feature, Revision};
pub use salvage::{Salvaged, salvage};
