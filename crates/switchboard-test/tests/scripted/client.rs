//! A minimal client that sends text and returns what it receives, over every transport.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::process::Stdio;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use switchboard_protocol::{Era, meta};
use switchboard_test::scripted::{Endpoint, Over, Running, Script, start};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

pub(crate) const TRANSPORTS: [Over; 4] = [Over::Stdio, Over::Http, Over::Sse, Over::WebSocket];

/// Received data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// A message, or any other JSON.
    Json(Value),
    /// Not JSON.
    Text(String),
    /// An HTTP error.
    Status(u16),
    /// The end of the connection or of a response.
    End,
}

pub(crate) struct Client {
    pub(crate) server: Running,
    era: Era,
    outgoing: mpsc::UnboundedSender<String>,
    seen: mpsc::UnboundedReceiver<Seen>,
    over: Over,
    process: Option<tokio::process::Child>,
    /// The `Mcp-Session-Id` of an HTTP session.
    session: Option<String>,
    saw: mpsc::UnboundedSender<Seen>,
}

impl Client {
    /// Starts the script and connects, including the stateful era's handshake.
    pub(crate) async fn open(script: Script, over: Over, era: Era) -> Self {
        let mut client = Self::connect(script, over, era).await;
        if era == Era::Stateful {
            client
                .send(
                    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                        "protocolVersion": "2025-11-25",
                        "capabilities": {"elicitation": {}},
                        "clientInfo": {"name": "plain", "version": "1"},
                    }}),
                )
                .await;
            let answer = client.json().await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
            client
                .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .await;
            client
                .server
                .control
                .wait_for_method("notifications/initialized", 1)
                .await
                .unwrap();
        }
        client
    }

    /// Starts the script and connects, without a handshake.
    pub(crate) async fn connect(script: Script, over: Over, era: Era) -> Self {
        let server = start(script, over).await.unwrap();
        let (outgoing, sent) = mpsc::unbounded_channel();
        let (saw, seen) = mpsc::unbounded_channel();
        let process = match (&server.endpoint, over) {
            (Endpoint::Command { program, arguments }, _) => {
                let mut process = tokio::process::Command::new(program)
                    .args(arguments)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .kill_on_drop(true)
                    .spawn()
                    .unwrap();
                let (stdin, stdout) = (
                    process.stdin.take().unwrap(),
                    process.stdout.take().unwrap(),
                );
                tokio::spawn(pipe(stdin, stdout, sent, saw.clone()));
                Some(process)
            }
            (Endpoint::Url(url), Over::Sse) => {
                let (ready, is_ready) = tokio::sync::oneshot::channel();
                tokio::spawn(legacy(url.clone(), sent, saw.clone(), ready));
                is_ready.await.unwrap();
                None
            }
            (Endpoint::Url(url), Over::WebSocket) => {
                let mut request = url.into_client_request().unwrap();
                request
                    .headers_mut()
                    .insert("Sec-WebSocket-Protocol", "mcp".parse().unwrap());
                let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
                tokio::spawn(websocket(socket, sent, saw.clone()));
                None
            }
            // Streamable HTTP has no persistent connection.
            (Endpoint::Url(_), _) => None,
        };
        Self {
            server,
            era,
            outgoing,
            seen,
            over,
            process,
            session: None,
            saw,
        }
    }

    /// Sends a request with this id, in the format of the era.
    pub(crate) async fn request(&mut self, id: u64, method: &str, mut params: Value) {
        if self.era == Era::Stateless {
            params["_meta"][meta::PROTOCOL_VERSION] = json!("2026-07-28");
            params["_meta"][meta::CLIENT_CAPABILITIES] =
                json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        }
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn call(&mut self, id: u64, tool: &str) {
        self.request(
            id,
            "tools/call",
            json!({"name": tool, "arguments": {"text": "hello"}}),
        )
        .await;
    }

    pub(crate) async fn send(&mut self, message: Value) {
        if self.over != Over::Http {
            self.outgoing.send(message.to_string()).unwrap();
            return;
        }
        let mut headers = BTreeMap::from([
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ]);
        if let Some(session) = &self.session {
            headers.insert("mcp-session-id", session.clone());
        }
        if self.era == Era::Stateless {
            headers.insert("mcp-protocol-version", "2026-07-28".to_owned());
            headers.insert(
                "mcp-method",
                message["method"].as_str().unwrap_or_default().to_owned(),
            );
            let name = message["params"]["name"]
                .as_str()
                .or(message["params"]["uri"].as_str())
                .or(message["params"]["taskId"].as_str());
            if let Some(name) = name {
                headers.insert("mcp-name", name.to_owned());
            }
        }
        let response = http(
            self.server.url().unwrap(),
            "POST",
            &headers,
            &message.to_string(),
        )
        .await;
        let Some(response) = response else {
            self.saw.send(Seen::End).unwrap();
            return;
        };
        if message["method"] == "initialize" {
            self.session = response.headers.get("mcp-session-id").cloned();
        }
        tokio::spawn(response.read(self.saw.clone()));
    }

    /// Opens an HTTP GET stream.
    pub(crate) async fn get(&mut self, last_event: Option<&str>) {
        let mut headers = BTreeMap::from([("accept", "text/event-stream".to_owned())]);
        headers.extend(
            self.session
                .clone()
                .map(|session| ("mcp-session-id", session)),
        );
        headers.extend(last_event.map(|id| ("last-event-id", id.to_owned())));
        let response = http(self.server.url().unwrap(), "GET", &headers, "")
            .await
            .unwrap();
        tokio::spawn(response.read(self.saw.clone()));
    }

    pub(crate) async fn next(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    /// The next JSON value; the ends of HTTP responses are skipped.
    pub(crate) async fn json(&mut self) -> Value {
        loop {
            match self.next().await {
                Seen::Json(value) => return value,
                Seen::End if self.over == Over::Http => {}
                other => panic!("expected JSON, got {other:?}"),
            }
        }
    }

    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        self.process.as_mut().unwrap().wait().await.unwrap().code()
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.as_ref().unwrap().id().unwrap()
    }

    /// Closes the connection, so that the process sees the end of its input.
    pub(crate) fn hang_up(self) -> (Running, Option<tokio::process::Child>) {
        (self.server, self.process)
    }
}

fn seen(text: &str) -> Seen {
    serde_json::from_str(text).map_or_else(|_| Seen::Text(text.to_owned()), Seen::Json)
}

async fn pipe(
    mut stdin: tokio::process::ChildStdin,
    stdout: tokio::process::ChildStdout,
    mut sent: mpsc::UnboundedReceiver<String>,
    saw: mpsc::UnboundedSender<Seen>,
) {
    let writing = async {
        while let Some(line) = sent.recv().await {
            if stdin
                .write_all(format!("{line}\n").as_bytes())
                .await
                .is_err()
            {
                std::future::pending::<()>().await;
            }
        }
    };
    let reading = async {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            saw.send(seen(&line)).unwrap();
        }
        let _ = saw.send(Seen::End);
    };
    tokio::select! { () = writing => {}, () = reading => {} }
}

async fn websocket(
    mut socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>,
    mut sent: mpsc::UnboundedReceiver<String>,
    saw: mpsc::UnboundedSender<Seen>,
) {
    loop {
        tokio::select! {
            line = sent.recv() => match line {
                Some(line) => socket.send(Message::text(line)).await.unwrap(),
                None => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => saw.send(seen(&text)).unwrap(),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    let _ = saw.send(Seen::End);
                    return;
                }
            },
        }
    }
}

async fn legacy(
    url: String,
    mut sent: mpsc::UnboundedReceiver<String>,
    saw: mpsc::UnboundedSender<Seen>,
    ready: tokio::sync::oneshot::Sender<()>,
) {
    let stream = http(&url, "GET", &BTreeMap::new(), "").await.unwrap();
    let (first, mut events) = mpsc::unbounded_channel();
    let reading = tokio::spawn(stream.read(first));
    let Some(Seen::Text(endpoint)) = events.recv().await else {
        panic!("no endpoint event");
    };
    ready.send(()).unwrap();
    let endpoint = url.replace("/sse", &endpoint);
    loop {
        tokio::select! {
            line = sent.recv() => match line {
                Some(line) => {
                    let headers = BTreeMap::from([("content-type", "application/json".to_owned())]);
                    // A dropped POST also shows on the stream.
                    let _ = http(&endpoint, "POST", &headers, &line).await;
                }
                None => break,
            },
            event = events.recv() => match event {
                Some(event) => saw.send(event).unwrap(),
                None => break,
            },
        }
    }
    reading.abort();
}

/// A response whose body is not read yet.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    body: BufReader<TcpStream>,
}

/// Sends a request and reads the head of the response; `None` if the connection ends before that.
pub(crate) async fn http(
    url: &str,
    method: &str,
    headers: &BTreeMap<&str, String>,
    body: &str,
) -> Option<Response> {
    let (address, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(address).await.ok()?;
    let mut head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .ok()?;
    let mut body = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        body.read_line(&mut line)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_ascii_lowercase());
    }
    let status = lines.first()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.iter().filter_map(|line| line.split_once(": "));
    let headers = headers
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Some(Response {
        status,
        headers,
        body,
    })
}

impl Response {
    /// Reads the body as events or as one text.
    async fn read(mut self, saw: mpsc::UnboundedSender<Seen>) {
        let is_stream = self
            .headers
            .get("content-type")
            .is_some_and(|kind| kind == "text/event-stream");
        if self.status >= 300
            && self
                .headers
                .get("content-type")
                .is_none_or(|kind| kind != "application/json")
        {
            let _ = saw.send(Seen::Status(self.status));
            return;
        }
        let mut text = Vec::new();
        let mut is_whole = false;
        let length: Option<usize> = self
            .headers
            .get("content-length")
            .and_then(|length| length.parse().ok());
        if let Some(length) = length {
            text.resize(length, 0);
            is_whole = self.body.read_exact(&mut text).await.is_ok();
        } else {
            while let Some(chunk) = self.chunk().await {
                if chunk.is_empty() {
                    is_whole = true;
                    break;
                }
                text.extend(chunk);
                while is_stream && let Some(at) = text.windows(2).position(|pair| pair == b"\n\n") {
                    let event: Vec<u8> = text.drain(..at + 2).collect();
                    let event = String::from_utf8_lossy(&event).into_owned();
                    let data: Vec<&str> = event
                        .lines()
                        .filter_map(|line| line.strip_prefix("data: "))
                        .collect();
                    if !data.concat().is_empty() && saw.send(seen(&data.join("\n"))).is_err() {
                        return;
                    }
                }
            }
        }
        if !is_stream && is_whole && !text.is_empty() {
            let _ = saw.send(seen(&String::from_utf8_lossy(&text)));
        }
        let _ = saw.send(Seen::End);
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.body.read_line(&mut size).await.ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.body.read_exact(&mut chunk).await.ok()?;
        chunk.truncate(size);
        Some(chunk)
    }
}
