//! The program `switchboard`.
fn main() {}
