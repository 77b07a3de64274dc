//! Calls that come to nothing before they are decided about: recorded as the others are.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{CallError, CallRequest};
use crate::audit::{CallNote, Digest, End, What};
use crate::host::Host;
use crate::names::{CallId, CalledTool};

/// So much is kept of a name that leads nowhere: a model may write anything there.
const NAME_KEPT: usize = 128;

/// What the log says of arguments that cannot be used.
pub(crate) const UNFIT: &str = "bad-arguments";

impl Host {
    /// Records a call that a model wrote with arguments that are not JSON, so that it cannot be made.
    #[doc(hidden)]
    pub fn note_unreadable(&self, tool: &str, arguments: &str) {
        let digest = Some(Digest::of(arguments));
        let end = End::Failed(UNFIT);
        self.note_unmade(self.next_call(), unknown(tool), digest, end);
    }

    /// Notes a call of a tool that there is not, or whose server cannot be used.
    #[cold]
    pub(super) fn note_unknown(&self, id: CallId, request: &CallRequest, error: &CallError) {
        let arguments = request.arguments.as_deref();
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        self.note_unmade(id, unknown(&request.tool), digest, End::of_error(error));
    }

    /// Notes a call whose arguments do not fit.
    #[cold]
    pub(super) fn note_unfit(&self, id: CallId, tool: &CalledTool, arguments: Option<&RawValue>) {
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        self.note_unmade(id, tool.clone(), digest, End::Failed(UNFIT));
    }

    fn note_unmade(&self, id: CallId, tool: CalledTool, arguments: Option<Digest>, end: End) {
        self.options().gate.note(What::Call(CallNote {
            id,
            server: tool.server,
            tool: tool.tool,
            grounds: None,
            arguments,
            elapsed: Duration::ZERO,
            end,
        }));
    }
}

/// A name that leads to no tool, as far as it is kept.
fn unknown(name: &str) -> CalledTool {
    let name: String = name.chars().take(NAME_KEPT).collect();
    CalledTool {
        server: None,
        tool: name.into(),
    }
}
