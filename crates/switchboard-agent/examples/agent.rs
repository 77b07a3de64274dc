//! An agent that answers one question about a folder, with the model that the environment selects.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run --example agent -- . "What is this folder about?"
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use futures_util::StreamExt as _;
use switchboard::{Host, Server, Workspace};
use switchboard_agent::{Agent, SessionEvent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: agent FOLDER QUESTION";
    let folder = arguments.next().ok_or(usage)?;
    let question = arguments.next().ok_or(usage)?;

    let host = Host::new();
    host.add(Server::in_process(
        "files",
        Workspace::new(folder.as_ref())?,
    ))
    .await?;
    let agent = Agent::from_env(host).await?;
    let session = agent.session(&folder);
    let mut events = session.stream(question);
    while let Some(event) = events.next().await {
        match event? {
            SessionEvent::CallBegins { name, .. } => println!("calls {name}"),
            SessionEvent::Ended(reply) => println!("{}", reply.response),
            _ => {}
        }
    }
    Ok(())
}
