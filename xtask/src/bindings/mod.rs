//! The Python and Node packages: builds, tests and packages them.

mod node;
mod python;

use std::path::PathBuf;

use crate::run::{root, run};

/// Builds both packages for this machine and runs their tests.
pub(crate) fn test() -> Result<(), String> {
    run(&["cargo", "build", "--workspace", "--lib", "--bins"])?;
    python::test()?;
    node::test()
}

/// Makes a wheel and an npm package in `target/packages`, and tries both in an empty environment.
pub(crate) fn package() -> Result<(), String> {
    python::package()?;
    node::package()
}

/// Where the packages are written.
fn packages() -> PathBuf {
    root().join("target/packages")
}

/// The folder of the dev build.
fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug")
}
