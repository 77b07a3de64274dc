//! Command lines as people guess them.

use serde_json::json;

use crate::servers::{PYTHON, log, machine, received, script};
use crate::support::TestContext;

/// A machine with a server whose tools and prompts have arguments.
fn clock() -> TestContext {
    let context = machine(&[("clock", "")]);
    let changes = format!("{}.changes", log(&context, "clock").display());
    let lists = json!({
            "tools": [{
                "name": "now",
                "description": "Tells the time.\nIn any zone.",
                "inputSchema": {
                    "type": "object",
                    "required": ["zone"],
                    "properties": {
                        "zone": {"type": "string", "description": "IANA name"},
                        "style": {"enum": ["short", "long"], "default": "short"},
                    },
                    "additionalProperties": false,
                },
            }],
            "prompts": [{"name": "greet", "arguments": [{"name": "city", "required": true}]}],
    });
    std::fs::write(changes, lists.to_string()).unwrap();
    context
}

#[test]
fn tools_takes_a_server_or_a_tool() {
    let context = clock();
    let server = context.line("tools clock");
    assert_eq!(server.code, 0, "{}", server.stderr);
    assert!(
        server.stdout.contains("mcp__clock__now"),
        "{}",
        server.stdout
    );
    let tool = context.line("tools clock/now");
    assert_eq!(tool.code, 0, "{}", tool.stderr);
    for part in [
        "clock/now  mcp__clock__now",
        "In any zone.",
        "now(zone: string, style?: \"short\" | \"long\")",
        "required       IANA name",
        "default short",
        "switchboard call clock/now zone=TEXT",
    ] {
        assert!(tool.stdout.contains(part), "{part}\n{}", tool.stdout);
    }
    let bare = context.line("tools now --no-connect");
    assert_eq!(bare.stdout, tool.stdout);
    let json = context.json("tools clock/now --json");
    assert_eq!(json[0]["tool"], "now");
    assert_eq!(json.as_array().unwrap().len(), 1);
    let unknown = context.line("tools clok");
    assert_eq!(unknown.code, 1);
    assert!(
        unknown
            .stderr
            .contains("no server and no tool named `clok`")
    );
    assert!(unknown.stderr.contains("did you mean `clock`?"));
}

#[test]
fn call_takes_arguments_in_every_form() {
    let context = machine(&[("alpha", "")]);
    for arguments in [
        "alpha/echo text=hi",
        "echo text=hi",
        "alpha/echo --text hi",
        "alpha/echo --text=hi --json",
        "alpha/echo text:hi",
        "--timeout 20 alpha/echo --text hi",
        "alpha/echo --text hi --timeout 20",
        "alpha/echo '{\"text\": \"hi\"}'",
    ] {
        let run = context.line(&format!("call {arguments}"));
        assert_eq!(run.code, 0, "{arguments}\n{}", run.stderr);
        assert!(run.stdout.contains("hi"), "{arguments}\n{}", run.stdout);
    }
    let wrong = context.line("call alpha/echo txet=hi");
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("no argument `txet`"),
        "{}",
        wrong.stderr
    );
    assert!(
        wrong.stderr.contains("did you mean `text`?"),
        "{}",
        wrong.stderr
    );
    let flag = context.line("call alpha/echo --timout 5");
    assert_eq!(flag.code, 2);
    assert!(
        flag.stderr.contains("did you mean `--timeout`?"),
        "{}",
        flag.stderr
    );
}

#[test]
fn a_name_that_several_servers_have_is_not_guessed() {
    let context = machine(&[("alpha", ""), ("beta", "")]);
    let run = context.line("call echo text=hi");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(
        run.stderr.contains("\"echo\" is ambiguous"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("mcp__alpha__echo, mcp__beta__echo"));
}

#[test]
fn a_dry_run_calls_nothing() {
    let context = machine(&[("alpha", "")]);
    let run = context.line("call alpha/echo text=hi times=2 --dry-run");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for part in ["would call alpha/echo", "\"times\": 2", "allowed: "] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
    assert!(
        !received(&context, "alpha")
            .iter()
            .any(|line| line.starts_with("tools/call"))
    );
    let json = context.json("call alpha/echo text=hi --dry-run --json");
    assert_eq!(json["decision"], "allow");
    assert_eq!(json["arguments"], json!({"text": "hi"}));
    assert_eq!(context.line("call alpha/echo --dry-run").code, 2);
    assert_eq!(context.line("permissions deny alpha/echo").code, 0);
    let denied = context.line("call alpha/echo text=hi --dry-run");
    assert_eq!(denied.code, 5, "{}", denied.stderr);
    assert!(denied.stdout.contains("denied: "), "{}", denied.stdout);
}

#[test]
fn a_server_that_is_not_configured_is_called_once() {
    let context = TestContext::new();
    let command = format!(
        "{} {} {}",
        *PYTHON,
        script().display(),
        log(&context, "x").display()
    );
    let run = context.run(&["call", "--command", &command, "echo", "text=hi"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, "hi\n");
    assert!(!context.exists("config/mcp.toml"));
    let none = context.run(&["call", "https://127.0.0.1:9/mcp"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("no tool after the URL"),
        "{}",
        none.stderr
    );
    let closed = context.run(&["call", "http://127.0.0.1:9/mcp", "echo"]);
    assert_eq!(closed.code, 4, "{}", closed.stderr);
    // The machine's lists apply to it.
    context.write("managed.toml", "mode = \"exclusive\"\n");
    let refused = context.run(&["call", "--command", &command, "echo", "text=hi"]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
}

#[test]
fn prompt_takes_one_word_or_two() {
    let context = clock();
    for line in [
        "prompt clock/greet city=Rome",
        "prompt clock greet city=Rome",
        "prompt clock/greet --city Rome",
        "prompt clock/greet --city=Rome --json",
    ] {
        let run = context.line(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.stderr);
        assert!(run.stdout.contains("filled in"), "{}", run.stdout);
    }
    let wrong = context.line("prompt clock/greet citty=Rome");
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("did you mean `city`?"),
        "{}",
        wrong.stderr
    );
    assert_eq!(context.line("prompt clock").code, 2);
    assert_eq!(context.line("prompt nobody/greet").code, 1);
}

#[test]
fn rules_are_added_and_removed_with_comments_kept() {
    let context = machine(&[("alpha", "")]);
    let before = format!("# mine\n{}", context.read("config/mcp.toml"));
    context.write("config/mcp.toml", &before);
    assert_eq!(context.line("tools").code, 0);
    for (line, rule) in [
        ("permissions allow alpha/echo", "mcp__alpha__echo"),
        ("permissions ask alpha", "mcp__alpha__*"),
        ("permissions deny fail", "mcp__alpha__fail"),
        ("permissions deny 'Bash(rm:*)'", "Bash(rm:*)"),
    ] {
        let run = context.line(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.stderr);
        assert!(context.read("config/mcp.toml").contains(rule), "{line}");
    }
    let explained = context.json("permissions explain alpha/echo text=hi --json");
    assert_eq!(explained["decision"], "ask");
    assert_eq!(
        context.json("permissions explain fail --json")["decision"],
        "deny"
    );
    let again = context.line("permissions allow alpha/echo");
    assert!(
        again.stderr.contains("has this rule already"),
        "{}",
        again.stderr
    );
    let weaker = context.line("permissions allow fail");
    assert!(
        weaker
            .stderr
            .contains("a rule with the action deny still applies")
    );
    for rule in ["alpha/echo", "alpha", "fail", "'Bash(rm:*)'"] {
        let run = context.line(&format!("permissions remove {rule}"));
        assert_eq!(run.code, 0, "{rule}\n{}", run.stderr);
    }
    assert_eq!(
        context.read("config/mcp.toml").trim_end(),
        before.trim_end()
    );
    let gone = context.line("permissions remove alpha/echo");
    assert_eq!(gone.code, 1);
    assert!(
        gone.stderr.contains("your files have no rule"),
        "{}",
        gone.stderr
    );
    let local = context.line("permissions deny alpha/die --scope local --json");
    assert_eq!(local.code, 0, "{}", local.stderr);
    assert!(
        context
            .read("project/.switchboard.local.toml")
            .contains("mcp__alpha__die")
    );
}

#[test]
fn a_server_is_renamed_edited_and_tested() {
    let context = machine(&[("alpha", "")]);
    let before = format!(
        "# mine\n{}\n[mcp_servers.alpha.env] # more\nA = \"b\"\n",
        context.read("config/mcp.toml")
    );
    context.write("config/mcp.toml", &before);
    let run = context.line("mcp rename alpha gamma");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected = before.replace("mcp_servers.alpha", "mcp_servers.gamma");
    assert_eq!(context.read("config/mcp.toml"), expected);
    assert_eq!(context.line("mcp rename alpha beta").code, 1);
    let taken = context.line("mcp rename gamma gamma");
    assert_eq!(taken.code, 1);
    assert!(
        taken
            .stderr
            .contains("a server named `gamma` exists already")
    );
    assert_eq!(context.line("mcp test gamma").code, 0);
    assert_eq!(context.line("mcp ls --no-connect").code, 0);
    context.write(
        "bin/editor",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HOME/edited\"\n",
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(context.path("bin/editor"), mode).unwrap();
        let edit = |line: &str| {
            let words = switchboard_config::words::split(line).unwrap();
            let editor = format!("{} --wait", context.path("bin/editor").display());
            let output = context.command().env("EDITOR", editor).args(words).output();
            assert!(output.unwrap().status.success(), "{line}");
            context.read("home/edited")
        };
        let file = context.path("config/mcp.toml").display().to_string();
        assert_eq!(edit("mcp edit gamma"), format!("--wait\n{file}\n"));
        assert_eq!(edit("config edit"), format!("--wait\n{file}\n"));
    }
    assert_eq!(context.line("mcp rm gamma").code, 0);
}

#[test]
fn settings_and_keys_are_set_and_checked() {
    let context = machine(&[("alpha", "")]);
    let before = context.read("config/mcp.toml");
    for (line, text) in [
        ("config set tool_timeout_sec 120", "tool_timeout_sec = 120"),
        (
            "config set tool_search auto:20",
            "tool_search = \"auto:20\"",
        ),
        ("config set alpha.enabled false", "enabled = false"),
        ("config set alpha.env.LEVEL 5", "LEVEL = \"5\""),
    ] {
        let run = context.line(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.stderr);
        assert!(
            context.read("config/mcp.toml").contains(text),
            "{line}\n{}",
            context.read("config/mcp.toml")
        );
    }
    assert!(
        context
            .read("config/mcp.toml")
            .starts_with(before.lines().next().unwrap())
    );
    let after = context.read("config/mcp.toml");
    for (line, code, part) in [
        ("config set default_permission maybe", 3, "was not changed"),
        ("config set alpha.comand x", 3, "was not changed"),
        (
            "config set tool_timeot_sec 1",
            2,
            "did you mean `tool_timeout_sec`?",
        ),
    ] {
        let run = context.line(line);
        assert_eq!(run.code, code, "{line}\n{}", run.stderr);
        assert!(run.stderr.contains(part), "{line}\n{}", run.stderr);
    }
    assert_eq!(context.read("config/mcp.toml"), after);
}
