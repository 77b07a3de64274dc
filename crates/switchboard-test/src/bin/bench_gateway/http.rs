//! An HTTP client that writes a request and reads a response per call, over connections that stay open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::{Contestant, Era, Failure, IN_FLIGHT, INITIALIZE, INITIALIZED, is_result, write_call};

/// Room for a response.
const CAPACITY: usize = 16 * 1024;

pub(super) struct HttpClient {
    /// Header lines that are the same for every request.
    head: String,
    address: String,
    tool: String,
    era: Era,
    last_id: u64,
    /// The first is used for sequential calls; the others are opened for many at once.
    connections: Vec<HttpConnection>,
    body: Vec<u8>,
}

struct HttpConnection {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
    body: Vec<u8>,
    /// The session id of the last response.
    session: Option<String>,
}

impl HttpClient {
    /// Connects and completes the handshake, if there is one.
    pub(super) fn open(contestant: &Contestant) -> Result<Self, Failure> {
        let Contestant {
            address,
            path,
            tool,
            era,
            ..
        } = contestant;
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        );
        if !contestant.token.is_empty() {
            add_header(
                &mut head,
                "Authorization",
                &format!("Bearer {}", contestant.token),
            );
        }
        let mut client = Self {
            head,
            address: address.clone(),
            tool: tool.clone(),
            era: *era,
            last_id: 0,
            connections: vec![HttpConnection::open(address)?],
            body: Vec::new(),
        };
        match era {
            Era::Stateful => client.handshake()?,
            Era::Stateless => {
                client.head += "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n";
                add_header(&mut client.head, "Mcp-Name", tool);
            }
            Era::None => {}
        }
        Ok(client)
    }

    pub(super) fn call(&mut self) -> Result<(), Failure> {
        self.send(0)?;
        self.receive(0)
    }

    /// Makes calls with many in flight, one per connection.
    pub(super) fn many(&mut self, count: usize) -> Result<(), Failure> {
        while self.connections.len() < IN_FLIGHT {
            let connection = HttpConnection::open(&self.address)?;
            self.connections.push(connection);
        }
        for index in 0..IN_FLIGHT {
            self.send(index)?;
        }
        for number in 0..count.saturating_sub(IN_FLIGHT) {
            self.receive(number % IN_FLIGHT)?;
            self.send(number % IN_FLIGHT)?;
        }
        for number in count.saturating_sub(IN_FLIGHT)..count {
            self.receive(number % IN_FLIGHT)?;
        }
        Ok(())
    }

    fn handshake(&mut self) -> Result<(), Failure> {
        let connection = self.connections.first_mut().ok_or("not connected")?;
        connection.send(&self.head, INITIALIZE.as_bytes())?;
        connection.receive()?;
        if let Some(session) = connection.session.take() {
            add_header(&mut self.head, "Mcp-Session-Id", &session);
        }
        self.head += "MCP-Protocol-Version: 2025-11-25\r\n";
        connection.send(&self.head, INITIALIZED.as_bytes())?;
        connection.receive()?;
        Ok(())
    }

    fn send(&mut self, index: usize) -> Result<(), Failure> {
        self.last_id += 1;
        self.body.clear();
        write_call(&mut self.body, self.last_id, &self.tool, self.era)?;
        let connection = self.connections.get_mut(index).ok_or("not connected")?;
        connection.send(&self.head, &self.body)
    }

    fn receive(&mut self, index: usize) -> Result<(), Failure> {
        let connection = self.connections.get_mut(index).ok_or("not connected")?;
        connection.receive()?;
        if self.era != Era::None && !is_result(&connection.body) {
            let text = String::from_utf8_lossy(&connection.body).into_owned();
            return Err(text.into());
        }
        Ok(())
    }
}

impl HttpConnection {
    fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(CAPACITY, stream),
            out: Vec::with_capacity(CAPACITY),
            body: Vec::new(),
            session: None,
        })
    }

    fn send(&mut self, head: &str, body: &[u8]) -> Result<(), Failure> {
        self.out.clear();
        self.out.extend_from_slice(head.as_bytes());
        write!(self.out, "Content-Length: {}\r\n\r\n", body.len())?;
        self.out.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.out)?;
        Ok(())
    }

    /// Reads a response into `body`.
    fn receive(&mut self) -> Result<(), Failure> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).unwrap_or_default();
        if !status.starts_with('2') {
            return Err(format!("HTTP status {}", line.trim_end()).into());
        }
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse()?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                self.session = Some(value.to_owned());
            }
        }
        self.body.clear();
        if !is_chunked {
            self.body.resize(length, 0);
            self.stream.read_exact(&mut self.body)?;
            return Ok(());
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16)?;
            let start = self.body.len();
            self.body.resize(start + size, 0);
            let chunk = self.body.get_mut(start..).unwrap_or_default();
            self.stream.read_exact(chunk)?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}

fn add_header(head: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        head.push_str(part);
    }
}
