//! `cargo xtask model`: tests the agent with a real model that runs locally.
//!
//! Not part of `test`: it downloads 130 MB, and its duration depends on the machine.

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
