//! Lower bound for `cargo xtask bench`: a client that only writes a line and reads a line per call.
//!
//! No request table, no deadline, no cancellation, no checks but the id; one call at a time. It is not a usable client;
//! the benchmark measures how far a real one is from it.
//!
//! It uses the stateless era unless `ECHO_ERA` says that the server does not support it, so that the era's request
//! overhead does not count for the client.

use std::process::{ExitCode, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_test::bench::{self, ARGUMENTS, Contestant, Failure, Server, TOOL};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

fn main() -> ExitCode {
    bench::run::<Floor>()
}

struct Floor(Vec<Pipe>);

impl Contestant for Floor {
    const NAME: &'static str = "floor";

    async fn open(server: Server, count: usize) -> Result<Self, Failure> {
        let mut opening = JoinSet::new();
        for _ in 0..count {
            opening.spawn(Pipe::open(server.clone()));
        }
        let mut pipes = Vec::with_capacity(count);
        while let Some(pipe) = opening.join_next().await {
            pipes.push(pipe??);
        }
        Ok(Self(pipes))
    }

    async fn call(&mut self) -> Result<(), Failure> {
        let pipe = self.0.first_mut().ok_or("no server")?;
        let meta = pipe.meta;
        let params = format!(r#"{{{meta}"name":"{TOOL}","arguments":{ARGUMENTS}}}"#);
        pipe.request("tools/call", &params).await
    }

    fn tools(&self) -> usize {
        // They are read but not parsed.
        0
    }

    fn share(&self) -> Option<Self> {
        None
    }

    async fn close(self) {}
}

struct Pipe {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: String,
    last_id: u64,
    /// Metadata sent with every request.
    meta: &'static str,
}

/// Metadata of a request in the stateless era.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1.0.0","title":"The floor"}},"#;

#[derive(Deserialize)]
struct ResponseLine<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Pipe {
    async fn open(server: Server) -> Result<Self, Failure> {
        let mut child = Command::new(&server.program)
            .args(&server.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut pipe = Self {
            stdin: child.stdin.take().ok_or("no stdin")?,
            stdout: BufReader::with_capacity(1 << 16, child.stdout.take().ok_or("no stdout")?),
            _child: child,
            line: String::new(),
            last_id: 0,
            meta: "",
        };
        if std::env::var("ECHO_ERA").is_ok_and(|era| era == "stateful") {
            pipe.request("initialize", r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1.0.0"}}"#)
                .await?;
        } else {
            pipe.meta = META;
            pipe.request("server/discover", &pipe.only_meta()).await?;
        }
        pipe.request("tools/list", &pipe.only_meta()).await?;
        Ok(pipe)
    }

    fn only_meta(&self) -> String {
        format!("{{{}}}", self.meta.trim_end_matches(','))
    }

    async fn request(&mut self, method: &str, params: &str) -> Result<(), Failure> {
        self.last_id += 1;
        let id = self.last_id;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}{}"#,
            '\n'
        );
        self.stdin.write_all(line.as_bytes()).await?;
        self.line.clear();
        self.stdout.read_line(&mut self.line).await?;
        let answer: ResponseLine<'_> = serde_json::from_str(&self.line)?;
        if answer.id != id || answer.result.get().is_empty() {
            return Err("the answer has another id".into());
        }
        Ok(())
    }
}
