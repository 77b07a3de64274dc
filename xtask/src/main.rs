//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! Each command is one module; this one dispatches. Nothing here is part of the product.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool for developers"
)]

mod bench;
mod bindings;
mod ci;
mod conformance;
mod fuzz;
mod interop;
mod map;
mod model;
mod mutants;
mod run;
mod surface;
mod test;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test [bindings] install what the tests need, then run all tests, or only those of the Python and Node packages
  ci              check formatting, lints, documentation and licences, then `test`
  bench [data|host|bindings|cli|gateway|poison…] [ROUNDS]
                  compare speed as ratios within one run; count flagged poisoned definitions
  fuzz [SECONDS]  run each fuzz target for that long (60)
  mutants [permissions|trust|pins|sandbox|auth|access…] [--again] [--wide]
                  mutate security-relevant code and run the tests that should catch it
  surface         public items that the documentation of each crate shows; fails if the host has too many
  package         make the Python and Node packages in target/packages, and try them in empty environments
  interop         install third-party servers, clients and suites; `test` does so too
  model           test the agent with a small local model: one call and its result
  conformance [client|server|gateway|--client PROGRAM] [SCENARIO|REVISION…]
                  run the official suite's scenarios: all of both sides, or the named ones (default side: client);
                  gateway: two servers, each by itself and behind the gateway";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::test(),
        ["test", "bindings"] => bindings::test(),
        ["ci"] => ci::ci(),
        ["bench", words @ ..] => bench::bench(words),
        ["fuzz"] => fuzz::fuzz(60),
        ["fuzz", seconds] => number(seconds).and_then(fuzz::fuzz),
        ["mutants", modules @ ..] => mutants::mutants(modules),
        ["surface"] => surface::surface(),
        ["package"] => bindings::package(),
        ["interop"] => interop::install(),
        ["model"] => model::model(),
        ["conformance", words @ ..] => conformance::conformance(words),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("\"{text}\" is not a number\n\n{USAGE}"))
}
