//! Newtypes for names: of a server, of a tool on the wire, of a tool as exposed to the model.
//!
//! The catalog creates and resolves exposed names: a name is looked up, never parsed.

use std::fmt;
use std::sync::Arc;

/// Implements a name as a shared string.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:?}", &self.0)
            }
        }
    };
}

name! {
    /// The name of a server in the configuration.
    ServerName
}

name! {
    /// The name of a tool or prompt as its server spells it.
    WireName
}

name! {
    /// The name exposed to the model: `mcp__server__tool`, safe characters only.
    ExposedName
}

/// A tool of a server, by its wire name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolRef {
    /// The server.
    pub server: ServerName,
    /// The tool.
    pub tool: WireName,
}

impl fmt::Display for ToolRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.server, self.tool)
    }
}

/// The tool of a call: of a server, or local to this process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalledTool {
    /// Its server; `None` for a local tool.
    pub server: Option<ServerName>,
    /// Its name, as its server spells it.
    pub tool: WireName,
}

impl CalledTool {
    /// The tool on its server; `None` for a local tool.
    pub fn reference(self) -> Option<ToolRef> {
        let Self { server, tool } = self;
        server.map(|server| ToolRef { server, tool })
    }
}

impl From<&ToolRef> for CalledTool {
    fn from(tool: &ToolRef) -> Self {
        Self {
            server: Some(tool.server.clone()),
            tool: tool.tool.clone(),
        }
    }
}

/// `server/tool`, or the bare name of a local tool.
impl fmt::Display for CalledTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(formatter, "{server}/{}", self.tool),
            None => fmt::Display::fmt(&self.tool, formatter),
        }
    }
}

/// The number of a server's connection. Reports from tasks of an earlier connection are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Generation(u64);

impl Generation {
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The ID of a call, assigned when it is requested. Unique within a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call-{}", self.0)
    }
}
