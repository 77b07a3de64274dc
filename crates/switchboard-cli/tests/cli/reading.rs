//! What a model may read without consent: `chat -p`, which never prompts.

use serde_json::json;
use switchboard_test::model::Turn;

use crate::chat::Machine;
use crate::support::Run;

/// The request that follows a model's call, including the call's result.
fn result_of(tool: &str, arguments: &serde_json::Value, settings: &str) -> String {
    let turns = vec![
        Turn::text("").call("call_1", tool, arguments.clone()),
        Turn::text("done"),
    ];
    let machine = Machine::new(turns);
    let context = &machine.context;
    context.write("config/mcp.toml", format!("{settings}\n# canary\n"));
    context.write("home/.ssh/id_rsa", "canary");
    context.write("home/.aws/credentials", "canary");
    context.write("home/.bash_history", "canary");
    context.write("home/notes.txt", "canary");
    context.write("state/serve-token", "canary");
    context.write("state/logins/key", "canary");
    context.write("state/output/long.txt", "spilled");
    context.write("project/.env", "PASSWORD=canary");
    context.write("project/src/main.rs", "fn main() {} // needle");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(context.path(target), context.path(name)).unwrap();
    };
    link("home/.ssh/id_rsa", "project/link");
    link("home", "project/linked");
    std::fs::hard_link(
        context.path("state/logins/key"),
        context.path("project/hard"),
    )
    .unwrap();
    let root = context.root().display().to_string();
    let request = serde_json::to_string(&arguments).unwrap();
    if request.contains("ROOT") {
        // The folder is known only now, so the model is scripted again.
        let turns = vec![
            Turn::text("").call(
                "call_1",
                tool,
                serde_json::from_str(&request.replace("ROOT", &root)).unwrap(),
            ),
            Turn::text("done"),
        ];
        let model = machine
            .runtime
            .block_on(switchboard_test::model::ScriptedModel::start(turns))
            .unwrap();
        return ask(&Machine { model, ..machine });
    }
    ask(&machine)
}

fn ask(machine: &Machine) -> String {
    let run = Run::of(
        &machine
            .command()
            .args(["chat", "-p", "go on"])
            .output()
            .unwrap(),
    );
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "done\n"),
        "{}",
        run.stderr
    );
    let requests = machine.model.requests();
    let messages = requests.last().unwrap().body["messages"]
        .as_array()
        .unwrap();
    messages.last().unwrap()["content"][0]["content"].to_string()
}

#[test]
fn nothing_outside_the_workspace_is_read_unasked() {
    for path in [
        "../home/.ssh/id_rsa",
        "ROOT/home/.ssh/id_rsa",
        "ROOT/home/.aws/credentials",
        "ROOT/home/.bash_history",
        "ROOT/home/notes.txt",
        "ROOT/state/serve-token",
        "ROOT/state/logins/key",
        "ROOT/config/mcp.toml",
        "ROOT/state/output/../logins/key",
        "/proc/self/root/ROOT/state/logins/key",
        "/proc/self/cwd/../home/notes.txt",
        "/proc/self/environ",
        "link",
        "linked/notes.txt",
        "linked/.ssh/id_rsa",
        "hard",
        ".env",
    ] {
        let result = result_of("Read", &json!({ "file_path": path }), "");
        assert!(!result.contains("canary"), "{path}: {result}");
        assert!(
            result.contains("permission denied for tool"),
            "{path}: {result}"
        );
    }
    for (tool, path) in [
        ("Grep", "../home"),
        ("Glob", "../home"),
        ("Grep", "linked/"),
        ("Grep", "ROOT/state"),
    ] {
        let result = result_of(tool, &json!({ "pattern": "canary*", "path": path }), "");
        assert!(
            result.contains("permission denied for tool"),
            "{tool} {path}: {result}"
        );
    }
}

#[test]
fn the_workspace_and_what_was_too_long_are_read_unasked() {
    for (tool, arguments, expected) in [
        ("Read", json!({"file_path": "src/main.rs"}), "needle"),
        (
            "Read",
            json!({"file_path": "ROOT/state/output/long.txt"}),
            "spilled",
        ),
        ("Read", json!({"file_path": "ROOT/project/a.txt"}), "hello"),
        ("Grep", json!({"pattern": "needle"}), "src/main.rs"),
        ("Glob", json!({"pattern": "src/*.rs"}), "src/main.rs"),
    ] {
        let result = result_of(tool, &arguments, "");
        assert!(result.contains(expected), "{tool} {arguments}: {result}");
    }
}

#[test]
fn a_search_says_how_many_files_it_passed_over() {
    let result = result_of("Grep", &json!({"pattern": "canary|needle"}), "");
    assert!(
        result.contains("needle") && !result.contains("PASSWORD"),
        "{result}"
    );
    assert!(result.contains("1 files skipped"), "{result}");
    // The home folder is not a workspace, so searching it takes a rule; its secrets are skipped all the same.
    let allowed = "[[permissions.rules]]\ntool = 'Grep'\naction = 'allow'\n";
    let result = result_of(
        "Grep",
        &json!({"pattern": "canary", "path": "ROOT/home"}),
        allowed,
    );
    assert!(
        result.contains("notes.txt") && !result.contains("id_rsa"),
        "{result}"
    );
    assert!(result.contains("3 files skipped"), "{result}");
}

#[test]
fn a_rule_that_names_the_path_allows_it_and_none_allows_our_own() {
    let all = "[[permissions.rules]]\ntool = 'Read'\naction = 'allow'\n";
    let read = |path: &str, rule: &str| result_of("Read", &json!({ "file_path": path }), rule);
    assert!(read("ROOT/home/notes.txt", all).contains("canary"));
    assert!(!read("ROOT/home/.ssh/id_rsa", all).contains("canary"));
    let named = format!("{all}arguments = {{ file_path = {{ under = '~/.ssh' }} }}\n");
    assert!(read("ROOT/home/.ssh/id_rsa", &named).contains("canary"));
    let own = format!("{all}arguments = {{ file_path = {{ matches = '.' }} }}\n");
    assert!(!read("ROOT/state/logins/key", &own).contains("canary"));
    assert!(!read("hard", &own).contains("canary"));
    assert!(read(".env", all).contains("canary"));
}

#[test]
fn no_tool_of_ours_changes_our_files_through_another_name() {
    let allowed = "[[permissions.rules]]\ntool = '{Write,Edit,Read}'\naction = 'allow'\n";
    for path in [
        "hard",
        "./hard",
        "ROOT/project/hard",
        "/proc/self/root/ROOT/state/logins/key",
    ] {
        for (tool, arguments) in [
            ("Write", json!({"file_path": path, "content": "evil"})),
            (
                "Edit",
                json!({"file_path": path, "old_string": "canary", "new_string": "evil"}),
            ),
        ] {
            let result = result_of(tool, &arguments, allowed);
            assert!(
                result.contains("Switchboard's own files"),
                "{tool} {path}: {result}"
            );
        }
    }
}

#[test]
fn the_embedded_server_shows_no_secrets_where_the_home_is_the_workspace() {
    let turns = |tool: &str, arguments: serde_json::Value| {
        vec![
            Turn::text("").call("call_1", tool, arguments),
            Turn::text("done"),
        ]
    };
    for (tool, arguments) in [
        ("mcp__workspace__read_file", json!({"path": ".ssh/id_rsa"})),
        ("mcp__workspace__grep", json!({"pattern": "canary"})),
        (
            "ReadMcpResource",
            json!({"server": "workspace", "uri": "file://ROOT/project/.ssh/id_rsa"}),
        ),
    ] {
        let machine = Machine::new(Vec::new());
        let root = machine.context.root().display().to_string();
        let arguments =
            serde_json::from_str(&arguments.to_string().replace("ROOT", &root)).unwrap();
        let model = machine
            .runtime
            .block_on(switchboard_test::model::ScriptedModel::start(turns(
                tool, arguments,
            )))
            .unwrap();
        let machine = Machine { model, ..machine };
        machine.context.write("project/.ssh/id_rsa", "canary");
        machine.context.write("project/.ssh/config", "canary");
        let mut command = machine.command();
        command
            .env("HOME", machine.context.path("project"))
            .args(["chat", "-p", "go on"]);
        let run = Run::of(&command.output().unwrap());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let requests = machine.model.requests();
        let messages = requests.last().unwrap().body["messages"]
            .as_array()
            .unwrap();
        let result = messages.last().unwrap()["content"][0].to_string();
        assert!(!result.contains("canary"), "{tool}: {result}");
    }
}
