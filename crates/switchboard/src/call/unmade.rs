//! Audit entries for calls that fail before a permission decision.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{CallError, CallRequest};
use crate::audit::{CallNote, Digest, End, What};
use crate::host::Host;
use crate::names::{CallId, CalledTool};

/// Maximum length of a recorded unknown name: a model may write anything there.
const NAME_KEPT: usize = 128;

/// Audit code for invalid arguments.
pub(crate) const UNFIT: &str = "bad-arguments";

impl Host {
    /// Records a call whose arguments are not valid JSON.
    #[doc(hidden)]
    pub fn note_unreadable(&self, tool: &str, arguments: &str) {
        let digest = Some(Digest::of(arguments));
        let end = End::Failed(UNFIT);
        self.note_unmade(self.next_call(), unknown(tool), digest, end);
    }

    /// Records a call of an unknown tool, or of one whose server is unavailable.
    #[cold]
    pub(super) fn note_unknown(&self, id: CallId, request: &CallRequest, error: &CallError) {
        let arguments = request.arguments.as_deref();
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        self.note_unmade(id, unknown(&request.tool), digest, End::of_error(error));
    }

    /// Records a call whose arguments do not match the schema.
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

/// Truncates an unknown name for the audit log.
fn unknown(name: &str) -> CalledTool {
    let name: String = name.chars().take(NAME_KEPT).collect();
    CalledTool {
        server: None,
        tool: name.into(),
    }
}
