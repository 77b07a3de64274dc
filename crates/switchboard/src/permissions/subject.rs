//! The subject of a permission check: a tool, by all of its names.

use crate::catalog::exposed::{PREFIX, SEPARATOR, exposed_name};
use crate::catalog::{CatalogTool, TrustedAnnotations};
use crate::names::ExposedName;

/// The tool of a call. All names come from the catalog; none is derived by splitting another.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name exposed to the model.
    pub exposed: &'a str,
    /// Its server; `None` for a built-in tool.
    pub server: Option<&'a str>,
    /// Its own name, as its server spells it.
    pub tool: &'a str,
    /// The annotations from its server, if it is connected in this process and they are trusted.
    pub annotations: Option<TrustedAnnotations>,
}

const READ_ONLY: [&str; 6] = [
    "Read",
    "Glob",
    "Grep",
    "ListMcpResources",
    "ReadMcpResource",
    "McpSearch",
];

impl<'a> Subject<'a> {
    /// Creates the subject of a built-in tool, such as `Bash`.
    pub fn built_in(name: &'a str) -> Self {
        Self {
            exposed: name,
            server: None,
            tool: name,
            annotations: None,
        }
    }

    /// Creates the subject of a server's tool; the server need not be connected. `exposed` is the result of
    /// [`Self::exposed_name`].
    pub fn of_server(server: &'a str, tool: &'a str, exposed: &'a ExposedName) -> Self {
        Self {
            exposed: exposed.as_str(),
            server: Some(server),
            tool,
            annotations: None,
        }
    }

    /// The name that a server's tool is exposed under.
    pub fn exposed_name(server: &str, tool: &str) -> ExposedName {
        exposed_name(server, tool)
    }

    /// Whether it is a read-only built-in tool.
    pub(super) fn is_harmless_built_in(&self) -> bool {
        self.server.is_none() && READ_ONLY.contains(&self.tool)
    }

    /// The two parts of the exposed name of a server's tool.
    ///
    /// Not used for routing: exposed names are built so that the first separator ends the server's part.
    pub(super) fn exposed_parts(&self) -> Option<(&'a str, &'a str)> {
        self.server?;
        self.exposed.strip_prefix(PREFIX)?.split_once(SEPARATOR)
    }
}

impl<'a> From<&'a CatalogTool> for Subject<'a> {
    fn from(tool: &'a CatalogTool) -> Self {
        let reference = tool.reference();
        Self {
            exposed: tool.exposed().as_str(),
            server: Some(reference.server.as_str()),
            tool: reference.tool.as_str(),
            annotations: tool.trusted_annotations(),
        }
    }
}
