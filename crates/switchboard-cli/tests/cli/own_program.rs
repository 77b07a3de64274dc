//! Switchboard is never one of its own servers.

use crate::clients::done;
use crate::support::{Run, TestContext, named};

#[test]
fn switchboard_is_never_one_of_its_own_servers() {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"npx\"}}}",
    );
    done(&context.line("clients connect --yes"));
    let run = context.line("mcp import");
    done(&run);
    assert!(
        run.stderr
            .contains("switchboard is Switchboard itself and is left out"),
        "{}",
        run.stderr
    );
    let list = context.json("mcp list --no-connect --json");
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");

    let program = assert_cmd::cargo::cargo_bin("switchboard");
    let copy = context.path("bin/sb");
    std::os::unix::fs::symlink(&program, &copy).unwrap();
    for (command, args, word) in [
        (program.display().to_string(), "[\"connect\"]", "refused"),
        (
            copy.display().to_string(),
            "[\"gateway\", \"--stdio\"]",
            "refused",
        ),
        (
            "switchboard".to_owned(),
            "[\"--quiet\", \"connect\"]",
            "refused",
        ),
    ] {
        context.write(
            "config/mcp.toml",
            format!("[mcp_servers.loop]\ncommand = \"{command}\"\nargs = {args}\n"),
        );
        let status = context.json("status --json");
        let row = named(&status, "loop");
        assert_eq!(row["state"], word, "{row}");
        assert!(row.to_string().contains("connect to itself"), "{row}");
    }
}

#[test]
fn a_server_knows_that_switchboard_started_it() {
    let context = TestContext::new();
    let seen = context.path("seen").display().to_string();
    context.write(
        "config/mcp.toml",
        format!("[mcp_servers.a]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo $SWITCHBOARD_DEPTH > {seen}\"]\nenv = {{ SWITCHBOARD_DEPTH = \"0\" }}\n"),
    );
    context.line("mcp list");
    assert_eq!(context.read("seen"), "1\n");

    let serve = |depth: &str, config: bool| {
        let mut command = context.command();
        command.env("SWITCHBOARD_DEPTH", depth).arg("serve");
        if !config {
            command.env_remove("SWITCHBOARD_CONFIG_DIR");
        }
        let run = Run::of(&command.output().unwrap());
        (
            run.code == 3,
            run.stderr.contains("would connect to itself without end"),
        )
    };
    assert_eq!(serve("1", false), (true, true));
    assert_eq!(serve("4", true), (true, true));
    // A second Switchboard with a configuration of its own.
    assert!(!serve("1", true).1);
    assert!(!serve("0", false).1);
}
