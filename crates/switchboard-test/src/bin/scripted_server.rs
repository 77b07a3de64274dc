//! The scripted MCP server as a program; see `switchboard_test::scripted`.

use std::io::Write as _;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            let outcome = runtime.block_on(switchboard_test::scripted::process::run(&arguments));
            // A pending read of standard input cannot be interrupted.
            runtime.shutdown_background();
            outcome
        });
    let code = outcome.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "scripted-server: {error}");
        2
    });
    std::process::exit(code);
}
