//! The configuration files of other tools: reading their servers, and writing ours for them.
//!
//! Owns what each tool calls a thing, where its files are and how it writes variables. Most tools share one
//! shape and differ in names and units, so a tool is a table in `dialects`; what no table can say is a small
//! hook in `import`. An entry that was read is checked by the same decoder as one of our own files.
//! Nothing here runs, opens or writes anything, and no approval found in a file is ever taken over.

mod dialect;
mod dialects;
mod export;
mod import;
mod places;
mod read;
mod text;
mod tool;
mod variables;

pub use export::{Exported, export};
pub use import::{Imported, ImportedServer, import};
pub use places::{ForeignFile, Places, Platform, Reach};
pub use tool::Tool;
