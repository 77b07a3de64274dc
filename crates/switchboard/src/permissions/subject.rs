//! What a rule is asked about: a tool, by all of its names.

use crate::catalog::exposed::{PREFIX, SEPARATOR, exposed_name};
use crate::catalog::{CatalogTool, LiveAnnotations};
use crate::names::ExposedName;

/// The tool of a call. Its names come from the registry; none of them is made by taking another apart.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name the model calls it by.
    pub exposed: &'a str,
    /// The server that has it; `None` for a built-in tool.
    pub server: Option<&'a str>,
    /// Its own name, as its server spells it.
    pub tool: &'a str,
    /// What its connected server says about it in this very process, if anything.
    pub annotations: Option<LiveAnnotations>,
}

/// Built-in tools that change nothing.
const READ_ONLY: [&str; 6] = [
    "Read",
    "Glob",
    "Grep",
    "ListMcpResources",
    "ReadMcpResource",
    "McpSearch",
];

impl<'a> Subject<'a> {
    /// A built-in tool, such as `Bash`.
    pub fn built_in(name: &'a str) -> Self {
        Self {
            exposed: name,
            server: None,
            tool: name,
            annotations: None,
        }
    }

    /// A tool of a server that need not be connected. `exposed` is what [`Self::exposed_name`] gives.
    pub fn of_server(server: &'a str, tool: &'a str, exposed: &'a ExposedName) -> Self {
        Self {
            exposed: exposed.as_str(),
            server: Some(server),
            tool,
            annotations: None,
        }
    }

    /// The name a model would call this tool of this server by.
    pub fn exposed_name(server: &str, tool: &str) -> ExposedName {
        exposed_name(server, tool)
    }

    /// Whether it is a built-in tool that changes nothing.
    pub(super) fn is_harmless_built_in(&self) -> bool {
        self.server.is_none() && READ_ONLY.contains(&self.tool)
    }

    /// The two parts of the exposed name of a server's tool.
    ///
    /// This is no routing: the name was made so that its first separator ends the server's part.
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
            annotations: tool.live_annotations(),
        }
    }
}
