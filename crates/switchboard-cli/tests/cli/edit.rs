//! Commands that edit files change one key of the right file, and nothing else.

use crate::support::{EMBEDDED, Run, TestContext, named};

#[test]
fn comments_and_formatting_stay_in_all_formats() {
    let check = |file: &str, before: &str, after_disable: &str, after_remove: &str| {
        let context = TestContext::new();
        context.write(file, before);
        assert_eq!(context.line("mcp disable a").code, 0, "{file}");
        assert_eq!(context.read(file), after_disable, "{file}");
        assert_eq!(context.line("mcp enable a").code, 0, "{file}");
        assert_eq!(
            context.read(file),
            after_disable.replace("false", "true"),
            "{file}"
        );
        assert_eq!(context.line("mcp remove a").code, 0, "{file}");
        assert_eq!(context.read(file), after_remove, "{file}");
    };
    check(
        "config/mcp.toml",
        "# mine\n[mcp_servers.a] # first\ncommand   = 'npx'\n\n# other\n[mcp_servers.b]\ncommand = \"x\"\n",
        "# mine\n[mcp_servers.a] # first\ncommand   = 'npx'\nenabled = false\n\n# other\n[mcp_servers.b]\ncommand = \"x\"\n",
        "# other\n[mcp_servers.b]\ncommand = \"x\"\n",
    );
    check(
        "config/mcp.json",
        "{\n  // servers\n  \"mcpServers\": {\n    \"a\": { \"command\": \"npx\" },\n    \"b\": { \"command\": \"x\" }, // other\n  },\n}\n",
        "{\n  // servers\n  \"mcpServers\": {\n    \"a\": { \"command\": \"npx\", \"enabled\": false },\n    \"b\": { \"command\": \"x\" }, // other\n  },\n}\n",
        "{\n  // servers\n  \"mcpServers\": {\n    \"b\": { \"command\": \"x\" }, // other\n  },\n}\n",
    );
    check(
        "config/mcp.hcl",
        "# mine\nmcp_servers \"a\" {\n  command = \"npx\"\n}\n\nmcp_servers \"b\" { # other\n  command = \"x\"\n}\n",
        "# mine\nmcp_servers \"a\" {\n  command = \"npx\"\n  enabled = false\n}\n\nmcp_servers \"b\" { # other\n  command = \"x\"\n}\n",
        "mcp_servers \"b\" { # other\n  command = \"x\"\n}\n",
    );
}

#[test]
fn a_file_with_disabled_keeps_that_key() {
    let context = TestContext::new();
    context.write(
        "config/mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}",
    );
    assert_eq!(context.line("mcp enable a").code, 0);
    assert_eq!(
        context.read("config/mcp.json"),
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": false}}}"
    );
    assert_eq!(
        context.json("mcp list --no-connect --json")[0]["state"],
        "ready"
    );
}

#[test]
fn new_servers_go_to_the_file_that_is_there() {
    let check = |existing: &[&str], scope: &str, file: &str| {
        let context = TestContext::new();
        for name in existing {
            context.write(name, "");
        }
        let run = context.line(&format!("mcp add --scope {scope} a -- npx"));
        assert_eq!(run.code, 0, "{}", run.all());
        assert!(context.read(file).contains("npx"), "{existing:?} {scope}");
        assert_eq!(
            context.json("mcp list --no-connect --json")[0]["state"],
            "ready",
            "{existing:?} {scope}"
        );
    };
    check(&[], "user", "config/mcp.toml");
    check(&["config/mcp.json"], "user", "config/mcp.json");
    check(&["config/mcp.hcl"], "user", "config/mcp.hcl");
    check(
        &["config/mcp.hcl", "config/mcp.toml"],
        "user",
        "config/mcp.toml",
    );
    check(&[], "project", "project/.mcp.json");
    check(&["project/.mcp.toml"], "project", "project/.mcp.toml");
    check(
        &["project/switchboard.hcl"],
        "project",
        "project/switchboard.hcl",
    );
    check(
        &["project/.mcp.toml", "project/.mcp.json"],
        "project",
        "project/.mcp.json",
    );
    check(
        &["project/.mcp.toml"],
        "local",
        "project/.switchboard.local.toml",
    );
}

#[test]
fn a_flat_file_stays_flat() {
    let context = TestContext::new();
    context.write("project/.mcp.json", "{\"b\": {\"command\": \"x\"}}");
    assert_eq!(context.line("mcp add --scope project a -- npx").code, 0);
    let file: serde_json::Value = serde_json::from_str(&context.read("project/.mcp.json")).unwrap();
    assert_eq!(file["a"]["command"], "npx");
    assert_eq!(file["b"]["command"], "x");
}

#[test]
fn a_taken_name_needs_force() {
    let context = TestContext::new();
    assert_eq!(context.line("mcp add a -- npx one").code, 0);
    let run = context.line("mcp add a -- npx two");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("--force"), "{}", run.stderr);
    assert!(
        context
            .read("project/.switchboard.local.toml")
            .contains("one")
    );
    assert_eq!(context.line("mcp add --force a -- npx two").code, 0);
    assert!(
        !context
            .read("project/.switchboard.local.toml")
            .contains("one")
    );
    assert_eq!(
        context.json("mcp list --no-connect --json")[0]["state"],
        "ready",
        "the new entry is approved as well"
    );
}

#[test]
fn adding_approves_exactly_that_entry() {
    let context = TestContext::new();
    context.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"theirs\": {\"command\": \"npx\"}}}",
    );
    let run = context.line("mcp add --scope project mine -- npx");
    assert!(
        run.stderr
            .contains("approved for this project, because you added it yourself"),
        "{}",
        run.stderr
    );
    let list = context.json("mcp list --no-connect --json");
    assert_eq!(named(&list, "mine")["state"], "ready");
    assert_eq!(named(&list, "theirs")["state"], "untrusted");
}

#[test]
fn a_server_in_several_scopes_is_removed_from_the_one_that_is_named() {
    let context = TestContext::new();
    assert_eq!(context.line("mcp add --scope user a -- npx user").code, 0);
    assert_eq!(context.line("mcp add --scope local a -- npx local").code, 0);
    let run = context.line("mcp remove a");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--scope"), "{}", run.stderr);
    let run = context.line("mcp remove a --scope local");
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(
        run.stderr.contains("user scope still has a `a`"),
        "{}",
        run.stderr
    );
    assert_eq!(context.line("mcp remove a --scope local").code, 1);
    assert_eq!(context.line("mcp remove a").code, 0);
    let run = context.line("mcp list --no-connect --json");
    assert_eq!(run.server_names(), EMBEDDED);
}

#[test]
fn files_that_are_not_ours_are_not_changed() {
    let context = TestContext::new();
    context.write(
        "managed.toml",
        "mode = \"merge\"\n[mcp_servers.corp]\ncommand = \"npx\"\n",
    );
    context.write(
        "config/plugins/p/plugin.toml",
        "[mcp_servers.plugged]\ncommand = \"node\"\n",
    );
    context.write(
        "home/.claude/settings.json",
        "{\"mcpServers\": {\"claudes\": {\"command\": \"uvx\"}}}",
    );
    for (name, remedy) in [
        ("corp", "administrator"),
        ("plugged", "local scope"),
        ("claudes", "local scope"),
    ] {
        for verb in ["disable", "enable", "remove"] {
            let run = context.line(&format!("mcp {verb} {name}"));
            assert_eq!(run.code, 1, "{verb} {name}\n{}", run.all());
            assert!(run.stderr.contains(remedy), "{verb} {name}\n{}", run.stderr);
        }
    }
}

#[test]
fn a_broken_file_is_left_as_it_is() {
    let context = TestContext::new();
    let broken = "[mcp_servers.a]\ncommand = \n";
    context.write("config/mcp.toml", broken);
    for line in ["mcp add --scope user b -- npx", "mcp import --scope user"] {
        context.write(
            "home/.cursor/mcp.json",
            "{\"mcpServers\": {\"c\": {\"command\": \"npx\"}}}",
        );
        let run = context.line(line);
        assert_eq!(run.code, 3, "{line}\n{}", run.all());
        assert!(
            run.stderr.contains("config check"),
            "{line}\n{}",
            run.stderr
        );
        assert_eq!(context.read("config/mcp.toml"), broken);
    }
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_not_written_through() {
    let context = TestContext::new();
    context.write("home/.profile.toml", "");
    for (link, scope) in [
        (".switchboard.local.toml", "local"),
        (".mcp.json", "project"),
    ] {
        let path = context.path(&format!("project/{link}"));
        std::os::unix::fs::symlink(context.path("home/.profile.toml"), path).unwrap();
        let run = context.line(&format!("mcp add --scope {scope} a -- npx"));
        assert_eq!(run.code, 5, "{}", run.all());
        assert_eq!(context.read("home/.profile.toml"), "");
    }
}

#[test]
fn json_comes_from_the_command_line_or_from_standard_input() {
    let context = TestContext::new();
    let json = r#"{"type":"http","url":"https://mcp.example.com/mcp","oauth":{"clientId":"id","callbackPort":8080}}"#;
    let run = context.run(&["mcp", "add-json", "my-server", json, "--client-secret"]);
    assert_eq!(run.code, 0, "{}", run.all());
    assert_eq!(
        context.read("project/.switchboard.local.toml"),
        "[mcp_servers.my-server]\ntransport = \"http\"\nurl = \"https://mcp.example.com/mcp\"\noauth = { client_id = \"id\", client_secret_env_var = \"MCP_CLIENT_SECRET\", callback_port = 8080 }\n"
    );
    let mut command = context.command();
    command
        .args(["mcp", "add-json", "piped", "-", "--scope", "user"])
        .write_stdin("{\"command\": \"npx\"}");
    assert_eq!(Run::of(&command.output().unwrap()).code, 0);
    assert_eq!(
        context.read("config/mcp.toml"),
        "[mcp_servers.piped]\ncommand = \"npx\"\n"
    );
    for bad in ["[]", "{", "{}", "{\"command\": 7}"] {
        let run = context.run(&["mcp", "add-json", "bad", bad]);
        assert_eq!(run.code, 2, "{bad}\n{}", run.all());
        assert!(run.stderr.contains("hint:"), "{bad}\n{}", run.stderr);
    }
}

#[test]
fn the_local_file_should_be_ignored_by_git() {
    let context = TestContext::new();
    context.write("project/.gitignore", "target\n");
    let run = context.line("mcp add a -- npx");
    assert!(
        run.stderr
            .contains("add .switchboard.local.toml to .gitignore"),
        "{}",
        run.stderr
    );
    context.write("project/.gitignore", "target\n/.switchboard.local.toml\n");
    let run = context.line("mcp add b -- npx");
    assert!(!run.stderr.contains(".gitignore"), "{}", run.stderr);
}

#[test]
fn an_entry_without_effect_says_so() {
    let context = TestContext::new();
    assert_eq!(context.line("mcp add --scope local a -- npx local").code, 0);
    let run = context.line("mcp add --scope user a -- npx user");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr
            .contains("the entry has no effect: local scope has the same name"),
        "{}",
        run.stderr
    );
    let run = context.line("mcp add --scope user v -- npx ${NOT_SET}");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.contains("`NOT_SET` is not set"),
        "{}",
        run.stderr
    );
    context.write("managed.toml", "");
    let run = context.line("mcp add --scope user c -- npx");
    assert!(run.stderr.contains("enterprise file"), "{}", run.stderr);
}

#[test]
fn servers_that_are_not_a_table_are_not_edited() {
    for (servers, kind) in [("null", "null"), ("[]", "an array"), ("5", "an integer")] {
        let context = TestContext::new();
        let text = format!("{{\"mcpServers\": {servers}}}");
        context.write("project/.mcp.json", &text);
        let run = context.line("mcp add --scope project a b");
        assert_eq!(run.code, 3, "{}", run.stderr);
        let says = format!("has {kind} for its servers");
        assert!(run.stderr.contains(&says), "{}", run.stderr);
        assert_eq!(context.read("project/.mcp.json"), text);
    }
}
