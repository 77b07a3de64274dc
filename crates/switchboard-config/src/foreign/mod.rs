//! Import from and export to the configuration files of other tools.
//!
//! Most tools share one structure and differ in names and units, so a tool is a table in `dialects`; exceptions are
//! small hooks in `import`. Imported entries are checked by the decoder of our own files. Nothing here runs, opens or
//! writes anything, and approvals found in a file are never imported.

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
