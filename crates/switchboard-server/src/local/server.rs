//! Accepts local clients.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::{HELLO_DEADLINE, Hello, Wants, Welcome, is_newer, line, read_line};
use crate::handler::{Handler, Principal};
use crate::stdio::{StdioOptions, serve};

/// Backoff after a failed `accept`, for example when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is behind the socket.
pub trait LocalHandler: Send + Sync + 'static {
    /// Returns what serves a client, or the reason why nothing can.
    fn gateway(&self, client: LocalClient) -> BoxFuture<'_, Result<Arc<dyn Handler>, String>>;

    /// Returns what serves a client of one server, or the reason why nothing can.
    fn server(
        &self,
        client: LocalClient,
        server: &str,
        key: &str,
    ) -> BoxFuture<'_, Result<Arc<dyn Handler>, String>>;

    /// Whether clients use the server in other ways than over this socket.
    fn is_used_otherwise(&self) -> bool {
        false
    }

    /// The status, for clients that ask for it.
    fn status(&self) -> BoxFuture<'_, Value>;

    /// Ends the server.
    fn stop(&self);
}

/// A client that wants to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalClient {
    /// Its working directory.
    pub folder: PathBuf,
    /// Its process id, if the system knows it.
    pub process: Option<u32>,
}

/// A bound socket.
pub struct LocalServer {
    listener: UnixListener,
    path: PathBuf,
    version: String,
    clients: Arc<AtomicUsize>,
}

impl LocalServer {
    /// Binds the socket, which only this user may connect to. Replaces a file that is left of a server that was killed:
    /// the caller makes sure that no other server runs. Must be called within a tokio runtime.
    pub fn bind(path: &Path, version: &str) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            version: version.to_owned(),
            clients: Arc::default(),
        })
    }

    /// The number of connected clients, which changes.
    pub fn clients(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.clients)
    }

    /// Serves clients until the future is dropped.
    pub async fn serve(&self, handler: Arc<dyn LocalHandler>) {
        loop {
            match self.listener.accept().await {
                Ok((socket, _)) => {
                    let served = Serving {
                        handler: Arc::clone(&handler),
                        version: self.version.clone(),
                        clients: Arc::clone(&self.clients),
                    };
                    tokio::spawn(async move {
                        if let Err(error) = served.connection(socket).await {
                            tracing::debug!(%error, "a local client is gone");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // It may already have been removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl std::fmt::Debug for LocalServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LocalServer")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

struct Serving {
    handler: Arc<dyn LocalHandler>,
    version: String,
    clients: Arc<AtomicUsize>,
}

impl Serving {
    async fn connection(self, socket: UnixStream) -> io::Result<()> {
        let peer = socket.peer_cred()?;
        // The file permissions say the same. This holds wherever the file is.
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let process = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        let (reader, mut writer) = socket.into_split();
        let mut reader = BufReader::new(reader);
        let hello: Hello = read_line(&mut reader, HELLO_DEADLINE).await?;
        let mut welcome = Welcome {
            version: self.version.clone(),
            process: std::process::id(),
            error: None,
            profile: None,
            gives_way: false,
            status: Value::Null,
        };
        let is_unused =
            || self.clients.load(Ordering::Relaxed) == 0 && !self.handler.is_used_otherwise();
        match hello.wants {
            Wants::Version => writer.write_all(&line(&welcome)?).await,
            Wants::Status => {
                welcome.status = self.handler.status().await;
                writer.write_all(&line(&welcome)?).await
            }
            Wants::Stop => {
                writer.write_all(&line(&welcome)?).await?;
                self.handler.stop();
                Ok(())
            }
            Wants::Gateway { .. } if is_newer(&hello.version, &welcome.version) && is_unused() => {
                welcome.gives_way = true;
                writer.write_all(&line(&welcome)?).await?;
                self.handler.stop();
                Ok(())
            }
            Wants::Gateway { folder, profile } => {
                // Counted from now on, so that the server does not give way to another client meanwhile.
                let _counted = Counted::one(&self.clients);
                let client = LocalClient { folder, process };
                let served = self.handler.gateway(client).await;
                let served = served.and_then(|gateway| match &profile {
                    Some(name) if !gateway.has_profile(name) => {
                        Err(format!("the profile \"{name}\" is not configured"))
                    }
                    _ => Ok(gateway),
                });
                welcome.profile = profile;
                self.serve(served, welcome, reader, writer, process).await
            }
            Wants::Server {
                folder,
                server,
                key,
            } => {
                let _counted = Counted::one(&self.clients);
                let client = LocalClient { folder, process };
                let served = self.handler.server(client, &server, &key).await;
                self.serve(served, welcome, reader, writer, process).await
            }
        }
    }

    async fn serve(
        &self,
        served: Result<Arc<dyn Handler>, String>,
        mut welcome: Welcome,
        reader: BufReader<OwnedReadHalf>,
        mut writer: OwnedWriteHalf,
        process: Option<u32>,
    ) -> io::Result<()> {
        let handler = match served {
            Ok(handler) => handler,
            Err(reason) => {
                welcome.error = Some(reason);
                return writer.write_all(&line(&welcome)?).await;
            }
        };
        writer.write_all(&line(&welcome)?).await?;
        let options = StdioOptions {
            principal: Principal::Process(process),
            profile: welcome.profile.take().map(Into::into),
            ..StdioOptions::default()
        };
        let served = serve(&*handler, reader, writer, &options).await;
        served.map(drop).map_err(|error| error.source)
    }
}

struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn one(clients: &'c AtomicUsize) -> Self {
        clients.fetch_add(1, Ordering::Relaxed);
        Self(clients)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
