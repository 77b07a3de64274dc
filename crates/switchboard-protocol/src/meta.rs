//! `_meta`: the members that each era requires, merged into raw params and parsed.
//!
//! Defines the reserved keys, [`MetaMembers`] (members to add, encoded once per connection) and [`DeclaredMeta`]
//! (members of a received request). Params are never decoded: one shallow pass finds `_meta`, and everything else is
//! copied verbatim.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    id::RequestId,
    raw::{self, Member},
    revision::Revision,
};

/// The protocol version of a request (required in the stateless era).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities (required in the stateless era).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client's name and version.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The minimum severity of log messages for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's name and version, in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Requests progress notifications with this token.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The task a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// W3C trace context (`traceparent`).
pub const TRACE_PARENT: &str = "traceparent";
/// W3C trace context (`tracestate`).
pub const TRACE_STATE: &str = "tracestate";
/// W3C baggage of the trace.
pub const BAGGAGE: &str = "baggage";

/// Members to set in `_meta`, stored as JSON text so that adding them to a request is a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetaMembers {
    keys: Vec<Cow<'static, str>>,
    /// `"key":value` pairs joined by commas, without braces.
    text: String,
}

/// The members of one request: those of all requests on a connection, and its progress token.
///
/// The token differs per request, so it is written after the members instead of being stored among them. A token
/// already among the members takes precedence.
#[derive(Debug, Clone, Copy)]
pub struct RequestMembers<'a> {
    members: &'a MetaMembers,
    progress_token: Option<u64>,
}

impl<'a> From<&'a MetaMembers> for RequestMembers<'a> {
    fn from(members: &'a MetaMembers) -> Self {
        Self {
            members,
            progress_token: None,
        }
    }
}

/// The reason `_meta` could not be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Params are an array or a scalar.
    #[error("params must be an object to carry `_meta`")]
    ParamsNotAnObject,
    /// `_meta` exists and is not an object.
    #[error("`_meta` must be an object")]
    MetaNotAnObject,
    /// The merged text is not JSON, because a member's `Serialize` is broken.
    #[error("the merged params are not JSON")]
    NotJson,
}

impl MetaMembers {
    /// No members, as in the stateful era.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members of every request in the stateless era.
    pub fn stateless<C: Serialize + ?Sized, I: Serialize + ?Sized>(
        revision: Revision,
        capabilities: &C,
        client_info: Option<&I>,
    ) -> Result<Self, serde_json::Error> {
        let mut members = Self::new();
        members.set(PROTOCOL_VERSION, &revision)?;
        members.set(CLIENT_CAPABILITIES, capabilities)?;
        if let Some(client_info) = client_info {
            members.set(CLIENT_INFO, client_info)?;
        }
        Ok(members)
    }

    /// Sets another member, such as a progress token or a log level.
    ///
    /// Setting a key again replaces its value.
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        value: &T,
    ) -> Result<(), serde_json::Error> {
        let key = key.into();
        let pair = format!(
            "{}:{}",
            serde_json::to_string(&key)?,
            serde_json::to_string(value)?
        );
        // A message is a single line, but a raw value may contain newlines.
        let pair = pair.replace(['\n', '\r'], " ");
        if self.keys.contains(&key) {
            self.remove(&key);
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(&pair);
        self.keys.push(key);
        Ok(())
    }

    /// The members of one request with this progress token.
    pub fn with_progress(&self, token: u64) -> RequestMembers<'_> {
        let has_token = self.keys.iter().any(|key| key == PROGRESS_TOKEN);
        RequestMembers {
            members: self,
            progress_token: (!has_token).then_some(token),
        }
    }

    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn remove(&mut self, key: &str) {
        let object = format!("{{{}}}", self.text);
        let Ok(object) = RawValue::from_string(object) else {
            return;
        };
        let mut remaining = String::new();
        raw::for_each_member(&object, |member| {
            if !member.is(key) {
                push_member_text(&mut remaining, member);
            }
        });
        self.text = remaining;
        self.keys.retain(|present| present != key);
    }

    fn sets(&self, key: &str) -> bool {
        self.keys.iter().any(|present| present == key)
    }
}

impl RequestMembers<'_> {
    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.progress_token.is_none()
    }

    fn sets(&self, member: Member<'_>) -> bool {
        raw::string(member.key).is_some_and(|key| {
            self.members.sets(&key) || (self.progress_token.is_some() && key == PROGRESS_TOKEN)
        })
    }

    pub(crate) fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(self.members.text.as_bytes());
        if let Some(token) = self.progress_token {
            if !self.members.is_empty() {
                buffer.push(b',');
            }
            buffer.extend_from_slice(b"\"progressToken\":");
            RequestId::from(token).write_json(buffer);
        }
    }
}

/// Returns the params with `members` merged into their `_meta`.
///
/// Our members replace those of the same name; all others (a progress token, a vendor's key) stay unchanged. `null`
/// counts as absent, for the params and for `_meta`.
pub fn merge(
    params: Option<&RawValue>,
    members: &MetaMembers,
) -> Result<Box<RawValue>, MergeError> {
    let mut buffer = Vec::new();
    merge_into(&mut buffer, params, members)?;
    let text = String::from_utf8(buffer).map_err(|_| MergeError::NotJson)?;
    RawValue::from_string(text).map_err(|_| MergeError::NotJson)
}

/// Like [`merge`], appended to a buffer, which is unchanged on an error.
pub fn merge_into<'a>(
    buffer: &mut Vec<u8>,
    params: Option<&RawValue>,
    members: impl Into<RequestMembers<'a>>,
) -> Result<(), MergeError> {
    let members = members.into();
    let Some(params) = params.filter(|params| !raw::is_null(params)) else {
        if members.is_empty() {
            buffer.extend_from_slice(b"{}");
        } else {
            buffer.extend_from_slice(b"{\"_meta\":");
            write_meta(buffer, None, members);
            buffer.push(b'}');
        }
        return Ok(());
    };
    if members.is_empty() && raw::is_object(params) {
        buffer.extend_from_slice(params.get().as_bytes());
        return Ok(());
    }

    if let Some(rest) = without_meta(params.get()) {
        buffer.extend_from_slice(b"{\"_meta\":");
        write_meta(buffer, None, members);
        if !rest.trim_ascii_start().starts_with('}') {
            buffer.push(b',');
        }
        buffer.extend_from_slice(rest.as_bytes());
        return Ok(());
    }

    let mut meta = None;
    let mut occurrences = 0_usize;
    let mut empty = true;
    let is_object = raw::for_each_member(params, |member| {
        empty = false;
        if member.is("_meta") {
            meta = Some(member.value);
            occurrences += 1;
        }
    });
    if !is_object {
        return Err(MergeError::ParamsNotAnObject);
    }
    let present = meta.filter(|meta| !raw::is_null(meta));
    if present.is_some_and(|meta| !raw::is_object(meta)) {
        return Err(MergeError::MetaNotAnObject);
    }

    let text = params.get();
    if let (Some(meta), 1) = (meta, occurrences) {
        // The value is a slice of the params, so the text before and after it can be copied.
        let start = (meta.get().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let before = text.get(..start).unwrap_or_default();
        let after = text.get(start + meta.get().len()..).unwrap_or_default();
        buffer.extend_from_slice(before.as_bytes());
        write_meta(buffer, present, members);
        buffer.extend_from_slice(after.as_bytes());
    } else {
        buffer.extend_from_slice(b"{\"_meta\":");
        write_meta(buffer, present, members);
        if occurrences == 0 {
            if !empty {
                buffer.push(b',');
            }
            let rest = text.strip_prefix('{').unwrap_or_default();
            buffer.extend_from_slice(rest.as_bytes());
        } else {
            // `_meta` is repeated: only the last one counts, and only one may be sent, or two readers of the request
            // could see two versions.
            raw::for_each_member(params, |member| {
                if !member.is("_meta") {
                    buffer.push(b',');
                    write_member(buffer, member);
                }
            });
            buffer.push(b'}');
        }
    }
    Ok(())
}

/// The `_meta` of a request or notification, raw where a decoded type would be needed.
///
/// Sufficient to serve a request; [`types::meta::RequestMeta`](crate::types::meta::RequestMeta) is the decoded form.
#[derive(Debug, Clone, Default)]
pub struct DeclaredMeta<'a> {
    /// The protocol version, verbatim.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The client's capabilities, if they are an object.
    pub client_capabilities: Option<&'a RawValue>,
    /// The client's name and version.
    pub client_info: Option<&'a RawValue>,
    /// The minimum severity of log messages.
    pub log_level: Option<Cow<'a, str>>,
    /// The progress token to echo, a string or a number.
    pub progress_token: Option<&'a RawValue>,
    /// The subscription a notification belongs to.
    pub subscription_id: Option<&'a RawValue>,
}

impl<'a> DeclaredMeta<'a> {
    /// Parses the `_meta` of params; missing or mistyped members are `None`.
    pub fn read(params: Option<&'a RawValue>) -> Self {
        let mut read = Self::default();
        let Some(meta) = params.and_then(|params| raw::member(params, "_meta")) else {
            return read;
        };
        raw::for_each_member(meta, |Member { key, value }| {
            match raw::string(key).as_deref() {
                Some(PROTOCOL_VERSION) => read.protocol_version = raw::string(value),
                Some(CLIENT_CAPABILITIES) => {
                    read.client_capabilities = Some(value).filter(|value| raw::is_object(value));
                }
                Some(CLIENT_INFO) => {
                    read.client_info = Some(value).filter(|value| raw::is_object(value));
                }
                Some(LOG_LEVEL) => read.log_level = raw::string(value),
                Some(PROGRESS_TOKEN) => {
                    read.progress_token = Some(value).filter(|value| !raw::is_null(value));
                }
                Some(SUBSCRIPTION_ID) => {
                    read.subscription_id = Some(value).filter(|value| !raw::is_null(value));
                }
                _ => {}
            }
        });
        read
    }
}

/// The text after the opening brace of an object that certainly has no `_meta`, which is the usual case.
///
/// A text without these letters, and without escapes that could spell them, has no such name.
fn without_meta(params: &str) -> Option<&str> {
    let rest = params.strip_prefix('{')?;
    let bytes = rest.as_bytes();
    let mut suspects = memchr::memchr2_iter(b'\\', b'_', bytes)
        .filter_map(|at| bytes.get(at..))
        .filter(|text| text.starts_with(b"\\") || text.starts_with(b"_meta"));
    suspects.next().is_none().then_some(rest)
}

fn write_meta(buffer: &mut Vec<u8>, present: Option<&RawValue>, members: RequestMembers<'_>) {
    buffer.push(b'{');
    members.write(buffer);
    if let Some(present) = present {
        raw::for_each_member(present, |member| {
            if members.sets(member) {
                return;
            }
            if buffer.last() != Some(&b'{') {
                buffer.push(b',');
            }
            write_member(buffer, member);
        });
    }
    buffer.push(b'}');
}

fn write_member(buffer: &mut Vec<u8>, Member { key, value }: Member<'_>) {
    buffer.extend_from_slice(key.get().as_bytes());
    buffer.push(b':');
    buffer.extend_from_slice(value.get().as_bytes());
}

fn push_member_text(text: &mut String, Member { key, value }: Member<'_>) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(key.get());
    text.push(':');
    text.push_str(value.get());
}
