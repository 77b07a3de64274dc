//! `cargo xtask model`: the agent with a real model, which runs on this machine.
//!
//! Not part of `test`: it downloads 130 MB, and how long it takes depends on the machine.

use crate::interop;
use crate::run::run;

pub(crate) fn model() -> Result<(), String> {
    interop::install_model()?;
    run(&[
        "cargo",
        "test",
        "--package",
        "switchboard-agent",
        "--test",
        "local_model",
    ])
}
