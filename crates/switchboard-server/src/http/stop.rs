//! The signal that a server is to stop, and those who wait for it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

/// Stops a server.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

/// Hears of it.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Stops the server. [`HttpServer::serve`](super::HttpServer::serve) returns when it has ended.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(super) fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    /// Ends when the server is to stop.
    pub(super) async fn stopped(mut self) {
        let is_gone = self.0.wait_for(|stop| *stop).await.is_err();
        if is_gone {
            // Nobody is left to say so.
            std::future::pending::<()>().await;
        }
    }

    /// The same, to be kept.
    pub(super) fn boxed(&self) -> BoxFuture<'static, ()> {
        self.clone().stopped().boxed()
    }
}
