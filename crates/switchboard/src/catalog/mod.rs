//! The catalogue: what the connected servers offer, as agents may see it.
//!
//! Owns the way from the raw answers of `tools/list` to a list of tools with safe, unique names, bounded and harmless
//! text, and schemas that model providers accept. It is pure: it fetches nothing, waits for nothing and knows no state
//! of a connection. Servers' texts stay in the buffers they arrived in; what is rarely looked at is decoded then.
//!
//! | where | what |
//! |---|---|
//! | [`ServerTools`] | one server's tools, from its pages and the user's rules; what was set aside, and why |
//! | [`CatalogTool`] | one tool: reference, exposed name, definition, and the view a model gets of it |
//! | [`Catalog`] | the snapshot over all servers: order, lookup, token cost |
//! | [`ToolCount`] | how many tools a server lists, and what becomes of them |
//! | `exposed`, `impersonation` | how names are made, and which are refused |
//! | `schema` | what model providers refuse in a schema, and how it is repaired |
//! | `text` | the one way text goes to a model: neutralised, cut, counted |
//! | `suspicion` | what looks as if it were written for the model behind the user's back |
//! | [`Part`] | the parts of a definition that are pinned, and when two of them are the same |
//! | [`ServerCatalog`] | everything one server listed, for keeping on disk |

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
pub use tool::{CatalogTool, Hints, LiveAnnotations, ModelTool};
