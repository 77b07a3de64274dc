//! End-to-end tests of the command line: every test starts the real binary.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod add;
mod attacks;
#[cfg(target_os = "linux")]
mod bash_sandbox;
#[cfg(target_os = "linux")]
mod chat;
#[cfg(target_os = "linux")]
mod chat_terminal;
mod cloud;
mod content;
mod contract;
mod diagnostics;
#[cfg(unix)]
mod doctor;
mod documentation;
mod edit;
#[cfg(target_os = "linux")]
mod login;
mod malformed;
#[cfg(target_os = "linux")]
mod one_shot;
mod output;
mod permissions;
mod pins;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(target_os = "linux")]
mod reasons;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod sandbox_real;
mod scopes;
mod search;
mod secrets;
mod serve;
mod servers;
#[cfg(target_os = "linux")]
mod state;
mod support;
mod tools_of_others;
mod trust;
mod untrusted;
mod visible;
#[cfg(target_os = "linux")]
mod wire;
