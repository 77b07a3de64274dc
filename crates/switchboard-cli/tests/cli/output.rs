//! The exact output of each command: plain, in colour, and as JSON.

use std::fmt::Write as _;

use crate::support::TestContext;

/// A machine with one item of every kind.
fn scene() -> TestContext {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.docs]\nurl = \"https://docs.example/mcp\"\nheaders = { Authorization = \"Bearer abc\", X-Team = \"${TEAM}\" }\n\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\", \"--api-key\", \"abc\"]\nenabled = false\n\n[mcp_servers.typo]\ncomand = \"npx\"\n\n[mcp_servers.corp-tool]\ncommand = \"node\"\n\n[security]\nmcp_server_denylist = [\"corp-*\"]\n",
    );
    context.write(
        "project/.mcp.json",
        "{\n  \"mcpServers\": {\n    \"docs\": { \"url\": \"https://project.example/mcp\" },\n    \"build\": { \"command\": \"npx\", \"args\": [\"build\"], \"env\": { \"TOKEN\": \"${TOKEN}\" } }\n  }\n}\n",
    );
    context
}

/// Appends a run to the snapshot.
fn record(shown: &mut String, context: &TestContext, line: &str) {
    let _ = writeln!(shown, "$ switchboard {line}\n{}", context.snapshot(line));
}

macro_rules! snapshots {
    ($($name:ident: $line:literal,)*) => {
        $(
            #[test]
            fn $name() {
                let context = scene();
                let mut shown = String::new();
                for flags in ["", "--color always ", "--json "] {
                    let line = format!("{flags}{}", $line);
                    record(&mut shown, &context, &line);
                }
                insta::assert_snapshot!(shown);
            }
        )*
    };
}

snapshots! {
    config_show: "config show",
    config_check: "config check",
    config_path: "config path",
    mcp_list: "mcp list",
    mcp_list_without_connecting: "mcp list --no-connect",
    mcp_get: "mcp get docs",
    mcp_get_unknown: "mcp get dosc",
    mcp_disable: "mcp disable docs",
    mcp_remove_nothing: "mcp remove nothing",
    mcp_import: "mcp import --dry-run",
    trust_list: "trust list",
    trust_diff: "trust diff",
    trust_approve_without_terminal: "trust approve build",
    trust_approve: "trust approve build --yes",
    trust_revoke: "trust revoke",
    tools_with_servers: "tools",
    version: "version",
}

/// Commands that cannot run three times in a row on one machine, in a user's order.
#[test]
fn a_first_hour() {
    let context = TestContext::new();
    let mut shown = String::new();
    for line in [
        "mcp list",
        "tools",
        "mcp add notion https://mcp.notion.com/mcp",
        "mcp add notion https://other.example/mcp",
        "mcp add --scope project api https://api.example/mcp -H 'Authorization: Bearer abc'",
        "mcp add --trust --description Files files npx -y files",
        "mcp list --no-connect",
        "trust list",
        "mcp disable files",
        "mcp enable files",
        "mcp remove api",
        "mcp add",
        "mcp",
        "mcp export --to cursor",
        "mcp list --no-connect --verbose",
    ] {
        record(&mut shown, &context, line);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_changed_entry() {
    let context = TestContext::new();
    let entry =
        |text: &str| context.write("project/.mcp.toml", format!("[mcp_servers.a]\n{text}\n"));
    entry("command = \"npx\"\nargs = [\"one\"]\nenv = { A = \"${A}\" }");
    assert_eq!(context.line("trust approve --yes").code, 0);
    entry(
        "command = \"node\"\nargs = [\"one\", \"--token\", \"abc\"]\nenv = { A = \"${A}\", B = \"${SECRET}\" }\ncwd = \"/\"",
    );
    let mut shown = String::new();
    for line in [
        "trust list",
        "trust diff",
        "trust diff --json",
        "--color always trust diff",
        "mcp get a",
    ] {
        record(&mut shown, &context, line);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn names_that_try_to_paint_the_terminal() {
    let context = TestContext::new();
    context.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"a\\u001b[2J\\u202e\": {\"command\": \"x\\u001b]0;t\\u0007\", \"args\": [\"\\u009b31m\"]}, \"\\u001b[31m\\nkey\": {\"comand\\u001b[0m\": 1}}}",
    );
    let mut shown = String::new();
    for line in [
        "mcp list",
        "config show",
        "config check",
        "trust list",
        "trust diff",
        "mcp list --json",
    ] {
        let run = context.line(line);
        let hidden = |character: char| {
            (character.is_control() && character != '\n')
                || ('\u{200b}'..='\u{202e}').contains(&character)
        };
        assert!(!run.all().contains(hidden), "{line}");
        record(&mut shown, &context, line);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn tools_of_the_embedded_server() {
    let context = TestContext::new();
    let mut shown = String::new();
    for line in [
        "tools",
        "tools --json",
        "tools --server workspace",
        "tools --server nobody",
    ] {
        record(&mut shown, &context, line);
    }
    context.write(
        "config/mcp.toml",
        "[mcp_servers.other]\ncommand = \"npx\"\n[mcp_servers.workspace]\ntransport = \"sdk\"\n",
    );
    record(&mut shown, &context, "tools");
    insta::assert_snapshot!(shown);
}

#[test]
fn the_schema_is_a_schema() {
    let context = TestContext::new();
    let schema = context.json("config schema");
    assert_eq!(schema, switchboard_config::schema::schema());
}
