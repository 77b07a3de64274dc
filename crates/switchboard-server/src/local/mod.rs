//! Clients of the same user, over a unix-domain socket.
//!
//! A connection begins with one line from the client, [`Hello`], and one from the server, [`Welcome`]. After that it is
//! an MCP connection as over standard input and output, or it ends, if the client only wanted to know or to stop
//! something. Only processes of the same user are served.
//!
//! | where | what |
//! |---|---|
//! | this file | the two lines |
//! | `server` | accepting connections |
//! | `client` | connecting |

mod client;
mod server;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use tokio::time::timeout;

pub use client::{DialError, Dialed, dial};
pub use server::{LocalClient, LocalHandler, LocalServer};

/// Longest first line, in bytes.
const MAX_LINE: u64 = 64 * 1024;
/// Time for the first line of a client, which sends it at once.
const HELLO_DEADLINE: Duration = Duration::from_secs(5);
/// Time for the first line of a server, which may have to read a configuration first.
const WELCOME_DEADLINE: Duration = Duration::from_secs(30);

/// The first line of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the client's program.
    pub version: String,
    /// What the client wants.
    pub wants: Wants,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wants {
    /// All servers that are configured in this folder.
    Gateway {
        /// The working directory of the client.
        folder: PathBuf,
        /// The profile that the client uses; `None` for everything that is configured.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        profile: Option<String>,
    },
    /// One server that is configured in this folder, without checks: the client makes them itself.
    Server {
        /// The working directory of the client.
        folder: PathBuf,
        /// The name of the server.
        server: String,
        /// What the client would connect to, as a digest. The daemon refuses if it knows another one.
        key: String,
    },
    /// The version of the daemon.
    Version,
    /// The status of the daemon.
    Status,
    /// The end of the daemon.
    Stop,
}

/// The first line of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version of the server's program.
    pub version: String,
    /// The process id of the server.
    pub process: u32,
    /// Why the client cannot be served; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// The profile that the client gets. A server that does not know profiles leaves it out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
    /// Whether the server ends because the client is of a newer version, which starts its own.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gives_way: bool,
    /// The status, if the client wants it.
    #[serde(skip_serializing_if = "Value::is_null", default)]
    pub status: Value,
}

/// Reads one line as JSON.
async fn read_line<T: for<'d> Deserialize<'d>>(
    reader: &mut (impl AsyncBufRead + Unpin),
    deadline: Duration,
) -> io::Result<T> {
    let mut line = Vec::new();
    let mut limited = reader.take(MAX_LINE);
    let reading = timeout(deadline, limited.read_until(b'\n', &mut line));
    let read = reading
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&line).map_err(io::Error::from)
}

/// Whether a version (`MAJOR.MINOR.PATCH`, more is ignored) is newer than another.
pub fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        let core = text.split(['-', '+']).next().unwrap_or_default();
        core.split('.')
            .map(|part| part.parse().unwrap_or_default())
            .collect()
    };
    numbers(version) > numbers(than)
}

/// Writes one line of JSON.
fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, than, expected) in [
            ("0.10.0", "0.9.9", true),
            ("1.0.0", "1.0.0", false),
            ("1.0.0-rc.1", "1.0.0", false),
            ("0.9.9", "0.10.0", false),
            ("1.0.1+build", "1.0.0", true),
        ] {
            assert_eq!(is_newer(version, than), expected, "{version} {than}");
        }
    }
}
