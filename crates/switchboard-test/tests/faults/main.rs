//! Fault injection: the effect of each fault on a call, its connection and other servers, over each transport and in
//! both eras.
//!
//! Few tests in one process and one runtime on purpose: leaks are counted over a whole table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod matrix;
mod opening;
mod sizes;

use std::sync::{Mutex, PoisonError};

use switchboard_protocol::Era;
use switchboard_test::scripted::Over;

const TRANSPORTS: [Over; 4] = [Over::Stdio, Over::Http, Over::Sse, Over::WebSocket];
const ERAS: [Era; 2] = [Era::Stateful, Era::Stateless];

/// Every transport in every era it supports. The legacy transport is stateful only.
fn cells() -> impl Iterator<Item = (Over, Era)> {
    TRANSPORTS
        .into_iter()
        .flat_map(|over| ERAS.map(|era| (over, era)))
        .filter(|cell| *cell != (Over::Sse, Era::Stateless))
}

/// Runs a test while no other runs in this process, so that resources can be counted. This includes the runtime, which
/// has its own descriptors.
fn alone(test: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}
