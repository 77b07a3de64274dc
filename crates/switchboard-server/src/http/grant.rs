//! What access control grants to a request: who makes it, which profile it uses, and until when.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::quota::RunningRequest;
use super::stop::Stop;
use crate::handler::{Client, ClientKind, Principal};

/// Sessions belong to the grant of their handshake: only the same principal can use them, with the same profile.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) principal: Principal,
    /// After access control: the only profile that the client may use, `None` for any. After routing: the one in use.
    pub(super) profile: Option<Arc<str>>,
    /// `None` if the grant lasts as long as the server.
    pub(super) lease: Option<Lease>,
    /// When the client must present another token, which does not end its requests and sessions; `None`: never.
    pub(super) expires: Option<Instant>,
    /// The request that is counted; `None` before and for streams outside of requests.
    pub(super) running: Option<Arc<RunningRequest>>,
}

impl Grant {
    /// Access to every profile, for as long as the server runs.
    pub(super) fn new(principal: Principal) -> Self {
        Self {
            principal,
            profile: None,
            lease: None,
            expires: None,
            running: None,
        }
    }

    /// The grant for what outlives the request.
    pub(super) fn owner(&self) -> Self {
        Self {
            running: None,
            ..self.clone()
        }
    }

    pub(super) fn client(&self, kind: ClientKind) -> Client {
        let mut client = Client::new(kind, self.principal.clone());
        client.profile.clone_from(&self.profile);
        client
    }

    /// Whether a session opened under `self` may be used under `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.covers_principal(other) && self.profile == other.profile
    }

    /// The same where the request does not name the profile again.
    pub(super) fn covers_principal(&self, other: &Self) -> bool {
        !self.is_over() && self.principal == other.principal
    }

    pub(super) fn is_over(&self) -> bool {
        self.lease.as_ref().is_some_and(Lease::is_over)
    }

    /// Completes when the grant ends or the server stops.
    pub(super) fn until_over(&self, stop: &Stop) -> BoxFuture<'static, ()> {
        let Some(lease) = self.lease.clone() else {
            return stop.boxed();
        };
        let stop = stop.clone();
        async move {
            tokio::select! {
                () = lease.over() => {}
                () = stop.stopped() => {}
            }
        }
        .boxed()
    }

    /// The same, or when the client must present another token. For streams that can be opened again.
    pub(super) fn until_expired(&self, stop: &Stop) -> BoxFuture<'static, ()> {
        let over = self.until_over(stop);
        let Some(expires) = self.expires else {
            return over;
        };
        async move {
            tokio::select! {
                () = over => {}
                () = sleep_until(expires) => {}
            }
        }
        .boxed()
    }
}

/// The time for which a token is valid.
#[derive(Debug, Clone)]
pub(super) struct Lease(watch::Receiver<bool>);

/// Ends all leases of a token.
#[derive(Debug)]
pub(super) struct Lessor(watch::Sender<bool>);

impl Lessor {
    pub(super) fn new() -> Self {
        Self(watch::channel(false).0)
    }

    pub(super) fn lease(&self) -> Lease {
        Lease(self.0.subscribe())
    }

    /// Whether sessions or streams depend on it.
    pub(super) fn is_in_use(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(super) fn end(&self) {
        self.0.send_replace(true);
    }
}

impl Lease {
    fn is_over(&self) -> bool {
        *self.0.borrow()
    }

    async fn over(mut self) {
        let is_gone = self.0.wait_for(|is_over| *is_over).await.is_err();
        if is_gone {
            // The server that could end it is gone.
            std::future::pending::<()>().await;
        }
    }
}
