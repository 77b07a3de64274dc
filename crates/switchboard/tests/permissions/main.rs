//! Tests of permissions in a host: rules from files of all scopes, applied to all kinds of calls.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod cache;
mod edited;
mod gate;
mod hooks;
mod machine;
mod properties;
mod table;
