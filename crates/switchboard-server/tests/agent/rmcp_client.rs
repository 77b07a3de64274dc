//! A session with the official Rust client.

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use serde_json::json;
use switchboard_server::stdio::{StdioOptions, serve};
use tokio::io::duplex;

use super::{World, soon};

#[tokio::test]
async fn the_official_client_has_a_conversation() {
    let world = World::new();
    let (client_end, server_end) = duplex(64 * 1024);
    let handler = world.handler();
    let serving = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(server_end);
        serve(&handler, reader, writer, &StdioOptions::default()).await
    });
    let client = soon(().serve(client_end)).await.unwrap();
    let tools = soon(client.list_all_tools()).await.unwrap();
    assert_eq!(tools.len(), 2);
    let call = async |name: &'static str, arguments: serde_json::Value| {
        let params = json!({"name": name, "arguments": arguments});
        let params: CallToolRequestParams = serde_json::from_value(params).unwrap();
        let result = soon(client.call_tool(params)).await.unwrap();
        assert_ne!(result.is_error, Some(true));
        result.structured_content.unwrap()
    };
    let first = call("switchboard", json!({"prompt": "hello"})).await;
    assert_eq!(first["response"], "hello (1)");
    let session = &first["session_id"];
    let arguments = json!({"session_id": session, "message": "more"});
    let second = call("switchboard-reply", arguments).await;
    assert_eq!(
        second,
        json!({"session_id": session, "response": "more (3)"})
    );
    soon(client.cancel()).await.unwrap();
    soon(serving).await.unwrap().unwrap();
}
