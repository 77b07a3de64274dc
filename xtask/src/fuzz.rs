//! `cargo xtask fuzz`: runs every fuzz target for a limited time.
//!
//! cargo-fuzz needs nightly only for its sanitizer. Without it stable suffices: the targets are safe Rust and check for
//! panics and violated invariants.

use std::path::PathBuf;

use crate::run::{command, is_installed, root, run_command};

pub(crate) fn fuzz(seconds: u32) -> Result<(), String> {
    if !is_installed(&["cargo", "fuzz", "--version"]) {
        return Err("cargo-fuzz is not installed: run `cargo install cargo-fuzz`".to_owned());
    }
    for target in targets()? {
        let limit = format!("-max_total_time={seconds}");
        let line = [
            "cargo",
            "fuzz",
            "run",
            "--sanitizer",
            "none",
            &target,
            "--",
            &limit,
            "-dict=fuzz/mcp.dict",
            "-max_len=4096",
            "-timeout=10",
            "-rss_limit_mb=2048",
        ];
        let mut fuzz = command(&line);
        fuzz.env("RUSTC_BOOTSTRAP", "1");
        run_command(fuzz)?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let stem = |path: PathBuf| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let mut targets: Vec<String> = entries
        .flatten()
        .filter_map(|entry| stem(entry.path()))
        .collect();
    targets.sort();
    Ok(targets)
}
