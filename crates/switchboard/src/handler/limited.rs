//! Rate limits for requests from servers, applied before a user or a model sees them.
//!
//! Both eras pass through here, and all connections of a server share one count of elicitations, URLs to visit and
//! sampling requests. Requests beyond the limit get an error, and the front end is notified once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::{ErrorCode, ErrorObject};
use tokio::time::Instant;

use super::ClientHandler;
use crate::names::ServerName;

/// The window of the rate limit. After this much quiet, exceeding the limit is reported again.
const MINUTE: Duration = Duration::from_secs(60);
/// A server that exceeds the limit is refused until it has been quiet for this long.
const QUIET: Duration = Duration::from_secs(5);
/// The error code for a request beyond a limit.
const TOO_MANY: ErrorCode = ErrorCode(-32_029);

/// The limits of requests from each server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionLimits {
    /// Pending requests per server.
    pub waiting: usize,
    /// Requests per server and minute.
    pub per_minute: usize,
}

impl Default for QuestionLimits {
    fn default() -> Self {
        Self {
            waiting: 4,
            per_minute: 30,
        }
    }
}

/// The error for a request beyond a limit.
pub(crate) fn too_many(message: &'static str) -> ErrorObject<'static> {
    ErrorObject::new(TOO_MANY, message)
}

/// A handler that enforces the limits.
pub(crate) struct Limited {
    handler: Arc<dyn ClientHandler>,
    limits: QuestionLimits,
    servers: Mutex<HashMap<ServerName, Asking>>,
}

/// The requests of one server.
#[derive(Debug, Default)]
struct Asking {
    waiting: usize,
    /// The times of its requests within the last minute.
    asked: VecDeque<Instant>,
    /// The time of its last refused request.
    refused: Option<Instant>,
}

impl Limited {
    pub(crate) fn new(handler: Arc<dyn ClientHandler>, limits: QuestionLimits) -> Self {
        Self {
            handler,
            limits,
            servers: Mutex::default(),
        }
    }

    /// Admits one more request of a server, or refuses it.
    fn admit(&self, server: &ServerName) -> Result<Admitted<'_>, ErrorObject<'static>> {
        let now = Instant::now();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let asking = servers.entry(server.clone()).or_default();
        while asking
            .asked
            .front()
            .is_some_and(|asked| now - *asked >= MINUTE)
        {
            asking.asked.pop_front();
        }
        let is_flooding = asking.refused.is_some_and(|refused| now - refused < QUIET);
        let message = if is_flooding || asking.waiting >= self.limits.waiting {
            "rate limit exceeded: too many pending requests; retry in a few seconds, one at a time"
        } else if asking.asked.len() >= self.limits.per_minute {
            "rate limit exceeded: too many requests within a minute; retry later"
        } else {
            asking.waiting += 1;
            asking.asked.push_back(now);
            return Ok(Admitted {
                limited: self,
                server: server.clone(),
            });
        };
        let is_news = asking.refused.is_none_or(|refused| now - refused >= MINUTE);
        asking.refused = Some(now);
        drop(servers);
        if is_news {
            self.handler.flooded(server, self.limits);
        }
        Err(too_many(message))
    }
}

/// An admitted request. Dropping it releases its slot.
struct Admitted<'a> {
    limited: &'a Limited,
    server: ServerName,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let servers = &self.limited.servers;
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asking) = servers.get_mut(&self.server) {
            asking.waiting = asking.waiting.saturating_sub(1);
        }
    }
}

impl ClientHandler for Limited {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        self.handler.capabilities()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let admitted = match self.admit(server) {
            Ok(admitted) => admitted,
            Err(refusal) => return ready(Err(refusal)).boxed(),
        };
        async move {
            let _admitted = admitted;
            self.handler.elicit(server, params).await
        }
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        let admitted = match self.admit(server) {
            Ok(admitted) => admitted,
            Err(refusal) => return ready(Err(refusal)).boxed(),
        };
        async move {
            let _admitted = admitted;
            self.handler.create_message(server, params).await
        }
        .boxed()
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        self.handler.list_roots(server)
    }

    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        let admitted = match self.admit(server) {
            Ok(admitted) => admitted,
            Err(refusal) => return ready(Err(refusal)).boxed(),
        };
        async move {
            let _admitted = admitted;
            self.handler.other(server, method, params).await
        }
        .boxed()
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        self.handler.notified(server, method, params);
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        self.handler.flooded(server, limits);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use switchboard_protocol::types::elicitation::ElicitAction;
    use switchboard_protocol::types::{IntoOwned as _, decode};
    use tokio::sync::Semaphore;

    use super::*;

    /// Answers when permitted, and counts.
    struct Person {
        asked: AtomicUsize,
        told: AtomicUsize,
        answers: Semaphore,
    }

    impl ClientHandler for Person {
        fn elicit<'a>(
            &'a self,
            _server: &'a ServerName,
            _params: ElicitRequestParams<'a>,
        ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
            async move {
                self.asked.fetch_add(1, Ordering::Relaxed);
                let _answer = self.answers.acquire().await;
                Ok(ElicitResult::new(ElicitAction::Accept))
            }
            .boxed()
        }

        fn flooded(&self, _server: &ServerName, _limits: QuestionLimits) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn question() -> ElicitRequestParams<'static> {
        let form = serde_json::json!({
            "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}},
        });
        let raw = serde_json::value::to_raw_value(&form).unwrap();
        decode::<ElicitRequestParams<'_>>(&raw)
            .unwrap()
            .into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_refused_and_told_of_once() {
        let person = Arc::new(Person {
            asked: AtomicUsize::new(0),
            told: AtomicUsize::new(0),
            answers: Semaphore::new(0),
        });
        let limits = QuestionLimits {
            waiting: 2,
            per_minute: 5,
        };
        let limited = Limited::new(Arc::clone(&person) as Arc<dyn ClientHandler>, limits);
        let (loud, quiet) = (ServerName::from("loud"), ServerName::from("quiet"));
        let flood = join_all((0..2000).map(|_| limited.elicit(&loud, question())));
        let flood = tokio::time::timeout(Duration::from_secs(1), flood).await;
        assert!(flood.is_err(), "two of them wait");
        assert_eq!(person.asked.load(Ordering::Relaxed), 2);
        assert_eq!(person.told.load(Ordering::Relaxed), 1);
        // A cancelled request no longer counts as pending, and other servers are not affected.
        person.answers.add_permits(1);
        assert!(limited.elicit(&quiet, question()).await.is_ok());
        assert!(
            limited.elicit(&loud, question()).await.is_err(),
            "it was not quiet"
        );
        tokio::time::advance(QUIET).await;
        for _ in 0..3 {
            assert!(limited.elicit(&loud, question()).await.is_ok());
        }
        let refused = limited.elicit(&loud, question()).await.unwrap_err();
        assert_eq!(refused.code, TOO_MANY);
        assert_eq!(person.told.load(Ordering::Relaxed), 1);
        tokio::time::advance(MINUTE).await;
        for _ in 0..5 {
            assert!(limited.elicit(&loud, question()).await.is_ok());
        }
        assert!(limited.elicit(&loud, question()).await.is_err());
        assert_eq!(person.told.load(Ordering::Relaxed), 2);
    }
}
