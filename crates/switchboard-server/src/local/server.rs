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
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::{HELLO_DEADLINE, Hello, Wants, Welcome, line, read_line};
use crate::handler::{Handler, Principal};
use crate::stdio::{StdioOptions, serve};

/// Backoff after a failed `accept`, for example when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is behind the socket.
pub trait LocalHandler: Send + Sync + 'static {
    /// Returns what serves a client, or the reason why nothing can.
    fn gateway(&self, client: LocalClient) -> BoxFuture<'_, Result<Arc<dyn Handler>, String>>;

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
            version: self.version,
            process: std::process::id(),
            error: None,
            profile: None,
            status: Value::Null,
        };
        match hello.wants {
            Wants::Status => {
                welcome.status = self.handler.status().await;
                writer.write_all(&line(&welcome)?).await
            }
            Wants::Stop => {
                writer.write_all(&line(&welcome)?).await?;
                self.handler.stop();
                Ok(())
            }
            Wants::Gateway { folder, profile } => {
                let client = LocalClient { folder, process };
                let unknown = |name: &str| format!("the profile \"{name}\" is not configured");
                let found = self.handler.gateway(client).await;
                let found = found.and_then(|gateway| match &profile {
                    Some(name) if !gateway.has_profile(name) => Err(unknown(name)),
                    _ => Ok(gateway),
                });
                match found {
                    Ok(gateway) => {
                        welcome.profile.clone_from(&profile);
                        writer.write_all(&line(&welcome)?).await?;
                        let _counted = Counted::one(&self.clients);
                        let options = StdioOptions {
                            principal: Principal::Process(process),
                            profile: profile.map(Into::into),
                            ..StdioOptions::default()
                        };
                        let served = serve(&*gateway, reader, writer, &options).await;
                        served.map(drop).map_err(|error| error.source)
                    }
                    Err(reason) => {
                        welcome.error = Some(reason);
                        writer.write_all(&line(&welcome)?).await
                    }
                }
            }
        }
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
