//! Starts third-party servers and clients that `cargo xtask test` has installed.
//!
//! The lock files in `tests/interop` fix the versions; this module installs nothing.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Timeout until a server listens; on a slow machine, Node and Python need most of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that a client starts and connects to over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Path of the executable.
    pub program: PathBuf,
    /// Command line arguments.
    pub arguments: Vec<String>,
}

/// A listening server, killed on drop.
#[derive(Debug)]
pub struct Listening {
    /// Endpoint for clients.
    pub url: String,
    /// Killed on drop.
    _process: Child,
}

/// The reason a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteropError {
    /// Run `cargo xtask test` to install it.
    #[error("not installed: {} is missing; run `cargo xtask test`, or `cargo xtask model` for the model", path.display())]
    NotInstalled {
        /// The missing file.
        path: PathBuf,
    },
    /// It exited or did not listen in time.
    #[error("{program} does not listen: {reason}")]
    NotListening {
        /// The executable.
        program: String,
        /// Its output so far.
        reason: String,
    },
    /// The operating system returned an error.
    #[error("cannot start a server")]
    System(#[from] io::Error),
}

/// `@modelcontextprotocol/server-everything` over stdio.
pub fn everything() -> Result<Launch, InteropError> {
    node_program(
        "@modelcontextprotocol/server-everything/dist/index.js",
        &["stdio"],
    )
}

/// `@modelcontextprotocol/server-everything` over Streamable HTTP.
pub async fn everything_http() -> Result<Listening, InteropError> {
    listening_everything("streamableHttp", "mcp").await
}

/// `@modelcontextprotocol/server-everything` over legacy HTTP+SSE.
pub async fn everything_sse() -> Result<Listening, InteropError> {
    listening_everything("sse", "sse").await
}

/// `@modelcontextprotocol/server-filesystem` for this folder, over stdio.
pub fn filesystem(folder: &Path) -> Result<Launch, InteropError> {
    node_program(
        "@modelcontextprotocol/server-filesystem/dist/index.js",
        &[&folder.to_string_lossy()],
    )
}

/// `mcp-server-time`, over stdio.
pub fn time() -> Result<Launch, InteropError> {
    python_program(&["-m", "mcp_server_time", "--local-timezone", "UTC"])
}

/// `mcp-server-git` for this repository, over stdio.
pub fn git(repository: &Path) -> Result<Launch, InteropError> {
    python_program(&[
        "-m",
        "mcp_server_git",
        "--repository",
        &repository.to_string_lossy(),
    ])
}

/// A server on fastmcp, over stdio.
pub fn fastmcp() -> Result<Launch, InteropError> {
    python_program(&[&script("fastmcp_server.py")?])
}

/// A server on fastmcp, over Streamable HTTP.
pub async fn fastmcp_http() -> Result<Listening, InteropError> {
    let port = free_port()?;
    let launch = python_program(&[&script("fastmcp_server.py")?, "--http", &port.to_string()])?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    listen(launch, &[], url, "Uvicorn running").await
}

/// A server on the Python SDK, over stdio.
pub fn python_sdk() -> Result<Launch, InteropError> {
    python_program(&[&script("sdk_server.py")?])
}

/// llama.cpp's server with a small model, installed by `cargo xtask model`. Its URL is a base URL.
pub async fn small_model() -> Result<Listening, InteropError> {
    let port = free_port()?;
    let script = existing(root().join("tests/interop/model/serve.py"))?;
    let launch = Launch {
        program: installed("model/venv/bin/python")?,
        arguments: vec![script.to_string_lossy().into_owned(), port.to_string()],
    };
    let url = format!("http://127.0.0.1:{port}/v1");
    listen(launch, &[], url, "the model listens").await
}

/// The program `rmcp-server` of this crate, over stdio.
pub fn rmcp() -> Result<Launch, InteropError> {
    Ok(Launch {
        program: crate::scripted::fixture::program("rmcp-server")?,
        arguments: Vec::new(),
    })
}

/// The program `rmcp-server` of this crate, over Streamable HTTP.
pub async fn rmcp_http() -> Result<Listening, InteropError> {
    let program = crate::scripted::fixture::program("rmcp-server")?;
    first_line_says_where(Command::new(&program).args(["--http", "127.0.0.1:0"])).await
}

/// The program `conformance-server` of this crate, over stdio.
pub fn own_server() -> Result<Launch, InteropError> {
    Ok(Launch {
        program: crate::scripted::fixture::program("conformance-server")?,
        arguments: vec!["--stdio".to_owned()],
    })
}

/// The program `conformance-server` of this crate, over Streamable HTTP, with this token.
pub async fn own_server_http(token: &str) -> Result<Listening, InteropError> {
    let program = crate::scripted::fixture::program("conformance-server")?;
    first_line_says_where(Command::new(&program).args(["--token", token])).await
}

/// Our script for the TypeScript SDK's client.
pub fn typescript_client() -> Result<Launch, InteropError> {
    let script = existing(root().join("tests/interop/clients/typescript_client.mjs"))?;
    Ok(Launch {
        program: node()?,
        arguments: vec![script.to_string_lossy().into_owned()],
    })
}

/// Our script for the Python SDK's client.
pub fn python_client() -> Result<Launch, InteropError> {
    let script = existing(root().join("tests/interop/clients/python_client.py"))?;
    python_program(&[&script.to_string_lossy()])
}

/// Our script for the client of fastmcp.
pub fn fastmcp_client() -> Result<Launch, InteropError> {
    let script = existing(root().join("tests/interop/clients/fastmcp_client.py"))?;
    python_program(&[&script.to_string_lossy()])
}

/// Folder of the installed npm packages.
pub fn node_modules() -> Result<PathBuf, InteropError> {
    installed("npm/node_modules")
}

/// The installed Node 22.
pub fn node() -> Result<PathBuf, InteropError> {
    installed("npm/node_modules/node/bin/node")
}

/// The installed Python.
pub fn python() -> Result<PathBuf, InteropError> {
    installed("pypi/venv/bin/python")
}

fn node_program(package: &str, arguments: &[&str]) -> Result<Launch, InteropError> {
    let program = installed(&format!("npm/node_modules/{package}"))?;
    let mut all = vec![program.to_string_lossy().into_owned()];
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    Ok(Launch {
        program: node()?,
        arguments: all,
    })
}

fn python_program(arguments: &[&str]) -> Result<Launch, InteropError> {
    Ok(Launch {
        program: python()?,
        arguments: arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
    })
}

async fn listening_everything(transport: &str, path: &str) -> Result<Listening, InteropError> {
    let package = "@modelcontextprotocol/server-everything/dist/index.js";
    let launch = node_program(package, &[transport])?;
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}/{path}");
    listen(launch, &[("PORT", port.to_string())], url, "on port").await
}

/// Starts a server and waits until its standard error contains `sign`.
async fn listen(
    launch: Launch,
    environment: &[(&str, String)],
    url: String,
    sign: &str,
) -> Result<Listening, InteropError> {
    let mut process = Command::new(&launch.program)
        .args(&launch.arguments)
        .envs(environment.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stderr.take().ok_or_else(no_output)?).lines();
    let mut output = Vec::new();
    let waiting = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let is_up = line.contains(sign);
            output.push(line);
            if is_up {
                return true;
            }
        }
        false
    };
    let is_up = tokio::time::timeout(PATIENCE, waiting).await;
    if !matches!(is_up, Ok(true)) {
        return Err(InteropError::NotListening {
            program: launch.arguments.join(" "),
            reason: output.join("\n"),
        });
    }
    // Further output is read and dropped, so that the server never blocks on a full pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(Listening {
        url,
        _process: process,
    })
}

/// Starts one of our servers, whose first line is its URL. It also exits when its standard input ends.
async fn first_line_says_where(command: &mut Command) -> Result<Listening, InteropError> {
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stdout.take().ok_or_else(no_output)?).lines();
    let url = lines.next_line().await?.unwrap_or_default();
    Ok(Listening {
        url,
        _process: process,
    })
}

fn no_output() -> io::Error {
    io::Error::other("the process has no output to read")
}

/// A port that was free a moment ago: these servers cannot report which port they were assigned.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_owned()
}

fn installed(path: &str) -> Result<PathBuf, InteropError> {
    existing(root().join("target/interop").join(path))
}

fn script(name: &str) -> Result<String, InteropError> {
    let path = existing(root().join("tests/interop/pypi").join(name))?;
    Ok(path.to_string_lossy().into_owned())
}

fn existing(path: PathBuf) -> Result<PathBuf, InteropError> {
    if path.exists() {
        return Ok(path);
    }
    Err(InteropError::NotInstalled { path })
}
