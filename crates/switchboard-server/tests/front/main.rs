//! The front ends over real streams and sockets, with ordinary and hostile clients.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod attacks;
mod bench;
mod cancelling;
mod client;
mod floods;
mod identity;
mod limits;
mod oauth;
mod parsed_once;
mod sessions;
mod single_requests;
mod sockets;
mod stdio;
mod streams;
mod tls;
