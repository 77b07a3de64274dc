//! Connections of commands to servers that the daemon runs: nothing is started, and everything else stays as it is.
//!
//! The connector of a server is replaced by one that asks the daemon for the server's own connection. Permissions, pins,
//! prompts and output remain those of the command. If the daemon cannot help, the server is started as without it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use switchboard::internal::desired::Desired;
use switchboard::internal::transport::stdio::frames::{Frame, Frames};
use switchboard::transport::{
    Abandoned, Closed, Connector, Destination, Inbound, InstalledPackage, Link, Outgoing, Sending,
    TransportError, TransportErrorKind, WithheldVariable, sending, sent,
};
use switchboard_config::entry::Transport;
use switchboard_config::text::visible;
use switchboard_protocol::Revision;
use switchboard_server::local::{Dialed, Hello, Wants, Welcome, dial};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::DaemonFiles;
use crate::context::Context;
use crate::warned;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;
/// Longest message, in bytes.
const MAX_LINE: usize = 256 * 1024 * 1024;
/// Messages that may wait to be written.
const MAX_QUEUED: usize = 256;
/// How long a daemon may take to say its version.
const PATIENCE: Duration = Duration::from_millis(500);

/// Lets a command use the servers of the running daemon. Changes nothing if none runs, or if it is of another version.
pub(crate) fn use_daemon(desired: &mut Desired, context: &Context) {
    let flags = &context.flags;
    // The daemon does not know what such a command would start.
    if flags.no_daemon || flags.no_project || flags.trust_project || !flags.config.is_empty() {
        return;
    }
    let files = DaemonFiles::of(&context.environment);
    let Some(version) = version(&files) else {
        return;
    };
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        let message = format!(
            "the daemon is version {}, this is {own}: its servers are not used",
            visible(&version)
        );
        if warned::is_new(&message, &context.environment.state) {
            let hint = Some("restart it: switchboard down, then switchboard up --detach");
            context.printer.warning(message, hint);
        }
        return;
    }
    for spec in &mut desired.servers {
        if spec.share_key.is_none() || spec.connector.transport() != Transport::Stdio {
            continue;
        }
        spec.connector = Arc::new(DaemonConnector {
            own: Arc::clone(&spec.connector),
            socket: files.socket.clone(),
            wants: Wants::Server {
                folder: context.cwd.clone(),
                server: spec.name.as_str().to_owned(),
                key: spec.key.to_hex(),
            },
        });
    }
}

/// The version of the running daemon.
fn version(files: &DaemonFiles) -> Option<String> {
    let mut socket = UnixStream::connect(&files.socket).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    let hello = serde_json::to_string(&hello(Wants::Version)).ok()?;
    writeln!(socket, "{hello}").ok()?;
    let mut line = String::new();
    let mut reader = BufReader::new(socket.take(CHUNK as u64));
    reader.read_line(&mut line).ok()?;
    let welcome: Welcome = serde_json::from_str(&line).ok()?;
    Some(welcome.version)
}

fn hello(wants: Wants) -> Hello {
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        wants,
    }
}

/// Connects through the daemon, or else as the entry says.
#[derive(Debug)]
struct DaemonConnector {
    /// Starts the server without the daemon.
    own: Arc<dyn Connector>,
    socket: PathBuf,
    wants: Wants,
}

impl Connector for DaemonConnector {
    fn transport(&self) -> Transport {
        self.own.transport()
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        async move {
            match dial(&self.socket, &hello(self.wants.clone())).await {
                Ok(dialed) => Ok(Arc::new(DaemonLink::open(dialed, inbound)) as Arc<dyn Link>),
                Err(error) => {
                    tracing::debug!(%error, "not connected through the daemon");
                    self.own.connect(inbound).await
                }
            }
        }
        .boxed()
    }

    fn destination(&self) -> Destination {
        self.own.destination()
    }

    fn may_install(&self) -> bool {
        self.own.may_install()
    }

    fn installed_package(&self) -> Option<InstalledPackage> {
        self.own.installed_package()
    }

    fn withheld_variables(&self) -> Vec<WithheldVariable> {
        self.own.withheld_variables()
    }

    fn listed_variables(&self) -> &[String] {
        self.own.listed_variables()
    }
}

/// A connection to a server of the daemon.
struct DaemonLink {
    /// Messages to be written; closed by dropping it.
    queue: watch::Sender<Option<mpsc::Sender<Vec<u8>>>>,
    /// Becomes true when everything queued is written.
    written: watch::Receiver<bool>,
    reading: AbortHandle,
}

impl DaemonLink {
    fn open(dialed: Dialed, inbound: Arc<dyn Inbound>) -> Self {
        let Dialed {
            mut reader, writer, ..
        } = dialed;
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let (done, written) = watch::channel(false);
        tokio::spawn(async move {
            write(queued, writer).await;
            done.send_replace(true);
        });
        let reading = tokio::spawn(async move {
            let mut frames = Frames::new(MAX_LINE, CHUNK);
            while matches!(reader.read_buf(frames.room()).await, Ok(1..)) {
                frames.split(|frame| match frame {
                    Frame::Line(line) => inbound.frame(line),
                    Frame::Oversized(start) => inbound.oversized(start, MAX_LINE),
                });
            }
            inbound.closed(Closed::ByServer);
        });
        Self {
            queue: watch::Sender::new(Some(queue)),
            written,
            reading: reading.abort_handle(),
        }
    }
}

impl Link for DaemonLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        let closed = || TransportError::new(TransportErrorKind::Closed, "the daemon has ended");
        let Some(queue) = self.queue.borrow().clone() else {
            return sent(Err(closed()));
        };
        let mut line = message.payload;
        line.push(b'\n');
        match queue.try_send(line) {
            Ok(()) => sent(Ok(())),
            Err(mpsc::error::TrySendError::Full(line)) => {
                sending(async move { queue.send(line).await.map_err(|_| closed()) })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => sent(Err(closed())),
        }
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn abandon(&self, _request: u64) -> Abandoned {
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.queue.send_replace(None);
            let mut written = self.written.clone();
            let _ = written.wait_for(|is_done| *is_done).await;
            self.reading.abort();
        }
        .boxed()
    }
}

impl Drop for DaemonLink {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Writes messages until the queue is closed.
async fn write(mut queued: mpsc::Receiver<Vec<u8>>, mut writer: OwnedWriteHalf) {
    while let Some(line) = queued.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}
