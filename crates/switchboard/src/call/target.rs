//! Resolved target of a call: a server tool or a local tool.

use std::fmt;

use super::arguments::ArgumentCheck;
use super::local::LocalCall;
use crate::catalog::CatalogTool;
use crate::names::CalledTool;
use crate::permissions::{Previewer, Subject};

/// Resolved tool of a call.
#[derive(Debug, Clone, Copy)]
pub enum CallTarget<'a> {
    /// Tool of a server.
    Server(&'a CatalogTool),
    /// Tool of the calling session.
    Local(&'a LocalCall),
}

impl<'a> CallTarget<'a> {
    /// Owned names of the tool.
    pub fn called(self) -> CalledTool {
        match self {
            Self::Server(tool) => CalledTool::from(tool.reference()),
            Self::Local(call) => CalledTool {
                server: None,
                tool: call.wire_name().clone(),
            },
        }
    }

    /// Subject for permission rules.
    pub fn subject(self) -> Subject<'a> {
        match self {
            Self::Server(tool) => Subject::from(tool),
            Self::Local(call) => Subject::built_in(call.name()),
        }
    }

    /// Argument validator of the tool.
    pub(crate) fn argument_check(self) -> &'a ArgumentCheck {
        match self {
            Self::Server(tool) => tool.argument_check(),
            Self::Local(call) => call.argument_check(),
        }
    }

    /// Previewer of the call's effect; local tools only.
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
