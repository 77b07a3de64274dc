//! Third-party servers in a sandbox, through the real program: they start and answer in every mode.
//!
//! `cargo xtask test` installs them. A test fails if one is missing.

use switchboard_test::interop::{self, Launch};

use crate::bash_sandbox::UNSHARE;
use crate::sandbox::{HAS_LANDLOCK, without_call};
use crate::support::{Run, TestContext};

/// Calls a server's tool in every mode, with and without mounts.
#[track_caller]
fn check(launch: &Launch, keys: &str, tool: &[&str], expected: &str) {
    if !*HAS_LANDLOCK {
        return;
    }
    for mode in ["own-files", "workspace", "read-only"] {
        let context = TestContext::new();
        context.write(
            "config/mcp.toml",
            format!(
                "[mcp_servers.real]\ncommand = {:?}\nargs = {:?}\nsandbox = {mode:?}\n{keys}",
                launch.program.display().to_string(),
                launch.arguments,
            ),
        );
        for can_mount in [true, false] {
            let mut command = context.command();
            // The real `PATH`, where npx finds its node.
            command.env("PATH", std::env::var_os("PATH").unwrap());
            command.arg("call").args(tool);
            let run = if can_mount {
                Run::of(&command.output().unwrap())
            } else {
                without_call(command, UNSHARE)
            };
            let case = format!("{mode}, mounts: {can_mount}\n{}", run.all());
            assert_eq!(run.code, 0, "{case}");
            assert!(run.stdout.contains(expected), "{case}");
        }
    }
}

#[test]
fn a_server_on_node_answers_in_every_mode() {
    let launch = interop::everything().unwrap();
    check(&launch, "", &["real/echo", "message=hello"], "Echo: hello");
}

#[test]
fn a_server_that_npx_starts_answers_in_every_mode() {
    let launch = Launch {
        program: "npx".into(),
        arguments: ["--offline", "mcp-server-everything", "stdio"]
            .map(str::to_owned)
            .to_vec(),
    };
    // npx runs the package installed in the folder.
    let installed = interop::everything().unwrap();
    let script = std::path::Path::new(&installed.arguments[0]);
    let folder = script
        .ancestors()
        .find(|folder| folder.join("package-lock.json").exists())
        .unwrap();
    let cwd = format!("cwd = {:?}\n", folder.display().to_string());
    check(
        &launch,
        &cwd,
        &["real/echo", "message=hello"],
        "Echo: hello",
    );
}

#[test]
fn a_server_on_python_answers_in_every_mode() {
    let launch = interop::time().unwrap();
    let tool = ["real/get_current_time", "timezone=UTC"];
    check(&launch, "", &tool, "\"timezone\": \"UTC\"");
}
