//! Connects to a local server.

use std::io;
use std::path::Path;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::{Hello, WELCOME_DEADLINE, Wants, Welcome, line, read_line};

/// A connection whose first lines have been exchanged.
#[derive(Debug)]
pub struct Dialed {
    /// What the server said about itself.
    pub welcome: Welcome,
    /// What comes from the server.
    pub reader: BufReader<OwnedReadHalf>,
    /// What goes to the server.
    pub writer: OwnedWriteHalf,
}

/// Why a local server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No server listens.
    #[error("no server listens: {0}")]
    NotRunning(io::Error),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Failed(io::Error),
    /// The server refused the client.
    #[error("{0}")]
    Refused(String),
}

/// Connects to the server at this socket.
pub async fn dial(path: &Path, hello: &Hello) -> Result<Dialed, DialError> {
    let socket = UnixStream::connect(path)
        .await
        .map_err(DialError::NotRunning)?;
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    let exchanged = async {
        writer.write_all(&line(hello)?).await?;
        read_line::<Welcome>(&mut reader, WELCOME_DEADLINE).await
    };
    let mut welcome = exchanged.await.map_err(|error| match error.kind() {
        // A server that is ending closes connections that it has just accepted.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => DialError::NotRunning(error),
        _ => DialError::Failed(error),
    })?;
    if let Some(reason) = welcome.error.take() {
        return Err(DialError::Refused(reason));
    }
    if let Wants::Gateway { profile, .. } = &hello.wants
        && *profile != welcome.profile
        && !welcome.gives_way
    {
        // It would serve everything.
        let reason = format!("version {} does not know profiles", welcome.version);
        return Err(DialError::Refused(reason));
    }
    Ok(Dialed {
        welcome,
        reader,
        writer,
    })
}
