//! A hand-written JSON-RPC client for the stdio front end, in either era.

use serde_json::{Value, json};
use switchboard_server::stdio::{StdioOptions, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use super::{World, soon};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Stateful,
    Stateless,
}

pub(crate) const BOTH: [Era; 2] = [Era::Stateful, Era::Stateless];

pub(crate) struct Client {
    era: Era,
    capabilities: Value,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    next: u64,
    serving: JoinHandle<()>,
}

impl Client {
    /// A client that supports elicitation.
    pub(crate) async fn new(world: &World, era: Era) -> Self {
        Self::with(world, era, json!({"elicitation": {}})).await
    }

    pub(crate) async fn with(world: &World, era: Era, capabilities: Value) -> Self {
        let (input, reader) = duplex(64 * 1024);
        let (writer, output) = duplex(64 * 1024);
        let handler = world.handler();
        let serving = tokio::spawn(async move {
            serve(&handler, reader, writer, &StdioOptions::default())
                .await
                .unwrap();
        });
        let mut client = Self {
            era,
            capabilities,
            input,
            output: BufReader::new(output).lines(),
            next: 1,
            serving,
        };
        if era == Era::Stateful {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": client.capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            });
            let (_, answer) = client.ask("initialize", params).await;
            assert_eq!(
                answer["result"]["protocolVersion"], "2025-11-25",
                "{answer}"
            );
            client
                .say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .await;
        }
        client
    }

    /// Sends a request and returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        }
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        soon(self.input.write_all(line.as_bytes())).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = soon(self.output.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    /// Reads until the answer to a request arrives; returns the messages before it, and the answer.
    pub(crate) async fn answer(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return (before, message);
            }
            before.push(message);
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and returns the answer.
    pub(crate) async fn call(&mut self, params: Value) -> Value {
        self.ask("tools/call", params).await.1
    }

    /// Disconnects and waits until the server has ended.
    pub(crate) async fn leave(self) {
        drop(self.input);
        soon(self.serving).await.unwrap();
    }
}
