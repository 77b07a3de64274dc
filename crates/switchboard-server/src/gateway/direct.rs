//! Requests that pass to one server as they are, for a client of the same user that applies permissions, pins and limits
//! itself: the commands of this program.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::internal::caller::Caller;
use switchboard::service::{RequestContext, invalid_params};
use switchboard::{ProgressSink, ServerName};
use switchboard_protocol::Method;
use switchboard_protocol::types::IntoOwned as _;
use switchboard_protocol::types::input::InputResponses;
use switchboard_protocol::types::method::{CallTool, GetPrompt, ReadResource, Request as _};

use super::pass::{content_failed, finish_cacheable, finish_shared, with_input};
use super::seal::RequestDigest;
use super::session::{GatewaySession, repeated};
use super::waiting::Forwarded;

/// Members of params that belong to the connection with the client, or repeat a request.
const OWN_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

impl GatewaySession {
    /// Passes a request on without looking at it.
    pub(super) async fn forward_directly(
        &self,
        server: &ServerName,
        method: Method,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let plain = plain(params).ok_or_else(|| invalid_params("params must be an object"))?;
        let (responses, state) = input_of(method, params)?;
        let digest = || {
            let arguments = switchboard_protocol::trusted(&plain);
            RequestDigest::of(method.name(), server.as_str(), arguments)
        };
        let host = self.host().clone();
        let (target, request) = (server.clone(), plain.clone());
        let make = move |caller: Caller, progress: ProgressSink| async move {
            let request = with_input(request, caller.input.as_deref());
            let passed = host.pass(&target, method, request, Arc::new(caller), progress);
            let result = passed.await.map_err(|error| content_failed(&error))?;
            Ok((target, result))
        };
        let repeated = repeated(&responses, state.as_deref().map(Into::into));
        let result = self
            .request(context, params, digest, repeated, make)
            .await?;
        Ok(match method {
            Method::ToolsCall | Method::Complete | Method::PromptsGet => {
                finish_shared(result, context)
            }
            _ => finish_cacheable(result, context),
        })
    }
}

/// Params without the members of the connection.
fn plain(params: Option<&RawValue>) -> Option<String> {
    let Some(params) = params else {
        return Some("{}".to_owned());
    };
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(params.get()).ok()?;
    members.retain(|name, _| !OWN_MEMBERS.contains(&name.as_str()));
    serde_json::to_string(&members).ok()
}

/// The input with which a client repeats a request.
fn input_of(
    method: Method,
    params: Option<&RawValue>,
) -> Result<(InputResponses<'static>, Option<String>), switchboard::service::Failure> {
    macro_rules! decoded {
        ($request:ty) => {{
            let params = <$request>::decode_params(params)?;
            let state = params.request_state.as_ref();
            let state = state.map(|state| state.decode().into_owned());
            (params.input_responses.into_owned(), state)
        }};
    }
    Ok(match method {
        Method::ToolsCall => decoded!(CallTool),
        Method::ResourcesRead => decoded!(ReadResource),
        Method::PromptsGet => decoded!(GetPrompt),
        _ => (InputResponses::default(), None),
    })
}
