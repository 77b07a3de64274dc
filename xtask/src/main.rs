//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! Each command is one module; this one only chooses. Nothing here is part of the product.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool for developers"
)]

mod bench;
mod ci;
mod conformance;
mod fuzz;
mod interop;
mod map;
mod model;
mod mutants;
mod run;
mod test;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test            everything the tests need, then all tests
  ci              formatting, lints, documentation, licences, then `test`
  bench [data|host|cli|poison…] [ROUNDS]
                  speed against the opponents, as ratios within one run; poisoned definitions that are flagged
  fuzz [SECONDS]  each fuzz target for that long (60)
  mutants [permissions|trust|pins|sandbox|auth|access…] [--shard K/N]
                  changes the code that protects, one thing at a time, and runs the tests that should notice
  interop         installs the servers, clients and suites of others; `test` does it too
  model           the agent with a small model on this machine: a call made, its result used
  conformance [client|server|--client PROGRAM] [SCENARIO|REVISION…]
                  the official suite's scenarios, all of both sides or those named (of the client if no side is)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::test(),
        ["ci"] => ci::ci(),
        ["bench", words @ ..] => bench::bench(words),
        ["fuzz"] => fuzz::fuzz(60),
        ["fuzz", seconds] => number(seconds).and_then(fuzz::fuzz),
        ["mutants", modules @ ..] => mutants::mutants(modules),
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
