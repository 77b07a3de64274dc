//! Resources, prompts, logs and the doctor, for people and scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Run, TestContext};

/// A project with a text and a picture, served by the embedded server.
fn scene() -> TestContext {
    let context = TestContext::new();
    context.write("project/note.txt", "hello\n");
    context.write("project/picture.png", b"\x89PNG\x00\x01");
    context
}

/// A project whose servers fail in different ways.
#[cfg(unix)]
fn patients() -> TestContext {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        r#"
[mcp_servers.ends]
command = "/bin/sh"
args = ["-c", "printf 'oh \\033[31mno\\nError: API_TOKEN environment variable is required\\n' >&2; exit 1"]

[mcp_servers.missing]
command = "no-such-program"

[mcp_servers.nobody]
url = "http://127.0.0.1:9/mcp"

[mcp_servers.off]
command = "npx"
enabled = false

[mcp_servers.token]
url = "http://127.0.0.1:9/mcp"
bearer_token_env_var = "NO_SUCH_TOKEN"

[mcp_servers.typo]
comand = "npx"

[mcp_servers.workspace]
transport = "sdk"
"#,
    );
    context
}

fn uri(context: &TestContext, file: &str) -> String {
    format!(
        "file://{}",
        context.path(&format!("project/{file}")).display()
    )
}

/// Runs lines and compares their output, without times.
fn check(name: &str, context: &TestContext, lines: &[&str]) {
    let mut shown = String::new();
    for line in lines {
        let typed = context.filtered(line);
        let _ = writeln!(shown, "$ switchboard {typed}\n{}", context.snapshot(line));
    }
    insta::with_settings!({filters => vec![
        (r" +[0-9.]+ (ms|s)\b", " [TIME]"),
        // The width of these columns depends on the length of the temporary folder's name.
        (r" +(NAME|TYPE)\b", "  $1"),
        (r#""milliseconds": [0-9.]+"#, r#""milliseconds": "[TIME]""#),
    ]}, {
        insta::assert_snapshot!(name, shown);
    });
}

#[test]
fn lists() {
    check(
        "lists",
        &scene(),
        &[
            "resources",
            "resources --json",
            "resources --server workspac",
            "prompts",
            "prompts --json",
        ],
    );
}

#[test]
fn reading_and_prompting() {
    let context = scene();
    let note = uri(&context, "note.txt");
    check(
        "reading_and_prompting",
        &context,
        &[
            &format!("read workspace {note}"),
            &format!("read workspace {note} --json"),
            "read workspace note.txt",
            "read workspac note.txt",
            "prompt workspace explain_file path=note.txt",
            "prompt workspace explain_file path=note.txt --json",
            "prompt workspace explain_file",
            "prompt workspace explain_file pth=note.txt",
            "prompt workspace explain_file note.txt",
            "prompt workspace explain_fil",
            "logs workspace",
        ],
    );
}

#[test]
fn a_pipe_gets_a_resource_byte_by_byte() {
    let context = scene();
    let picture = uri(&context, "picture.png");
    let output = context
        .command()
        .args(["read", "workspace", &picture])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"\x89PNG\x00\x01");
    let run = context.run(&["read", "workspace", &picture, "--output", "copy.png"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    let copy = std::fs::read(context.path("project/copy.png")).unwrap();
    assert_eq!(copy, b"\x89PNG\x00\x01");
}

#[test]
fn a_healthy_server() {
    check(
        "a_healthy_server",
        &scene(),
        &["doctor", "doctor --color always", "doctor --json"],
    );
}

#[cfg(unix)]
#[test]
fn servers_that_fail() {
    let context = patients();
    check(
        "servers_that_fail",
        &context,
        &[
            "doctor",
            "doctor missing --json",
            "doctor off",
            "doctor workspac",
        ],
    );
}

#[cfg(unix)]
#[test]
fn the_exit_code_depends_on_the_fault() {
    let context = patients();
    for (server, code) in [
        ("workspace", 0),
        ("off", 1),
        ("token", 3),
        ("typo", 3),
        ("ends", 4),
        ("missing", 4),
        ("nobody", 4),
    ] {
        let run = context.run(&["doctor", server, "--json"]);
        let found: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((run.code, &found[0]["server"]), (code, &json!(server)));
        let findings = found[0]["findings"].as_array().unwrap();
        assert_eq!(findings.is_empty(), server == "workspace", "{found}");
        let has_remedy = |finding: &Value| finding["remedy"] != "";
        assert!(findings.iter().all(has_remedy), "{found}");
    }
    assert_eq!(context.run(&["doctor"]).code, 3);
}

#[cfg(unix)]
#[test]
fn logs_are_what_the_server_wrote_made_safe() {
    let context = patients();
    let Run { code, stdout, .. } = context.run(&["logs", "ends"]);
    assert_eq!(code, 4);
    assert!(stdout.contains("oh \\u{1b}[31mno\n"), "{stdout}");
    // It has written something, so it is not started again.
    let Run { code, stdout, .. } = context.run(&["logs", "ends", "--json"]);
    assert_eq!(code, 0);
    let mut first: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert!(first.as_object_mut().unwrap().remove("at").is_some());
    assert_eq!(
        first,
        json!({"stream": "stderr", "level": null, "logger": null, "text": "oh \u{1b}[31mno"})
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_text_made_safe_and_no_other_bytes() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let context = scene();
    context.write("project/escape.txt", "a\u{202e}b\u{1b}[2Jc\n");
    for (file, code, expected) in [
        ("escape.txt", 0, "a\\u{202e}b\\u{1b}[2Jc\r\n"),
        ("picture.png", 2, ""),
    ] {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = std::fs::File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let output = Command::new(assert_cmd::cargo::cargo_bin("switchboard"))
            .args(["read", "workspace", &uri(&context, file)])
            .env_clear()
            .env("HOME", context.path("home"))
            .env("SWITCHBOARD_CONFIG_DIR", context.path("config"))
            .env("SWITCHBOARD_STATE_DIR", context.path("state"))
            .env("SWITCHBOARD_MANAGED_FILE", context.path("managed.toml"))
            .env("NO_COLOR", "1")
            .current_dir(context.path("project"))
            .stdout(Stdio::from(terminal))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        // Once no process has the terminal open, reading returns the remaining output and then fails.
        let mut shown = Vec::new();
        let _ = std::fs::File::from(controller).read_to_end(&mut shown);
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
        let refused = stderr.contains("the resource is binary (application/octet-stream, 6 B)");
        assert_eq!(refused, code == 2, "{stderr}");
    }
}
