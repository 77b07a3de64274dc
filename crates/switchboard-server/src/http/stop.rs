//! The shutdown signal of an HTTP server.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// Handle that shuts a server down.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

/// Receives the shutdown signal.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Shuts the server down. [`HttpServer::serve`](super::HttpServer::serve) returns when that is done.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(super) fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    /// Completes when the server is to stop.
    pub(super) async fn stopped(mut self) {
        let is_gone = self.0.wait_for(|stop| *stop).await.is_err();
        if is_gone {
            // All senders are gone, so the signal can no longer come.
            std::future::pending::<()>().await;
        }
    }

    /// The same as a boxed future.
    pub(super) fn boxed(&self) -> BoxFuture<'static, ()> {
        self.clone().stopped().boxed()
    }
}
