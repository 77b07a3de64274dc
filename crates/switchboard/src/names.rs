//! Names that cannot be mixed up: a server's, a tool's on the wire, a tool's as the model sees it.
//!
//! Owns the newtypes and nothing else. How an exposed name is made from a reference, and which reference an exposed
//! name leads to, is the catalogue's business: a name is looked up, never taken apart.

use std::fmt;
use std::sync::Arc;

/// Implements a name that is a shared string.
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
    /// The name the model sees and calls: `mcp__server__tool`, safe characters only.
    ExposedName
}

/// A tool of a server, as the wire has it.
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

/// The tool of a call: a server's, or one that runs in this process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalledTool {
    /// The server that has it; `None` for a local tool.
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

/// Which of a server's successive connections something belongs to. What a task of an earlier one reports is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Generation(u64);

impl Generation {
    /// The one after this.
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One call of a tool, from the moment somebody asks for it. Unique within a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call-{}", self.0)
    }
}
