//! switchboard-protocol

mod macros;
pub mod text;
pub mod types;
