//! What commands say in passing: warnings once a day, what is known without starting a server, earlier output.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::chat::Machine;
use crate::servers::{configure, log, machine};
use crate::support::{Run, TestContext};
use crate::tables::{on_terminal, terminal};
use crate::terminal::Terminal;

#[test]
fn a_bad_entry_warns_once_a_day() {
    let context = TestContext::new();
    let bad = "[mcp_servers.bad]\ncommand = \"x\"\nurl = \"https://example.org\"\n";
    context.write("config/mcp.toml", bad);
    let run = |words: &[&str]| Run::of(&context.later_today().args(words).output().unwrap());
    let warns = |words: &[&str]| run(words).stderr.contains("warning:");
    assert!(warns(&["permissions", "list"]));
    assert!(!warns(&["permissions", "list"]));
    // The row still has the reason, and those who ask get it.
    let listed = run(&["mcp", "list", "--no-connect"]);
    assert!(!listed.stderr.contains("warning:"), "{}", listed.stderr);
    assert!(listed.stdout.contains("invalid"), "{}", listed.stdout);
    assert!(warns(&["config", "path"]));
    assert!(warns(&["-v", "permissions", "list"]));
    // Another mistake is news.
    context.write("config/mcp.toml", "[mcp_servers.worse]\ncommand = 5\n");
    assert!(warns(&["permissions", "list"]));
    assert!(!warns(&["permissions", "list"]));
    // A day later it is said again.
    let mut shown: Value = serde_json::from_str(&context.read("state/warned.json")).unwrap();
    for at in shown.as_object_mut().unwrap().values_mut() {
        *at = json!(at.as_u64().unwrap() - 24 * 60 * 60);
    }
    context.write("state/warned.json", shown.to_string());
    assert!(warns(&["permissions", "list"]));
    // What cannot be read must not silence anything.
    context.write("state/warned.json", "nonsense");
    assert!(warns(&["permissions", "list"]));
}

#[test]
fn status_starts_nothing_and_knows_what_is_cached() {
    let context = machine(&[("alpha", ""), ("off", ";enabled = false")]);
    let fresh = context.json("status --json");
    assert_eq!(fresh[0]["state"], "ready");
    assert_eq!(fresh[0]["tools"], Value::Null);
    assert_eq!(fresh[1]["state"], "disabled");
    assert!(!log(&context, "alpha").exists(), "a server was started");
    assert_eq!(context.line("tools").code, 0);
    let lines = std::fs::read_to_string(log(&context, "alpha")).unwrap();
    let known = context.json("status --json");
    assert_eq!(known[0]["tools"], 9);
    assert!(
        known[0]["revision"].is_string() && known[0]["listedAt"].is_string(),
        "{known}"
    );
    assert_eq!(
        std::fs::read_to_string(log(&context, "alpha")).unwrap(),
        lines
    );
    let live = context.json("status --connect --json");
    assert_eq!(live[0]["state"], "connected");
}

#[test]
fn a_watched_status_is_replaced_in_place_and_starts_nothing() {
    for columns in [60, 200] {
        let machine = Machine::new(Vec::new());
        let context = &machine.context;
        configure(context, &[("alpha", "")]);
        let mut terminal = Terminal::start(&machine, &["status", "--watch"], columns, &[]);
        terminal.sees("refreshing every 2 s; press Ctrl-C to stop");
        let rows = |screen: &str| screen.matches("alpha").count();
        let screen = terminal.screen();
        assert!(screen.contains("ready") && rows(&screen) == 1, "{screen}");
        // A change of the file is shown with the next refresh, in the place of what was there.
        configure(context, &[("alpha", ";enabled = false"), ("beta", "")]);
        terminal.sees("beta");
        let screen = terminal.screen();
        assert!(screen.contains("disabled"), "{screen}");
        assert_eq!(
            (rows(&screen), screen.matches("NAME").count()),
            (1, 1),
            "{screen}"
        );
        assert!(
            screen
                .lines()
                .all(|line| line.chars().count() <= usize::from(columns))
        );
        terminal.press("\u{3}");
        assert_eq!(terminal.end().0, Some(130));
        assert!(!log(context, "alpha").exists() && !log(context, "beta").exists());
    }
}

#[test]
fn commands_agree_about_the_embedded_server() {
    let context = TestContext::new();
    for line in [
        "mcp list",
        "mcp list --no-connect",
        "status",
        "status --connect",
        "tools",
        "doctor",
    ] {
        let run = context.line(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.stderr);
        assert!(run.stdout.contains("workspace"), "{line}\n{}", run.stdout);
    }
    let listed = context.json("mcp list --json");
    assert_eq!(
        (&listed[0]["scope"], &listed[0]["tools"]),
        (&json!("embedded"), &json!(3))
    );
    // It goes as soon as a server is configured.
    let context = machine(&[("alpha", "")]);
    for line in ["mcp list --no-connect", "status", "tools"] {
        let run = context.line(line);
        assert!(!run.stdout.contains("workspace"), "{line}\n{}", run.stdout);
    }
}

#[test]
fn a_first_run_names_what_can_be_imported_in_one_line() {
    let context = TestContext::new();
    let entry = json!({"mcpServers": {"time": {"command": "npx", "args": ["time"]}}});
    context.write("home/.cursor/mcp.json", entry.to_string());
    for line in ["tools", "status", "mcp list"] {
        let run = context.line(line);
        let lines = run
            .stderr
            .lines()
            .filter(|line| line.contains("can be imported"));
        assert_eq!(lines.count(), 1, "{line}\n{}", run.stderr);
        assert!(run.stderr.contains("1 server of Cursor"), "{}", run.stderr);
    }
    assert!(!context.line("--quiet tools").stderr.contains("imported"));
    assert_eq!(context.line("mcp import").code, 0);
    assert!(!context.line("status").stderr.contains("can be imported"));
}

#[test]
fn logs_has_what_a_server_wrote_in_an_earlier_run() {
    let context = machine(&[("bad", "exit"), ("good", "")]);
    assert_eq!(context.line("tools").code, 0);
    let starts = || {
        std::fs::read_to_string(log(&context, "bad"))
            .unwrap()
            .matches("pid ")
            .count()
    };
    let before = starts();
    let run = context.line("logs bad");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.contains("no \\u{1b}[31mconfiguration found"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("run of 2"), "{}", run.stderr);
    assert_eq!(starts(), before, "the server was started");
    let json = context.line("logs bad --json --lines 1").stdout;
    assert_eq!(json.lines().count(), 1, "{json}");
    let line: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(line["stream"], "stderr");
    assert!(line["at"].is_string(), "{line}");
    // One that has written nothing is started, as before.
    assert_eq!(context.line("logs good").code, 0);
    // Following starts it again, after the earlier lines.
    let followed = context.line("logs bad --follow");
    assert_eq!(followed.code, 4, "{}", followed.stderr);
    assert!(starts() > before);
    assert!(followed.stdout.matches("configuration found").count() > 1);
}

#[test]
fn a_server_that_is_started_by_hand_says_what_it_is() {
    let context = TestContext::new();
    let (mut output, program) = terminal(80);
    let mut process = context.process();
    process
        .arg("serve")
        .env("TERM", "dumb")
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .stdin(program.try_clone().unwrap())
        .stdout(program.try_clone().unwrap())
        .stderr(program);
    let mut child = process.spawn().unwrap();
    drop(process);
    let mut shown = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&shown).contains("press Ctrl-C to stop") {
        let read = output.read(&mut buffer).unwrap_or(0);
        assert!(read > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&buffer[..read]);
    }
    let text = String::from_utf8_lossy(&shown).into_owned();
    assert!(
        text.contains("this is an MCP server for other programs"),
        "{text}"
    );
    // The end of the input ends it.
    output.write_all(&[4]).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_has_topics_and_man_pages() {
    let context = TestContext::new();
    for topic in ["scopes", "trust", "rules", "transports", "completion"] {
        let run = context.line(&format!("help {topic}"));
        assert_eq!(run.code, 0, "{topic}");
        assert!(run.stdout.contains("switchboard "), "{topic}");
        assert!(
            run.stdout.lines().all(|line| line.chars().count() <= 80),
            "{topic}"
        );
        assert!(context.line("--help").stdout.contains(topic), "{topic}");
    }
    assert!(
        context
            .line("help mcp add")
            .stdout
            .contains("Usage: switchboard mcp add")
    );
    let unknown = context.line("help scops");
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("did you mean `scopes`?"),
        "{}",
        unknown.stderr
    );
    let folder = context.path("man");
    let run = context.run(&["help", "--man", folder.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for page in [
        "switchboard.1",
        "switchboard-call.1",
        "switchboard-mcp-add.1",
    ] {
        let text = context.read(&format!("man/{page}"));
        assert!(
            text.contains(".SH NAME") && text.contains(".TH"),
            "{page}\n{text}"
        );
    }
    assert!(
        context
            .read("man/switchboard-call.1")
            .contains("timezone=UTC")
    );
    // The summary on a terminal is one screen that fits.
    let shown = on_terminal(&context, "--help", 80);
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
}
