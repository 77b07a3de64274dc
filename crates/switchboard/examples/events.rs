//! Events: what a host's servers and calls do, as it happens.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use switchboard::{Event, Host, Server, Workspace};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::new();
    let mut events = host.events();
    let folder = env!("CARGO_MANIFEST_DIR");
    host.add(Server::in_process(
        "files",
        Workspace::new(folder.as_ref())?,
    ))
    .await?;
    host.call("files/glob", json!({ "pattern": "*.toml" }))
        .await?;
    while let Ok(event) = events.recv().await {
        match event {
            Event::StateChanged { server, state, .. } => println!("{server} is {}", state.word()),
            Event::CallBegin { tool, .. } => println!("{tool} begins"),
            Event::CallEnd { tool, is_error, .. } => {
                println!(
                    "{tool} ends, {}",
                    if is_error { "failed" } else { "succeeded" }
                );
                break;
            }
            _ => {}
        }
    }
    host.shutdown().await;
    Ok(())
}
