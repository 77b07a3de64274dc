//! `cargo xtask ci`: what must hold before a change lands.

use crate::run::{command, is_installed, run, run_command};
use crate::test;

pub(crate) fn ci() -> Result<(), String> {
    run(&["cargo", "fmt", "--all", "--check"])?;
    run(&[
        "cargo",
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    let mut documentation = command(&["cargo", "doc", "--workspace", "--no-deps", "--quiet"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    run_command(documentation)?;
    if is_installed(&["cargo", "deny", "--version"]) {
        run(&[
            "cargo",
            "deny",
            "--all-features",
            "check",
            "licenses",
            "bans",
            "sources",
        ])?;
    } else {
        println!("\ncargo-deny is not installed: licences, bans and sources were NOT checked");
        println!("install it with `cargo install cargo-deny` to check them");
    }
    test::test()
}
