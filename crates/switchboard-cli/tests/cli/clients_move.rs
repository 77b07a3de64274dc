//! `switchboard clients connect --move`: servers of clients are moved to Switchboard and back.

use serde_json::Value;

use crate::clients::{client, done, home};
use crate::support::{TestContext, named};

/// Two clients with servers: equal ones, different ones of one name, and ones that cannot be moved.
fn with_servers() -> TestContext {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    // my files\n    \"files\": {\"command\": \"npx\", \"args\": [\"files\"], \"env\": {\"KEY\": \"TOPSECRET\"}},\n    \"web\": {\"url\": \"https://web.example/mcp\"},\n    \"broken\": {\"args\": []},\n    \"both\": {\"command\": \"npx\", \"args\": [\"both\"]}\n  }\n}\n",
    );
    context.write(
        "home/.codex/config.toml",
        "model = \"x\"\n\n# shared\n[mcp_servers.both]\ncommand = \"npx\"\nargs = [\"both\"]\n\n[mcp_servers.web]\nurl = \"https://other.example/mcp\"\n",
    );
    context.write(
        "home/.config/goose/config.yaml",
        "extensions:\n  developer:\n    type: builtin\n    enabled: true\n  # third\n  third:\n    type: stdio\n    name: third\n    enabled: true\n    cmd: npx\n    args: [third]\n",
    );
    context
}

#[test]
fn servers_are_moved_and_defined_once() {
    let context = with_servers();
    let run = context.line("clients connect --move --yes --json");
    done(&run);
    assert!(!run.all().contains("TOPSECRET"), "{}", run.all());
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    let fates = |name: &str| -> Vec<String> {
        let moves = client(&rows, name)["moves"].as_array().unwrap();
        moves
            .iter()
            .map(|each| {
                format!(
                    "{} {}",
                    each["name"].as_str().unwrap(),
                    each["result"].as_str().unwrap()
                )
            })
            .collect()
    };
    // Clients come in the order of `clients list`: Codex before Cursor.
    assert_eq!(fates("codex"), ["both moved", "web moved"]);
    assert_eq!(
        fates("cursor"),
        ["files moved", "web stays", "both removed", "broken stays"]
    );
    assert_eq!(fates("goose"), ["third moved"]);
    assert!(
        run.stderr.contains("`files` has secrets in plain text"),
        "{}",
        run.stderr
    );
    let list = context.json("mcp list --no-connect --json");
    for name in ["files", "web", "both", "third"] {
        assert_eq!(named(&list, name)["scope"], "user", "{list}");
    }
    let cursor = context.read("home/.cursor/mcp.json");
    assert!(
        !cursor.contains("files") && !cursor.contains("both"),
        "{cursor}"
    );
    assert!(
        cursor.contains("https://web.example/mcp") && cursor.contains("broken"),
        "{cursor}"
    );
    let goose = context.read("home/.config/goose/config.yaml");
    assert!(
        goose.contains("developer") && !goose.contains("third"),
        "{goose}"
    );
    // A second run has nothing left to do.
    let before = home(&context);
    done(&context.line("clients connect --move --yes"));
    assert_eq!(home(&context), before);
}

#[test]
fn a_move_is_undone() {
    let context = with_servers();
    let before = home(&context);
    done(&context.line("clients connect --move --yes"));
    let run = context.line("clients disconnect");
    done(&run);
    assert_eq!(home(&context), before, "{}", run.stderr);
    let list = context.json("mcp list --no-connect --json");
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["workspace"], "{}", run.stderr);
}

#[test]
fn a_shared_server_stays_until_the_last_client_is_disconnected() {
    let context = with_servers();
    done(&context.line("clients connect --move --yes"));
    let run = context.line("clients disconnect codex");
    done(&run);
    assert!(
        run.stderr
            .contains("`both` stays in Switchboard, because Cursor uses it"),
        "{}",
        run.stderr
    );
    assert!(context.read("config/mcp.toml").contains("mcp_servers.both"));
    done(&context.line("clients disconnect cursor"));
    assert!(!context.read("config/mcp.toml").contains("mcp_servers.both"));
}

#[test]
fn a_move_is_undone_after_edits_on_both_sides() {
    let context = with_servers();
    done(&context.line("clients connect --move --yes"));
    done(&context.line("config set files.tool_timeout_sec 5"));
    for (path, comment) in [
        ("home/.cursor/mcp.json", "// edited"),
        ("home/.config/goose/config.yaml", "# edited"),
    ] {
        let text = context.read(path);
        context.write(path, format!("{comment}\n{text}"));
    }
    let run = context.line("clients disconnect");
    done(&run);
    assert!(
        run.stderr
            .contains("`files` stays in Switchboard, because you have changed it there"),
        "{}",
        run.stderr
    );
    let ours = context.read("config/mcp.toml");
    assert!(
        ours.contains("mcp_servers.files") && !ours.contains("third"),
        "{ours}"
    );
    let cursor = context.read("home/.cursor/mcp.json");
    assert!(
        cursor.starts_with("// edited\n") && !cursor.contains("connect"),
        "{cursor}"
    );
    for name in ["files", "web", "both", "broken", "TOPSECRET"] {
        assert!(cursor.contains(name), "{cursor}");
    }
    let goose = context.read("home/.config/goose/config.yaml");
    assert!(
        goose.starts_with("# edited\n") && goose.contains("third:"),
        "{goose}"
    );
}

#[test]
fn a_server_that_switchboard_has_is_removed_from_the_client() {
    let context = TestContext::new();
    done(&context.line("mcp add mine --scope user -- npx files"));
    let text = "{\"mcpServers\": {\"theirs\": {\"command\": \"npx\", \"args\": [\"files\"]}}}";
    context.write("home/.cursor/mcp.json", text);
    let run = context.line("clients connect --move --yes");
    done(&run);
    assert!(
        run.stderr
            .contains("`theirs` is in Switchboard already, as `mine`"),
        "{}",
        run.stderr
    );
    assert!(!context.read("home/.cursor/mcp.json").contains("theirs"));
    let run = context.line("clients disconnect");
    done(&run);
    assert!(
        run.stderr
            .contains("`mine` stays in Switchboard, which had it before"),
        "{}",
        run.stderr
    );
    assert_eq!(context.read("home/.cursor/mcp.json"), text);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_changes_while_the_user_is_asked_is_not_overwritten() {
    use crate::chat::Machine;
    use crate::terminal::Terminal;

    let machine = Machine::new(Vec::new());
    let context = &machine.context;
    let path = "home/.cursor/mcp.json";
    let text = "{\"mcpServers\": {\"files\": {\"command\": \"npx\"}}}";
    let ask = |key: &str, meanwhile: Option<&str>| {
        let mut terminal = Terminal::start(&machine, &["clients", "connect", "--move"], 120, &[]);
        terminal.sees("change this file? [y/N]");
        if let Some(text) = meanwhile {
            context.write(path, text);
        }
        terminal.press(key);
        terminal.end()
    };
    let ours = || std::fs::read_to_string(context.path("config/mcp.toml")).unwrap_or_default();
    context.write(path, text);

    let (code, screen) = ask("n", None);
    assert_eq!(code, Some(5), "{screen}");
    assert_eq!((context.read(path).as_str(), ours().as_str()), (text, ""));

    let (code, screen) = ask("y", Some("{}"));
    assert_eq!(code, Some(1), "{screen}");
    let words: Vec<&str> = screen.split_whitespace().collect();
    let unwrapped = words.join(" ");
    assert!(unwrapped.contains("changed by another program"), "{screen}");
    // The server is not defined twice, and there is nothing to undo.
    assert_eq!((context.read(path).as_str(), ours().trim()), ("{}", ""));

    context.write(path, text);
    let (code, screen) = ask("y", None);
    assert_eq!(code, Some(0), "{screen}");
    assert!(ours().contains("[mcp_servers.files]"), "{screen}");
    done(&context.line("clients disconnect"));
    assert_eq!((context.read(path).as_str(), ours().trim()), (text, ""));
}

#[test]
fn nothing_is_moved_where_an_administrator_excludes_other_servers() {
    let context = with_servers();
    context.write("managed.toml", "mode = \"exclusive\"\n");
    let before = context.read("home/.cursor/mcp.json");
    let run = context.line("clients connect cursor --move --dry-run");
    done(&run);
    assert!(
        run.stdout
            .contains("enterprise file excludes all other servers"),
        "{}",
        run.all()
    );
    assert!(
        !run.stdout.contains("moves to Switchboard"),
        "{}",
        run.all()
    );
    assert_eq!(context.read("home/.cursor/mcp.json"), before);
}

#[test]
fn a_server_that_is_defined_twice_stays() {
    for (path, text, title) in [
        (
            "home/.continue/config.yaml",
            "name: x\nmcpServers:\n  - name: a\n    command: npx\n  - name: a\n    command: uvx\n  - name: b\n    command: b\n",
            "Continue",
        ),
        (
            "home/.cursor/mcp.json",
            "{\"mcpServers\": {\"a\": {\"command\": \"npx\"}, \"a\": {\"command\": \"uvx\"}, \"b\": {\"command\": \"b\"}}}",
            "Cursor",
        ),
    ] {
        let context = TestContext::new();
        context.write(path, text);
        let run = context.line("clients connect --move --yes");
        done(&run);
        let stays = format!("`a` stays in {title}");
        assert!(run.stderr.contains(&stays), "{}", run.stderr);
        assert!(run.stderr.contains("`b` moves"), "{}", run.stderr);
        assert!(context.read(path).contains("uvx"));
        done(&context.line("clients disconnect"));
        assert_eq!(context.read(path), text);
    }
}

#[test]
fn a_lost_record_or_backup_loses_nothing() {
    let check = |harm: &dyn Fn(&TestContext), has_moved_back: bool| {
        let context = with_servers();
        done(&context.line("clients connect --move --yes"));
        harm(&context);
        let run = context.line("clients disconnect");
        done(&run);
        let cursor = context.read("home/.cursor/mcp.json");
        assert!(!cursor.contains("connect"), "{cursor}");
        assert!(cursor.contains("broken"), "{cursor}");
        assert_eq!(cursor.contains("TOPSECRET"), has_moved_back, "{cursor}");
        let is_kept = context.read("config/mcp.toml").contains("TOPSECRET");
        assert!(is_kept || has_moved_back, "{}", run.all());
    };
    let record = "state/clients/cursor.json";
    check(&|context| context.write(record, "{"), false);
    check(
        &|context| std::fs::remove_file(context.path(record)).unwrap(),
        false,
    );
    check(
        &|context| std::fs::remove_dir_all(context.path("state/clients/backups")).unwrap(),
        true,
    );
    // A record of a newer version is not touched.
    let context = with_servers();
    done(&context.line("clients connect cursor --yes"));
    context.write(record, "{\"version\": 2}");
    let run = context.line("clients disconnect");
    assert_eq!(run.code, 1, "{}", run.all());
    assert_eq!(context.read(record), "{\"version\": 2}");
}
