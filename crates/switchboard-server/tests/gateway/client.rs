//! A hand-written JSON-RPC client over a pair of streams, in either era.

use serde_json::{Value, json};
use switchboard_server::Principal;
use switchboard_server::stdio::{StdioOptions, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use super::{Era, World, soon};

pub(crate) struct Client {
    pub(crate) era: Era,
    name: &'static str,
    capabilities: Value,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    next: u64,
    serving: JoinHandle<()>,
    /// What the gateway said about itself.
    pub(crate) hello: Value,
    /// Notifications received so far.
    pub(crate) notices: Vec<Value>,
    /// Requests of servers that this client got.
    pub(crate) asked: Vec<Value>,
}

/// Everything that a client can be asked for.
pub(crate) fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

impl Client {
    pub(crate) async fn new(world: &World, era: Era) -> Self {
        Self::with(world, era, all()).await
    }

    pub(crate) async fn with(world: &World, era: Era, capabilities: Value) -> Self {
        Self::open(Principal::Parent, world, era, capabilities, None, "test").await
    }

    /// A client of a principal.
    pub(crate) async fn of(
        principal: Principal,
        world: &World,
        era: Era,
        capabilities: Value,
    ) -> Self {
        Self::open(principal, world, era, capabilities, None, "test").await
    }

    /// A client of a profile.
    pub(crate) async fn of_profile(world: &World, era: Era, profile: &str) -> Self {
        Self::open(Principal::Parent, world, era, all(), Some(profile), "test").await
    }

    /// A client that says this name.
    pub(crate) async fn named(world: &World, era: Era, name: &'static str) -> Self {
        Self::open(Principal::Parent, world, era, all(), None, name).await
    }

    async fn open(
        principal: Principal,
        world: &World,
        era: Era,
        capabilities: Value,
        profile: Option<&str>,
        name: &'static str,
    ) -> Self {
        let profile = profile.map(Into::into);
        let (input, reader) = duplex(64 * 1024);
        let (writer, output) = duplex(64 * 1024);
        let gateway = world.gateway.clone();
        let serving = tokio::spawn(async move {
            let mut options = StdioOptions::default();
            options.profile = profile;
            options.principal = principal;
            serve(&gateway, reader, writer, &options).await.unwrap();
        });
        let mut client = Self {
            era,
            name,
            capabilities,
            input,
            output: BufReader::new(output).lines(),
            next: 1,
            serving,
            hello: Value::Null,
            notices: Vec::new(),
            asked: Vec::new(),
        };
        if era == Era::Stateful {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": client.capabilities,
                "clientInfo": {"name": client.name, "version": "1"},
            });
            client.hello = client.request("initialize", params).await["result"].take();
            client
                .say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .await;
        } else {
            client.hello = client.request("server/discover", json!({})).await["result"].take();
        }
        client
    }

    /// Sends a request and returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
            meta["io.modelcontextprotocol/logLevel"] = "info".into();
        }
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, message: &str) {
        let line = format!("{message}\n");
        soon(self.input.write_all(line.as_bytes())).await.unwrap();
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = soon(self.output.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    /// Waits for the answer to a request; answers what the server asks meanwhile.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            match (message.get("method"), message.get("id")) {
                (None, Some(of)) if *of == id => return message,
                (Some(method), Some(of)) => {
                    let result = input(method.as_str().unwrap(), &message["params"]);
                    let answer = json!({"jsonrpc": "2.0", "id": of, "result": result});
                    self.asked.push(message);
                    self.say(&answer).await;
                }
                _ => self.notices.push(message),
            }
        }
    }

    /// The answer to a request, if it came while another one was awaited.
    pub(crate) fn take(&mut self, id: u64) -> Option<Value> {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let found = self.notices.iter().position(is_answer)?;
        Some(self.notices.swap_remove(found))
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and provides input until there is a result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        for _ in 0..8 {
            let answer = self.request("tools/call", params.clone()).await;
            let result = &answer["result"];
            if result["resultType"] != "input_required" {
                return answer;
            }
            params["inputResponses"] = json!({});
            for (key, asked) in result["inputRequests"].as_object().unwrap() {
                params["inputResponses"][key] =
                    input(asked["method"].as_str().unwrap(), &asked["params"]);
                self.asked.push(asked.clone());
            }
            params["requestState"] = result["requestState"].clone();
        }
        panic!("the server never has enough");
    }

    pub(crate) async fn disconnect(self) {
        drop((self.input, self.output));
        soon(self.serving).await.unwrap();
    }
}

/// What this client answers.
fn input(method: &str, params: &Value) -> Value {
    match method {
        "elicitation/create" if params["mode"] == "url" => json!({"action": "accept"}),
        "elicitation/create"
            if params["requestedSchema"]["properties"]
                .get("answer")
                .is_some() =>
        {
            json!({"action": "accept", "content": {"answer": "always"}})
        }
        "elicitation/create" => json!({"action": "accept", "content": {"count": 3}}),
        "sampling/createMessage" => json!({
            "role": "assistant",
            "model": "test-model",
            "content": {"type": "text", "text": "Hello"},
        }),
        "roots/list" => json!({"roots": [{"uri": "file:///work"}]}),
        other => panic!("{other}"),
    }
}

/// The text of a tool result.
pub(crate) fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}
