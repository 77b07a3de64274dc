//! `_meta`: what each era wants in it, merged into raw params and read back.
//!
//! Owns the reserved keys, [`MetaMembers`] (what to add, written once per connection) and [`DeclaredMeta`] (what
//! a request said). Params are never decoded: one shallow pass finds `_meta`, and everything else is copied as
//! it stands.

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
/// The least severe log level to send for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's name and version, in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which subscription a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Asks for progress notifications under this token.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Which task a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// W3C trace context.
pub const TRACE_PARENT: &str = "traceparent";
/// W3C trace state.
pub const TRACE_STATE: &str = "tracestate";
/// W3C baggage.
pub const BAGGAGE: &str = "baggage";

/// Members to set in `_meta`, kept as JSON text so that adding them to a call is a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetaMembers {
    keys: Vec<Cow<'static, str>>,
    /// `"key":value` pairs joined by commas, without braces.
    text: String,
}

/// The members of one request: those that all requests of a connection carry, and the token it wants progress under.
///
/// The token differs from request to request, so it is written beside the members and not set among them. One that is
/// among the members already stays.
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

/// Why `_meta` could not be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Params are an array or a scalar.
    #[error("params must be an object to carry `_meta`")]
    ParamsNotAnObject,
    /// `_meta` is there and is no object.
    #[error("`_meta` must be an object")]
    MetaNotAnObject,
    /// The merged text is no JSON, which takes a member whose `Serialize` lies.
    #[error("the merged params are not JSON")]
    NotJson,
}

impl MetaMembers {
    /// None yet: what the stateful era adds by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// What every request of the stateless era carries.
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

    /// Sets one more member, such as a progress token or a log level.
    ///
    /// Setting a key again replaces it.
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
        // A message is one line, and a raw value may have several.
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

    /// The same for one request, with the token it wants progress under.
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
        let mut kept = String::new();
        raw::for_each_member(&object, |member| {
            if !member.is(key) {
                push_member_text(&mut kept, member);
            }
        });
        self.text = kept;
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

/// The params with `members` merged into their `_meta`.
///
/// A member of ours replaces one of the same name; every other one (a progress token, a vendor's key) stays as
/// it is. `null` counts as absent, for the params as for `_meta`.
pub fn merge(
    params: Option<&RawValue>,
    members: &MetaMembers,
) -> Result<Box<RawValue>, MergeError> {
    let mut buffer = Vec::new();
    merge_into(&mut buffer, params, members)?;
    let text = String::from_utf8(buffer).map_err(|_| MergeError::NotJson)?;
    RawValue::from_string(text).map_err(|_| MergeError::NotJson)
}

/// As [`merge`], appended to a buffer; on an error the buffer is as it was.
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
        // The value is a slice of the params, so what stands before and after it can be copied whole.
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
            // Several `_meta`: only the last one counts, and only one may go out, or two readers of the
            // same request could see two versions.
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

/// What the `_meta` of a request or notification says, undecoded where a type of its own would be needed.
///
/// Enough to serve by; [`types::meta::RequestMeta`](crate::types::meta::RequestMeta) has the same decoded.
#[derive(Debug, Clone, Default)]
pub struct DeclaredMeta<'a> {
    /// The protocol version, as written.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The client's capabilities, if they are an object.
    pub client_capabilities: Option<&'a RawValue>,
    /// The client's name and version.
    pub client_info: Option<&'a RawValue>,
    /// The least severe log level to send.
    pub log_level: Option<Cow<'a, str>>,
    /// The progress token, a string or a number, to be echoed.
    pub progress_token: Option<&'a RawValue>,
    /// Which subscription a notification belongs to.
    pub subscription_id: Option<&'a RawValue>,
}

impl<'a> DeclaredMeta<'a> {
    /// Reads the `_meta` of params; what is missing or of the wrong type is absent.
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

/// What follows the opening brace of an object that plainly has no `_meta`, which is nearly every one.
///
/// No name means `_meta` where the text has neither those letters nor an escape that could spell one of them.
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
