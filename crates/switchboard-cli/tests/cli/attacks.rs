//! Attacks by servers and repositories, against the real program.

use serde_json::Value;

use crate::servers::PYTHON;
use crate::support::{Run, TestContext, workspace};

fn script(name: &str) -> String {
    let folder = workspace().join("crates/switchboard-cli/tests/cli");
    folder.join(name).display().to_string()
}

/// A machine with a server that attacks the terminal, and one that fails while doing so.
fn hostile() -> TestContext {
    let context = TestContext::new();
    let entry = |name: &str, more: &str| {
        format!(
            "[mcp_servers.{name}]\ncommand = {:?}\nargs = [{:?}{more}]\n",
            *PYTHON,
            script("hostile.py")
        )
    };
    let file = entry("evil", "") + &entry("broken", ", \"exit\"");
    context.write("config/mcp.toml", file);
    context
}

/// Whether a character can affect a terminal or mislead its reader.
fn is_raw(character: char) -> bool {
    (character.is_control() && character != '\n' && character != '\t')
        || switchboard_config::text::is_invisible(character)
}

#[track_caller]
fn assert_harmless(line: &str, run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        if let Some(at) = text.find(is_raw) {
            let start = text[..at]
                .char_indices()
                .rev()
                .nth(60)
                .map_or(0, |(at, _)| at);
            let context = text[start..].chars().take(100).collect::<String>();
            assert_eq!(context.escape_debug().to_string(), "", "{line}: {stream}");
        }
    }
}

#[test]
fn server_text_is_sanitized_in_output() {
    let context = hostile();
    let mut seen = String::new();
    for line in [
        "tools",
        "tools --all",
        "tools --no-connect --all",
        "tools --server evil --json",
        "tools --all --json",
        "call evil/plain",
        "call evil/plain --json",
        "call evil/plain kind=error",
        "call evil/plain kind=error --json",
        "call evil/plain kind=refused",
        "call evil/plain kind=refused --json",
        "call evil/plain kind=7 wrong=1",
        "call evil/show",
        "call evil/nothing",
        "prompts",
        "prompts --json",
        "prompt evil greet",
        "prompt evil greet --json",
        "prompt evil nothing",
        "resources",
        "resources --json",
        "read evil test://one --json",
        "status --connect",
        "status --connect --json",
        "logs evil",
        "logs evil --json",
        "mcp list",
        "mcp list --json",
        "mcp get evil",
        "mcp get evil --json",
        "doctor",
        "doctor --json",
        "doctor broken",
        "pins list",
        "pins list --json",
        "pins diff",
        "--verbose tools",
    ] {
        let run = context.line(line);
        assert_harmless(line, &run);
        if line.ends_with("--json") && !line.starts_with("logs") && !run.stdout.is_empty() {
            let parsed: Result<Value, _> = serde_json::from_str(&run.stdout);
            assert!(parsed.is_ok(), "{line}: {}", run.stdout);
        }
        seen += &run.all();
    }
    // The texts are present, in readable form.
    for text in [
        "description",
        "text",
        "contents",
        "message",
        "stderr",
        "refused",
        "title",
    ] {
        assert!(seen.contains(text), "{text}");
    }
    // JSON contains the server's text, escaped.
    let result = context.json("call evil/plain --json");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("\u{1b}]0;owned\u{7}") && text.contains('\u{202e}'),
        "{text:?}"
    );
}

/// Runs a line with all streams on a terminal, and returns everything written to it.
#[cfg(target_os = "linux")]
fn on_a_terminal(context: &TestContext, line: &str) -> String {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let name = name.into_string().unwrap();
    let terminal = || {
        let mut options = std::fs::File::options();
        Stdio::from(options.read(true).write(true).open(&name).unwrap())
    };
    let model = context.command();
    let variables = model
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut child = Command::new(model.get_program())
        .args(line.split(' '))
        .env_clear()
        .envs(variables)
        .env("TERM", "xterm-256color")
        .current_dir(context.path("project"))
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal())
        .spawn()
        .unwrap();
    let mut controller = std::fs::File::from(controller);
    let reading = std::thread::spawn(move || {
        let mut drawn = Vec::new();
        let mut buffer = [0; 4096];
        // Reading fails once the last process has closed the terminal.
        while let Ok(count @ 1..) = controller.read(&mut buffer) {
            drawn.extend_from_slice(&buffer[..count]);
        }
        drawn
    });
    child.wait().unwrap();
    String::from_utf8(reading.join().unwrap()).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn server_text_is_sanitized_on_a_terminal() {
    let context = hostile();
    for line in [
        "tools --all",
        "call evil/plain",
        "call evil/plain kind=error",
        "call evil/plain kind=refused",
        "read evil test://one",
        "prompt evil greet",
        "resources",
        "logs evil",
        "status --connect",
        "doctor",
    ] {
        let drawn = on_a_terminal(&context, line);
        assert!(!drawn.is_empty(), "{line}");
        // The only control sequences are our own colours and cursor movements.
        let mut rest = drawn.as_str();
        while let Some(at) = rest.find(is_raw) {
            let tail = &rest[at..];
            let own = tail.starts_with('\r')
                || tail.strip_prefix("\u{1b}[").is_some_and(|sequence| {
                    let end = sequence.find(|letter: char| letter.is_ascii_alphabetic());
                    end.is_some_and(|end| {
                        "mKAGJhl".contains(&sequence[end..=end]) && &sequence[..=end] != "2J"
                    })
                });
            assert!(
                own,
                "{line}: {:?}",
                tail.chars().take(60).collect::<String>()
            );
            rest = &tail[1..];
        }
    }
}

#[test]
fn text_that_no_screen_shows_sets_a_tool_aside() {
    let context = hostile();
    let tools = context.json("tools --server evil --all --json");
    let tools = tools.as_array().unwrap();
    let show = tools.iter().find(|tool| tool["tool"] == "show").unwrap();
    let reason = show["aside"].as_str().unwrap();
    assert!(reason.contains("tag characters"), "{reason}");
    let controlled = tools
        .iter()
        .find(|tool| tool["tool"] == "controlled")
        .unwrap();
    assert_eq!(controlled["flags"][0]["rule"], "hidden-characters");
    let marked = context.line("tools --server evil").stdout;
    assert!(
        marked.contains("suspicious, contains invisible characters"),
        "{marked}"
    );
}

/// A repository whose files start a program that leaves a mark.
fn repository(context: &TestContext, argument: &str) {
    let mark = context.path("mark").display().to_string();
    let code = format!("open({mark:?}, 'a').write({argument:?})");
    let entry =
        serde_json::json!({"mcpServers": {"helper": {"command": *PYTHON, "args": ["-c", code]}}});
    context.write("project/.mcp.json", entry.to_string());
}

const EVERYTHING: [&str; 9] = [
    "tools",
    "call helper/anything",
    "status --connect",
    "mcp list",
    "doctor",
    "resources",
    "prompts",
    "logs helper",
    "pins list",
];

#[test]
fn a_repository_starts_nothing_before_it_is_approved() {
    let context = TestContext::new();
    repository(&context, "one");
    for line in EVERYTHING {
        context.line(line);
        assert!(!context.exists("mark"), "{line}");
    }
    assert_eq!(context.line("trust approve helper --yes").code, 0);
    context.line("tools");
    // The server is started once per era tried.
    assert!(context.read("mark").starts_with("one"));
}

#[test]
fn an_entry_that_was_swapped_after_its_approval_starts_nothing() {
    let context = TestContext::new();
    repository(&context, "one");
    assert_eq!(context.line("trust approve helper --yes").code, 0);
    repository(&context, "two");
    for line in EVERYTHING {
        let run = context.line(line);
        assert!(!context.exists("mark"), "{line}\n{}", run.all());
    }
    let refused = context.line("call helper/anything");
    assert_eq!(refused.code, 5, "{}", refused.all());
}
