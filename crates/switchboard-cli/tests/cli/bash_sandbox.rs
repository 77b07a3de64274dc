//! A model's commands that try to reach Switchboard's own files, through the real program.
//!
//! No command contains one of our paths as text, so only the sandbox can stop it. On a kernel without Landlock the
//! tests check that such commands require a prompt instead.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;

use base64::Engine as _;
use serde_json::{Value, json};
use switchboard_test::model::Turn;
use switchboard_test::skipped::skipped;

use crate::chat::Machine;
use crate::sandbox::{CREATE_RULESET, HAS_LANDLOCK, without_call};
use crate::support::Run;

/// The number of `unshare`: without it nothing can be mounted, which leaves only Landlock.
pub(crate) const UNSHARE: i64 = if cfg!(target_arch = "x86_64") {
    272
} else {
    97
};

const ALLOWED: &str = "[[permissions.rules]]\ntool = 'Bash'\naction = 'allow'\n";

/// A machine with files to protect, whose model runs these commands one after the other.
fn machine(settings: &str, commands: &[String]) -> Machine {
    let mut turns: Vec<Turn> = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let id = format!("call_{index}");
        turns.push(Turn::text("").call(&id, "Bash", json!({ "command": command })));
    }
    turns.push(Turn::text("done"));
    let machine = Machine::new(turns);
    machine.context.write("config/mcp.toml", settings);
    machine
        .context
        .write("state/tokens/secret", "canary-of-the-state");
    machine.context.write("outside/file", "untouched");
    machine
}

fn command(machine: &Machine) -> assert_cmd::Command {
    let mut command = machine.command();
    command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(["chat", "-p", "go on"]);
    command
}

/// The tool results that the model received, in order.
fn results(machine: &Machine) -> Vec<String> {
    let requests = machine.model.requests();
    let messages = requests.last().unwrap().body["messages"]
        .as_array()
        .unwrap()
        .clone();
    let contents = messages
        .iter()
        .filter_map(|message| message["content"].as_array());
    let parts = contents
        .flatten()
        .filter(|part| part["type"] == "tool_result");
    parts.map(|part| text(&part["content"])).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => {
            let parts = content.as_array().cloned().unwrap_or_default();
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A command whose text does not reveal what it does. `ROOT` stands for the machine's folder.
fn disguised(machine_root: &str, script: &str) -> String {
    let script = script.replace("ROOT", machine_root);
    let script = base64::engine::general_purpose::STANDARD.encode(script);
    format!("eval \"$(echo {script} | base64 -d)\"")
}

const ATTEMPTS: &[&str] = &[
    "cat ROOT/state/tokens/secret",
    "cp -r ROOT/state ROOT/project/copy; cat ROOT/project/copy/tokens/secret",
    "echo evil > ROOT/config/mcp.toml",
    "echo evil >> ROOT/config/mcp.toml",
    "sed -i s/allow/deny/ ROOT/config/mcp.toml",
    "rm -rf ROOT/state ROOT/config",
    "chmod 777 ROOT/state ROOT/config ROOT/state/tokens/secret",
    "touch -d @1 ROOT/state ROOT/config/mcp.toml",
    "mv ROOT/config ROOT/moved; mkdir -p ROOT/config; echo evil > ROOT/config/mcp.toml",
    "mv ROOT ROOT-moved; mkdir -p ROOT/config; echo evil > ROOT/config/mcp.toml",
    "ln ROOT/state/tokens/secret ROOT/project/hard; cat ROOT/project/hard; echo evil > ROOT/project/hard",
    "ln -s ROOT/config ROOT/project/soft; echo evil > ROOT/project/soft/mcp.toml",
    "ln -s ROOT/outside/file ROOT/config/plugin",
    "cd ROOT/state; cat tokens/secret; cat */secret",
    "exec 3<>ROOT/config/mcp.toml; echo evil >&3",
    "python3 -c \"import os; print(open('ROOT/state/tokens/secret').read())\"",
    "mkdir -p ROOT/home/.claude; echo '{}' > ROOT/home/.claude/settings.json",
    "echo evil > ROOT/managed.toml",
    "for p in /proc/[0-9]*; do cat $p/root/ROOT/state/tokens/secret $p/environ; done 2>/dev/null | tr '\\0' '\\n'",
    "mkdir -p /tmp/m; mount --bind ROOT/state /tmp/m && cat /tmp/m/tokens/secret",
    "unshare -rm sh -c 'umount ROOT/state; cat ROOT/state/tokens/secret'",
    "umount ROOT/state; umount -l ROOT/config; cat ROOT/state/tokens/secret",
    "kill -9 $PPID; kill -STOP $(cat /proc/$PPID/stat | cut -d' ' -f4)",
    "prlimit --pid $PPID --fsize=0",
    "for d in /dev/*; do test -b $d && head -c 1 $d > /dev/null && echo the disk $d can be read; done",
];

fn attack(run: impl Fn(&Machine) -> Run) {
    let machine = machine(ALLOWED, &[]);
    let root = machine.context.root().display().to_string();
    let commands: Vec<String> = ATTEMPTS
        .iter()
        .map(|script| disguised(&root, script))
        .collect();
    let mut turns: Vec<Turn> = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let id = format!("call_{index}");
        turns.push(Turn::text("").call(&id, "Bash", json!({ "command": command })));
    }
    turns.push(Turn::text("done"));
    let machine = Machine {
        model: machine
            .runtime
            .block_on(switchboard_test::model::ScriptedModel::start(turns))
            .unwrap(),
        ..machine
    };
    let before = machine.context.path("state").metadata().unwrap();
    let run = run(&machine);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "done\n"),
        "{}",
        run.stderr
    );
    let results = results(&machine);
    assert_eq!(results.len(), ATTEMPTS.len());
    for (attempt, result) in ATTEMPTS.iter().zip(&results) {
        let leaked = ["canary-of-the-state", "canary-key", "can be read"];
        let leaked = leaked.iter().any(|secret| result.contains(secret));
        assert!(!leaked, "{attempt}\n{result}");
    }
    let context = &machine.context;
    let shown = results.join("\n---\n");
    assert_eq!(context.read("config/mcp.toml"), ALLOWED, "{shown}");
    assert_eq!(context.read("state/tokens/secret"), "canary-of-the-state");
    assert_eq!(context.read("outside/file"), "untouched");
    for made in [
        "config/plugin",
        "managed.toml",
        "home/.claude/settings.json",
    ] {
        assert!(!context.exists(made), "{made}\n{shown}");
    }
    let after = context.path("state").metadata().unwrap();
    assert_eq!((after.mode(), after.ino()), (before.mode(), before.ino()));
    assert_eq!(after.mtime() > 1, before.mtime() > 1);
}

#[test]
fn no_command_reads_or_changes_what_is_switchboards() {
    if *HAS_LANDLOCK {
        attack(|machine| Run::of(&command(machine).output().unwrap()));
    }
}

#[test]
fn landlock_alone_protects_our_files_as_well() {
    if *HAS_LANDLOCK {
        attack(|machine| without_call(command(machine), UNSHARE));
    }
}

#[test]
fn commands_do_everything_else_as_the_user_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let commands = [
        "echo made > new.txt && mkdir -p sub/deep && cat new.txt".to_owned(),
        "printf '#!/bin/sh\\necho ran\\n' > run.sh && chmod +x run.sh && ./run.sh".to_owned(),
        "echo more >> ../outside/file && cat ../outside/file".to_owned(),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"),
        "cd sub && pwd".to_owned(),
        "basename \"$(pwd)\"; f=$(mktemp) && echo temporary > \"$f\" && cat \"$f\"".to_owned(),
        "python3 -c \"import subprocess,socket; a,b=socket.socketpair(); print(subprocess.check_output(['echo','child']).decode())\"".to_owned(),
        "touch -d @5 new.txt; mv new.txt moved.txt; stat -c %Y ../moved.txt; ls .. | head -3 >/dev/null && echo listed".to_owned(),
        "git init -q repo && cd repo && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --oneline | wc -l".to_owned(),
    ];
    let expected = [
        "made",
        "ran",
        "untouchedmore",
        "connected",
        "sub",
        "temporary",
        "child",
        "listed",
        "1",
    ];
    for without_mounts in [false, true] {
        let machine = machine(ALLOWED, &commands);
        let run = if without_mounts {
            without_call(command(&machine), UNSHARE)
        } else {
            Run::of(&command(&machine).output().unwrap())
        };
        assert_eq!(run.code, 0, "{}", run.stderr);
        let results = results(&machine);
        assert_eq!(results.len(), expected.len());
        for (expected, (command, result)) in expected.iter().zip(commands.iter().zip(&results)) {
            assert!(result.contains(expected), "{command}\n{result}");
        }
    }
}

/// Whether the system lets this process mount.
fn can_mount() -> bool {
    let unshared = std::process::Command::new("unshare")
        .args(["-m", "true"])
        .output();
    unshared.is_ok_and(|output| output.status.success())
}

#[test]
fn new_files_can_be_made_beside_our_folders_where_mounts_are_possible() {
    if !*HAS_LANDLOCK {
        return;
    }
    if !can_mount() {
        skipped("new files beside our folders, because this process may not mount");
        return;
    }
    let commands = [
        "echo x > ~/new && mkdir ~/.config/other && echo y > ~/.config/other/file && mv ~/new ~/newer && echo made"
            .to_owned(),
        "ls ~ ~/.config".to_owned(),
        disguised("..", "ls -A ROOT/home/.config/switchboard ROOT/home/.local/state/switchboard"),
        disguised("..", "mv ROOT/home/.config ROOT/home/.moved || echo held; mv ROOT/home/.local/state ROOT/s || echo held"),
        disguised("..", "echo '{}' > ROOT/home/.claude/settings.json; echo x > ROOT/machine/managed.toml; echo tried"),
        disguised("..", "echo x > ROOT/home/.config/switchboard/new || echo refused"),
        disguised("..", "echo x > ROOT/home/.local/state/switchboard/output/new || echo refused"),
    ];
    let machine = machine("", &commands);
    let context = &machine.context;
    context.write("home/.config/switchboard/mcp.toml", ALLOWED);
    context.write("home/.local/state/switchboard/serve-token", "canary");
    context.write("home/.local/state/switchboard/output/long.txt", "spilled");
    let mut command = command(&machine);
    command
        .env(
            "SWITCHBOARD_CONFIG_DIR",
            context.path("home/.config/switchboard"),
        )
        .env(
            "SWITCHBOARD_STATE_DIR",
            context.path("home/.local/state/switchboard"),
        )
        .env(
            "SWITCHBOARD_MANAGED_FILE",
            context.path("machine/managed.toml"),
        );
    let run = Run::of(&command.output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let results = results(&machine);
    assert_eq!(results[0], "made");
    assert!(
        results[1].contains("newer") && results[1].contains("other"),
        "{}",
        results[1]
    );
    // Only readable entries are listed.
    assert!(
        !results[2].contains("mcp.toml") && !results[2].contains("serve-token"),
        "{}",
        results[2]
    );
    assert!(results[2].contains("output"), "{}", results[2]);
    assert_eq!(results[3].matches("held").count(), 2, "{}", results[3]);
    assert!(results[4].contains("tried"), "{}", results[4]);
    for result in &results[5..] {
        assert!(result.contains("refused"), "{result}");
    }
    let output = "home/.local/state/switchboard/output";
    assert!(!context.exists(&format!("{output}/new")));
    assert_eq!(context.read("home/.config/other/file"), "y\n");
    assert_eq!(context.read("home/.config/switchboard/mcp.toml"), ALLOWED);
    assert!(
        !context.exists("home/.claude/settings.json") && !context.exists("machine/managed.toml")
    );
}

#[test]
fn existing_settings_that_need_no_approval_cannot_be_changed() {
    if !*HAS_LANDLOCK {
        return;
    }
    let attempts = [
        "echo evil > ROOT/home/.claude/settings.json; echo tried",
        "echo evil >> ROOT/machine/managed.toml; echo tried",
        "rm -f ROOT/home/.claude/settings.json ROOT/machine/managed.toml; echo tried",
        "echo x > ROOT/home/new; echo tried",
    ];
    let machine = machine(ALLOWED, &attempts.map(|attempt| disguised("..", attempt)));
    let context = &machine.context;
    context.write("home/.claude/settings.json", "{}");
    context.write("machine/managed.toml", ALLOWED);
    let mut command = command(&machine);
    command.env(
        "SWITCHBOARD_MANAGED_FILE",
        context.path("machine/managed.toml"),
    );
    let run = Run::of(&command.output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for result in results(&machine) {
        assert!(result.contains("tried"), "{result}");
    }
    assert_eq!(context.read("home/.claude/settings.json"), "{}");
    assert_eq!(context.read("machine/managed.toml"), ALLOWED);
    // With mounts, only the files themselves are read-only.
    if can_mount() {
        assert!(context.exists("home/new"));
    }
}

#[test]
fn stricter_modes_and_off_are_applied() {
    let commands = |root: &str| {
        [
            "echo x > new.txt && echo inside written".to_owned(),
            "echo x > ../outside/new && echo outside written".to_owned(),
            disguised(root, "cat ROOT/state/tokens/secret"),
        ]
    };
    for (mode, written, outside, read) in [
        ("read-only", false, false, false),
        ("workspace", true, false, false),
        ("own-files", true, true, false),
        ("off", true, true, true),
    ] {
        if !*HAS_LANDLOCK && mode != "off" {
            continue;
        }
        let settings = format!("[settings]\nbash_sandbox = '{mode}'\n{ALLOWED}");
        // Relative to the project.
        let machine = machine(&settings, &commands(".."));
        let run = Run::of(&command(&machine).output().unwrap());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let results = results(&machine);
        let found = [
            results[0].contains("inside written"),
            results[1].contains("outside written"),
            results[2].contains("canary-of-the-state"),
        ];
        assert_eq!(found, [written, outside, read], "{mode}: {results:?}");
        assert_eq!(machine.context.exists("project/new.txt"), written, "{mode}");
        assert_eq!(machine.context.exists("outside/new"), outside, "{mode}");
    }
}

#[test]
fn a_project_cannot_switch_it_off() {
    if !*HAS_LANDLOCK {
        return;
    }
    let machine = machine(ALLOWED, &[disguised("..", "cat ROOT/state/tokens/secret")]);
    let context = &machine.context;
    context.write("project/.mcp.toml", "[settings]\nbash_sandbox = 'off'\n");
    let approved = context.run(&["trust", "approve", "--yes"]);
    assert_eq!(approved.code, 0, "{}", approved.all());
    let run = Run::of(&command(&machine).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        !results(&machine)[0].contains("canary"),
        "{:?}",
        results(&machine)
    );
}

#[test]
fn without_landlock_every_command_that_no_rule_allows_asks() {
    let settings = "[settings]\ndefault_permission = 'allow'\n";
    let run_on = |settings: &str| {
        let machine = machine(settings, &["echo ran > ran".to_owned()]);
        let run = without_call(command(&machine), CREATE_RULESET);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let ran = machine.context.exists("project/ran");
        (ran, run.stderr, results(&machine).remove(0))
    };
    let (ran, stderr, result) = run_on(settings);
    assert!(!ran, "{result}");
    assert!(result.contains("no sandbox keeps commands"), "{result}");
    assert_eq!(
        stderr
            .matches("this kernel does not support Landlock")
            .count(),
        1,
        "{stderr}"
    );
    // A rule allows it; without a sandbox no second prompt follows.
    assert!(run_on(ALLOWED).0);
    let off = "[settings]\ndefault_permission = 'allow'\nbash_sandbox = 'off'\n";
    let (ran, stderr, _) = run_on(off);
    assert!(ran && !stderr.contains("Landlock"), "{stderr}");
    // A mode stricter than the default is never weakened silently.
    let strict = format!("[settings]\nbash_sandbox = 'workspace'\n{ALLOWED}");
    let (ran, _, result) = run_on(&strict);
    assert!(!ran && result.contains("not support Landlock"), "{result}");
}
