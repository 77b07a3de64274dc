//! `switchboard clients`: connecting other MCP clients, moving their servers, and undoing both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Run, TestContext};

/// Each client, its file below the home folder, and a file as a user may have it.
const CLIENTS: [(&str, &str, &str); 15] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 3, // kept\n  \"mcpServers\": {\n    \"a\": {\n      \"type\": \"stdio\",\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"a\"],\n      \"unknownKey\": {\"x\": [1, 2]}\n    }\n  },\n  \"projects\": {\"/p\": {\"mcpServers\": {}}}\n}\n",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\n  \"globalShortcut\": \"\"\n}\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# my model\nmodel = \"x\"   # spaced\n\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [ \"-y\",\n  \"a\", # last\n]\n\n[tui]\ntheme = \"dark\"\n",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t// servers\n\t\"servers\": {\n\t\t\"a\": { \"type\": \"stdio\", \"command\": \"npx\" },\n\t},\n\t\"inputs\": [],\n}\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{ \"mcpServers\": { \"a\": { \"command\": \"npx\" } } }\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n    \"theme\": \"GitHub\",\n    \"mcpServers\": {}\n}\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One Dark\", /* dark */\n  \"context_servers\": {\n    \"a\": {\n      \"command\": \"npx\",\n      \"args\": []\n    }\n  }\n}\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \"command\": [\"npx\", \"a\"]}\n  }\n}\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "# goose\nGOOSE_PROVIDER: anthropic\nextensions:\n  # built in\n  developer:\n    type: builtin\n    enabled: true\n  a: {type: stdio, name: a, enabled: true, cmd: npx, args: []}\n\nlast: |\n  text\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"a\"]}}}\n",
    ),
    (
        "kiro",
        ".kiro/settings/mcp.json",
        "{\n  \"mcpServers\": {\n\n    \"a\": {\"command\": \"npx\", \"autoApprove\": [\"x\"]}\n\n  }\n}\n",
    ),
    (
        "lm-studio",
        ".lmstudio/mcp.json",
        "{\n  \"mcpServers\": {}\n}\n",
    ),
    (
        "continue",
        ".continue/config.yaml",
        "name: Mine\nversion: 0.0.1\nschema: v1\nmcpServers:\n- name: a\n  command: npx\n  args: [\"-y\", \"a\"] # why\nmodels: []\n",
    ),
    (
        "crush",
        ".config/crush/crush.json",
        "{\n  \"$schema\": \"https://charm.land/crush.json\"\n}\n",
    ),
    (
        "amazon-q",
        ".aws/amazonq/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"npx\"}\n  }\n}\n",
    ),
];

/// A machine on which each client has this file; `None` for a folder without it.
fn machine(file: impl Fn(&str, &str) -> Option<String>) -> TestContext {
    let context = TestContext::new();
    for (_, path, sample) in CLIENTS {
        if let Some(text) = file(path, sample) {
            context.write(&format!("home/{path}"), text);
        } else {
            let path = context.path(&format!("home/{path}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
    }
    std::fs::create_dir_all(context.path("home/.claude")).unwrap();
    context
}

fn samples() -> TestContext {
    machine(|_, sample| Some(sample.to_owned()))
}

/// All files and folders of the home folder.
pub(crate) fn home(context: &TestContext) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(path.clone(), None);
                walk(&path, found);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path, Some(bytes));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&context.path("home"), &mut found);
    found
}

pub(crate) fn done(run: &Run) {
    assert_eq!(run.code, 0, "{}", run.all());
}

pub(crate) fn client<'v>(rows: &'v Value, name: &str) -> &'v Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["client"] == name).unwrap()
}

#[test]
fn every_client_is_connected_and_given_back_byte_for_byte() {
    let check = |variant: &str, file: &dyn Fn(&str, &str) -> Option<String>| {
        let context = machine(file);
        let before = home(&context);
        done(&context.line("clients connect --yes"));
        let list = context.json("clients list --json");
        for (name, path, _) in CLIENTS {
            let row = client(&list, name);
            assert_eq!(row["connected"], true, "{variant}: {name}");
            let shown = context.path(&format!("home/{path}")).display().to_string();
            assert_eq!(row["file"], shown, "{variant}: {name}");
        }
        let status = context.json("clients status --json");
        for (name, ..) in CLIENTS {
            let row = client(&status, name);
            assert_eq!(row["state"], "connected", "{variant}: {row}");
            assert_eq!(row["args"], json!(["connect"]), "{variant}: {name}");
        }
        // A second run changes nothing.
        let connected = home(&context);
        let again = context.line("clients connect --yes");
        done(&again);
        assert_eq!(home(&context), connected, "{variant}");
        let unchanged = again
            .stderr
            .matches("is connected already; nothing changed");
        assert_eq!(unchanged.count(), CLIENTS.len(), "{}", again.stderr);

        done(&context.line("clients disconnect"));
        let after = home(&context);
        for (path, bytes) in &before {
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            let (is, was) = (after.get(path), bytes.as_ref().map(text));
            assert_eq!(is.and_then(|is| is.as_ref().map(text)), was, "{variant}");
        }
        assert_eq!(after, before, "{variant}");
        let list = context.json("clients list --json");
        assert!(
            list.as_array()
                .unwrap()
                .iter()
                .all(|row| row["connected"] == false)
        );
    };
    check("as it is", &|_, sample| Some(sample.to_owned()));
    check("mark", &|_, sample| Some(format!("\u{feff}{sample}")));
    check("CRLF", &|_, sample| Some(sample.replace('\n', "\r\n")));
    check("no last line break", &|_, sample| {
        Some(sample.trim_end().to_owned())
    });
    check("tabs", &|path, sample| {
        let is_yaml = Path::new(path).extension().is_some_and(|it| it == "yaml");
        Some(if is_yaml {
            sample.to_owned()
        } else {
            sample.replace("  ", "\t")
        })
    });
    check("empty", &|_, _| Some(String::new()));
    check("blank lines", &|_, _| Some("\n\n".to_owned()));
    check("missing", &|_, _| None);
}

#[test]
fn a_file_edited_since_loses_only_the_entry() {
    for (name, path, sample) in CLIENTS {
        let context = TestContext::new();
        let file = format!("home/{path}");
        context.write(&file, sample);
        done(&context.line("clients connect --yes"));
        let connected = context.read(&file);
        let edit = |text: &str| match Path::new(path).extension().unwrap().to_str().unwrap() {
            "toml" | "yaml" => format!("# edited\n{text}"),
            _ => format!("// edited\n{text}"),
        };
        context.write(&file, edit(&connected));
        let run = context.line(&format!("clients disconnect {name}"));
        done(&run);
        assert!(
            run.stderr.contains("other changes of the file stay"),
            "{}",
            run.stderr
        );
        assert_eq!(context.read(&file), edit(sample), "{name}");
    }
}

#[test]
fn a_new_file_and_its_folders_are_deleted_again() {
    let context = TestContext::new();
    let before = home(&context);
    let run = context.line("clients connect --yes");
    done(&run);
    assert!(
        run.stderr.contains("no MCP clients found"),
        "{}",
        run.stderr
    );
    done(&context.line("clients connect kiro amazon-q --yes"));
    assert!(context.exists("home/.kiro/settings/mcp.json"));
    let entry = context.read("home/.aws/amazonq/mcp.json");
    assert!(entry.contains("\"connect\""), "{entry}");
    done(&context.line("clients disconnect"));
    assert_eq!(home(&context), before);
}

#[test]
fn the_command_is_the_name_if_that_finds_this_program() {
    let context = samples();
    done(&context.line("clients connect cursor --yes"));
    let program = assert_cmd::cargo::cargo_bin("switchboard");
    let command = |context: &TestContext| {
        let text = context.read("home/.cursor/mcp.json");
        let file: Value = serde_json::from_str(&text).unwrap();
        file["mcpServers"]["switchboard"]["command"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(Path::new(&command(&context)), program);
    done(&context.line("clients disconnect"));
    std::os::unix::fs::symlink(program, context.path("bin/switchboard")).unwrap();
    done(&context.line("clients connect cursor --yes"));
    assert_eq!(command(&context), "switchboard");
}

#[test]
fn a_program_that_moved_makes_an_entry_stale() {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        r#"{"mcpServers": {"switchboard": {"command": "/old/switchboard", "args": ["connect", "--profile", "work"], "timeout": 9}}}"#,
    );
    let run = context.line("clients status");
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(
        run.stdout
            .contains("it starts /old/switchboard, this program is"),
        "{}",
        run.all()
    );
    assert!(run.stderr.contains("clients connect"), "{}", run.stderr);
    done(&context.line("clients connect --yes"));
    let status = context.json("clients status --json");
    assert_eq!(client(&status, "cursor")["profile"], "work");
    let text = context.read("home/.cursor/mcp.json");
    assert!(text.contains("\"timeout\": 9"), "{text}");
    // There is no earlier state to restore, so only the entry goes.
    done(&context.line("clients disconnect"));
    assert_eq!(
        context.read("home/.cursor/mcp.json"),
        "{\"mcpServers\": {}}"
    );
}

#[test]
fn nothing_is_written_without_consent() {
    let context = samples();
    let before = home(&context);
    let run = context.line("clients connect");
    assert_eq!(run.code, 5, "{}", run.all());
    assert!(
        run.stderr.contains("repeat the command with --yes"),
        "{}",
        run.stderr
    );
    let run = context.line("clients connect --dry-run");
    done(&run);
    assert!(run.stdout.contains("+      \"command\""), "{}", run.stdout);
    assert_eq!(home(&context), before);
    assert!(!context.exists("state/clients"));
    done(&context.line("clients connect --yes"));
    let connected = home(&context);
    let run = context.line("clients disconnect --dry-run");
    done(&run);
    assert!(run.stdout.contains("-      \"command\""), "{}", run.stdout);
    assert_eq!(home(&context), connected);
}

#[test]
fn a_preview_hides_secrets_and_control_characters() {
    let context = TestContext::new();
    context.write(
        "home/.cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\\u001b[2J\": {\n      \"command\": \"npx\",\n      \"args\": [\"--api-key\", \"TOPSECRET1\"],\n      \"env\": {\"REGION\": \"TOPSECRET2\"},\n      // token=TOPSECRET3\n      \"x\u{202e}\": \"\u{1b}[31m\"\n    }\n  }\n}\n",
    );
    context.write(
        "home/.codex/config.toml",
        "[mcp_servers.a]\nurl = \"https://u:TOPSECRET4@h/\"\nhttp_headers = { X = \"TOPSECRET5\" }\n",
    );
    context.write(
        "home/.config/goose/config.yaml",
        "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    envs: {K: TOPSECRET6}\n",
    );
    for line in [
        "clients connect --dry-run --move",
        "clients connect --dry-run --json",
    ] {
        let run = context.line(line);
        done(&run);
        assert!(!run.all().contains("TOPSECRET"), "{}", run.all());
        assert!(!run.all().contains(['\u{1b}', '\u{202e}']), "{}", run.all());
        assert!(run.all().contains("connect"), "{}", run.all());
    }
}

#[test]
fn an_entry_of_another_program_is_not_overwritten() {
    let context = TestContext::new();
    let text = "{\"mcpServers\": {\"switchboard\": {\"command\": \"telephone\", \"env\": {\"A\": \"b\"}}}}";
    context.write("home/.cursor/mcp.json", text);
    context.write("home/.gemini/settings.json", "{}");
    let run = context.line("clients connect --yes");
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.stderr.contains("--force"), "{}", run.stderr);
    assert_eq!(context.read("home/.cursor/mcp.json"), text);
    assert!(
        context
            .read("home/.gemini/settings.json")
            .contains("connect")
    );
    done(&context.line("clients connect cursor --force --yes"));
    let forced = context.read("home/.cursor/mcp.json");
    assert!(
        !forced.contains("telephone") && !forced.contains("env"),
        "{forced}"
    );
    done(&context.line("clients disconnect"));
    assert_eq!(context.read("home/.cursor/mcp.json"), text);
}

#[test]
fn a_file_that_cannot_be_parsed_is_left_alone_and_the_others_are_done() {
    let context = samples();
    for (path, text) in [
        (".cursor/mcp.json", "{\n  \"mcpServers\": {,}\n}"),
        (".codex/config.toml", "a = 1\nb = [\n"),
        (".config/goose/config.yaml", "extensions:\n  a: [1\n"),
        (".kiro/settings/mcp.json", "[1]"),
        (".lmstudio/mcp.json", "{\"mcpServers\": 3}"),
    ] {
        context.write(&format!("home/{path}"), text);
    }
    context.write("home/.gemini/settings.json", b"\xff\xfe{}");
    let before = home(&context);
    let run = context.line("clients connect --yes --json");
    assert_eq!(run.code, 3, "{}", run.all());
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    for (name, place) in [
        ("cursor", "mcp.json:2:"),
        ("codex", "config.toml:"),
        ("goose", "config.yaml:"),
        ("kiro", "mcp.json:1:1"),
        ("lm-studio", "is not a table"),
        ("gemini", "not UTF-8"),
    ] {
        let row = client(&rows, name);
        assert_eq!(row["result"], "failed", "{row}");
        assert!(row["reason"].as_str().unwrap().contains(place), "{row}");
    }
    assert_eq!(client(&rows, "zed")["result"], "connected");
    let after = home(&context);
    let changed = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(bytes));
    assert_eq!(changed.count(), CLIENTS.len() - 6);
    let list = context.line("clients list");
    assert_eq!(
        list.stdout.matches("unreadable").count(),
        5,
        "{}",
        list.stdout
    );
}

#[test]
fn a_backup_is_private_and_named_after_time_and_client() {
    use std::os::unix::fs::PermissionsExt as _;
    let context = samples();
    done(&context.line("clients connect cursor --yes"));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let folder = context.path("state/clients/backups");
    let backups: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [backup] = backups.as_slice() else {
        panic!("{backups:?}");
    };
    let name = backup.file_name().unwrap().to_str().unwrap();
    assert!(
        name.ends_with("Z-cursor.json") && name.starts_with("20"),
        "{name}"
    );
    assert_eq!(std::fs::read_to_string(backup).unwrap(), CLIENTS[4].2);
    let record = context.path("state/clients/cursor.json");
    assert_eq!(
        [mode(backup), mode(&record), mode(&folder)],
        [0o600, 0o600, 0o700]
    );
}

#[test]
fn a_link_out_of_the_home_folder_is_named() {
    let context = TestContext::new();
    context.write("elsewhere/mcp.json", "{}\n");
    std::fs::create_dir_all(context.path("home/.cursor")).unwrap();
    let link = context.path("home/.cursor/mcp.json");
    std::os::unix::fs::symlink(context.path("elsewhere/mcp.json"), &link).unwrap();
    let run = context.line("clients connect --yes");
    done(&run);
    let real = context.path("elsewhere/mcp.json").display().to_string();
    let said = format!("it leads out of your home folder: {real} is changed");
    assert!(run.stderr.contains(&said), "{}", run.stderr);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(context.read("elsewhere/mcp.json").contains("connect"));
    done(&context.line("clients disconnect"));
    assert_eq!(context.read("elsewhere/mcp.json"), "{}\n");
}

#[test]
fn continue_keeps_its_older_file() {
    let context = TestContext::new();
    context.write("home/.continue/config.json", "{}");
    let run = context.line("clients connect --yes");
    done(&run);
    assert!(
        run.stderr.contains("which it would ignore"),
        "{}",
        run.stderr
    );
    assert!(!context.exists("home/.continue/config.yaml"));
}

#[test]
fn names_of_clients_are_completed_and_checked() {
    let context = TestContext::new();
    let run = context.line("clients connect emacs");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("claude-code"), "{}", run.stderr);
    let run = context.run(&[
        "__complete",
        "fish",
        "switchboard",
        "clients",
        "connect",
        "cursor",
        "c",
    ]);
    assert!(run.stdout.contains("codex"), "{}", run.all());
    assert!(!run.stdout.contains("cursor"), "{}", run.all());
}
