//! `cargo xtask test`: what the tests need, then all tests, with nextest where it is installed.

use crate::interop;
use crate::run::{is_installed, run};

pub(crate) fn test() -> Result<(), String> {
    interop::install()?;
    if is_installed(&["cargo", "nextest", "--version"]) {
        run(&["cargo", "nextest", "run", "--workspace", "--no-fail-fast"])?;
    } else {
        println!("cargo-nextest is not installed; using cargo test");
        run(&[
            "cargo",
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ])?;
    }
    // nextest does not run the examples in the documentation.
    run(&["cargo", "test", "--workspace", "--doc"])
}
