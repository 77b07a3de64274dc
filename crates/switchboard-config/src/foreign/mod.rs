//! Import from and export to the configuration files of other tools.
//!
//! Most tools share one structure and differ in names and units, so a tool is a table in `dialects`; exceptions are
//! small hooks in `import`. Imported entries are checked by the decoder of our own files. Nothing here runs, opens or
//! writes anything, and approvals found in a file are never imported.

mod dialect;
mod dialects;
mod export;
mod import;
mod own;
mod places;
mod read;
mod text;
mod tool;
mod variables;

pub use export::{Exported, export};
pub use import::{Imported, ImportedServer, import};
pub use places::{ForeignFile, Places, Platform, Reach};
pub use tool::Tool;

pub(crate) use text::write as write_tree;

use crate::tree::Node;

/// Where a file of a tool has its servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Paths of the server tables; new servers go into the first.
    pub(crate) containers: &'static [&'static [&'static str]],
    /// Whether servers are a list of elements with a `name`, instead of a table.
    pub(crate) is_list: bool,
}

/// Layout of a tool's file; `root` is its content, if any.
pub(crate) fn layout(tool: Tool, root: Option<&Node<'_>>) -> Layout {
    let dialect = dialects::dialect(tool, root);
    Layout {
        containers: dialect.containers,
        is_list: dialect.listed,
    }
}
