//! A stdio server with minimal overhead, for benchmarks of clients.
//!
//! It finds the method and the id of each line without parsing the rest, and answers with prepared texts, so that a
//! benchmark measures the client. `ECHO_TOOLS` is the number of tools it lists (default 1), `ECHO_START_MS` its startup
//! delay (0), `ECHO_ERA` is `stateful`, `stateless` or `both` (`both`), `ECHO_BYTES` the length of the text of a result
//! (a sentence).

use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

const CAPACITY: usize = 1 << 16;

fn main() -> io::Result<()> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let milliseconds = text("ECHO_START_MS").parse().unwrap_or(0);
    std::thread::sleep(Duration::from_millis(milliseconds));
    let era = text("ECHO_ERA");
    let answers = Answers {
        tools: tools(text("ECHO_TOOLS").parse().unwrap_or(1)),
        called: match text("ECHO_BYTES").parse() {
            Ok(length) => CALLED.replace(SENTENCE, &"x".repeat(length)),
            Err(_) => CALLED.to_owned(),
        },
        stateful: era != "stateless",
        stateless: era != "stateful",
    };
    let mut input = io::BufReader::with_capacity(CAPACITY, io::stdin().lock());
    let mut output = io::BufWriter::with_capacity(CAPACITY, io::stdout().lock());
    let mut line = Vec::with_capacity(CAPACITY);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        answers.answer(&line, &mut output)?;
        // One write for all requests that arrived together.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
}

struct Answers {
    tools: String,
    called: String,
    stateful: bool,
    stateless: bool,
}

impl Answers {
    fn answer(&self, line: &[u8], output: &mut impl io::Write) -> io::Result<()> {
        let Some(id) = value_after(line, b"\"id\":") else {
            return Ok(());
        };
        let method = value_after(line, b"\"method\":").unwrap_or_default();
        let (member, value) = match method {
            b"\"tools/call\"" => ("result", self.called.as_str()),
            b"\"tools/list\"" => ("result", self.tools.as_str()),
            b"\"initialize\"" if self.stateful => ("result", INITIALIZED),
            b"\"server/discover\"" if self.stateless => ("result", DISCOVERED),
            b"\"ping\"" => ("result", "{}"),
            _ => ("error", UNKNOWN),
        };
        output.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
        output.write_all(id)?;
        output.write_all(b",\"")?;
        output.write_all(member.as_bytes())?;
        output.write_all(b"\":")?;
        output.write_all(value.as_bytes())?;
        output.write_all(b"}\n")
    }
}

const SENTENCE: &str = "The quick brown fox jumps over the lazy dog.";
const CALLED: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"The quick brown fox jumps over the lazy dog."}]}"#;
const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo-server","version":"1.0.0"}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo-server","version":"1.0.0"}},"ttlMs":3600000,"cacheScope":"public"}"#;
const UNKNOWN: &str = r#"{"code":-32601,"message":"Method not found"}"#;

/// A list of this many tools, each of about 600 bytes. Built in one buffer, because clients wait for it.
fn tools(count: usize) -> String {
    let padding = "Describes what the tool does, at some length. ".repeat(8);
    let mut list = String::with_capacity(count * (padding.len() + 256) + 128);
    list.push_str(r#"{"resultType":"complete","tools":["#);
    for index in 0..count {
        if index > 0 {
            list.push(',');
        }
        list.push_str(r#"{"name":"echo_"#);
        list.push_str(&index.to_string());
        list.push_str(r#"","description":""#);
        list.push_str(&padding);
        list.push_str(r#"","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"Text to repeat"},"times":{"type":"integer"}},"required":["text"]}}"#);
    }
    list.push_str(r#"],"ttlMs":0,"cacheScope":"private"}"#);
    list
}

/// The string or number after the first occurrence of a key. In benchmark messages, these keys do not occur inside
/// params before the envelope's own.
fn value_after<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let start = memchr::memmem::find(line, key)? + key.len();
    let rest = line.get(start..)?.trim_ascii_start();
    let length = match rest.first()? {
        b'"' => memchr::memchr(b'"', rest.get(1..)?)? + 2,
        _ => memchr::memchr3(b',', b'}', b' ', rest)?,
    };
    rest.get(..length)
}
