//! Permissions as a host has them: rules from files of all scopes, decided for calls of all kinds.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod gate;
mod hooks;
mod machine;
mod properties;
mod table;
