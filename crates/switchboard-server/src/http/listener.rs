//! Where connections come from: a TCP port, or a unix-domain socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(unix)]
use std::path::PathBuf;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use super::options::Address;

/// What listens.
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix {
        listener: UnixListener,
        /// Removed with the listener.
        _file: SocketFile,
    },
}

/// A connection that was accepted.
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
                // What is left of a server that was killed is in the way; a server that lives is not.
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

    /// The address, where it has one.
    pub(super) fn address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Some),
            #[cfg(unix)]
            Self::Unix { .. } => Ok(None),
        }
    }

    /// The next connection, and the address of its other end where it has one.
    pub(super) async fn accept(&self) -> io::Result<(Accepted, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small and waited for. A client that has hung up already is served as any other.
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

/// The file of a socket, which goes with it.
#[cfg(unix)]
pub(super) struct SocketFile(PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = std::fs::remove_file(&self.0);
    }
}
