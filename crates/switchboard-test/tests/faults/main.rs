//! What becomes of a call, a connection and everybody else when a server misbehaves: each fault over each transport and
//! in both eras.
//!
//! One process, one runtime and few tests on purpose: what a host leaves behind is counted over a whole table.

mod matrix;
mod opening;
mod sizes;

use switchboard_protocol::Era;
use switchboard_test::scripted::Over;

/// Every transport.
const TRANSPORTS: [Over; 4] = [Over::Stdio, Over::Http, Over::Sse, Over::WebSocket];
/// Both eras.
const ERAS: [Era; 2] = [Era::Stateful, Era::Stateless];

/// Every transport in every era it has. The legacy transport belongs to the era with a handshake.
fn cells() -> impl Iterator<Item = (Over, Era)> {
    TRANSPORTS
        .into_iter()
        .flat_map(|over| ERAS.map(|era| (over, era)))
        .filter(|cell| *cell != (Over::Sse, Era::Stateless))
}

/// Counting what is held makes sense only while nothing else runs in this process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
