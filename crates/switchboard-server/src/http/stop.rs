//! The shutdown signal of an HTTP server, in two steps: first it drains, then it stops.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Draining,
    Stopped,
}

/// Handle that shuts a server down.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<Phase>>);

/// Receives the shutdown signal.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<Phase>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::channel(Phase::Serving).0))
    }

    /// Shuts the server down. [`HttpServer::serve`](super::HttpServer::serve) returns when that is done.
    pub fn stop(&self) {
        self.0.send_replace(Phase::Stopped);
    }

    /// Shuts the server down when its running requests have ended, at the latest after
    /// [`HttpLimits::drain`](super::HttpLimits::drain). Further requests and connections are refused at once.
    pub fn drain(&self) {
        self.0.send_if_modified(|phase| {
            let is_serving = *phase == Phase::Serving;
            if is_serving {
                *phase = Phase::Draining;
            }
            is_serving
        });
    }

    pub(super) fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    /// Completes when the server is to stop.
    pub(super) async fn stopped(self) {
        self.reaches(Phase::Stopped).await;
    }

    /// Completes when the server is to drain or to stop.
    pub(super) async fn draining(self) {
        self.reaches(Phase::Draining).await;
    }

    /// Whether no further requests are served.
    pub(super) fn is_draining(&self) -> bool {
        *self.0.borrow() >= Phase::Draining
    }

    async fn reaches(mut self, wanted: Phase) {
        let is_gone = self.0.wait_for(|phase| *phase >= wanted).await.is_err();
        if is_gone {
            // All senders are gone, so the signal can no longer come.
            std::future::pending::<()>().await;
        }
    }

    /// [`stopped`](Self::stopped) as a boxed future.
    pub(super) fn boxed(&self) -> BoxFuture<'static, ()> {
        self.clone().stopped().boxed()
    }
}
