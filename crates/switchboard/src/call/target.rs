//! What a call is a call of: a server's tool, or a local one.

use std::fmt;

use super::arguments::ArgumentCheck;
use super::local::LocalCall;
use crate::catalog::CatalogTool;
use crate::names::CalledTool;
use crate::permissions::{Previewer, Subject};

/// The tool of a call that has been looked up.
#[derive(Debug, Clone, Copy)]
pub enum CallTarget<'a> {
    /// A tool of a server.
    Server(&'a CatalogTool),
    /// A tool that the request carries.
    Local(&'a LocalCall),
}

impl<'a> CallTarget<'a> {
    /// The tool, by the names that outlive the call.
    pub fn called(self) -> CalledTool {
        match self {
            Self::Server(tool) => CalledTool::from(tool.reference()),
            Self::Local(call) => CalledTool {
                server: None,
                tool: call.wire_name().clone(),
            },
        }
    }

    /// The tool as permission rules name it.
    pub fn subject(self) -> Subject<'a> {
        match self {
            Self::Server(tool) => Subject::from(tool),
            Self::Local(call) => Subject::built_in(call.name()),
        }
    }

    /// The check of its arguments.
    pub(crate) fn argument_check(self) -> &'a ArgumentCheck {
        match self {
            Self::Server(tool) => tool.argument_check(),
            Self::Local(call) => call.argument_check(),
        }
    }

    /// Who can show beforehand what a call will do: a local tool.
    #[doc(hidden)]
    pub fn previewer(self) -> Option<&'a dyn Previewer> {
        match self {
            Self::Server(_) => None,
            Self::Local(call) => Some(call),
        }
    }
}

/// `server/tool`, or the bare name of a local tool.
impl fmt::Display for CallTarget<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(tool) => fmt::Display::fmt(tool.reference(), formatter),
            Self::Local(call) => formatter.write_str(call.name()),
        }
    }
}
