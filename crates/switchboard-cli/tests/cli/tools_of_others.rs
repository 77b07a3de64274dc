//! `mcp import` and `mcp export`.

use crate::support::{TestContext, named};

fn with_other_tools() -> TestContext {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers": {"shared": {"command": "npx", "args": ["-y", "shared"]}, "cursor-only": {"url": "https://cursor.example/mcp"}}}"#,
    );
    context.write(
        "home/.codex/config.toml",
        "model = \"x\"\n[mcp_servers.shared]\ncommand = \"npx\"\nargs = [\"-y\", \"shared\"]\n\n[mcp_servers.codex-only]\nurl = \"https://codex.example/mcp\"\nbearer_token_env_var = \"CODEX_TOKEN\"\n",
    );
    context
}

#[test]
fn a_dry_run_writes_nothing() {
    let context = with_other_tools();
    let run = context.line("mcp import --dry-run");
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(
        run.stderr
            .contains("3 servers would be added in user scope"),
        "{}",
        run.stderr
    );
    assert!(!context.exists("config/mcp.toml"));
}

#[test]
fn servers_are_imported_once() {
    let context = with_other_tools();
    let imported = context.json("mcp import --json");
    let results = |name: &str| -> Vec<String> {
        let rows = imported
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["name"] == name);
        rows.map(|row| {
            format!(
                "{} {}",
                row["tool"].as_str().unwrap(),
                row["result"].as_str().unwrap()
            )
        })
        .collect()
    };
    assert_eq!(results("shared"), ["codex added", "cursor skipped"]);
    assert_eq!(results("cursor-only"), ["cursor added"]);
    assert_eq!(results("codex-only"), ["codex added"]);
    let list = context.json("mcp list --no-connect --json");
    assert_eq!(named(&list, "cursor-only")["state"], "ready");
    let again = context.json("mcp import --json");
    assert!(
        again
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["result"] == "skipped"),
        "{again}"
    );
}

#[test]
fn one_tool_can_be_named_and_an_unknown_one_is_an_error() {
    let context = with_other_tools();
    let imported = context.json("mcp import --from cursor --scope local --json");
    assert_eq!(imported.as_array().unwrap().len(), 2);
    assert!(context.exists("project/.switchboard.local.toml"));
    assert_eq!(
        named(&context.json("mcp list --no-connect --json"), "shared")["state"],
        "ready"
    );
    for line in ["mcp import --from emacs", "mcp export --to emacs"] {
        let run = context.line(line);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("claude-code"), "{}", run.stderr);
    }
}

#[test]
fn approvals_in_files_are_ignored() {
    let context = TestContext::new();
    context.write(
        "home/.claude.json",
        r#"{"mcpServers": {"a": {"command": "npx", "alwaysAllow": ["*"]}}, "enableAllProjectMcpServers": true}"#,
    );
    let run = context.line("mcp import --from claude-code");
    assert_eq!(run.code, 0, "{}", run.all());
    assert_eq!(
        context.read("config/mcp.toml"),
        "[mcp_servers.a]\ncommand = \"npx\"\n"
    );
    assert_eq!(
        context.json("config show --json")["rules"],
        serde_json::json!([])
    );
}

#[test]
fn an_export_goes_to_standard_output_or_into_a_file_that_keeps_the_rest() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"a\"]\n",
    );
    context.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"waits\": {\"command\": \"npx\"}}}",
    );
    let run = context.line("mcp export --to cursor");
    assert_eq!(run.code, 0, "{}", run.all());
    let file: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(file["mcpServers"]["a"]["command"], "npx");
    assert_eq!(
        file["mcpServers"]["waits"],
        serde_json::Value::Null,
        "what is not trusted is not handed on"
    );
    assert!(run.stderr.contains("`waits` is skipped"), "{}", run.stderr);

    context.write(
        "project/codex.toml",
        "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n",
    );
    let run = context.line("mcp export --to codex --output codex.toml");
    assert_eq!(run.code, 0, "{}", run.all());
    let text = context.read("project/codex.toml");
    assert!(
        text.starts_with("# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n"),
        "{text}"
    );
    assert!(
        text.contains("[mcp_servers.a]\ncommand = \"npx\""),
        "{text}"
    );

    let run = context.line("mcp export --to cursor --output new/mcp.json --json");
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(context.read("project/new/mcp.json").contains("\"npx\""));
}

#[test]
fn servers_of_the_project_do_not_become_the_users() {
    let context = TestContext::new();
    let evil = r#"{"mcpServers": {"evil": {"command": "npx"}}}"#;
    context.write("project/.cursor/mcp.json", evil);
    let imported = context.json("mcp import --json");
    assert_eq!(named(&imported, "evil")["result"], "skipped");
    assert!(!context.exists("config/mcp.toml"));
    let imported = context.json("mcp import --json --scope local");
    assert_eq!(named(&imported, "evil")["result"], "added");
    let list = context.json("mcp list --no-connect --json");
    assert_eq!(
        named(&list, "evil")["state"],
        "untrusted",
        "the project wrote it, not the user"
    );
}

#[test]
fn files_that_are_read_anyway_are_not_imported() {
    let context = TestContext::new();
    let servers = r#"{"mcpServers": {"a": {"command": "npx"}}}"#;
    for file in ["project/.mcp.json", "home/.claude/settings.json"] {
        context.write(file, servers);
    }
    let imported = context.json("mcp import --json --scope local");
    let rows = imported.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row["reason"] == "that file is already read"),
        "{imported}"
    );
}

#[test]
fn an_export_as_json_is_one_document() {
    let context = TestContext::new();
    context.line("mcp add --scope user a b");
    assert_eq!(
        context.json("mcp export --to codex --json"),
        serde_json::json!({"tool": "codex", "text": "[mcp_servers.a]\ncommand = \"b\"\n"})
    );
}

#[test]
fn a_server_of_one_project_stays_in_that_project() {
    let context = TestContext::new();
    let project = context.path("project").canonicalize().unwrap();
    let claude = serde_json::json!({
        "mcpServers": {"everywhere": {"command": "npx"}},
        "projects": {
            project.to_str().unwrap(): {"mcpServers": {"here": {"command": "npx", "args": ["here"]}}},
        },
    });
    context.write("home/.claude.json", claude.to_string());
    let imported = context.json("mcp import --from claude-code --json");
    assert_eq!(named(&imported, "here")["scope"], "local", "{imported}");
    assert_eq!(named(&imported, "everywhere")["scope"], "user");
    assert!(!context.read("config/mcp.toml").contains("here\n"));
    assert!(
        context
            .read("project/.switchboard.local.toml")
            .contains("[mcp_servers.here]")
    );
    // It was the user's own entry, so it needs no approval.
    let list = context.json("mcp list --no-connect --json");
    assert_eq!(named(&list, "here")["state"], "ready");
}

#[test]
fn a_name_that_is_taken_can_be_changed() {
    let context = with_other_tools();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.shared]\ncommand = \"other\"\n",
    );
    let run = context.line("mcp import --from cursor");
    assert!(
        run.stdout
            .contains("the name is taken; --rename adds it under another"),
        "{}",
        run.all()
    );
    let imported = context.json("mcp import --from cursor --rename --json");
    assert_eq!(
        named(&imported, "shared")["added_as"],
        "shared-2",
        "{imported}"
    );
    assert!(
        context
            .read("config/mcp.toml")
            .contains("[mcp_servers.shared-2]")
    );
    // Existing entries are not added again.
    let again = context.json("mcp import --from cursor --rename --json");
    assert_eq!(named(&again, "shared")["result"], "skipped", "{again}");
}

#[test]
fn copied_secrets_are_reported() {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers": {"api": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer CANARYheader"}},
            "tool": {"command": "npx", "args": ["--api-key", "CANARYargs"], "env": {"API_KEY": "CANARYenv", "LEVEL": "info"}}}}"#,
    );
    let run = context.line("mcp import --from cursor --dry-run");
    for part in [
        "`api` has secrets in plain text in",
        "headers.Authorization",
        "switchboard mcp login api",
        "env.API_KEY, args",
        "--secrets-as-variables",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert!(!run.all().contains("CANARY"), "{}", run.all());
    let run = context.line("mcp import --from cursor --secrets-as-variables");
    assert!(
        run.stderr.contains("`api` needs API_TOKEN"),
        "{}",
        run.stderr
    );
    let text = context.read("config/mcp.toml");
    assert!(
        text.contains("bearer_token_env_var = \"API_TOKEN\""),
        "{text}"
    );
    assert!(text.contains("API_KEY = \"${API_KEY}\""), "{text}");
    assert!(
        !text.contains("CANARYheader") && !text.contains("CANARYenv"),
        "{text}"
    );
    assert!(
        run.stderr.contains("`tool` has secrets in plain text"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_name_that_reads_like_another_is_skipped_with_the_reason() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.github]\ncommand = \"other\"\n",
    );
    context.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers": {"GitHub": {"command": "npx", "args": ["x"]}, "grep": {"command": "npx"}, "fine": {"command": "npx", "args": ["y"]}}}"#,
    );
    let run = context.line("mcp import --from cursor");
    assert_eq!(run.code, 0, "{}", run.all());
    for reason in [
        "its name can be mistaken for `github`",
        "server name \"grep\" reads like the built-in tool Grep",
    ] {
        assert!(run.all().contains(reason), "{reason}\n{}", run.all());
    }
    let text = context.read("config/mcp.toml");
    assert!(text.contains("[mcp_servers.fine]"), "{text}");
    assert!(!text.contains("GitHub") && !text.contains("grep"), "{text}");
}
