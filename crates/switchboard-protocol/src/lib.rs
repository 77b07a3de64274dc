//! JSON-RPC and MCP messages of every revision, decoded leniently and without copying.
//!
//! The crate owns what goes over the wire and the rules of both protocol eras. It does no I/O, starts no
//! task, reads no clock and keeps no state: bytes and facts come in, values come out.
//!
//! | where | what |
//! |---|---|
//! | [`parse()`] | bytes to [`Incoming`] messages, with the peer's sloppiness forgiven and named |
//! | [`message`], [`id`], [`error`] | the envelope: requests, notifications, responses, ids, error objects |
//! | [`encode`] | whole messages appended to a buffer, always on one line |
//! | [`limits`] | size, depth and count, and the scan that measures depth |
//! | [`method`], [`revision`] | which methods and features each revision has |
//! | [`meta`] | the `_meta` an era wants, merged into raw params, and read back |
//! | [`headers`], [`param_headers`] | HTTP headers to send and to check, `x-mcp-header` mirroring |
//! | [`types`], [`text`] | the MCP types, the union of all revisions, and text that is unescaped only when looked at |
//! | [`negotiate`] | what an answer means for the era and the revision (client side) |
//! | [`serve`] | how a request opens, and how a bad opening is refused (server side) |

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
pub use string_scan::{StringEnd, end_of_string};
