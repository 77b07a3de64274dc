//! Tests of the agent with a scripted model and in-process servers.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail by panicking"
)]

mod samplings;
mod sessions;
mod side_by_side;
mod support;
mod turns;
mod views;
mod work;
