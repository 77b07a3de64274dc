//! Fetches paginated lists, to the end or to a limit.

use std::time::Duration;

use switchboard_protocol::shallow_page;
use switchboard_protocol::types::cache::{CacheHint, Cacheable as _};
use switchboard_protocol::types::lifecycle::{PageHead, PaginatedRequestParams};
use switchboard_protocol::types::wire;

use super::{ListKind, Peer, RequestError, RequestOptions};
use crate::catalog::SetAside;
use crate::json::SharedJson;

/// Limits on how much of a list is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Maximum number of pages.
    pub pages: usize,
    /// Maximum bytes of all pages together.
    pub bytes: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            pages: 1_000,
            bytes: 64 * 1024 * 1024,
        }
    }
}

/// A list as the server sent it, page by page.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// Undecoded pages.
    pub pages: Vec<SharedJson>,
    /// How long the list stays fresh, taken from its shortest-lived page; `None` if the server did not state it.
    pub hint: Option<CacheHint>,
    /// Reason why the list is incomplete; `None` if it is complete.
    pub cut: Option<String>,
    /// Items removed from the pages because they differ from their pin or cannot be compared with it.
    pub withheld: Vec<SetAside>,
}

impl Peer {
    /// Fetches a list. A server that lacks the method has an empty list.
    pub async fn list(
        &self,
        kind: ListKind,
        limits: PageLimits,
        deadline: Duration,
    ) -> Result<Pages, RequestError> {
        self.list_reading(kind, limits, deadline, |_| None).await
    }

    /// Like [`list`](Self::list), for a caller that reads each page as it arrives. `read` may return the page without
    /// its items, which spares searching them for the cursor.
    pub(crate) async fn list_reading(
        &self,
        kind: ListKind,
        limits: PageLimits,
        deadline: Duration,
        mut read: impl FnMut(&SharedJson) -> Option<SharedJson>,
    ) -> Result<Pages, RequestError> {
        let options = RequestOptions::within(deadline);
        let mut list = Pages::default();
        let mut params = PaginatedRequestParams::default();
        let mut bytes = 0;
        loop {
            let asked = params.cursor.clone();
            let page = match self.ask(kind.method(), &params, &options).await {
                Ok(page) => page,
                Err(RequestError::TooDeep { why, frame }) => self
                    .without_deep_items(kind, &frame)
                    .ok_or(RequestError::TooDeep { why, frame })?,
                Err(error) if list.pages.is_empty() && says_no_such_method(&error) => {
                    return Ok(list);
                }
                Err(error) if list.pages.is_empty() => return Err(error),
                Err(error) => {
                    list.cut = Some(format!("cannot fetch the next page: {error}"));
                    return Ok(list);
                }
            };
            let rest = read(&page);
            let head: PageHead<'_> = wire::decode(rest.as_ref().unwrap_or(&page).raw())
                .map_err(|error| RequestError::Malformed(error.to_string()))?;
            list.hint = shorter(list.hint, head.cache_hint());
            let next = head.next_cursor.map(std::borrow::Cow::into_owned);
            bytes += page.as_str().len();
            list.pages.push(page);
            match next {
                None => return Ok(list),
                // Some servers answer the last page with an empty cursor, or repeat the last one.
                Some(next) if asked.as_deref() == Some(&next) => {
                    list.cut = (!next.is_empty())
                        .then(|| "the server returned the same cursor again".to_owned());
                    return Ok(list);
                }
                Some(next) if next.is_empty() => return Ok(list),
                Some(_) if list.pages.len() >= limits.pages => {
                    list.cut = Some(format!("more than {} pages", limits.pages));
                    return Ok(list);
                }
                Some(_) if bytes >= limits.bytes => {
                    list.cut = Some(format!("more than {} bytes", limits.bytes));
                    return Ok(list);
                }
                Some(next) => params.cursor = Some(next.into()),
            }
        }
    }
}

impl Peer {
    /// A page that exceeds the nesting limit, without the items that do.
    fn without_deep_items(&self, kind: ListKind, frame: &[u8]) -> Option<SharedJson> {
        let max_depth = self.0.receiver.limits.max_depth;
        let page = shallow_page(frame, max_depth, kind == ListKind::Tools)?;
        switchboard_protocol::trusted(&page).map(SharedJson::from)
    }
}

fn says_no_such_method(error: &RequestError) -> bool {
    use switchboard_protocol::ErrorCode;
    error
        .rejection()
        .is_some_and(|error| error.code == ErrorCode::METHOD_NOT_FOUND)
}

/// The stricter hint: a list is as fresh as its shortest-lived page and as private as its most private one.
fn shorter(left: Option<CacheHint>, right: Option<CacheHint>) -> Option<CacheHint> {
    match (left, right) {
        (Some(left), Some(right)) => Some(CacheHint {
            time_to_live: left.time_to_live.min(right.time_to_live),
            shared: left.shared && right.shared,
        }),
        (hint, None) | (None, hint) => hint,
    }
}
