//! Starts a scripted server over a transport.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::control::{Control, Processes};
use super::engine::Server;
use super::script::Script;
use super::transport::{http, sse, stdio, websocket};

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// A child process: the program `scripted-server`, started by the client.
    Stdio,
    /// Streamable HTTP, in this process.
    Http,
    /// Legacy HTTP+SSE, in this process.
    Sse,
    /// WebSocket, in this process.
    WebSocket,
}

/// How a client reaches a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A command to start (stdio).
    Command {
        /// Path of the executable.
        program: PathBuf,
        /// Command line arguments.
        arguments: Vec<String>,
    },
    /// The URL of a listening server.
    Url(String),
}

/// A server that runs, or will run once the client starts it. Stopped on drop.
#[derive(Debug)]
pub struct Running {
    /// For the client.
    pub endpoint: Endpoint,
    /// For the test.
    pub control: Control,
    over: Over,
    server: Option<Arc<Server>>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Starts a script over a transport, on a free loopback port.
pub async fn start(script: Script, over: Over) -> io::Result<Running> {
    start_at(script, over, SocketAddr::from(([127, 0, 0, 1], 0))).await
}

/// Starts a script at this address. For stdio, it is the address that the process reports to.
pub async fn start_at(script: Script, over: Over, address: SocketAddr) -> io::Result<Running> {
    let program = match over {
        Over::Stdio => program("scripted-server")?,
        _ => PathBuf::new(),
    };
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    if over == Over::Stdio {
        let processes = Arc::new(Processes::new(script));
        return Ok(Running {
            endpoint: Endpoint::Command {
                program,
                arguments: vec!["--control".to_owned(), address.to_string()],
            },
            control: Control::of_processes(Arc::clone(&processes)),
            over,
            server: None,
            address,
            task: tokio::spawn(stdio::meet(processes, listener)),
        });
    }
    let server = Server::new(script);
    Ok(Running {
        endpoint: Endpoint::Url(url(over, address)),
        control: Control::of_server(Arc::clone(&server)),
        over,
        server: Some(Arc::clone(&server)),
        address,
        task: tokio::spawn(serve(server, over, listener)),
    })
}

impl Running {
    /// The URL; `None` for stdio.
    pub fn url(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Url(url) => Some(url),
            Endpoint::Command { .. } => None,
        }
    }

    /// Waits until the server has stopped by itself (a fault or a command) and returns its exit code. Not for stdio.
    pub async fn ended(&self) -> Option<i32> {
        let mut ended = self.server.as_ref()?.ended.subscribe();
        ended
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|code| *code)
    }

    /// Drops every connection and stops listening, so that connections are refused. Not for stdio.
    pub async fn down(&mut self) {
        if self.server.is_some() {
            self.task.abort();
            // The task ends at its next await and drops the listener and every connection.
            let _ = (&mut self.task).await;
        }
    }

    /// Listens again on the same address, with the same sessions. Not for stdio.
    pub async fn up(&mut self) -> io::Result<()> {
        if let Some(server) = &self.server {
            let listener = TcpListener::bind(self.address).await?;
            server.ended.send_replace(None);
            self.task = tokio::spawn(serve(Arc::clone(server), self.over, listener));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn serve(server: Arc<Server>, over: Over, listener: TcpListener) {
    match over {
        Over::Http => http::serve(server, listener).await,
        Over::Sse => sse::serve(server, listener).await,
        Over::WebSocket => websocket::serve(server, listener).await,
        Over::Stdio => {}
    }
}

pub(crate) fn url(over: Over, address: SocketAddr) -> String {
    match over {
        Over::Sse => format!("http://{address}/sse"),
        Over::WebSocket => format!("ws://{address}/"),
        Over::Http | Over::Stdio => format!("http://{address}/mcp"),
    }
}

/// Path of a program of this crate, next to the test executable or in the parent folder.
///
/// Cargo builds it with the tests of this crate; tests of other crates need `cargo build -p switchboard-test`.
pub fn program(name: &str) -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let mut candidates = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&file));
    candidates.find(|path| path.is_file()).ok_or_else(|| {
        let message = format!("{name} is not built: run `cargo build -p switchboard-test --bins`");
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}
