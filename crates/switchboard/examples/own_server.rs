//! A server in Rust: a value that serves MCP within this program.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use switchboard::{
    Features, Host, Reply, RequestContext, Server, Service, error_result, text_result,
    tool_definition,
};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};

struct Greeter;

#[derive(serde::Deserialize)]
struct Greeting {
    name: String,
}

impl Service for Greeter {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("greeter".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let arguments = json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        });
        vec![tool_definition(
            "greet",
            "Greets a person by name.",
            &arguments,
        )]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            // The host has checked the arguments against the schema; other clients may not have.
            let arguments = call.arguments.unwrap_or_default();
            Ok(match arguments.deserialize::<Greeting>() {
                Ok(greeting) => text_result(format!("Hello, {}!", greeting.name)),
                Err(error) => error_result(error.to_string()),
            })
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::new();
    host.add(Server::in_process("greeter", Greeter)).await?;
    let result = host.call("greeter/greet", json!({ "name": "Ada" })).await?;
    println!("{}", result.text());
    // Arguments that do not match the schema never reach the server.
    if let Err(error) = host.call("greeter/greet", json!({ "nam": "Ada" })).await {
        println!("{:?}", error.kind());
    }
    host.shutdown().await;
    Ok(())
}
