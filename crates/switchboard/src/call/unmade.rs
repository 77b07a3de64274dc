//! Calls that come to nothing before anybody decides about them: written down as the others are.

use std::time::Duration;

use super::{CallError, CallRequest};
use crate::audit::{CallNote, Digest, End, What};
use crate::host::Host;
use crate::names::{ServerName, ToolRef, WireName};

/// So much is kept of a name that leads nowhere: a model may write anything there.
const NAME_KEPT: usize = 128;

impl Host {
    /// Notes a call of a tool that there is not, or whose server cannot be used.
    #[cold]
    pub(super) fn note_unknown(&self, request: &CallRequest, error: &CallError) {
        let name: String = request.tool.chars().take(NAME_KEPT).collect();
        let arguments = request.arguments.as_deref();
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        self.note_unmade(None, name.into(), digest, error);
    }

    /// Notes a call whose arguments do not fit.
    #[cold]
    pub(super) fn note_unfit(&self, tool: &ToolRef, error: &CallError) {
        self.note_unmade(Some(tool.server.clone()), tool.tool.clone(), None, error);
    }

    fn note_unmade(
        &self,
        server: Option<ServerName>,
        tool: WireName,
        arguments: Option<Digest>,
        error: &CallError,
    ) {
        self.options().gate.note(What::Call(CallNote {
            id: self.next_call(),
            server,
            tool,
            grounds: None,
            arguments,
            elapsed: Duration::ZERO,
            end: End::of_error(error),
        }));
    }
}
