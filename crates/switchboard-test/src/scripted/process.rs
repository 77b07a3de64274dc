//! The program `scripted-server`: a script as a separate process.
//!
//! Parses the arguments and implements the faults of the process itself: children, signals, output lines.

use std::io;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use tokio::net::TcpListener;

use super::engine::Server;
use super::fixture::{Over, serve, url};
use super::perform::wait_at;
use super::record::Record;
use super::script::Script;
use super::transport::stdio;

/// Usage text.
pub const USAGE: &str = "usage: scripted-server SCRIPT [--http|--sse|--ws ADDRESS]
       scripted-server --control ADDRESS

SCRIPT is JSON, or the path of a file with it. Without an address it serves standard input and output;
with one it prints its URL. --control gets the script from a test, and obeys and reports to it.";

/// Runs the program with these arguments and returns its exit code.
pub async fn run(arguments: &[String]) -> io::Result<i32> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--linger"] => linger(false).await,
        ["--linger-apart"] => linger(true).await,
        ["--control", address] => {
            let (server, commands) = stdio::report_to(address).await?;
            let obeying = Arc::clone(&server);
            // Ends with the process or with the test.
            tokio::spawn(async move { commands.obey(&obeying).await });
            serve_process(&server).await
        }
        [script] => serve_process(&Server::new(read(script)?)).await,
        [script, "--http", address] => listen(read(script)?, Over::Http, address).await,
        [script, "--sse", address] => listen(read(script)?, Over::Sse, address).await,
        [script, "--ws", address] => listen(read(script)?, Over::WebSocket, address).await,
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, USAGE)),
    }
}

fn read(script: &str) -> io::Result<Script> {
    let text = if script.trim_start().starts_with('{') {
        script.to_owned()
    } else {
        std::fs::read_to_string(script)?
    };
    serde_json::from_str(&text).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("invalid script: {error}"),
        )
    })
}

async fn listen(script: Script, over: Over, address: &str) -> io::Result<i32> {
    let address: SocketAddr = address.parse().map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: {error}"))
    })?;
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    writeln!(io::stdout(), "{}", url(over, address))?;
    let server = Server::new(script);
    serve(Arc::clone(&server), over, listener).await;
    Ok(exit_code(&server))
}

async fn serve_process(server: &Arc<Server>) -> io::Result<i32> {
    let process = server.script().process.clone();
    server.recorder.record(Record::Started {
        process: std::process::id(),
    });
    for line in &process.stderr {
        writeln!(io::stderr(), "{line}")?;
    }
    for line in &process.stdout {
        writeln!(io::stdout(), "{line}")?;
    }
    if let Some(code) = process.exit_at_start {
        return Ok(code);
    }
    for _ in 0..process.children {
        let child = start_child(process.children_leave)?;
        server.recorder.record(Record::Child { process: child });
    }
    if process.ignore_sigterm {
        ignore_sigterm(Arc::clone(server))?;
    }
    if let Some(gate) = &process.start_gate {
        wait_at(server, gate).await;
    }
    stdio::serve(server, tokio::io::stdin(), tokio::io::stdout()).await;
    Ok(exit_code(server))
}

fn exit_code(server: &Server) -> i32 {
    server.ended.borrow().unwrap_or(0)
}

/// Starts this program again as an idle child that outlives its parent unless it is killed.
fn start_child(leaves: bool) -> io::Result<u32> {
    let argument = if leaves { "--linger-apart" } else { "--linger" };
    let child = Process::new(std::env::current_exe()?)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child.id())
}

/// Idles for ten minutes, so that a failed test leaves no process for good.
async fn linger(apart: bool) -> io::Result<i32> {
    #[cfg(unix)]
    if apart {
        rustix::process::setsid()?;
    }
    #[cfg(not(unix))]
    let _ = apart;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    Ok(0)
}

#[cfg(unix)]
fn ignore_sigterm(server: Arc<Server>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signals = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            server.recorder.record(Record::Signal {
                name: "SIGTERM".to_owned(),
            });
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn ignore_sigterm(_server: Arc<Server>) -> io::Result<()> {
    Ok(())
}
