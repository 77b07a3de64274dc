//! Tables on terminals of several widths, and the same tables in a pipe.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::Stdio;

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::servers::{log, machine};
use crate::support::TestContext;
use crate::terminal::pseudo_terminal;

const WIDTHS: [u16; 4] = [60, 80, 100, 200];

/// A new terminal: the side that types and reads, and the side of the program.
pub(crate) fn terminal(columns: u16) -> (File, File) {
    let (controller, name) = pseudo_terminal(columns);
    let program = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .unwrap();
    (controller, program)
}

/// What a line prints on a terminal with this many columns, without colour.
pub(crate) fn on_terminal(context: &TestContext, line: &str, columns: u16) -> String {
    let (mut output, terminal) = terminal(columns);
    let mut process = context.process();
    process
        .args(switchboard_config::words::split(line).unwrap())
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal);
    let mut child = process.spawn().unwrap();
    // Reading ends once no process has the terminal open, so this one must not.
    drop(process);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = output.read(&mut buffer)
        && read > 0
    {
        shown.extend_from_slice(&buffer[..read]);
    }
    child.wait().unwrap();
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

fn two_servers() -> TestContext {
    let context = machine(&[("good", "")]);
    let lists = json!({
        "prompts": [{"name": "greet", "description": "Greets a city in its own language, at length.",
            "arguments": [{"name": "city", "required": true}, {"name": "language"}]}],
        "templates": [{"uriTemplate": "notes://a/long/template/of/a/{resource}/in/a/folder", "name": "notes"}],
    });
    let changes = format!("{}.changes", log(&context, "good").display());
    std::fs::write(changes, lists.to_string()).unwrap();
    let mut file = context.read("config/mcp.toml");
    file.push_str(
        "[mcp_servers.broken-server-with-a-name]\n\
         command = \"a-program-that-is-not-installed-anywhere\"\n\
         [[permissions.rules]]\n\
         tool = \"mcp__good__*\"\n\
         action = \"allow\"\n\
         arguments = { text = \"a value that is long enough to make this column wide\" }\n",
    );
    context.write("config/mcp.toml", file);
    context
}

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() {
    let context = two_servers();
    assert_eq!(context.line("call good/echo text=x").code, 0);
    for line in [
        "mcp list --no-connect",
        "mcp list",
        "tools",
        "status",
        "status --connect",
        "audit",
        "pins list",
        "permissions list",
        "config path",
        "search echo",
        "resources",
        "prompts",
    ] {
        for columns in WIDTHS {
            let shown = on_terminal(&context, &format!("--quiet {line}"), columns);
            let is_wide = |line: &&str| line.width() > usize::from(columns);
            let wide: Vec<&str> = shown.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "{line} at {columns}:\n{shown}");
            assert!(!shown.trim().is_empty(), "{line} at {columns}:\n{shown}");
        }
    }
}

#[test]
fn the_reason_of_a_failure_stands_in_its_row() {
    let context = two_servers();
    for line in ["mcp list", "status --connect"] {
        for columns in [100, 200] {
            let shown = on_terminal(&context, line, columns);
            let row = shown.lines().find(|line| line.contains("failed"));
            let row = row.unwrap_or_else(|| panic!("{line} at {columns}:\n{shown}"));
            assert!(
                row.contains("broken-server") && row.contains("failed  "),
                "{shown}"
            );
            let reason = row.split_once("failed").unwrap().1.trim();
            assert!(reason.starts_with("the program"), "{shown}");
        }
    }
}

#[test]
fn a_pipe_gets_whole_cells_and_every_column() {
    let context = two_servers();
    let shown = context.line("mcp list --no-connect").stdout;
    let file = context.path("config/mcp.toml").display().to_string();
    assert!(shown.contains(&file), "{shown}");
    assert!(!shown.contains('…'), "{shown}");
    assert!(shown.contains("a-program-that-is-not-installed-anywhere"));
    let narrow = on_terminal(&context, "mcp list --no-connect", 60);
    assert!(!narrow.contains("SOURCE"), "{narrow}");
    assert!(narrow.contains("STATE"), "{narrow}");
}

#[test]
fn the_audit_log_shows_local_time() {
    let context = machine(&[("good", "")]);
    assert_eq!(context.line("call good/echo text=x").code, 0);
    let at = |zone: &str| {
        let mut command = context.command();
        let output = command.env("TZ", zone).arg("audit").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let row = text
            .lines()
            .find(|line| line.contains("good/echo"))
            .unwrap();
        row[..16].to_owned()
    };
    // A zone in POSIX notation: five hours and a half ahead of UTC.
    let (utc, ahead) = (at("UTC0"), at("XXX-5:30"));
    let minutes = |text: &str| {
        let hours: i64 = text[11..13].parse().unwrap();
        hours * 60 + text[14..16].parse::<i64>().unwrap()
    };
    let difference = (minutes(&ahead) - minutes(&utc)).rem_euclid(24 * 60);
    assert!((329..=331).contains(&difference), "{utc} {ahead}");
}
