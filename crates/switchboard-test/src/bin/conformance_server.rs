//! The server for the official conformance suite and for third-party clients; run by `cargo xtask conformance`.
//!
//! | command line | what it does |
//! |---|---|
//! | `conformance-server` | listens on loopback, prints its URL as the first line, exits when its standard input ends |
//! | `conformance-server --token TOKEN` | the same, with a required token |
//! | `conformance-server --stdio` | serves one client over standard input and output |
//!
//! The suite defines the names and behaviour of the tools, prompts and resources. Some limits are low to exercise more
//! of the front end: a session's stream ends after a second, so that clients have to resume it.

#![expect(clippy::print_stdout, reason = "the first line is its URL")]

#[path = "conformance_server/definitions.rs"]
mod definitions;
#[path = "conformance_server/made.rs"]
mod made;
#[path = "conformance_server/service.rs"]
mod service;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use switchboard_server::http::{Access, HttpOptions, HttpServer, Token};
use switchboard_server::{ServiceHandler, stdio};
use tokio::io::AsyncReadExt as _;

use service::Everything;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let served = match words.as_slice() {
        ["--stdio"] => over_stdio().await,
        [] => over_http(Access::Anybody).await,
        ["--token", token] => match Token::new(token) {
            Ok(token) => over_http(Access::Token(token)).await,
            Err(error) => Err(error.into()),
        },
        _ => Err("usage: conformance-server [--stdio | --token TOKEN]".into()),
    };
    // A blocking read of standard input would keep the runtime from ending.
    std::process::exit(match served {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!(%error);
            1
        }
    })
}

async fn over_stdio() -> Result<(), Box<dyn Error>> {
    let handler = ServiceHandler::new(Arc::new(Everything::default()));
    let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
    stdio::serve(&handler, reader, writer, &stdio::StdioOptions::default()).await?;
    Ok(())
}

async fn over_http(access: Access) -> Result<(), Box<dyn Error>> {
    let mut options = HttpOptions::new(access);
    options.limits.stream_after = Duration::from_millis(50);
    options.limits.stream_lifetime = Some(Duration::from_secs(1));
    options.limits.retry = Duration::from_millis(300);
    let handler = ServiceHandler::new(Arc::new(Everything::default()));
    let (server, shutdown) = HttpServer::bind(options, Arc::new(handler)).await?;
    println!("{}", server.url().unwrap_or_default());
    tokio::spawn(async move {
        let mut nothing = [0; 64];
        let mut input = tokio::io::stdin();
        while input.read(&mut nothing).await.is_ok_and(|read| read > 0) {}
        shutdown.stop();
    });
    server.serve().await;
    Ok(())
}
