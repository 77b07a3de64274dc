//! Starts a server and calls one of its tools.
//!
//! `cargo run -p switchboard --example call_tool`, or with a server of your own:
//! `… call_tool SERVER/TOOL '{"arguments": "as JSON"}' COMMAND ARGUMENT…`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::{Value, json};
use switchboard::{Host, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Lets this program be its own supervisor: its servers end with it, however it ends.
    switchboard::supervise();
    let mut words = std::env::args().skip(1);
    let tool = words
        .next()
        .unwrap_or_else(|| "files/list_directory".into());
    let arguments: Value = match words.next() {
        Some(text) => serde_json::from_str(&text)?,
        None => json!({ "path": "." }),
    };
    let command = words.next().unwrap_or_else(|| "npx".into());
    let mut args: Vec<String> = words.collect();
    if command == "npx" && args.is_empty() {
        let files = ["-y", "@modelcontextprotocol/server-filesystem", "."];
        args = files.map(String::from).to_vec();
    }
    let name = tool.split('/').next().unwrap_or_default();

    let host = Host::new();
    host.add(Server::stdio(name, command).args(args)).await?;
    let result = host.call(&tool, arguments).await?;
    println!("{}", result.text());
    host.shutdown().await;
    Ok(())
}
