//! What gateways are compared with: a bare axum server, and a bare copy of bytes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;

use super::Failure;

/// Returns every body as it is, on one thread.
pub(super) fn http_echo() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let router = Router::new().route("/mcp", post(|body: Bytes| async move { body }));
        axum::serve(listener, router).await?;
        Ok(())
    })
}

/// Runs a server and copies what goes to it and what comes from it, each on a thread.
pub(super) fn copy(command: &[&str]) -> Result<(), Failure> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = server.stdin.take().ok_or("no standard input")?;
    let output = server.stdout.take().ok_or("no standard output")?;
    std::thread::spawn(move || pass(std::io::stdin().lock(), input));
    pass(output, std::io::stdout().lock())?;
    server.wait()?;
    Ok(())
}

/// As much at a time as a pipe can hold.
fn pass(mut from: impl Read, mut to: impl Write) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(buffer.get(..count).unwrap_or_default())?;
        to.flush()?;
    }
}
