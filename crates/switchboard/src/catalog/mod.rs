//! The catalogue: the tools of all connected servers, as agents may see them.
//!
//! Turns raw `tools/list` results into tools with safe, unique names, bounded and sanitized text, and schemas that
//! model providers accept. Pure: no I/O, no waiting, no connection state. Servers' texts stay in the buffers they
//! arrived in; rarely needed fields are decoded lazily.
//!
//! | where | what |
//! |---|---|
//! | [`ServerTools`] | one server's tools, from its pages and the user's rules; tools set aside, with reasons |
//! | [`CatalogTool`] | one tool: reference, exposed name, definition, and the view a model gets of it |
//! | [`Catalog`] | the snapshot over all servers: order, lookup, token cost |
//! | [`ToolCount`] | counts of a server's tools by status |
//! | `exposed`, `impersonation` | exposed names; refused names |
//! | `schema` | repair of schemas that model providers reject |
//! | `text` | sanitizing, truncating and counting text for a model |
//! | `suspicion` | detection of prompt injection in tool definitions |
//! | [`Part`] | the pinned parts of a definition and their comparison |
//! | [`ServerCatalog`] | all lists of one server, for the disk cache |

pub(crate) mod canonical;
mod count;
pub(crate) mod exposed;
pub(crate) mod impersonation;
pub(crate) mod persist;
mod reader;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod snapshot;
pub(crate) mod suspicion;
pub(crate) mod text;
mod tool;

pub use canonical::Part;
pub use count::ToolCount;
pub use impersonation::{Impersonation, NameOrTitle};
pub(crate) use persist::ServerCatalog;
pub(crate) use reader::ToolReader;
pub(crate) use rules::ToolRules;
pub use schema::{Remedy, SchemaFinding, SchemaProblem};
pub(crate) use server::{ListLimits, Reach, ServerTools};
pub use server::{Provenance, SetAside, SetAsideReason};
pub use snapshot::{Catalog, CatalogServer, LookupError};
pub use suspicion::{Flag, Rule};
pub use text::Tokens;
pub(crate) use tool::field;
pub use tool::{CatalogTool, Hints, ModelTool, TrustedAnnotations};
