//! Completion in real shells: what the cache has, and nothing that a server's name could do.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::servers::{log, machine};
use crate::support::{Run, TestContext};
use crate::tables::terminal;

/// A name that a hostile server chooses: harmless only if the shell takes it as text.
const HOSTILE: &str = "x$(touch pwned);`touch pwned`'\"&|> pwned #";

/// A machine whose cache has tools, prompts and names of all kinds.
fn cached() -> TestContext {
    let context = machine(&[("clock", "")]);
    let changes = format!("{}.changes", log(&context, "clock").display());
    let lists = json!({
        "without": ["echo", "fail", "picture", "reject", "paint", "wait", "die", "data", "hidden"],
        "tools": [
            {
                "name": "now",
                "description": "Tells the time.",
                "inputSchema": {"type": "object", "properties": {
                    "zone": {"type": "string", "enum": ["UTC", "Europe/Berlin"]},
                    "seconds": {"type": "boolean"},
                }},
            },
            {"name": HOSTILE, "inputSchema": {"type": "object"}},
            {"name": "line\nbreak\u{1b}[2J", "inputSchema": {"type": "object"}},
        ],
        "prompts": [{"name": "greet", "arguments": [{"name": "city"}]}],
        "templates": [],
        "resources": [{"uri": "notes://today", "name": "today"}, {"uri": "x://y\nz", "name": "z"}],
    });
    std::fs::write(changes, lists.to_string()).unwrap();
    assert_eq!(context.line("tools").code, 0);
    assert_eq!(context.line("prompts").code, 0);
    assert_eq!(context.line("resources").code, 0);
    context
}

/// What the program answers to a shell.
fn answers(context: &TestContext, words: &[&str]) -> Vec<String> {
    let output = context
        .command()
        .arg("__complete")
        .args(words)
        .output()
        .unwrap();
    let run = Run::of(&output);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{words:?}");
    run.stdout.lines().map(str::to_owned).collect()
}

fn values(context: &TestContext, words: &[&str]) -> Vec<String> {
    let words: Vec<&str> = ["fish", "switchboard"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let value = |line: String| line.split('\t').next().unwrap().to_owned();
    answers(context, &words).into_iter().map(value).collect()
}

/// Every file below a folder, with its size.
fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path, entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

#[test]
fn everything_is_completed_from_the_cache_without_a_server() {
    let context = cached();
    let started = std::fs::read_to_string(log(&context, "clock")).unwrap();
    let before = files(&context.path("state"));
    for (words, expected) in [
        (&["call", "cl"][..], &["clock/"][..]),
        (&["call", "clock/n"], &["clock/now"]),
        (&["call", "clock/now", ""], &["seconds=", "zone="]),
        (&["call", "clock/now", "zone=E"], &["zone=Europe/Berlin"]),
        (&["call", "clock/now", "--zo"], &["--zone="]),
        (&["call", "clock/now", "--zone", "U"], &["UTC"]),
        (&["call", "clock/now", "zone=UTC", "se"], &["seconds="]),
        (&["call", "clock/now", "seconds=f"], &["seconds=false"]),
        (&["tools", "clo"], &["clock", "clock/"]),
        (&["tools", "--server", "c"], &["clock"]),
        (&["prompt", "clock/"], &["clock/greet"]),
        (&["prompt", "clock/greet", ""], &["city="]),
        (&["read", "clock", ""], &["notes://today"]),
        (&["mcp", "rm", ""], &["clock"]),
        (&["mcp", "enable", "c"], &["clock"]),
        (&["permissions", "explain", "clock/now", "z"], &["zone="]),
        (&["--cwd", "/", "--no-project", "doctor", "c"], &["clock"]),
        (&["help", "sc"], &["scopes"]),
        (&["nonsense", ""], &[]),
    ] {
        assert_eq!(values(&context, words), expected, "{words:?}");
    }
    let after = std::fs::read_to_string(log(&context, "clock")).unwrap();
    assert_eq!(started, after, "a server was started");
    assert_eq!(before, files(&context.path("state")), "a file was written");
}

#[test]
fn completion_survives_files_that_cannot_be_read() {
    let context = TestContext::new();
    context.write("config/mcp.toml", "[mcp_servers\n");
    context.write("state/state.sqlite", "not a database");
    context.write("state/trust.json", "{");
    assert_eq!(values(&context, &["call", "work"]), ["workspace/"]);
    let outside = answers(
        &context,
        &["fish", "switchboard", "--cwd", "/nowhere", "tools", ""],
    );
    assert_eq!(outside, [""; 0]);
}

#[test]
fn a_hostile_name_is_text_in_every_shell() {
    let context = cached();
    let found = values(&context, &["call", "clock/"]);
    assert_eq!(
        found.len(),
        2,
        "a name with a line break is left out: {found:?}"
    );
    let quoted = answers(&context, &["bash", "switchboard call clock/x", "clock/x"]);
    let script = format!("set -- {}; printf %s \"$1\"", quoted[0]);
    let mut bash = Command::new("bash");
    bash.args(["-c", &script])
        .current_dir(context.path("project"));
    let output = bash.output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("clock/{HOSTILE}")
    );
    assert!(!context.exists("project/pwned"));
}

/// Types keys into an interactive shell and returns what it printed.
fn typed(context: &TestContext, shell: &str, flags: &[&str], keys: &str) -> Option<String> {
    let found = ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(shell));
    let program = found.iter().find(|path| path.exists())?;
    let (mut output, terminal) = terminal(80);
    output.write_all(keys.as_bytes()).unwrap();
    let isolated = context.process();
    let binary = Path::new(isolated.get_program()).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", binary.display());
    let mut process = Command::new(program);
    process
        .args(flags)
        .env_clear()
        .envs(
            isolated
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", path)
        .env("TERM", "dumb")
        .current_dir(context.path("project"))
        .stdin(terminal.try_clone().unwrap())
        .stdout(terminal.try_clone().unwrap())
        .stderr(Stdio::from(terminal));
    let mut child = process.spawn().unwrap();
    drop(process);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = output.read(&mut buffer)
        && read > 0
    {
        shown.extend_from_slice(&buffer[..read]);
    }
    child.wait().unwrap();
    Some(String::from_utf8_lossy(&shown).into_owned())
}

/// Completes three words in a shell that is typed at, and checks the command that was run.
fn check(context: &TestContext, shell: &str, flags: &[&str], load: &str) {
    // `printf` takes the place of the program, so that its words can be seen.
    let keys = format!(
        "{load}\nswitchboard call clo\tno\tzone=Eur\t--dry-run --json\nswitchboard call clock/x\t--json\nexit\n"
    );
    let Some(shown) = typed(context, shell, flags, &keys) else {
        return;
    };
    assert!(
        shown.contains("\"zone\": \"Europe/Berlin\""),
        "{shell}:\n{shown}"
    );
    assert!(!context.exists("project/pwned"), "{shell}:\n{shown}");
}

#[test]
fn bash_completes_what_is_typed() {
    let context = cached();
    let load = "source <(switchboard completions bash)";
    check(&context, "bash", &["--norc", "--noprofile", "-i"], load);
}

#[test]
fn zsh_completes_what_is_typed() {
    let context = cached();
    let load = "autoload -Uz compinit; compinit -u -D; source <(switchboard completions zsh)";
    check(&context, "zsh", &["-f", "-i"], load);
}

#[test]
fn fish_completes_what_is_asked() {
    let context = cached();
    let found = ["/bin/fish", "/usr/bin/fish", "/usr/local/bin/fish"];
    let Some(fish) = found.iter().find(|path| Path::new(path).exists()) else {
        return;
    };
    let isolated = context.process();
    let binary = Path::new(isolated.get_program()).parent().unwrap();
    let complete = |line: &str| -> Vec<String> {
        let script = format!(
            "switchboard completions fish | source; complete --do-complete '{line}' | string split -f1 \\t"
        );
        let output = Command::new(fish)
            .args(["--no-config", "-c", &script])
            .env_clear()
            .envs(
                isolated
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
            .current_dir(context.path("project"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    assert_eq!(complete("switchboard call clock/n"), ["clock/now"]);
    assert_eq!(
        complete("switchboard call clock/now zone=E"),
        ["zone=Europe/Berlin"]
    );
    assert_eq!(complete("switchboard mcp enable "), ["clock"]);
    assert!(!context.exists("project/pwned"));
}

#[test]
fn a_script_is_printed_for_every_shell() {
    let context = TestContext::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = context.line(&format!("completions {shell}"));
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.stdout.contains("switchboard"), "{shell}");
        let json: Value = context.json(&format!("completions {shell} --json"));
        assert_eq!(json["shell"], shell);
    }
}
