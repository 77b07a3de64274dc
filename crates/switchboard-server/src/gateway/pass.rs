//! What is added to requests and results on their way through, and what becomes of errors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::service::{Failure, RequestContext, error_result, invalid_params};
use switchboard::{CallError, ContentError, ProgressSink, RequestError, SharedJson};
use switchboard_protocol::types::result::declared_type;
use switchboard_protocol::{Era, ErrorCode, ErrorObject, meta, types};

/// Members of `_meta` that belong to the connection with the client, not to the request.
const OWN_META: &[&str] = &[
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
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
        meta: Option<HashMap<Cow<'p, str>, &'p RawValue>>,
    }
    let text = params?.get();
    if !text.contains("\"_meta\"") {
        return None;
    }
    let params: Params<'_> = serde_json::from_str(text).ok()?;
    let mut meta = params.meta?;
    meta.retain(|key, _| !OWN_META.contains(&&**key));
    if meta.is_empty() {
        return None;
    }
    serde_json::value::to_raw_value(&meta).ok()
}

/// Reports the progress of a call to its client.
pub(super) fn progress(context: &Arc<RequestContext>) -> ProgressSink {
    let context = Arc::downgrade(context);
    Arc::new(move |progress| {
        if let Some(context) = context.upgrade() {
            context.progress(
                progress.progress,
                progress.total,
                progress.message.as_deref(),
            );
        }
    })
}

/// The answer to a call that has no result: the server's own error, or a result that the model can act on.
pub(super) fn call_failed(error: &CallError) -> Result<SharedJson, Failure> {
    match error {
        CallError::Request {
            error: RequestError::Rejected(error),
            ..
        } => Err(Failure::Error((**error).clone())),
        CallError::Lookup(_) | CallError::Profile { .. } => Err(invalid_params(error.for_model())),
        _ => Ok(SharedJson::trusted(types::encode(&error_result(
            error.for_model(),
        )))),
    }
}

pub(super) fn content_failed(error: ContentError) -> Failure {
    match error {
        ContentError::Request {
            error: RequestError::Rejected(error),
            ..
        } => Failure::Error(*error),
        error => ErrorObject::new(ErrorCode::INTERNAL_ERROR, error.to_string()).into(),
    }
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
