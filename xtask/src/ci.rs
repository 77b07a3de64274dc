//! `cargo xtask ci`: runs the checks that every change must pass.

use crate::run::{command, is_installed, run, run_command};
use crate::{surface, test};

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
    // The library and the program are both named `switchboard`: documented together, they would share a folder.
    document("--bins")?;
    surface::surface()?;
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

pub(crate) fn document(targets: &str) -> Result<(), String> {
    let mut documentation = command(&["cargo", "doc", "--workspace", "--no-deps", "--quiet"]);
    documentation
        .arg(targets)
        .env("RUSTDOCFLAGS", "-D warnings");
    run_command(documentation)
}
