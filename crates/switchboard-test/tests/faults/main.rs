//! What becomes of a call, a connection and everybody else when a server misbehaves: each fault over each transport and
//! in both eras.
//!
//! One process, one runtime and few tests on purpose: what a host leaves behind is counted over a whole table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod matrix;
mod opening;
mod sizes;

use std::sync::{Mutex, PoisonError};

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

/// Runs a test while no other runs in this process: what is held can be counted only then. That holds for the runtime
/// too, which has descriptors of its own.
fn alone(test: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}
