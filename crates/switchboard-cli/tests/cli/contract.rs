//! The contract with scripts: streams, exit codes, quiet, colour.

use std::process::Stdio;

use crate::support::{Run, TestContext};

#[test]
fn exit_codes_are_those_of_the_contract() {
    let context = TestContext::new();
    context.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"npx\"}}}",
    );
    context.write("broken.toml", "x =");
    for (line, code) in [
        ("version", 0),
        ("--help", 0),
        ("mcp get nobody", 1),
        ("mcp list --nonsense", 2),
        ("--cwd nowhere mcp list", 2),
        ("--config ../broken.toml config check", 3),
        ("trust approve", 5),
    ] {
        let run = context.line(line);
        assert_eq!(run.code, code, "{line}\n{}", run.all());
        if code != 0 && code != 3 {
            assert_eq!(run.stdout, "", "{line}");
            assert!(run.stderr.contains("error:"), "{line}\n{}", run.stderr);
        }
    }
}

#[test]
fn quiet_says_nothing_but_errors() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nnonsense = 1\n",
    );
    for line in [
        "mcp list --quiet",
        "config show --quiet",
        "tools --quiet",
        "mcp add --quiet b -- npx",
        "config check --quiet",
        "trust list --quiet",
        "mcp disable b --quiet",
        "mcp remove b --quiet",
    ] {
        let run = context.line(line);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{line}");
    }
    assert_ne!(context.line("mcp get nobody --quiet").stderr, "");
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nnonsense = 1\n",
    );
    for line in [
        "config show",
        "config check",
        "config path",
        "config schema",
        "mcp list",
        "mcp get a",
        "trust list",
        "trust diff",
        "trust approve",
        "trust revoke",
        "tools",
        "version",
        "mcp import",
        "completions bash",
        "mcp disable a",
        "mcp enable a",
        "mcp add-json b '{\"command\":\"npx\"}'",
        "mcp remove b",
    ] {
        let run = context.line(&format!("--json {line}"));
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        let document: Result<serde_json::Value, _> = serde_json::from_str(&run.stdout);
        assert!(document.is_ok(), "{line}\n{}", run.stdout);
    }
}

#[test]
fn colour_is_used_only_when_wanted() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nnonsense = 1\n",
    );
    let colored = |arguments: &[&str], variable: Option<&str>| {
        let mut command = context.command();
        command.args(arguments);
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        let run = Run::of(&command.output().unwrap());
        (run.stdout.contains('\u{1b}'), run.stderr.contains('\u{1b}'))
    };
    assert_eq!(
        colored(&["mcp", "list"], None),
        (false, false),
        "no terminal"
    );
    assert_eq!(
        colored(&["mcp", "list", "--color", "always"], None),
        (true, true)
    );
    assert_eq!(
        colored(&["mcp", "list", "--color", "always"], Some("NO_COLOR")),
        (true, true),
        "a flag wins"
    );
    assert_eq!(
        colored(&["mcp", "list", "--color", "never"], None),
        (false, false)
    );
    assert!(!colored(&["mcp", "list", "--json", "--color", "always"], None).0);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let context = TestContext::new();
    let program = assert_cmd::cargo::cargo_bin("switchboard");
    let mut child = std::process::Command::new(program)
        .args(["completions", "zsh"])
        .env_clear()
        .env("HOME", context.path("home"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn folders_come_from_the_environment() {
    let context = TestContext::new();
    let found = |variables: &[(&str, &str)]| {
        let mut command = context.command();
        command
            .env_remove("SWITCHBOARD_CONFIG_DIR")
            .env_remove("SWITCHBOARD_STATE_DIR");
        for (name, folder) in variables {
            command.env(name, context.path(folder));
        }
        let run = Run::of(&command.args(["config", "path", "--json"]).output().unwrap());
        context.filtered(&run.stdout)
    };
    let plain = found(&[]);
    assert!(
        plain.contains("[ROOT]/home/.config/switchboard/mcp.toml"),
        "{plain}"
    );
    assert!(
        plain.contains("[ROOT]/home/.local/state/switchboard/dynamic.toml"),
        "{plain}"
    );
    let shared = found(&[("XDG_CONFIG_HOME", "xc"), ("XDG_STATE_HOME", "xs")]);
    assert!(
        shared.contains("[ROOT]/xc/switchboard/mcp.toml"),
        "{shared}"
    );
    assert!(
        shared.contains("[ROOT]/xs/switchboard/dynamic.toml"),
        "{shared}"
    );
    let own = found(&[("XDG_CONFIG_HOME", "xc"), ("SWITCHBOARD_CONFIG_DIR", "own")]);
    assert!(own.contains("[ROOT]/own/mcp.toml"), "{own}");

    let mut relative = context.command();
    relative
        .env("SWITCHBOARD_CONFIG_DIR", "relative")
        .args(["config", "path"]);
    assert_eq!(Run::of(&relative.output().unwrap()).code, 2);
    let mut homeless = context.command();
    homeless.env("HOME", "relative").args(["config", "path"]);
    let run = Run::of(&homeless.output().unwrap());
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("set HOME"), "{}", run.stderr);
}

#[test]
fn errors_set_the_exit_code_even_if_the_pipe_is_closed() {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = 5\n".repeat(2_000),
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = std::process::Command::new(context.command().get_program())
        .args(["config", "check", "--config"])
        .arg(context.path("config/mcp.toml"))
        .env("HOME", context.path("home"))
        .env("SWITCHBOARD_CONFIG_DIR", context.path("config"))
        .env("SWITCHBOARD_STATE_DIR", context.path("state"))
        .stdout(writer)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
}

#[cfg(unix)]
#[test]
fn a_missing_current_folder_is_reported() {
    let context = TestContext::new();
    let gone = context.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args([
            "-c",
            "cd \"$1\" && rmdir \"$1\" && exec \"$2\" mcp list",
            "sh",
        ])
        .arg(&gone)
        .arg(context.command().get_program())
        .env("HOME", context.path("home"));
    let run = Run::of(&shell.output().unwrap());
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("the current folder does not exist"),
        "{}",
        run.stderr
    );
}
