//! What clients see: names, lists, instructions, search mode, transparent mode.

use serde_json::{Value, json};
use switchboard_server::gateway::{GatewayOptions, SearchMode};

use super::client::{Client, text};
use super::{CELLS, Era, World};

pub(crate) fn names(list: &Value, member: &str, key: &str) -> Vec<String> {
    let items = list["result"][member].as_array();
    let items = items.unwrap_or_else(|| panic!("{list}"));
    items
        .iter()
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn everything_is_listed_and_found_again() {
    for (clients, servers) in CELLS {
        let world = World::with(servers, &["desk", "shelf"], GatewayOptions::default());
        let mut client = Client::new(&world, clients).await;
        assert_eq!(client.hello["capabilities"]["tools"]["listChanged"], true);
        let tools = client.request("tools/list", json!({})).await;
        let listed = names(&tools, "tools", "name");
        assert_eq!(listed.len(), 18);
        assert!(listed.contains(&"mcp__shelf__echo".to_owned()));
        if clients == Era::Stateless {
            assert_eq!(tools["result"]["cacheScope"], "private");
            assert!(tools["result"]["ttlMs"].as_u64().unwrap() <= 300_000);
        }
        let prompts = client.request("prompts/list", json!({})).await;
        let listed = names(&prompts, "prompts", "name");
        assert_eq!(listed, ["mcp__desk__greet", "mcp__shelf__greet"]);
        let prompt = client
            .request("prompts/get", json!({"name": "mcp__shelf__greet"}))
            .await;
        let said = &prompt["result"]["messages"][0]["content"]["text"];
        assert_eq!(said, "Greet by greet");
        let completed = json!({
            "ref": {"type": "ref/prompt", "name": "mcp__desk__greet"},
            "argument": {"name": "who", "value": "Ann"},
        });
        let completed = client.request("completion/complete", completed).await;
        assert_eq!(completed["result"]["completion"]["values"], json!(["Ann!"]));
        // Both servers have the same resource: the second gets a URI of its own.
        let resources = client.request("resources/list", json!({})).await;
        let uris = names(&resources, "resources", "uri");
        assert_eq!(uris[0], "demo://note");
        assert!(uris[1].starts_with("switchboard://"), "{uris:?}");
        for uri in &uris {
            let read = client.request("resources/read", json!({"uri": uri})).await;
            let text = &read["result"]["contents"][0]["text"];
            assert_eq!(text, "text of demo://note", "{read}");
        }
        let page = client
            .request("resources/read", json!({"uri": "demo://page/4"}))
            .await;
        let text = &page["result"]["contents"][0]["text"];
        assert_eq!(text, "text of demo://page/4", "{page}");
        let missing = client
            .request("resources/read", json!({"uri": "x://y"}))
            .await;
        assert!(missing.get("error").is_some(), "{missing}");
    }
}

#[tokio::test]
async fn instructions_are_merged_under_the_names_of_their_servers() {
    let world = World::with(Era::Stateful, &["desk", "shelf"], GatewayOptions::default());
    let mut first = Client::new(&world, Era::Stateful).await;
    first.request("tools/list", json!({})).await;
    let second = Client::new(&world, Era::Stateful).await;
    let expected = "# desk\n\nBe kind.\n\n# shelf\n\nBe kind.";
    assert_eq!(second.hello["instructions"], expected);
    assert_eq!(second.hello["serverInfo"]["name"], "switchboard");
}

#[tokio::test]
async fn one_server_is_offered_as_it_is() {
    for (clients, servers) in CELLS {
        let options = GatewayOptions {
            transparent: Some("desk".into()),
            single_client: true,
            ..GatewayOptions::default()
        };
        let world = World::with(servers, &["desk", "shelf"], options);
        let mut client = Client::new(&world, clients).await;
        if clients == Era::Stateful {
            assert_eq!(
                client.hello["serverInfo"],
                json!({"name": "upstream", "version": "7"})
            );
            assert_eq!(client.hello["instructions"], "Be kind.");
        }
        let tools = client.request("tools/list", json!({})).await;
        assert!(names(&tools, "tools", "name").contains(&"echo".to_owned()));
        let answer = client.call("echo", json!({"a": 1})).await;
        assert_eq!(text(&answer), r#"{"a":1}"#);
        let unknown = client.call("nothing", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

#[tokio::test]
async fn search_mode_replaces_the_definitions() {
    let options = GatewayOptions {
        search: SearchMode::On,
        ..GatewayOptions::default()
    };
    let world = World::with(Era::Stateful, &["desk"], options);
    let mut client = Client::new(&world, Era::Stateful).await;
    let tools = client.request("tools/list", json!({})).await;
    let listed = names(&tools, "tools", "name");
    assert_eq!(listed, ["search_tools", "describe_tool", "call_tool"]);
    let found = client.call("search_tools", json!({"query": "echo"})).await;
    assert!(
        text(&found).starts_with("mcp__desk__echo: The tool echo."),
        "{found}"
    );
    let described = client
        .call("describe_tool", json!({"name": "mcp__desk__echo"}))
        .await;
    assert!(text(&described).contains("inputSchema"), "{described}");
    let inner = json!({"name": "mcp__desk__echo", "arguments": {"a": 1}});
    let called = client.call("call_tool", inner).await;
    assert_eq!(text(&called), r#"{"a":1}"#);
    let unknown = client
        .call("describe_tool", json!({"name": "mcp__desk__ech"}))
        .await;
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("mcp__desk__ech"), "{message}");
}
