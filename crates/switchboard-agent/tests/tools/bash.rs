use std::path::Path;
use std::time::Duration;

use serde_json::json;
use serde_json::value::to_raw_value;
use switchboard_agent::Shell;

use super::{World, text};

async fn check(command: &str, expected: &str, is_error: bool) {
    let world = World::new();
    let output = world.run("Bash", json!({ "command": command })).await;
    assert_eq!(
        (text(&output).as_str(), output.is_error),
        (expected, is_error),
        "{command}"
    );
}

#[tokio::test]
async fn output_and_status_are_told() {
    check("echo hello", "hello", false).await;
    check("true", "[no output]", false).await;
    check("exit 3", "[no output]\n[exit code 3]", true).await;
    check("echo out; false", "out\n[exit code 1]", true).await;
    check("kill -9 $$", "[no output]\n[ended by signal 9]", true).await;
    check("echo a; echo b >&2; echo c", "a\nb\nc", false).await;
    check("cat; echo after", "after", false).await;
    check("printf 'x\\033[1my\\033[0m\\n'", "xy", false).await;
    check("cat <<EOF\nhere\nEOF", "here", false).await;
    check("echo one # not two", "one", false).await;
    check("echo \"$0\" '$1'", "bash $1", false).await;
    check("exec echo replaced", "replaced", false).await;
    check("exec >&- 2>&-; exit 4", "[no output]\n[exit code 4]", true).await;
}

#[tokio::test]
async fn a_command_that_cannot_be_read_is_told() {
    let world = World::new();
    let answer = world.bad("Bash", json!({ "command": "echo (" })).await;
    assert!(answer.contains("syntax error"), "{answer}");
    let answer = world.bad("Bash", json!({ "command": "a\0b" })).await;
    assert_eq!(answer, "the command contains a NUL character");
    let long = "#".repeat(200_000);
    let answer = world.bad("Bash", json!({ "command": long })).await;
    assert!(answer.contains("write it to a file"), "{answer}");
}

#[tokio::test]
async fn there_is_no_terminal() {
    let world = World::new();
    let command = "if (: < /dev/tty) 2>/dev/null; then echo terminal; else echo none; fi; ps -o sid= -p $$ | tr -d ' '; echo $$";
    let answer = world.good("Bash", json!({ "command": command })).await;
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines.first(), Some(&"none"), "{answer}");
    // It leads its own process session; skipped if `ps` is missing.
    if let [_, session, own] = lines.as_slice() {
        assert_eq!(session, own);
    }
}

#[tokio::test]
async fn the_folder_is_kept_within_the_workspace() {
    let world = World::new();
    std::fs::create_dir_all(world.path("a/b c'd")).unwrap();
    let run = async |command: &str, expected: &str| {
        let answer = world.good("Bash", json!({ "command": command })).await;
        let answer = answer.replace(world.workspace.to_str().unwrap(), "WORK");
        assert_eq!(answer, expected, "{command}");
    };
    run("pwd", "WORK").await;
    run("cd a", "[no output]\n[working folder: a]").await;
    run("pwd", "WORK/a").await;
    run(
        "set -C; cd \"b c'd\"; exit 0",
        "[no output]\n[working folder: a/b c'd]",
    )
    .await;
    run("(cd ..); pwd", "WORK/a/b c'd").await;
    run("cd ../..", "[no output]\n[working folder: .]").await;
    run(
        "cd /; echo there",
        "there\n[/ is outside the workspace; the next command starts in the workspace]",
    )
    .await;
    run("pwd", "WORK").await;
    run("mkdir gone; cd gone", "[no output]\n[working folder: gone]").await;
    std::fs::remove_dir(world.path("gone")).unwrap();
    run(
        "pwd",
        "WORK\n[ran in the workspace: the previous folder is gone]",
    )
    .await;
}

#[tokio::test]
async fn secrets_of_switchboard_are_withheld() {
    let path = std::env::var_os("PATH").unwrap();
    let variables = [
        ("ANTHROPIC_API_KEY", "s1"),
        ("OPENAI_API_KEY", "s2"),
        ("SWITCHBOARD_VAULT_PASSPHRASE", "s3"),
        ("SERVER_TOKEN", "s4"),
        ("SWITCHBOARD_CONFIG_DIR", "kept"),
        ("EDITOR", "vi"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let environment = variables.into_iter().chain([("PATH".into(), path)]);
    let world = World::with_shell(&Shell::new(environment).without(["SERVER_TOKEN"]));
    let command =
        "env | grep -v '^\\(PATH\\|PWD\\|OLDPWD\\|SHLVL\\|_\\|SWITCHBOARD_SERVER_ID\\)=' | sort";
    let answer = world.good("Bash", json!({ "command": command })).await;
    assert_eq!(answer, "EDITOR=vi\nSWITCHBOARD_CONFIG_DIR=kept\nTERM=dumb");
}

#[tokio::test]
async fn a_shell_is_found_without_a_path() {
    let world = World::with_shell(&Shell::default());
    assert_eq!(
        world
            .good("Bash", json!({ "command": "echo $((6 * 7))" }))
            .await,
        "42"
    );
}

/// Starts processes in several ways, writes down their pids, and continues.
const FAMILY: &str = "
    sleep 1000 & echo $! >> pids
    (sleep 1000 & echo $! >> pids)
    setsid sh -c 'echo $$ >> pids; trap \"\" TERM; while :; do sleep 1; done' > /dev/null 2>&1 &
    while [ $(wc -l < pids) -lt 3 ]; do sleep 0.01; done
    echo ready
";

/// Whether a process is still running. A zombie is not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim().starts_with('Z'))
}

/// Polls a condition that only the system can report.
async fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn all_gone(world: &World) {
    let pids = world.contents("pids");
    assert_eq!(pids.lines().count(), 3, "{pids}");
    wait_until(|| !pids.lines().any(runs)).await;
}

#[tokio::test]
async fn what_runs_in_the_background_holds_nobody_up_and_ends() {
    let world = World::new();
    let answer = world.run("Bash", json!({ "command": FAMILY }));
    let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
    assert_eq!(text(&answer.unwrap()), "ready");
    all_gone(&world).await;
}

#[tokio::test]
async fn time_that_is_up_ends_everything() {
    let world = World::new();
    let command = format!("trap '' TERM; {FAMILY} while :; do sleep 1; done");
    let answer = world
        .bad("Bash", json!({ "command": command, "timeout": 2 }))
        .await;
    let expected = "ready\n[killed after 2 s; set timeout if it needs longer]";
    assert_eq!(answer, expected);
    all_gone(&world).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_everything() {
    let world = World::new();
    let command = format!("{FAMILY} touch ready; sleep 1000");
    let arguments = to_raw_value(&json!({ "command": command })).unwrap();
    let running = world.tool("Bash").run(&arguments, &world.context);
    tokio::select! {
        output = running => panic!("it ended: {output:?}"),
        () = wait_until(|| world.path("ready").exists()) => {}
    }
    all_gone(&world).await;
}

#[tokio::test]
async fn long_output_is_kept_whole_elsewhere() {
    let world = World::new();
    let answer = world
        .good("Bash", json!({ "command": "seq 1 100000" }))
        .await;
    assert!(answer.chars().count() <= 10_000);
    assert!(answer.starts_with("1\n2\n3\n") && answer.ends_with("\n99999\n100000"));
    let path = answer.split("the full output is in ").nth(1).unwrap();
    let path = path.split(']').next().unwrap();
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!(whole.lines().count(), 100_000);
}

#[tokio::test]
async fn a_person_hears_how_it_gets_on() {
    let world = World::new();
    let command = "sleep 0.7; printf 'half \\033[1mdone\\033[0m\\n'";
    world.good("Bash", json!({ "command": command })).await;
    assert_eq!(*world.progress.lock().unwrap(), ["half done"]);
}

#[tokio::test]
async fn a_line_between_two_reports_is_reported_when_the_pause_is_over() {
    let world = World::new();
    let command = "printf 'one\\ntwo\\n'; sleep 1.2";
    world.good("Bash", json!({ "command": command })).await;
    assert_eq!(*world.progress.lock().unwrap(), ["two"]);
}
