//! Nothing is omitted silently, and scripts can parse every failure: refused, shadowed, withheld and failed servers
//! show with their reasons wherever servers are listed.

use serde_json::{Value, json};

use crate::servers::{PYTHON, configure, log, machine};
use crate::support::{Run, TestContext, named, workspace};

/// The test server's entry in TOML.
fn entry(context: &TestContext, name: &str, log_name: &str) -> String {
    let script = workspace().join("crates/switchboard-cli/tests/cli/server.py");
    format!(
        "[mcp_servers.{name:?}]\ncommand = {:?}\nargs = [{:?}, {:?}]\n",
        *PYTHON,
        script.display().to_string(),
        log(context, log_name).display().to_string(),
    )
}

fn error_of(run: &Run) -> Value {
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    document["error"].clone()
}

#[test]
fn a_look_alike_is_refused_visibly_and_the_higher_scope_is_used() {
    for (user, project) in [
        ("github", "GitHub"),
        ("github", "gіthub"),
        ("my-db", "my_db"),
    ] {
        let context = machine(&[]);
        context.write("config/mcp.toml", entry(&context, user, "user"));
        context.write("project/.mcp.toml", entry(&context, project, "project"));
        // Before the project is trusted, its entry takes no name from the user's.
        let before = context.json("mcp list --json");
        assert_eq!(named(&before, user)["state"], "connected", "{before}");
        assert_eq!(named(&before, project)["state"], "untrusted");
        let run = context.run(&["trust", "approve", "--yes"]);
        assert_eq!(run.code, 0, "{}", run.stderr);

        let list = context.json("mcp list --json");
        let refused = named(&list, user);
        assert_eq!(named(&list, project)["state"], "connected", "{list}");
        assert_eq!(refused["state"], "refused");
        let reason = refused["error"].as_str().unwrap();
        assert!(
            reason.contains(&format!("mistaken for `{project}`")),
            "{reason}"
        );
        assert!(reason.contains(".mcp.toml"), "{reason}");
        let status = context.json("status --connect --json");
        assert_eq!(named(&status, user)["state"], "refused");
        let text = context.run(&["mcp", "list"]);
        assert!(text.stdout.contains("mistaken for"), "{}", text.stdout);

        let doctor = context.run(&["doctor"]);
        assert_eq!(doctor.code, 3, "{}", doctor.stdout);
        assert!(
            doctor.stdout.contains("is misconfigured"),
            "{}",
            doctor.stdout
        );
        assert!(doctor.stdout.contains("rename"), "{}", doctor.stdout);
        let check = context.run(&["config", "check"]);
        assert_eq!(check.code, 3);
        assert!(check.all().contains("confusable-name"), "{}", check.all());

        let tools = context.json("tools --all --json");
        let rows = tools.as_array().unwrap();
        let missing = rows.iter().find(|row| row["server"] == user).unwrap();
        assert_eq!(missing["name"], Value::Null);
        let aside = missing["aside"].as_str().unwrap();
        assert!(aside.starts_with("the server is refused: "), "{aside}");
        let call = context.run(&["call", &format!("{user}/echo"), "text=x"]);
        assert_eq!(call.code, 3, "{}", call.stderr);
        assert!(call.stderr.contains("mistaken for"), "{}", call.stderr);
    }
}

#[test]
fn a_name_that_reads_like_another_or_a_built_in_cannot_be_added() {
    let context = machine(&[("github", "")]);
    for (name, reason, instead) in [
        ("grep", "reads like the built-in tool Grep", "grep-mcp"),
        ("Bash", "reads like the built-in tool Bash", "bash-mcp"),
        ("аgent", "reads like the built-in tool Agent", "agent-mcp"),
        ("mcp__github", "begins with \"mcp__\"", "github"),
        ("GitHub", "can be mistaken for `github`", "github-local"),
        ("gіthub", "can be mistaken for `github`", "github-local"),
    ] {
        let json_entry = json!({"command": "npx", "args": ["x"]}).to_string();
        for words in [
            vec!["mcp", "add", name, "--", "npx", "x"],
            vec!["mcp", "add-json", name, json_entry.as_str()],
        ] {
            let run = context.run(&words);
            assert_eq!(run.code, 2, "{words:?}\n{}", run.all());
            assert!(run.stderr.contains("was not added"), "{}", run.stderr);
            assert!(run.stderr.contains(reason), "{reason}\n{}", run.stderr);
            assert!(
                run.stderr.contains(&format!("`{instead}`")),
                "{}",
                run.stderr
            );
        }
        assert!(!context.exists("project/.switchboard.local.toml"));
    }
    // The same name in another scope is the same server, and may be added.
    let run = context.run(&["mcp", "add", "github", "--", "npx", "x"]);
    assert_eq!(run.code, 0, "{}", run.stderr);

    // One that is already in a file is refused with the reason.
    let context = machine(&[]);
    context.write("config/mcp.toml", entry(&context, "grep", "grep"));
    let list = context.json("mcp list --json");
    let grep = named(&list, "grep");
    assert_eq!(grep["state"], "invalid");
    assert!(
        grep["error"]
            .as_str()
            .unwrap()
            .contains("built-in tool Grep")
    );
    assert_eq!(context.run(&["config", "check"]).code, 3);
}

#[test]
fn a_duplicate_is_shadowed_by_name_and_comes_back_when_the_other_is_disabled() {
    let context = machine(&[("time", "")]);
    let file = context.read("config/mcp.toml");
    context.write(
        "project/.switchboard.local.toml",
        file.replace("mcp_servers.time", "mcp_servers.extra"),
    );
    let run = context.run(&["trust", "approve", "--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let list = context.json("mcp list --json");
    let time = named(&list, "time");
    assert_eq!(named(&list, "extra")["state"], "connected", "{list}");
    assert_eq!(time["state"], "shadowed");
    let reason = time["error"].as_str().unwrap();
    assert!(
        reason.starts_with("shadowed by `extra` (local scope, "),
        "{reason}"
    );
    assert!(reason.contains(".switchboard.local.toml"), "{reason}");
    for line in [
        "status --connect",
        "mcp list",
        "mcp list --no-connect",
        "doctor",
        "mcp get time",
    ] {
        let run = context.line(line);
        assert!(
            run.stdout.contains("shadowed by `extra`"),
            "{line}\n{}",
            run.all()
        );
        assert!(
            !run.all().contains("mcp enable time"),
            "{line}\n{}",
            run.all()
        );
    }
    let call = context.run(&["call", "time/echo", "text=x"]);
    assert_eq!(call.code, 1, "{}", call.stderr);
    assert!(call.stderr.contains("use `extra`"), "{}", call.stderr);

    let run = context.run(&["mcp", "disable", "extra"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let list = context.json("mcp list --json");
    assert_eq!(named(&list, "extra")["state"], "disabled");
    assert_eq!(named(&list, "time")["state"], "connected");
}

#[test]
fn adding_a_duplicate_says_what_it_hides() {
    let context = machine(&[]);
    context.write(
        "config/mcp.toml",
        "[mcp_servers.time]\ncommand = \"npx\"\nargs = [\"time\"]\n",
    );
    let run = context.run(&["mcp", "add", "extra", "--", "npx", "time"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains("`time` (user scope,")
            && run.stderr.contains("`extra` is used instead"),
        "{}",
        run.stderr
    );
}

#[test]
fn every_reason_shows_once_and_in_json() {
    let context = machine(&[("good", ""), ("broken", "exit")]);
    let more = "[mcp_servers.token]\nurl = \"https://mcp.example.com/\"\nbearer_token_env_var = \"NO_SUCH_TOKEN\"\n\
                [mcp_servers.denied]\ncommand = \"npx\"\n[security]\nmcp_server_denylist = [\"denied\"]\n";
    context.write("config/mcp.toml", context.read("config/mcp.toml") + more);
    context.write(
        "project/.mcp.toml",
        "[mcp_servers.new]\ncommand = \"npx\"\n",
    );
    let list = context.json("mcp list --json");
    for (name, state, reason) in [
        ("broken", "failed", "told to"),
        ("token", "invalid", "`NO_SUCH_TOKEN` is not set"),
        ("denied", "blocked", "denied by \"denied\""),
        ("new", "untrusted", "not approved yet"),
    ] {
        let server = named(&list, name);
        assert_eq!(server["state"], state, "{list}");
        let error = server["error"].as_str().unwrap_or_default();
        assert!(
            error.contains(reason) || name == "broken" && !error.is_empty(),
            "{name}: {error}"
        );
    }
    let text = context.run(&["mcp", "list"]);
    for reason in [
        "`NO_SUCH_TOKEN` is not set",
        "denied by \"denied\"",
        "not approved yet",
    ] {
        assert!(text.stdout.contains(reason), "{reason}\n{}", text.stdout);
    }
    let shown = context.json("config show --json");
    assert_eq!(named(&shown["servers"], "token")["state"], "invalid");
    // With the variable set the server is ready; an empty value counts as unset.
    for (value, state) in [("x", "ready"), ("", "invalid")] {
        let mut command = context.command();
        command
            .env("NO_SUCH_TOKEN", value)
            .args(["config", "show", "--json"]);
        let run = Run::of(&command.output().unwrap());
        let shown: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            named(&shown["servers"], "token")["state"],
            state,
            "{value:?}"
        );
    }
    for line in ["tools", "tools --no-connect", "search say it again"] {
        let run = context.line(line);
        for name in ["token", "denied", "new"] {
            let lines = run.stderr.lines().filter(|line| line.contains(name));
            assert!(
                lines.count() >= 1,
                "{line} says nothing of {name}\n{}",
                run.stderr
            );
        }
    }
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let context = machine(&[]);
    context.write(
        "config/mcp.toml",
        "[mcp_servers.a]\ncommand = \"npx\"\nenabled = false\n",
    );
    for (words, code, exit, message) in [
        (
            vec!["mcp", "get", "nothing", "--json"],
            "failed",
            1,
            "no server named `nothing`",
        ),
        (
            vec!["--json", "call", "a/x"],
            "failed",
            1,
            "the server `a` cannot be used",
        ),
        (
            vec!["--json", "tools", "--no-such-flag"],
            "usage",
            2,
            "--no-such-flag",
        ),
        (
            vec!["--json", "no-such-command"],
            "usage",
            2,
            "no-such-command",
        ),
        (
            vec!["mcp", "add", "--json"],
            "usage",
            2,
            "the server has no name",
        ),
        (
            vec!["mcp", "add", "x", "--scoope", "user", "--json"],
            "usage",
            2,
            "unknown option --scoope",
        ),
        (
            vec!["mcp", "add-json", "x", "{", "--json"],
            "usage",
            2,
            "not JSON",
        ),
        (
            vec!["chat", "-p", "hi", "--json"],
            "configuration",
            3,
            "no model",
        ),
        (
            vec!["chat", "-p", "hi", "--output", "json"],
            "configuration",
            3,
            "no model",
        ),
        (
            vec!["chat", "-p", "hi", "--output", "stream-json"],
            "configuration",
            3,
            "no model",
        ),
        (
            vec!["--cwd", "/no/such/folder", "--json", "mcp", "list"],
            "usage",
            2,
            "/no/such/folder",
        ),
    ] {
        let run = context.run(&words);
        assert_eq!(run.code, exit, "{words:?}\n{}", run.all());
        let error = error_of(&run);
        assert_eq!(error["code"], code, "{words:?}");
        assert_eq!(error["exit_code"], exit, "{words:?}");
        let message_text = error["message"].as_str().unwrap();
        assert!(message_text.contains(message), "{words:?}: {message_text}");
        assert!(error["causes"].is_array());
        assert!(!run.stderr.is_empty(), "the error is also printed as text");
        if words.contains(&"stream-json") {
            assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
        }
    }
    // Without --json only data is on standard output, and `serve` reserves it for the protocol.
    for words in [vec!["mcp", "get", "nothing"], vec!["serve", "--json"]] {
        let run = context.run(&words);
        assert_ne!(run.code, 0);
        assert_eq!(run.stdout, "", "{words:?}");
    }
}

#[test]
fn a_result_that_is_an_error_stays_the_one_document() {
    let context = machine(&[("alpha", "")]);
    let run = context.run(&["--json", "call", "alpha/fail"]);
    assert_eq!(run.code, 7, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document["isError"], true);
    assert_eq!(document.get("error"), None);
}

#[test]
fn sources_have_one_shape_and_rows_name_what_they_are_about() {
    let context = machine(&[("alpha", "")]);
    let is_place = |source: &Value, context: &str| {
        for key in ["scope", "file", "line", "column"] {
            assert!(source.get(key).is_some(), "{context}: {source}");
        }
    };
    let list = context.json("mcp list --json");
    is_place(&list[0]["source"], "mcp list");
    assert_eq!(list[0]["source"]["scope"], "user");
    let shown = context.json("config show --json");
    is_place(&shown["servers"][0]["source"], "config show");
    for setting in shown["settings"].as_array().unwrap() {
        is_place(&setting["source"], "setting");
    }
    is_place(&context.json("mcp get alpha --json")["source"], "mcp get");
    let found = context.json("search 'say it again' --json");
    assert_eq!(found[0]["server"], "alpha");
    assert_eq!(found[0]["tool"], "echo");
    assert_eq!(found[0]["name"], "mcp__alpha__echo");
    let added = context.json("mcp add beta --json -- npx -y thing");
    assert_eq!(added["name"], "beta");
    assert_eq!(added["command"], "npx");
    let added = context.json("mcp add-json gamma '{\"url\": \"https://a.example/mcp\"}' --json");
    assert_eq!(added["name"], "gamma");
}

#[test]
fn words_that_are_not_a_program_are_not_added_as_one() {
    let context = machine(&[]);
    for (words, code, message_text) in [
        (vec!["htps://x.y/z"], 2, "mcp add x https://x.y/z"),
        (vec!["https:/x.y/z"], 2, "mcp add x https://x.y/z"),
        (vec!["exa.ai/mcp"], 2, "mcp add x https://exa.ai/mcp"),
        (
            vec!["localhost:3000/mcp"],
            2,
            "mcp add x http://localhost:3000/mcp",
        ),
        (vec!["ftp://x.y/z"], 2, "is not supported"),
        (vec!["npx -y foo"], 2, "mcp add x -- npx -y foo"),
        (vec!["--", "npx -y foo"], 2, "mcp add x -- npx -y foo"),
        (vec!["{\"command\": \"npx\"}"], 2, "mcp add-json x"),
        (vec!["--scoope", "user", "npx"], 2, "did you mean --scope?"),
        (
            vec!["--transprot", "http", "npx"],
            2,
            "did you mean --transport?",
        ),
        (
            vec!["--bearer-token-envvar", "X", "https://a.b"],
            2,
            "did you mean --bearer-token-env-var?",
        ),
    ] {
        let mut line = vec!["mcp", "add", "x"];
        line.extend(words);
        let run = context.run(&line);
        assert_eq!(run.code, code, "{line:?}\n{}", run.all());
        assert!(
            run.stderr.contains(message_text),
            "{line:?}\n{}",
            run.stderr
        );
        assert!(
            !context.exists("project/.switchboard.local.toml"),
            "{line:?}"
        );
    }
    // A missing program is added with a warning, as is one marked with --transport stdio.
    let run = context.run(&["mcp", "add", "later", "--", "not-installed", "--flag"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("program `not-installed` is not installed yet"),
        "{}",
        run.stderr
    );
    let run = context.run(&["mcp", "add", "odd", "--transport", "stdio", "exa.ai/mcp"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = context.run(&["mcp", "add", "here", "--", "npx", "x"]);
    assert!(!run.stderr.contains("is not installed"), "{}", run.stderr);
}

#[test]
fn pasted_json_is_understood() {
    let server = |file: &str| {
        let context = machine(&[]);
        let run = context.run(&["mcp", "add-json", "x", file]);
        (run, context)
    };
    for file in [
        r#"{"mcpServers": {"other": {"command": "npx", "args": ["a"]}}}"#,
        r#"{"mcpServers": {"x": {"command": "npx", "args": ["a"]}, "y": {"command": "uvx"}}}"#,
        r#"{"servers": {"x": {"command": "npx", "args": ["a"]}}}"#,
        r#"{"other": {"command": "npx", "args": ["a"]}}"#,
    ] {
        let (run, context) = server(file);
        assert_eq!(run.code, 0, "{file}\n{}", run.stderr);
        let got = context.json("mcp get x --json");
        assert_eq!(got["values"]["command"]["value"], "npx", "{file}");
    }
    let (run, _) = server(r#"{"mcpServers": {"a": {"command": "npx"}, "b": {"command": "uvx"}}}"#);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("a, b"), "{}", run.stderr);
    let (run, _) = server(r#"{"mcpServers": {}}"#);
    assert_eq!(run.code, 2);
    let (run, _) = server(r#"{"comand": "npx"}"#);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`command`?"), "{}", run.stderr);
    assert!(run.stderr.contains("comand"), "{}", run.stderr);
}

#[test]
fn one_count_of_tools_says_what_is_missing_from_it() {
    let context = machine(&[]);
    configure(
        &context,
        &[("alpha", ";disabled_tools = [\"hidden\", \"die\"]")],
    );
    let message_text = "7 tools (1 set aside, 2 hidden by its entry)";
    let tools = context.run(&["tools"]);
    assert!(tools.stdout.contains(message_text), "{}", tools.stdout);
    let doctor = context.run(&["doctor"]);
    assert!(doctor.stdout.contains(message_text), "{}", doctor.stdout);
    for line in ["mcp list", "status --connect"] {
        let run = context.line(line);
        let cell = "7 (1 set aside, 2 hidden by its entry)";
        assert!(run.stdout.contains(cell), "{line}\n{}", run.stdout);
        let rows = context.json(&format!("{line} --json"));
        let row = &rows[0];
        let counts = [&row["tools"], &row["setAside"], &row["hidden"]];
        assert_eq!(counts, [&json!(7), &json!(1), &json!(2)], "{line}");
    }
}

#[test]
fn a_closed_port_fails_to_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let context = machine(&[]);
    let entry = format!("[mcp_servers.gone]\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    context.write("config/mcp.toml", entry);
    let run = context.run(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let steps = document[0]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["step"], "connect", "{document}");
    assert_eq!(steps[0]["outcome"], "failed", "{document}");
    let text = context.run(&["doctor"]);
    assert!(!text.stdout.contains("✓ connect"), "{}", text.stdout);
}

#[test]
fn a_file_of_certificates_that_cannot_be_used_says_why() {
    let context = machine(&[]);
    context.write("project/empty.pem", "nothing\n");
    for (file, reason) in [
        ("missing.pem", "No such file"),
        ("empty.pem", "no certificate in PEM form"),
        (".", "not a regular file"),
    ] {
        let entry =
            format!("[mcp_servers.own]\nurl = \"https://127.0.0.1:9/mcp\"\nca_file = {file:?}\n");
        context.write("config/mcp.toml", entry);
        let list = context.json("mcp list --json");
        assert_eq!(list[0]["state"], "failed", "{list}");
        let error = list[0]["error"].as_str().unwrap();
        assert!(
            error.starts_with(&format!("`ca_file` {file} cannot be used: ")),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
        let doctor = context.run(&["doctor"]);
        assert!(doctor.stdout.contains(reason), "{}", doctor.stdout);
        assert_eq!(doctor.code, 3, "{}", doctor.stdout);
    }
}
