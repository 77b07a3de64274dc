//! Listening sockets: a TCP port or a unix-domain socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(unix)]
use std::path::PathBuf;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use super::options::Address;

pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix {
        listener: UnixListener,
        /// Removes the socket file on drop.
        _file: SocketFile,
    },
}

pub(super) enum Accepted {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Listener {
    pub(super) async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            #[cfg(unix)]
            Address::Unix(path) => {
                use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
                // Removes a stale socket file of a killed server, but not one that a running server listens on.
                let is_socket =
                    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
                if is_socket && UnixStream::connect(path).await.is_err() {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                let file = SocketFile(path.clone());
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
                Ok(Self::Unix {
                    listener,
                    _file: file,
                })
            }
        }
    }

    /// The local address; `None` for a unix-domain socket.
    pub(super) fn address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Some),
            #[cfg(unix)]
            Self::Unix { .. } => Ok(None),
        }
    }

    /// The next connection and its peer address; `None` for a unix-domain socket.
    pub(super) async fn accept(&self) -> io::Result<(Accepted, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small and latency matters. Fails only if the client has already disconnected.
                let _ = stream.set_nodelay(true);
                Ok((Accepted::Tcp(stream), Some(peer.ip())))
            }
            #[cfg(unix)]
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok((Accepted::Unix(stream), None))
            }
        }
    }
}

/// A socket file, removed on drop.
#[cfg(unix)]
pub(super) struct SocketFile(PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may already have been removed.
        let _ = std::fs::remove_file(&self.0);
    }
}
