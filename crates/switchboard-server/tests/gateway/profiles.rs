//! Profiles and search mode: a client sees and can call what its profile includes, and nothing else.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::internal::audit::{Audit, AuditSettings, LOG};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_server::Handler as _;
use switchboard_server::gateway::{GatewayOptions, SearchMode};
use switchboard_store::{LogQuery, MemoryStore, Store as _};

use super::client::{Client, text};
use super::offers::names;
use super::{CELLS, Era, World};

const USER: &str = "/h/.config/switchboard/mcp.toml";
const SERVERS: &str = "[mcp_servers.desk]\ncommand = 'a'\n[mcp_servers.shelf]\ncommand = 'b'\n";

/// Serves the profiles of a file with this text.
fn configure(world: &World, profiles: &str) {
    let folders = Folders {
        home: "/h".into(),
        config: "/h/.config/switchboard".into(),
        state: "/h/.state".into(),
        project: "/p".into(),
        managed_file: None,
    };
    let inputs = Inputs {
        folders: folders.clone(),
        ..Inputs::default()
    };
    let files = InMemory::default().file(USER, format!("{SERVERS}{profiles}"));
    let config = Config::load(&inputs, &files);
    world.gateway.set_profiles(&config, &folders);
}

fn world(servers: Era, profiles: &str) -> World {
    let world = World::with(servers, &["desk", "shelf"], GatewayOptions::default());
    configure(&world, profiles);
    world
}

const PART: &str = r#"
[profiles.part]
servers = ["desk"]
tools = ["desk/e*", "ask", "log"]
disabled_tools = ["ask"]
rename = { "desk/echo" = "repeat" }
instructions = "Short answers."
"#;

#[tokio::test]
async fn a_client_sees_and_calls_only_its_profile() {
    for (clients, servers) in CELLS {
        let world = world(servers, PART);
        let mut everything = Client::new(&world, clients).await;
        let tools = everything.request("tools/list", json!({})).await;
        assert_eq!(names(&tools, "tools", "name").len(), 18);
        let mut client = Client::of_profile(&world, clients, "part").await;
        let instructions = &client.hello["instructions"];
        assert_eq!(instructions, "Short answers.\n\n# desk\n\nBe kind.");
        let tools = client.request("tools/list", json!({})).await;
        assert_eq!(names(&tools, "tools", "name"), ["repeat", "mcp__desk__log"]);
        let answer = client.call("repeat", json!({"a": 1})).await;
        assert_eq!(text(&answer), r#"{"a":1}"#);
        for outside in ["mcp__desk__ask", "mcp__shelf__echo", "shelf/echo"] {
            let refused = client.call(outside, json!({})).await;
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("is not in the profile \"part\""),
                "{message}"
            );
        }
        let prompts = client.request("prompts/list", json!({})).await;
        assert_eq!(names(&prompts, "prompts", "name"), ["mcp__desk__greet"]);
        let prompt = json!({"name": "mcp__shelf__greet"});
        let refused = client.request("prompts/get", prompt).await;
        assert!(refused.get("error").is_some(), "{refused}");
        let completed = json!({
            "ref": {"type": "ref/prompt", "name": "mcp__shelf__greet"},
            "argument": {"name": "who", "value": "Ann"},
        });
        let refused = client.request("completion/complete", completed).await;
        assert!(refused.get("error").is_some(), "{refused}");
        let resources = client.request("resources/list", json!({})).await;
        assert_eq!(names(&resources, "resources", "uri"), ["demo://note"]);
        let resources = everything.request("resources/list", json!({})).await;
        let uri = names(&resources, "resources", "uri").remove(1);
        let refused = client.request("resources/read", json!({"uri": uri})).await;
        assert!(refused.get("error").is_some(), "{refused}");
    }
}

#[tokio::test]
async fn a_profile_that_changes_changes_for_its_connected_clients() {
    let world = world(Era::Stateful, PART);
    assert!(world.gateway.has_profile("part"));
    assert!(!world.gateway.has_profile("other"));
    let mut unknown = Client::of_profile(&world, Era::Stateful, "other").await;
    let tools = unknown.request("tools/list", json!({})).await;
    assert_eq!(names(&tools, "tools", "name"), Vec::<String>::new());

    let mut client = Client::of_profile(&world, Era::Stateful, "part").await;
    assert_eq!(text(&client.call("repeat", json!({})).await), "{}");
    client.notices.clear();
    configure(&world, "[profiles.part]\nservers = ['shelf']\n");
    let tools = client.request("tools/list", json!({})).await;
    assert!(has_changed_tools(&client), "{:?}", client.notices);
    assert!(names(&tools, "tools", "name").contains(&"mcp__shelf__echo".to_owned()));
    let refused = client.call("repeat", json!({})).await;
    assert!(refused.get("error").is_some(), "{refused}");
    // One with an error is not served at all.
    configure(&world, "[profiles.part]\nservers = 'shelf'\n");
    assert!(!world.gateway.has_profile("part"));
    let refused = client.call("mcp__shelf__echo", json!({})).await;
    assert!(refused.get("error").is_some(), "{refused}");
}

#[tokio::test]
async fn two_tools_with_one_new_name_both_get_a_suffix() {
    let profile =
        "[profiles.p]\ntools = ['echo']\nrename = { 'desk/echo' = 'e', 'shelf/echo' = 'e' }\n";
    let world = world(Era::Stateful, profile);
    let mut client = Client::of_profile(&world, Era::Stateful, "p").await;
    let tools = client.request("tools/list", json!({})).await;
    let found = names(&tools, "tools", "name");
    assert_eq!(found.len(), 2);
    assert_ne!(found[0], found[1]);
    for name in &found {
        assert!(name.starts_with("e_") && name.len() == 14, "{name}");
        let answer = client.call(name, json!({"of": name})).await;
        assert_eq!(text(&answer), json!({"of": name}).to_string());
    }
}

#[tokio::test]
async fn rules_of_a_profile_only_restrict() {
    let deny = "[profiles.p]\n[[profiles.p.permissions.rules]]\ntool = 'mcp__desk__echo'\naction = 'deny'\n";
    let world = world(Era::Stateful, deny);
    let mut free = Client::new(&world, Era::Stateful).await;
    assert_eq!(text(&free.call("mcp__desk__echo", json!({})).await), "{}");
    let mut client = Client::of_profile(&world, Era::Stateful, "p").await;
    let refused = client.call("mcp__desk__echo", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("the rule"), "{refused}");
    assert_eq!(
        text(&client.call("mcp__shelf__echo", json!({})).await),
        "{}"
    );
}

#[tokio::test]
async fn changes_of_other_servers_are_not_announced() {
    let world = world(Era::Stateful, "[profiles.p]\nservers = ['desk']\n");
    let mut everything = Client::new(&world, Era::Stateful).await;
    let mut client = Client::of_profile(&world, Era::Stateful, "p").await;
    client.request("tools/list", json!({})).await;
    everything.request("tools/list", json!({})).await;
    client.request("ping", json!({})).await;
    client.notices.clear();
    everything.notices.clear();
    world.host.restart(&"shelf".into()).await;
    // Once the other client hears of it, the event has passed.
    while !has_changed_tools(&everything) {
        let message = everything.next().await;
        everything.notices.push(message);
    }
    client.request("ping", json!({})).await;
    assert_eq!(client.notices, Vec::<Value>::new());
}

#[tokio::test]
async fn a_refused_call_is_in_the_audit_log() {
    let store = Arc::new(MemoryStore::default());
    let audit = Audit::start(store.clone(), AuditSettings::default(), "gateway");
    let world = World::recording(&["desk", "shelf"], audit.clone());
    configure(&world, PART);
    let mut client = Client::of_profile(&world, Era::Stateful, "part").await;
    client.request("tools/list", json!({})).await;
    client.call("mcp__shelf__echo", json!({})).await;
    audit.flush().await;
    let found = store.read_log(LOG, LogQuery::default()).await.unwrap();
    let entries = found.iter();
    let mut entries = entries.map(|found| serde_json::from_slice::<Value>(&found.value).unwrap());
    let entry = entries.find(|entry| entry["tool"] == "echo").unwrap();
    assert_eq!(entry["server"], "shelf");
    assert_eq!(entry["decision"], "deny");
    assert_eq!(entry["because"], "profile");
}

#[tokio::test]
async fn search_finds_and_calls_only_the_tools_of_the_profile() {
    let profile =
        "[profiles.p]\nservers = ['desk']\nsearch = 'on'\nrename = { 'desk/echo' = 'repeat' }\n";
    let world = world(Era::Stateful, profile);
    let mut client = Client::of_profile(&world, Era::Stateful, "p").await;
    let tools = client.request("tools/list", json!({})).await;
    let listed = names(&tools, "tools", "name");
    assert_eq!(listed, ["search_tools", "describe_tool", "call_tool"]);
    let found = client.call("search_tools", json!({"query": "echo"})).await;
    assert!(
        text(&found).starts_with("repeat: The tool echo."),
        "{found}"
    );
    assert!(!text(&found).contains("shelf"), "{found}");
    let name = json!({"name": "repeat"});
    let described = client.call("describe_tool", name).await;
    assert!(
        text(&described).contains(r#""name":"repeat""#),
        "{described}"
    );
    let name = json!({"name": "mcp__shelf__echo"});
    let hidden = client.call("describe_tool", name).await;
    assert!(hidden.get("error").is_some(), "{hidden}");
    let inner = json!({"name": "repeat", "arguments": {"a": 1}});
    assert_eq!(text(&client.call("call_tool", inner).await), r#"{"a":1}"#);
    let inner = json!({"name": "mcp__shelf__echo", "arguments": {}});
    let refused = client.call("call_tool", inner).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("is not in the profile"), "{message}");
}

#[tokio::test]
async fn automatic_search_goes_by_the_client() {
    // Six servers have 54 tools: more than Cursor takes, and few tokens.
    let servers = ["a", "b", "c", "d", "e", "f"];
    for era in [Era::Stateful, Era::Stateless] {
        let world = World::with(Era::Stateful, &servers, GatewayOptions::default());
        for (name, expected) in [("claude-code", 54), ("cursor-vscode", 3)] {
            let mut client = Client::named(&world, era, name).await;
            let tools = client.request("tools/list", json!({})).await;
            assert_eq!(names(&tools, "tools", "name").len(), expected, "{name}");
        }
        let options = GatewayOptions {
            search: SearchMode::Auto,
            search_budget: Some(10),
            ..GatewayOptions::default()
        };
        let world = World::with(Era::Stateful, &servers, options);
        let mut client = Client::named(&world, era, "claude-code").await;
        let tools = client.request("tools/list", json!({})).await;
        assert_eq!(names(&tools, "tools", "name").len(), 3);
    }
}

#[tokio::test]
async fn a_client_with_search_hears_of_no_changed_tools() {
    let options = GatewayOptions {
        search: SearchMode::On,
        ..GatewayOptions::default()
    };
    let world = World::with(Era::Stateful, &["desk"], options);
    let mut client = Client::new(&world, Era::Stateful).await;
    client.request("tools/list", json!({})).await;
    client.notices.clear();
    world.host.restart(&"desk".into()).await;
    let method = "notifications/resources/list_changed";
    while !client
        .notices
        .iter()
        .any(|notice| notice["method"] == method)
    {
        let message = client.next().await;
        client.notices.push(message);
    }
    assert!(!has_changed_tools(&client), "{:?}", client.notices);
}

fn has_changed_tools(client: &Client) -> bool {
    let method = "notifications/tools/list_changed";
    client
        .notices
        .iter()
        .any(|notice| notice["method"] == method)
}
