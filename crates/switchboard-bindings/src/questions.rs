//! What servers and the permission gate ask, passed to callbacks of the program.
//!
//! Parameters and answers have the form of the protocol. A question without a callback is declined, and its capability
//! is not declared to servers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::internal::hooks::Registration;
use switchboard::permissions::{ConsentView, GrantPlace, PromptAnswer, Question};
use switchboard::{Approver, ClientHandler, ServerName, declined};
use switchboard_protocol::types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::{IntoOwned as _, decode, wire};
use switchboard_protocol::{ErrorCode, ErrorObject};

use crate::callback::{self, Callback};
use crate::hooks::CallHook;

/// The callbacks of a program. Those that are missing decline.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Answers a form, or a request to visit an address.
    pub elicitation: Option<Arc<dyn Callback>>,
    /// Samples from the program's model.
    pub sampling: Option<Arc<dyn Callback>>,
    /// Lists the folders that the user works in.
    pub roots: Option<Arc<dyn Callback>>,
    /// Decides about a call that requires approval.
    pub approval: Option<Arc<dyn Callback>>,
    /// Inspect calls, in this order.
    pub hooks: Vec<CallHook>,
    /// The time that each hook has for a call; `None`: as hook programs have.
    pub hook_timeout: Option<Duration>,
}

impl Callbacks {
    /// The approver, if there is a callback.
    pub(crate) fn approver(&self) -> Option<Arc<dyn Approver>> {
        let callback = self.approval.as_ref().map(Arc::clone)?;
        Some(Arc::new(AskProgram(callback)))
    }

    /// The hooks, in order.
    pub(crate) fn registrations(&self) -> impl Iterator<Item = Registration> {
        let hooks = self.hooks.iter().enumerate();
        hooks.map(|(index, hook)| hook.registration(index, self.hook_timeout))
    }
}

impl ClientHandler for Callbacks {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation = self
            .elicitation
            .as_ref()
            .map(|_| ElicitationCapability::new());
        capabilities.sampling = self.sampling.as_ref().map(|_| SamplingCapability::new());
        capabilities.roots = self.roots.as_ref().map(|_| RootsCapability::new());
        capabilities
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        async move {
            let answer = ask(
                self.elicitation.as_ref(),
                "elicitation",
                server,
                wire::encode(&params),
            );
            let answer = answer.await?;
            let result = decode::<ElicitResult<'_>>(&answer).map_err(|error| unusable(&error))?;
            Ok(result.into_owned())
        }
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        async move {
            let answer = ask(
                self.sampling.as_ref(),
                "sampling",
                server,
                wire::encode(&params),
            );
            let answer = answer.await?;
            let result =
                decode::<CreateMessageResult<'_>>(&answer).map_err(|error| unusable(&error))?;
            Ok(result.into_owned())
        }
        .boxed()
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        async move {
            let answer = ask(self.roots.as_ref(), "roots", server, "{}".to_owned()).await?;
            let result =
                decode::<ListRootsResult<'_>>(&answer).map_err(|error| unusable(&error))?;
            Ok(result.into_owned())
        }
        .boxed()
    }
}

/// Asks the program. The payload is `{"server": …, "params": …}`.
async fn ask(
    callback: Option<&Arc<dyn Callback>>,
    name: &'static str,
    server: &ServerName,
    params: String,
) -> Result<Box<RawValue>, ErrorObject<'static>> {
    let callback =
        callback.ok_or_else(|| declined("this program does not answer such requests"))?;
    let params = RawValue::from_string(params).map_err(|error| unusable(&error))?;
    let payload = json!({ "server": server.as_str(), "params": params }).to_string();
    let answer = callback::ask(&**callback, name, payload).await;
    let answer = answer.map_err(|message| ErrorObject::new(ErrorCode::INTERNAL_ERROR, message))?;
    RawValue::from_string(answer).map_err(|error| unusable(&error))
}

fn unusable(error: &dyn std::fmt::Display) -> ErrorObject<'static> {
    let message = format!("the program's answer cannot be used: {error}");
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message)
}

/// Asks the program about calls that require approval.
struct AskProgram(Arc<dyn Callback>);

impl Approver for AskProgram {
    fn asks_one_at_a_time(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        async move {
            let payload = approval(&question).to_string();
            match callback::ask(&*self.0, "approval", payload).await {
                Ok(answer) => prompt_answer(&answer, question.offers.len()),
                Err(message) => PromptAnswer::Unshown(message),
            }
        }
        .boxed()
    }
}

/// The call to approve: as it will be sent, and as text to show.
fn approval(question: &Question<'_>) -> Value {
    let offers = question.offers.iter();
    json!({
        "name": question.subject.exposed,
        "server": question.subject.server,
        "tool": question.subject.tool,
        "arguments": question.arguments,
        "because": question.because.to_string(),
        "remark": question.remark,
        "text": ConsentView::of(question).whole(),
        "offers": offers.map(|offer| json!({"name": offer.name, "words": offer.words})).collect::<Vec<_>>(),
    })
}

/// Reads an answer: `true` or `"once"`, `false`, `null` or `"deny"`, `"session"` for the first offer, or
/// `{"grant": INDEX}` for an offer until the program exits. Anything else denies.
fn prompt_answer(answer: &str, offers: usize) -> PromptAnswer {
    match serde_json::from_str(answer) {
        Ok(Value::Bool(true)) => PromptAnswer::Once,
        Ok(Value::String(word)) if word == "once" => PromptAnswer::Once,
        Ok(Value::String(word)) if word == "session" && offers > 0 => grant(0),
        Ok(Value::Object(answer)) => {
            let offer = answer.get("grant").and_then(Value::as_u64);
            let offer = offer.and_then(|offer| usize::try_from(offer).ok());
            match offer {
                Some(offer) if offer < offers => grant(offer),
                _ => PromptAnswer::No,
            }
        }
        _ => PromptAnswer::No,
    }
}

const fn grant(offer: usize) -> PromptAnswer {
    PromptAnswer::Grant {
        offer,
        place: GrantPlace::Session,
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Callbacks")
            .field("elicitation", &self.elicitation.is_some())
            .field("sampling", &self.sampling.is_some())
            .field("roots", &self.roots.is_some())
            .field("approval", &self.approval.is_some())
            .field("hooks", &self.hooks)
            .field("hook_timeout", &self.hook_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_approves() {
        for yes in ["true", "\"once\""] {
            assert_eq!(prompt_answer(yes, 0), PromptAnswer::Once, "{yes}");
        }
        for no in [
            "false",
            "null",
            "\"deny\"",
            "\"yes\"",
            "1",
            "{}",
            "[]",
            "",
            "\"session\"",
            "{\"grant\": 0}",
            "{\"grant\": -1}",
        ] {
            assert_eq!(prompt_answer(no, 0), PromptAnswer::No, "{no}");
        }
        assert_eq!(prompt_answer("\"session\"", 1), grant(0));
        assert_eq!(prompt_answer("{\"grant\": 1}", 2), grant(1));
        assert_eq!(prompt_answer("{\"grant\": 2}", 2), PromptAnswer::No);
    }
}
