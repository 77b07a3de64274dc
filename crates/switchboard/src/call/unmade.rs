//! Audit entries for calls that fail before a permission decision.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_config::entry::Permission;

use super::{CallError, CallRequest};
use crate::audit::{CallNote, Digest, End, What};
use crate::host::Host;
use crate::names::{CallId, CalledTool};
use crate::permissions::{Because, Grounds};

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
        self.note_unmade(self.next_call(), unknown(tool), digest, end, None);
    }

    /// Records a call of a tool that is not in the profile of its client.
    #[cold]
    pub(super) fn note_outside(
        &self,
        id: CallId,
        tool: CalledTool,
        request: &CallRequest,
        profile: &str,
    ) {
        let arguments = request.arguments.as_deref();
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        let client = request.caller.as_ref().map(|caller| &caller.principal);
        let because = Because::Profile {
            name: profile.to_owned(),
        };
        let mut note = unmade(id, tool, digest, End::Refused, client);
        note.grounds = Some(Arc::new(Grounds::new(Permission::Deny, because)));
        self.options().gate.note(What::Call(note));
    }

    /// Records a call of an unknown tool, or of one whose server is unavailable.
    #[cold]
    pub(super) fn note_unknown(&self, id: CallId, request: &CallRequest, error: &CallError) {
        let arguments = request.arguments.as_deref();
        if let CallError::Profile { profile, .. } = error {
            return self.note_outside(id, unknown(&request.tool), request, profile);
        }
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        let client = request.caller.as_ref().map(|caller| &caller.principal);
        let end = End::of_error(error);
        self.note_unmade(id, unknown(&request.tool), digest, end, client);
    }

    /// Records a call whose arguments do not match the schema.
    #[cold]
    pub(super) fn note_unfit(
        &self,
        id: CallId,
        tool: &CalledTool,
        arguments: Option<&RawValue>,
        client: Option<&Arc<str>>,
    ) {
        let digest = arguments.map(|arguments| Digest::of(arguments.get()));
        self.note_unmade(id, tool.clone(), digest, End::Failed(UNFIT), client);
    }

    fn note_unmade(
        &self,
        id: CallId,
        tool: CalledTool,
        arguments: Option<Digest>,
        end: End,
        client: Option<&Arc<str>>,
    ) {
        let note = unmade(id, tool, arguments, end, client);
        self.options().gate.note(What::Call(note));
    }
}

fn unmade(
    id: CallId,
    tool: CalledTool,
    arguments: Option<Digest>,
    end: End,
    client: Option<&Arc<str>>,
) -> CallNote {
    CallNote {
        id,
        client: client.map(Arc::clone),
        server: tool.server,
        tool: tool.tool,
        grounds: None,
        arguments,
        elapsed: Duration::ZERO,
        end,
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
