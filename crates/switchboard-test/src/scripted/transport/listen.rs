//! Accepts connections on loopback, and drops them on command.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::scripted::engine::Server;
use crate::scripted::fault::{Fault, Occasion};
use crate::scripted::record::Record;

/// Handle to drop a connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// Faults of the connection.
    pub(crate) faults: Arc<[Fault]>,
    abort: Arc<Notify>,
}

impl Connection {
    /// Drops the connection, now or as soon as it is served.
    pub(crate) fn abort(&self) {
        self.abort.notify_one();
    }
}

/// Accepts until the server stops. Dropping the future drops every connection.
pub(crate) async fn accept<F, S>(server: Arc<Server>, listener: TcpListener, serve: F)
where
    F: Fn(TcpStream, Connection) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let mut ended = server.ended.subscribe();
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(Option::is_some) => return,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = stream else { continue };
        number += 1;
        server
            .recorder
            .record(Record::Connected { connection: number });
        let faults: Arc<[Fault]> = server.faults(Occasion::Connect).into();
        let connection = Connection {
            faults: Arc::clone(&faults),
            abort: Arc::new(Notify::new()),
        };
        let abort = Arc::clone(&connection.abort);
        let serving: futures_util::future::BoxFuture<'static, ()> =
            if faults.contains(&Fault::Silent) {
                Box::pin(hold(stream))
            } else if faults
                .iter()
                .any(|fault| matches!(fault, Fault::Abort { .. }))
            {
                drop(stream);
                Box::pin(std::future::ready(()))
            } else {
                let _ = stream.set_nodelay(true);
                Box::pin(serve(stream, connection))
            };
        let server = Arc::clone(&server);
        let mut disconnects = server.disconnects.subscribe();
        connections.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = abort.notified() => {}
                _ = disconnects.changed() => {}
            }
            server
                .recorder
                .record(Record::Disconnected { connection: number });
        });
    }
}

/// Holds a half-open socket: nothing is read or written.
async fn hold(stream: TcpStream) {
    let _stream = stream;
    std::future::pending::<()>().await;
}
