//! Cache hints of results: lifetime and scope.

use std::time::Duration;

use super::wire::Number;
use crate::macros::wire_enum;

wire_enum! {
    /// Who may share a cached result.
    pub enum CacheScope<'a> {
        /// Only the same client, under the same authorization.
        Private = "private",
        /// Shared between all clients.
        Public = "public",
    }
}

/// The cache hint of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// How long the result stays fresh. Zero: not cacheable.
    pub time_to_live: Duration,
    /// Whether the cached result may be shared. Only with an explicit `public`.
    pub shared: bool,
}

/// A result that may have a cache hint.
pub trait Cacheable {
    /// The hint, if any. A negative lifetime, or one out of range, is treated as zero.
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
