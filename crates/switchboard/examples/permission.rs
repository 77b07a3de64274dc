//! A permission callback: every call is decided about before it is sent.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use serde_json::json;
use switchboard::{
    Check, Gate, Host, HostOptions, PendingCall, Permit, Server, Verdict, Workspace,
};

/// Allows calls that read inside `src`, and denies everything else.
struct OnlySources;

impl Gate for OnlySources {
    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
        let arguments = call.arguments.map_or("", |arguments| arguments.get());
        println!("{} {arguments}", call.tool);
        // A decision that takes time, such as asking a person, is a `Check::Later`.
        Check::Now(if arguments.contains("src/") {
            Verdict::Pass(Permit::default())
        } else {
            Verdict::Deny {
                reason: "only src/ may be read".to_owned(),
            }
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::with_options(HostOptions {
        gate: Arc::new(OnlySources),
        ..HostOptions::default()
    });
    let folder = env!("CARGO_MANIFEST_DIR");
    host.add(Server::in_process(
        "files",
        Workspace::new(folder.as_ref())?,
    ))
    .await?;
    let allowed = host
        .call("files/glob", json!({ "pattern": "src/lib.rs" }))
        .await?;
    println!("{}", allowed.text());
    if let Err(error) = host
        .call("files/glob", json!({ "pattern": "*.toml" }))
        .await
    {
        println!("{:?}: {error}", error.kind());
    }
    host.shutdown().await;
    Ok(())
}
