//! What is added to requests and results on their way through, and what becomes of errors.

use serde_json::value::RawValue;
use switchboard::internal::caller::OrderedMembers;
use switchboard::service::{Failure, RequestContext, error_result, invalid_params};
use switchboard::{CallError, ContentError, SharedJson};
use switchboard_protocol::types::Encode as _;
use switchboard_protocol::types::result::declared_type;
use switchboard_protocol::{Era, ErrorCode, ErrorObject, meta, types};

/// Members of `_meta` that belong to the connection with the client, not to the request.
const OWN_META: &[&str] = &[
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::PROGRESS_TOKEN,
    meta::RELATED_TASK,
];

/// Params with the members that repeat a request.
pub(super) fn with_input(params: String, input: Option<&RawValue>) -> String {
    let members = input.and_then(|input| input.get().strip_prefix('{'));
    match (params.strip_suffix('}'), members) {
        (Some("{"), Some(members)) => format!("{{{members}"),
        (Some(start), Some(members)) => format!("{start},{members}"),
        _ => params,
    }
}

/// The members of `_meta` that are meant for the server; `None` if there are none.
pub(super) fn passed_meta(params: Option<&RawValue>) -> Option<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct Params<'p> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<OrderedMembers<'p>>,
    }
    let text = params?.get();
    if !text.contains("\"_meta\"") {
        return None;
    }
    let params: Params<'_> = serde_json::from_str(text).ok()?;
    let mut meta = params.meta?;
    meta.0.retain(|(key, _)| !OWN_META.contains(&&**key));
    if meta.0.is_empty() {
        return None;
    }
    RawValue::from_string(object(&meta)).ok()
}

/// The members of params that are neither `_meta` nor about repeating a request, as they are.
pub(super) fn own_params(params: Option<&RawValue>) -> Option<String> {
    const OTHERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];
    let mut members: OrderedMembers<'_> = serde_json::from_str(params?.get()).ok()?;
    members.0.retain(|(key, _)| !OTHERS.contains(&&**key));
    Some(object(&members))
}

/// Params without `_meta`.
pub(super) fn without_meta(params: Option<&RawValue>) -> Option<String> {
    let mut members: OrderedMembers<'_> = serde_json::from_str(params?.get()).ok()?;
    members.0.retain(|(key, _)| key != "_meta");
    Some(object(&members))
}

/// Params in which one member has another text.
pub(super) fn with_member(params: &RawValue, name: &str, text: &str) -> Option<Box<RawValue>> {
    let text = serde_json::value::to_raw_value(text).ok()?;
    let mut members: OrderedMembers<'_> = serde_json::from_str(params.get()).ok()?;
    for (key, value) in &mut members.0 {
        if key == name {
            *value = &text;
        }
    }
    RawValue::from_string(object(&members)).ok()
}

fn object(members: &OrderedMembers<'_>) -> String {
    let mut text = String::from("{");
    for (key, value) in &members.0 {
        if text.len() > 1 {
            text.push(',');
        }
        key.encode(&mut text);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    text
}

/// The answer to a call that has no result: the server's own error, or a result that the model can act on.
pub(super) fn call_failed(error: &CallError) -> Result<SharedJson, Failure> {
    if let CallError::Request { error, .. } = error
        && let Some(error) = error.rpc_error()
    {
        return Err(Failure::Error(error));
    }
    match error {
        CallError::Lookup(_) | CallError::Profile { .. } => Err(invalid_params(error.for_model())),
        _ => Ok(SharedJson::trusted(types::encode(&error_result(
            error.for_model(),
        )))),
    }
}

pub(super) fn content_failed(error: &ContentError) -> Failure {
    let answered = match error {
        ContentError::Request { error, .. } => error.rpc_error(),
        _ => None,
    };
    let unanswered = || ErrorObject::new(ErrorCode::INTERNAL_ERROR, error.to_string());
    answered.unwrap_or_else(unanswered).into()
}

pub(super) fn finish(result: String, context: &RequestContext) -> SharedJson {
    finish_shared(SharedJson::trusted(result), context)
}

/// Adds what the era of the client requires, if the server's result lacks it.
pub(super) fn finish_shared(result: SharedJson, context: &RequestContext) -> SharedJson {
    with_members(result, context, "\"resultType\":\"complete\"")
}

/// Like [`finish_shared`], for a result that may be cached: without a hint of the server, it may not.
pub(super) fn finish_cacheable(result: SharedJson, context: &RequestContext) -> SharedJson {
    with_members(
        result,
        context,
        "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\"",
    )
}

fn with_members(result: SharedJson, context: &RequestContext, members: &str) -> SharedJson {
    if context.revision().era() == Era::Stateful || declared_type(result.raw()).is_some() {
        return result;
    }
    let Some(rest) = result.as_str().trim_start().strip_prefix('{') else {
        return result;
    };
    let separator = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    SharedJson::trusted(format!("{{{members}{separator}{rest}"))
}
