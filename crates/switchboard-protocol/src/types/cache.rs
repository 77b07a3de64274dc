//! How long an answer may be kept, and for whom.

use std::time::Duration;

use super::wire::Number;
use crate::macros::wire_enum;

wire_enum! {
    /// For whom an answer may be kept.
    pub enum CacheScope<'a> {
        /// For whoever asked, under the same authorization.
        Private = "private",
        /// For everyone.
        Public = "public",
    }
}

/// What an answer says about keeping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// How long it stays fresh. Zero: not at all.
    pub time_to_live: Duration,
    /// Whether others may see the kept answer. Only an explicit `public` says so.
    pub shared: bool,
}

/// An answer that may say how long it stays fresh.
pub trait Cacheable {
    /// The hint, if the answer has one. A time below zero or out of range is none at all: it keeps nothing.
    fn cache_hint(&self) -> Option<CacheHint>;
}

fn hint(ttl_ms: Option<&Number<'_>>, scope: Option<&CacheScope<'_>>) -> Option<CacheHint> {
    let time_to_live = ttl_ms?
        .as_u64()
        .map_or(Duration::ZERO, Duration::from_millis);
    Some(CacheHint {
        time_to_live,
        shared: matches!(scope, Some(CacheScope::Public)),
    })
}

macro_rules! cacheable {
    ($($name:path),* $(,)?) => {
        $(impl Cacheable for $name {
            fn cache_hint(&self) -> Option<CacheHint> {
                hint(self.ttl_ms.as_ref(), self.cache_scope.as_ref())
            }
        })*
    };
}

cacheable!(
    super::lifecycle::DiscoverResult<'_>,
    super::lifecycle::PageHead<'_>,
    super::prompt::ListPromptsResult<'_>,
    super::resource::ListResourceTemplatesResult<'_>,
    super::resource::ListResourcesResult<'_>,
    super::resource::ReadResourceResult<'_>,
    super::tool::ListToolsResult<'_>,
);
