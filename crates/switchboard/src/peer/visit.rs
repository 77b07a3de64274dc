//! URL elicitation by error: pages the user must visit before a request succeeds (error −32042 of 2025-11-25).
//!
//! Passes that error to the handler and waits for the server to report completion. The caller repeats the request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams};
use switchboard_protocol::types::error_data::UrlElicitationRequiredData;
use switchboard_protocol::types::wire;
use switchboard_protocol::{ErrorCode, ErrorObject};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Answering, Peer, RequestError};

/// How long to wait for the server to report completion. After that the request is repeated anyway, since not all
/// servers report it.
const COMPLETION: Duration = Duration::from_secs(180);
/// Pages one error may list.
const MAX_PAGES: usize = 8;

impl Peer {
    /// Has the user visit the pages that an error lists, within this time. An error means that the request must not be
    /// repeated.
    pub(crate) async fn visit(
        &self,
        error: RequestError,
        patience: Duration,
    ) -> Result<(), RequestError> {
        let Some(asked) = pages_wanted(&error).map(ErrorObject::into_owned) else {
            return Err(error);
        };
        let data = asked.data.as_deref();
        let data: Option<UrlElicitationRequiredData<'_>> =
            data.and_then(|data| wire::decode(data).ok());
        let Some(data) = data else {
            return Err(error);
        };
        let pages = data.elicitations.iter();
        if pages.len() == 0 || pages.len() > MAX_PAGES {
            return Err(error);
        }
        let _followed = self.0.usage.follow();
        let visits = async {
            for page in pages {
                let page = page.clone();
                let id = page.elicitation_id.as_deref().map(str::to_owned);
                self.visit_one(ElicitRequestParams::Url(page), id).await?;
            }
            Ok(())
        };
        match timeout(patience, visits).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RequestError::Expired(patience)),
        }
    }

    async fn visit_one(
        &self,
        page: ElicitRequestParams<'_>,
        id: Option<String>,
    ) -> Result<(), RequestError> {
        let shared = &self.0;
        // Registered before asking, because the server may report completion before the user answers.
        let completion = id.map(|id| shared.receiver.visits.begin(id));
        let answer = {
            let _answering = Answering::begin(&shared.receiver);
            shared.handler.elicit(&shared.server, page).await
        };
        let answer = answer.map_err(|error| RequestError::Rejected(Box::new(error)))?;
        match answer.action {
            ElicitAction::Accept => {}
            ElicitAction::Cancel => return Err(RequestError::NotVisited("cancelled")),
            _ => return Err(RequestError::NotVisited("declined")),
        }
        // Completion is reported only for a page with an id.
        if let Some(completion) = completion {
            tokio::select! {
                _ = timeout(COMPLETION, completion.done()) => {}
                // The repeated request will fail.
                _ = self.closed() => {}
            }
        }
        Ok(())
    }
}

/// The JSON-RPC error that lists pages, if it is one.
fn pages_wanted(error: &RequestError) -> Option<ErrorObject<'_>> {
    let error = match error {
        RequestError::Rejected(error) => (**error).clone(),
        RequestError::Refused(refusal) => refusal.rpc_error()?,
        _ => return None,
    };
    (error.code == ErrorCode::URL_ELICITATION_REQUIRED).then_some(error)
}

impl RequestError {
    /// Whether the server requires pages to be visited first.
    pub(crate) fn wants_pages(&self) -> bool {
        pages_wanted(self).is_some()
    }
}

/// Pages being waited for. Completions of other pages are ignored.
#[derive(Debug, Default)]
pub(super) struct Visits(Mutex<Vec<(String, Arc<Notify>)>>);

impl Visits {
    /// Waits for a page from now on, for as long as the value lives.
    fn begin(&self, id: String) -> Expected<'_> {
        let done = Arc::new(Notify::new());
        self.waiting().push((id, Arc::clone(&done)));
        Expected { visits: self, done }
    }

    /// Marks a page as completed.
    pub(super) fn complete(&self, id: &str) {
        for (_, done) in self.waiting().iter().filter(|(waiting, _)| waiting == id) {
            done.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(String, Arc<Notify>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a page being waited for.
struct Expected<'a> {
    visits: &'a Visits,
    done: Arc<Notify>,
}

impl Expected<'_> {
    async fn done(&self) {
        self.done.notified().await;
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        let mut waiting = self.visits.waiting();
        waiting.retain(|(_, done)| !Arc::ptr_eq(done, &self.done));
    }
}
