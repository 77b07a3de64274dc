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
mod chat_commands;
#[cfg(target_os = "linux")]
mod chat_meanwhile;
#[cfg(target_os = "linux")]
mod chat_screen;
#[cfg(target_os = "linux")]
mod chat_terminal;
#[cfg(target_os = "linux")]
mod chat_views;
mod clients;
mod clients_move;
mod cloud;
#[cfg(target_os = "linux")]
mod completion;
mod content;
mod contract;
#[cfg(target_os = "linux")]
mod daemon;
#[cfg(target_os = "linux")]
mod daemon_sharing;
mod diagnostics;
#[cfg(unix)]
mod doctor;
mod documentation;
mod edit;
#[cfg(target_os = "linux")]
mod everyday;
#[cfg(unix)]
mod gateway_clients;
mod guesses;
#[cfg(target_os = "linux")]
mod half_hour;
#[cfg(target_os = "linux")]
mod login;
mod malformed;
#[cfg(target_os = "linux")]
mod one_shot;
mod output;
mod own_program;
mod permissions;
mod pins;
#[cfg(target_os = "linux")]
mod preflight;
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
#[cfg(unix)]
mod standard_streams;
#[cfg(target_os = "linux")]
mod state;
mod support;
#[cfg(target_os = "linux")]
mod tables;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod tokens;
mod tools_of_others;
mod trust;
mod untrusted;
mod visible;
#[cfg(target_os = "linux")]
mod wire;
