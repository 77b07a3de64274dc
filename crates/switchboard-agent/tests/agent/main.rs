//! The agent with a scripted model and servers in this process.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail by panicking"
)]

mod samplings;
mod sessions;
mod support;
mod turns;
mod views;
mod work;
