//! A machine with all seven scopes filled: every value shows its origin and what it shadows.

use crate::cloud::Provider;
use crate::support::{TestContext, named};

/// Every scope has the server `everywhere` and one of its own.
fn toml(scope: &str) -> String {
    format!(
        "[mcp_servers.everywhere]\ncommand = \"npx\"\nargs = [\"{scope}\"]\n\n[mcp_servers.only-{scope}]\nurl = \"https://{scope}.example/mcp\"\n"
    )
}

fn filled(enterprise: bool) -> (TestContext, Provider) {
    let context = TestContext::new();
    let provider = Provider::serving(
        r#"{"mcpServers": {"everywhere": {"command": "npx", "args": ["cloud"]}, "only-cloud": {"url": "https://cloud.example/mcp"}, "twin": {"url": "https://USER.example/mcp/"}}}"#,
    );
    if enterprise {
        context.write(
            "managed.toml",
            format!("mode = \"merge\"\n{}\n[settings]\ntool_timeout_sec = 1\n\n[security]\nmcp_server_denylist = [\"only-plugin\"]\n", toml("enterprise")),
        );
    }
    context.write(
        "project/.switchboard.local.toml",
        format!("{}\n[settings]\ntool_timeout_sec = 2\n", toml("local")),
    );
    context.write(
        "project/.mcp.toml",
        format!("{}\n[settings]\ntool_timeout_sec = 3\n", toml("project")),
    );
    context.write(
        "project/.mcp.json",
        r#"{"mcpServers": {"everywhere": {"command": "npx", "args": ["project-json"]}}}"#,
    );
    let user = toml("user");
    context.write(
        "config/mcp.toml",
        format!("{user}\n[settings]\ntool_timeout_sec = 4\n\n[cloud]\nurl = \"{}\"\n\n[[permissions.rules]]\ntool = \"mcp__only-user__*\"\naction = \"allow\"\narguments = {{ path = {{ under = \"/srv\" }} }}\n\n[[hooks]]\nevent = \"PostToolUse\"\ncommand = [\"log\", \"--token\", \"abc\"]\ntimeout_sec = 3\n", provider.url),
    );
    context.write("config/plugins/tools/plugin.toml", toml("plugin"));
    context.write("state/dynamic.toml", toml("dynamic"));
    let approved = context.line("trust approve --yes");
    assert_eq!(approved.code, 0, "{}", approved.all());
    (context, provider)
}

#[test]
fn every_value_has_its_place_and_says_what_it_hides() {
    let (context, _provider) = filled(false);
    let shown = context.json("config show --json");
    let servers = shown["servers"].as_array().unwrap();
    for server in servers {
        let file = server["source"]["file"].as_str().unwrap();
        assert!(
            !file.is_empty() && server["source"]["line"].as_u64() >= Some(1),
            "{server}"
        );
        assert!(
            server["values"]
                .as_object()
                .unwrap()
                .values()
                .all(|value| value["line"].is_u64()),
            "{server}"
        );
    }
    for scope in ["local", "project", "user", "plugin", "dynamic", "cloud"] {
        let own = named(&shown["servers"], &format!("only-{scope}"));
        assert_eq!(own["source"]["scope"], scope);
        assert_eq!(own["state"], "ready");
    }
    let everywhere = named(&shown["servers"], "everywhere");
    assert_eq!(
        everywhere["values"]["args"]["value"],
        serde_json::json!(["local"])
    );
    let shadows = everywhere["shadows"].as_array().unwrap();
    let mut scopes: Vec<&str> = shadows
        .iter()
        .map(|lost| lost["source"]["scope"].as_str().unwrap())
        .collect();
    scopes.sort_unstable();
    assert_eq!(
        scopes,
        ["cloud", "dynamic", "plugin", "project", "project", "user"]
    );
    for lost in shadows {
        let reason = lost["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("local scope has the same name, at "),
            "{reason}"
        );
    }
    let twin = &named(&shown["servers"], "only-user")["shadows"][0];
    assert_eq!(twin["name"], "twin");
    assert!(
        twin["reason"]
            .as_str()
            .unwrap()
            .contains("same endpoint as `only-user`"),
        "{twin}"
    );
    let settings = shown["settings"].as_array().unwrap();
    let timeout = settings
        .iter()
        .find(|each| each["key"] == "tool_timeout_sec")
        .unwrap();
    assert_eq!(timeout["value"], 2);
    let hidden: Vec<&serde_json::Value> = timeout["shadows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| &each["value"])
        .collect();
    assert_eq!(hidden, [3, 4, 60]);
}

#[test]
fn the_whole_is_shown_for_people() {
    let (context, provider) = filled(false);
    let text = context
        .snapshot("config show")
        .replace(&provider.url, "[CLOUD]");
    insta::assert_snapshot!("seven_scopes", text);
}

#[test]
fn the_enterprise_file_wins_and_its_lists_bind() {
    let (context, provider) = filled(true);
    let shown = context.json("config show --json");
    let everywhere = named(&shown["servers"], "everywhere");
    assert_eq!(everywhere["source"]["scope"], "enterprise");
    assert_eq!(named(&shown["servers"], "only-plugin")["state"], "blocked");
    assert_eq!(
        named(&shown["servers"], "only-cloud"),
        &serde_json::Value::Null
    );
    assert_eq!(shown["enterprise"], "merge");
    let text = context
        .snapshot("config show")
        .replace(&provider.url, "[CLOUD]");
    insta::assert_snapshot!("seven_scopes_with_enterprise", text);
}

#[test]
fn an_exclusive_file_is_all_there_is() {
    let (context, _provider) = filled(true);
    let exclusive = context.read("managed.toml").replace("merge", "exclusive");
    context.write("managed.toml", exclusive);
    let list = context.json("mcp list --no-connect --json");
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["everywhere", "only-enterprise"]);
}

#[test]
fn what_is_hidden_by_something_hidden_is_still_shown() {
    let context = TestContext::new();
    context.write(
        "managed.toml",
        "mode = \"merge\"\n[mcp_servers.b]\nurl = \"https://x.example\"\n",
    );
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\nurl = \"https://x.example\"\n",
    );
    context.write(
        "state/dynamic.toml",
        "[mcp_servers.a]\nurl = \"https://y.example\"\n",
    );
    let shown = context.json("config show --json");
    assert_eq!(shown["shadowed"].as_array().map(Vec::len), Some(2));
    let text = context.line("config show").stdout;
    assert!(text.contains("a  shadowed  http  user scope"), "{text}");
    assert!(text.contains("shadows a of dynamic scope"), "{text}");
}

#[test]
fn an_allow_list_without_a_good_pattern_allows_nothing_and_says_so() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[security]\nmcp_server_allowlist = [\"[\"]\n[mcp_servers.a]\ncommand = \"npx\"\n",
    );
    let text = context.line("config show").stdout;
    assert!(text.contains("allow nothing"), "{text}");
    assert_eq!(
        context.json("mcp list --no-connect --json")[0]["state"],
        "blocked"
    );
}
