//! Tests of resolving: scopes, trust, lists, expansion and duplicates.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;
mod profiles;
mod trust;

use std::path::Path;

use machine::*;
use switchboard_config::diagnostic::Severity;
use switchboard_config::document::EnterpriseMode;
use switchboard_config::files::{InMemory, project_root};
use switchboard_config::resolve::Status;
use switchboard_config::settings::Setting;

fn seven_scopes(mode: &str) -> Machine {
    Machine::new()
        .file(
            ENTERPRISE,
            &(format!("{mode}\n") + &toml("s", "enterprise")),
        )
        .file(LOCAL, &toml("s", "local"))
        .file(PROJECT, &toml("s", "project"))
        .file(USER, &toml("s", "user"))
        .file(PLUGIN, &json("s", "plugin"))
        .file(DYNAMIC, &toml("s", "dynamic"))
        .cloud(&json("s", "cloud"))
        .trusted()
}

#[test]
fn the_highest_scope_wins_whole_and_the_others_are_listed() {
    let mut machine = seven_scopes("mode = \"merge\"");
    machine.check(
        "s = enterprise enterprise ready
         shadowed s of local: enterprise scope has the same name, at /etc/switchboard/managed.toml:2:14
         shadowed s of project: enterprise scope has the same name, at /etc/switchboard/managed.toml:2:14
         shadowed s of user: enterprise scope has the same name, at /etc/switchboard/managed.toml:2:14
         shadowed s of plugin: enterprise scope has the same name, at /etc/switchboard/managed.toml:2:14
         shadowed s of dynamic: enterprise scope has the same name, at /etc/switchboard/managed.toml:2:14",
    );
    // Remove the highest file repeatedly: the next scope wins each time.
    let order = ["local", "project", "user", "plugin", "dynamic", "cloud"];
    for (gone, winner) in [ENTERPRISE, LOCAL, PROJECT, USER, PLUGIN, DYNAMIC]
        .into_iter()
        .zip(order)
    {
        machine = machine.file(gone, if gone.ends_with("json") { "{}" } else { "" });
        if gone == ENTERPRISE {
            machine.inputs.folders.managed_file = None;
        }
        let config = machine.load();
        assert_eq!(config.servers[0].entry.command.as_deref(), Some(winner));
        assert_eq!(config.servers[0].scope().name(), winner);
    }
}

#[test]
fn an_enterprise_file_is_exclusive_unless_it_says_merge() {
    seven_scopes("").check("s = enterprise enterprise ready");
    seven_scopes("mode = \"exclusive\"").check("s = enterprise enterprise ready");
    // A broken managed file still takes effect.
    let broken = Machine::new()
        .file(ENTERPRISE, "mode = \"merge\"\n[mcp_servers.x\n")
        .file(USER, &toml("s", "user"));
    let config = broken.load();
    assert!(config.server("s").is_none());
    assert!(config.has_errors());
    let misspelt = Machine::new()
        .file(ENTERPRISE, "mode = \"merged\"\n")
        .file(USER, &toml("s", "user"));
    assert!(misspelt.load().servers.is_empty());
}

#[test]
fn in_merge_mode_cloud_entries_are_not_loaded_and_the_lists_bind_everyone() {
    let lists =
        "[security]\nmcp_server_allowlist = [\"good*\"]\nmcp_server_denylist = [\"goodbye\"]\n";
    Machine::new()
        .file(ENTERPRISE, &format!("mode = \"merge\"\n{lists}"))
        .file(USER, &(toml("good", "a") + &toml("goodbye", "b") + &toml("other", "c")))
        .cloud(&json("good-cloud", "d"))
        .check(
            "good = user a ready
             goodbye = user b blocked (denied by \"goodbye\" in mcp_server_denylist at /etc/switchboard/managed.toml:4:24)
             other = user c blocked (not in the mcp_server_allowlist at /etc/switchboard/managed.toml:3:1)",
        );
}

#[test]
fn a_user_list_does_not_bind_enterprise_servers() {
    Machine::new()
        .file(
            ENTERPRISE,
            &("mode = \"merge\"\n".to_owned() + &toml("corp", "a")),
        )
        .file(
            USER,
            &("[security]\nmcp_server_allowlist = [\"mine\"]\n".to_owned() + &toml("mine", "b")),
        )
        .check("corp = enterprise a ready\nmine = user b ready");
}

#[test]
fn an_allow_list_is_about_the_address_that_is_used() {
    let servers = "[mcp_servers.good]\nurl = 'https://${HOST}/mcp'\n\
                   [mcp_servers.bad]\nurl = 'https://${HOST}.evil.example/mcp'\n";
    let list = "[security]\nmcp_server_allowlist = ['https://*.corp.example/*']\n";
    Machine::new()
        .env(&[("HOST", "a.corp.example")])
        .file(USER, &(list.to_owned() + servers))
        .check(&format!(
            "bad = user https://a.corp.example.evil.example/mcp blocked (not in the mcp_server_allowlist at {USER}:2:1)
             good = user https://a.corp.example/mcp ready"
        ));
}

#[test]
fn a_faulty_allow_list_allows_nothing() {
    for list in ["[\"[\"]", "5", "\"s\""] {
        let text = format!("[security]\nmcp_server_allowlist = {list}\n") + &toml("s", "a");
        assert_eq!(
            Machine::new().file(USER, &text).load().servers[0]
                .status
                .word(),
            "blocked",
            "{list}"
        );
    }
}

#[test]
fn within_a_scope_our_own_files_win() {
    Machine::new()
        .file("/p/.claude/settings.json", &json("s", "claude"))
        .file(PROJECT_JSON, &json("s", "json"))
        .file(
            "/p/switchboard.hcl",
            "mcp_servers \"s\" {\n  command = \"hcl\"\n}\n",
        )
        .file(PROJECT, &toml("s", "toml"))
        .trusted()
        .check(
            "s = project toml ready
             shadowed s of project: project scope has the same name, at /p/.mcp.toml:1:14
             shadowed s of project: project scope has the same name, at /p/.mcp.toml:1:14
             shadowed s of project: project scope has the same name, at /p/.mcp.toml:1:14",
        );
    Machine::new()
        .file("/h/.claude/settings.json", &json("s", "claude"))
        .file("/h/.config/switchboard/mcp.hcl", "mcp_servers {\n  name = \"s\"\n  command = \"hcl\"\n}\n")
        .check(
            "s = user hcl ready
             shadowed s of user: user scope has the same name, at /h/.config/switchboard/mcp.hcl:2:10",
        );
}

#[test]
fn a_missing_variable_disables_one_server_and_says_so() {
    let text = r#"
[mcp_servers.a]
command = "run"
args = ["${SET}", "${UNSET:-fallback}"]
[mcp_servers.b]
url = "https://x.example/${UNSET}"
[mcp_servers.c]
command = "run"
enabled = false
args = ["${UNSET}"]
"#;
    Machine::new().env(&[("SET", "value")]).file(USER, text).check(
        "a = user run ready
         b = user https://x.example/${UNSET} invalid (the environment variable `UNSET` is not set)
         c = user run disabled (disabled in its entry)
         error /h/.config/switchboard/mcp.toml:6:26: the environment variable `UNSET` is not set, which `url` of server `b` needs; set UNSET, or give a default: ${UNSET:-default}",
    );
}

#[test]
fn a_server_that_misses_a_thousand_variables_says_enough() {
    let args: Vec<String> = (0..1_000).map(|index| format!("'${{X{index}}}'")).collect();
    let text = format!(
        "[mcp_servers.s]\ncommand = 'x'\nargs = [{}]\n",
        args.join(",")
    );
    assert_eq!(
        Machine::new().file(USER, &text).load().diagnostics.len(),
        20
    );
}

#[test]
fn references_mean_the_same_in_every_format() {
    let expected = ["1", "fallback", "1", "/p/x", "/h", "${A}"];
    let args =
        r#"["${A}", "${B:-fallback}", "${env:A}", "${workspaceFolder}/x", "${home}", "$${A}"]"#;
    let by_function = args.replace("\"${env:A}\"", "env(\"A\")");
    for (file, text) in [
        (
            "mcp.toml",
            format!("[mcp_servers.s]\ncommand = \"c\"\nargs = {args}\n"),
        ),
        (
            "mcp.json",
            format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"c\", \"args\": {args}}}}}}}"),
        ),
        (
            "mcp.hcl",
            format!("mcp_servers \"s\" {{\n  command = \"c\"\n  args = {args}\n}}\n"),
        ),
        (
            "mcp.hcl",
            format!("mcp_servers \"s\" {{\n  command = \"c\"\n  args = {by_function}\n}}\n"),
        ),
    ] {
        let machine = Machine::new()
            .env(&[("A", "1")])
            .file(&format!("/h/.config/switchboard/{file}"), &text);
        let config = machine.load();
        assert_eq!(config.diagnostics, [], "{text}");
        assert_eq!(config.servers[0].effective().args, expected, "{text}");
    }
}

#[test]
fn entries_of_different_scopes_with_one_endpoint_are_one_server() {
    let user = r#"
[mcp_servers.one]
url = "https://A.example:443/mcp/"
[mcp_servers.run]
command = "c"
args = ["x"]
env = { A = "1", B = "2" }
"#;
    let plugin = r#"{"mcpServers": {
        "two": {"url": "https://a.example/mcp"},
        "walk": {"command": "c", "args": ["x"], "env": {"B": "2", "A": "1"}},
        "other": {"command": "c", "args": ["x"], "env": {"A": "1"}}
    }}"#;
    Machine::new().file(USER, user).file(PLUGIN, plugin).check(
        "one = user https://A.example:443/mcp/ ready
         other = plugin c ready
         run = user c ready
         two = plugin https://a.example/mcp shadowed (shadowed by `one` (user scope, /h/.config/switchboard/mcp.toml:2:14), which points to the same endpoint)
         walk = plugin c shadowed (shadowed by `run` (user scope, /h/.config/switchboard/mcp.toml:4:14), which points to the same endpoint)
         shadowed two of plugin: same endpoint as `one` of user scope, at /h/.config/switchboard/mcp.toml:2:14
         shadowed walk of plugin: same endpoint as `run` of user scope, at /h/.config/switchboard/mcp.toml:4:14",
    );
    // Within one scope, two entries are two servers.
    let twice = "[mcp_servers.one]\nurl = \"https://a.example/mcp\"\n[mcp_servers.two]\nurl = \"https://a.example/mcp\"\n";
    Machine::new()
        .file(USER, twice)
        .check("one = user https://a.example/mcp ready\ntwo = user https://a.example/mcp ready");
    // Independent of other scopes.
    let other = r#"{"mcpServers": {"three": {"command": "c"}}}"#;
    Machine::new().file(USER, twice).file(PLUGIN, other).check(
        "one = user https://a.example/mcp ready
         three = plugin c ready
         two = user https://a.example/mcp ready",
    );
}

#[test]
fn a_disabled_entry_hides_nothing_but_its_own_name() {
    let plugin = r#"{"mcpServers": {"two": {"url": "https://a.example/mcp"}}}"#;
    let user = "[mcp_servers.one]\nurl = \"https://a.example/mcp\"\nenabled = false\n";
    Machine::new().file(USER, user).file(PLUGIN, plugin).check(
        "one = user https://a.example/mcp disabled (disabled in its entry)
         two = plugin https://a.example/mcp ready",
    );
    // For the same name the higher scope still wins: that is how a server is disabled in one project.
    let same = user.replace("one", "two");
    Machine::new().file(USER, &same).file(PLUGIN, plugin).check(
        "two = user https://a.example/mcp disabled (disabled in its entry)
         shadowed two of plugin: user scope has the same name, at /h/.config/switchboard/mcp.toml:1:14",
    );
}

#[test]
fn of_two_names_that_can_be_mistaken_the_higher_scope_is_used() {
    let check = |user: &str, project: &str, expected: &str| {
        let machine = Machine::new()
            .file(USER, &toml(&format!("{user:?}"), "a"))
            .file(PROJECT, &toml(&format!("{project:?}"), "b"))
            .trusted();
        let config = machine.load();
        let states: Vec<String> = config
            .servers
            .iter()
            .map(|server| {
                format!(
                    "{} {} {}",
                    server.scope(),
                    server.name,
                    server.status.word()
                )
            })
            .collect();
        let mut states = states;
        states.sort();
        assert_eq!(states.join(", "), expected);
    };
    check(
        "github",
        "GitHub",
        "project GitHub ready, user github refused",
    );
    check(
        "GitHub",
        "github",
        "project github ready, user GitHub refused",
    );
    check(
        "gіthub",
        "github",
        "project github ready, user gіthub refused",
    );
    check("my-db", "my_db", "project my_db ready, user my-db refused");
    check(
        "paypal",
        "paypa1",
        "project paypa1 ready, user paypal refused",
    );
    check(
        "github",
        "gitlab",
        "project gitlab ready, user github ready",
    );
    // Within one scope the earlier entry is used.
    let twins = toml("b-c", "a") + &toml("b_c", "b");
    let config = Machine::new().file(USER, &twins).load();
    assert_eq!(config.server("b-c").unwrap().status, Status::Ready);
    let Status::Refused { by, instead, .. } = &config.server("b_c").unwrap().status else {
        panic!("{:?}", config.server("b_c"));
    };
    assert_eq!((by.as_str(), instead.as_str()), ("b-c", "b-c-user"));
    let finding = config.diagnostics.first().unwrap();
    assert_eq!(finding.code, "confusable-name");
    assert_eq!(finding.severity, Severity::Error);
    // Unused entries do not reserve their names: neither untrusted nor disabled ones.
    let machine = Machine::new()
        .file(USER, &toml("github", "a"))
        .file(PROJECT, &toml("GitHub", "b"));
    assert_eq!(
        machine.load().server("github").unwrap().status,
        Status::Ready
    );
    let machine = Machine::new()
        .file(USER, &toml("github", "a"))
        .file(LOCAL, &(toml("GitHub", "b") + "enabled = false\n"));
    assert_eq!(
        machine.load().server("github").unwrap().status,
        Status::Ready
    );
}

#[test]
fn names_of_built_in_tools_are_refused_with_another_to_use() {
    for (name, instead) in [
        ("grep", "grep-mcp"),
        ("Bash", "bash-mcp"),
        ("b-a-s-h", "bash-mcp"),
        ("Rеad", "read-mcp"),
        ("mcp__x", "x"),
        ("mcp__grep", "my-server"),
    ] {
        let config = Machine::new()
            .file(USER, &toml(&format!("\"{name}\""), "a"))
            .load();
        let server = config.server(name).unwrap();
        assert_eq!(server.status.word(), "invalid", "{name}");
        let finding = config.diagnostics.first().unwrap();
        assert_eq!(finding.code, "reserved-name");
        let hint = finding.hint.as_deref().unwrap();
        assert!(hint.ends_with(&format!("`{instead}`")), "{hint}");
    }
}

#[test]
fn a_variable_that_holds_a_secret_has_to_be_set() {
    let file = "[mcp_servers.a]\nurl = \"https://a.example/\"\nbearer_token_env_var = \"TOKEN\"\n\
                [mcp_servers.b]\nurl = \"https://b.example/\"\n[mcp_servers.b.oauth]\nclient_secret_env_var = \"SECRET\"\n";
    for (variables, expected) in [
        (vec![], ("invalid", "invalid")),
        (vec![("TOKEN", "x")], ("ready", "invalid")),
        (vec![("TOKEN", ""), ("SECRET", "y")], ("invalid", "ready")),
        (vec![("TOKEN", "x"), ("SECRET", "y")], ("ready", "ready")),
    ] {
        let config = Machine::new().env(&variables).file(USER, file).load();
        let word = |name: &str| config.server(name).unwrap().status.word();
        assert_eq!((word("a"), word("b")), expected, "{variables:?}");
        for finding in &config.diagnostics {
            assert_eq!(finding.code, "missing-variable");
        }
    }
}

#[test]
fn a_plugin_knows_its_own_folder() {
    let manifest =
        r#"{"name": "tickets", "mcpServers": {"t": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}}}"#;
    let config = Machine::new().file(PLUGIN, manifest).load();
    let command = config.servers[0].effective().command.as_deref();
    assert_eq!(command, Some("/h/.config/switchboard/plugins/tickets/run"));
}

#[test]
fn one_bad_entry_costs_one_server() {
    let toml = r#"
[mcp_servers.good]
command = "a"
[mcp_servers.bad]
command = 5
[mcp_servers.odd]
command = "b"
comand = "c"
"#;
    let machine = Machine::new()
        .file(USER, toml)
        .file(
            "/h/.config/switchboard/mcp.json",
            "{ \"mcpServers\": { \"lost\": ",
        )
        .file(
            "/h/.config/switchboard/mcp.hcl",
            "mcp_servers \"fine\" {\n  command = \"d\"\n}\n",
        );
    machine.check(
        "bad = user - invalid (`command` must be a string, but is an integer)
         fine = user d ready
         good = user a ready
         odd = user b ready
         error /h/.config/switchboard/mcp.toml:5:11: `command` must be a string, but is an integer; put it in quotes
         warning /h/.config/switchboard/mcp.toml:8:1: unknown key `comand`; did you mean `command`?
         error /h/.config/switchboard/mcp.json:1:27: expected value after colon in object property; correct the JSON here; nothing of this file is used until then",
    );
    let config = machine.load();
    let errors = config
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    let about: Vec<_> = errors
        .map(|diagnostic| diagnostic.server.as_deref())
        .collect();
    assert_eq!(about, [Some("bad"), None]);
}

#[test]
fn a_syntax_error_costs_the_server_it_is_in() {
    let text = "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\ncommand = \"y\"\nargs = [\"--safe\n[mcp_servers.c]\ncommand = \"z\"\n";
    let config = Machine::new().file(USER, text).load();
    let words: Vec<_> = config
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.status.word()))
        .collect();
    assert!(words.contains(&("a", "ready")), "{words:?}");
    assert!(words.contains(&("b", "invalid")), "{words:?}");
    assert!(config.has_errors());
}

#[test]
fn a_file_whose_server_lists_cannot_be_read_lets_nobody_through() {
    for (file, text) in [
        (
            "mcp.json",
            "{ \"security\": { \"mcp_server_denylist\": [\"evil\"] ",
        ),
        ("mcp.toml", "[security]\nmcp_server_allowlist = [\"a\n"),
        ("mcp.hcl", "security {\n  mcp_server_denylist = [\n"),
    ] {
        let machine = Machine::new()
            .file(&format!("/h/.config/switchboard/{file}"), text)
            .file(PROJECT_JSON, &json("evil", "x"))
            .trusted();
        assert_eq!(machine.load().servers[0].status.word(), "blocked", "{file}");
    }
}

#[test]
fn a_broken_project_file_locks_nobody_out() {
    for (file, text) in [
        (PROJECT, "[security]\nmcp_server_allowlist = [\"a\n"),
        (PROJECT, "%mcp_server_denylist"),
        (PROJECT_JSON, "{ mcp_server_allowlist"),
    ] {
        let config = Machine::new()
            .file(file, text)
            .file(USER, &toml("mine", "user"))
            .load();
        assert_eq!(
            config.server("mine").unwrap().status.word(),
            "ready",
            "{text}"
        );
    }
}

#[test]
fn skipping_the_project_leaves_its_files_unread() {
    let mut machine = Machine::new()
        .file(PROJECT, "not toml at all")
        .file(LOCAL, "nor this")
        .file(USER, &toml("s", "a"));
    machine.inputs.skip_project = true;
    machine.check("s = user a ready");
}

#[test]
fn a_file_named_by_hand_is_local_and_needs_no_trust() {
    let mut machine = Machine::new()
        .file("/elsewhere/x.json", &json("s", "hand"))
        .file(PROJECT, &toml("s", "project"));
    machine.inputs.extra_files = vec!["/elsewhere/x.json".into(), "/elsewhere/absent.toml".into()];
    machine.check(
        "s = local hand ready
         shadowed s of project: local scope has the same name, at /elsewhere/x.json:1:17
         error /elsewhere/absent.toml:1:1: the file does not exist; check the path given to --config",
    );
}

#[test]
fn a_file_named_by_hand_beats_the_local_one_and_not_the_enterprise() {
    let mut machine = Machine::new()
        .file("/x.toml", &toml("s", "hand"))
        .file(LOCAL, &toml("s", "local"));
    machine.inputs.extra_files = vec!["/x.toml".into()];
    let command = |machine: &Machine| machine.load().server("s").unwrap().entry.command.clone();
    assert_eq!(command(&machine).as_deref(), Some("hand"));
    assert_eq!(machine.load().enterprise, None);
    let found = |machine: &Machine, path: &str| {
        let config = machine.load();
        let looked = config
            .looked
            .iter()
            .find(|looked| looked.path == Path::new(path));
        looked.map(|looked| looked.found)
    };
    assert_eq!(found(&machine, LOCAL), Some(true));
    assert_eq!(found(&machine, USER), Some(false));
    // An exclusive enterprise file excludes this one as well; no further location is searched.
    let machine = machine.file(ENTERPRISE, "mode = \"exclusive\"\n");
    let config = machine.load();
    assert!(config.servers.is_empty(), "{:?}", config.servers);
    assert_eq!(config.enterprise, Some(EnterpriseMode::Exclusive));
    assert_eq!(found(&machine, "/x.toml"), None);
}

#[test]
fn an_enterprise_file_that_cannot_be_read_keeps_all_others_out() {
    let mut machine = Machine::new().file(USER, &toml("s", "user"));
    machine.files = machine.files.file(ENTERPRISE, [0xFF, 0xFE]);
    let config = machine.load();
    assert!(config.servers.is_empty(), "{:?}", config.servers);
    assert!(config.has_errors());
}

#[test]
fn a_name_to_use_instead_is_free() {
    let taken = |names: &[&str]| {
        let servers = names.iter().map(|name| toml(name, name));
        Machine::new()
            .file(USER, &servers.collect::<String>())
            .load()
    };
    for (names, expected) in [
        (&["b-c", "b_c"][..], "b-c-user"),
        (&["b-c", "b_c", "b-c-user"], "b-c-user-2"),
        (&["b-c", "b_c", "b-c-user", "b-c-user-2"], "b-c-user-3"),
    ] {
        let config = taken(names);
        let Status::Refused { instead, .. } = &config.server("b_c").unwrap().status else {
            panic!("{:?}", config.servers);
        };
        assert_eq!(instead, expected);
    }
}

#[test]
fn a_json_file_named_by_hand_may_say_everything() {
    let mut machine = Machine::new().file(USER, &toml("old", "a"));
    machine.files = machine
        .files
        .file(
            "/x/whole.json",
            r#"{"settings": {"tool_timeout_sec": 3}, "security": {"mcp_server_denylist": ["old"]}}"#,
        )
        .file("/x/flat.json", r#"{"flat": {"command": "b"}}"#);
    machine.inputs.extra_files = vec!["/x/whole.json".into(), "/x/flat.json".into()];
    machine.check(
        "flat = local b ready
         old = user a blocked (denied by \"old\" in mcp_server_denylist at /x/whole.json:1:76)",
    );
    let settings = machine.load().settings;
    assert_eq!(settings.get(Setting::ToolTimeout).value.to_string(), "3");
}

#[test]
fn the_project_is_found_from_a_folder_below_it() {
    let files = InMemory::default()
        .file("/h/repo/.git/HEAD", "")
        .file("/h/repo/a/.mcp.json", "{}")
        .file("/h/repo/a/b/c.txt", "")
        .file("/h/.claude/settings.json", "{}")
        .file("/h/plain/x.txt", "");
    let check = |start: &str, root: &str| {
        assert_eq!(
            project_root(Path::new(start), Path::new("/h"), &files),
            Path::new(root),
            "{start}"
        );
    };
    check("/h/repo/a/b", "/h/repo/a");
    check("/h/repo/z", "/h/repo");
    // The user's own settings do not make the home folder a project.
    check("/h/plain", "/h/plain");
}

#[test]
fn the_file_of_another_agent_is_read_for_its_servers_once_it_is_trusted() {
    // With the other contents of such a file.
    let text = "default_model = \"anthropic/claude\"
providers {
  name = \"anthropic\"
  api_key = env(\"KEY\")
}
mcp_servers {
  name = \"files\"
  transport = \"stdio\"
  command = \"npx\"
  enabled = true
}
settings {
  tool_timeout_sec = 1
}
";
    let machine = Machine::new().file("/p/agent.hcl", text);
    let summary = machine.summary();
    assert!(
        summary.starts_with("files = project npx untrusted"),
        "{summary}"
    );
    assert!(summary.contains("asks about"), "{summary}");
    assert!(!summary.contains("warning"), "{summary}");
    Machine::new()
        .file("/p/agent.hcl", text)
        .file(PROJECT, &toml("files", "toml"))
        .trusted()
        .check(
            "files = project toml ready
             shadowed files of project: project scope has the same name, at /p/.mcp.toml:1:14",
        );
    let trusted = Machine::new().file("/p/agent.hcl", text).trusted();
    trusted.check("files = project npx ready");
    // Only its servers are read.
    let settings = trusted.load().settings;
    assert_eq!(settings.get(Setting::ToolTimeout).value.to_string(), "60");
    // Other programs use this file name, with their own syntax.
    let vault = "vault {\n  address = \"https://vault.example\"\n}\ntemplate {{ broken";
    Machine::new().file("/p/agent.hcl", vault).check("");
    // Also if it is named by hand: it exists, and defines no servers.
    let mut named = Machine::new().file("/elsewhere/agent.hcl", vault);
    named.inputs.extra_files = vec!["/elsewhere/agent.hcl".into()];
    named.check("");
    let broken = "mcp_servers {\n  name = \n}\n";
    let summary = Machine::new().file("/p/agent.hcl", broken).summary();
    assert!(summary.contains("error /p/agent.hcl:"), "{summary}");
    // One that is named by hand is read, with servers or without.
    let mut named = Machine::new().file("/p/agent.hcl", "settings {\n  tool_timeout_sec = 1\n}\n");
    named.inputs.extra_files = vec!["/p/agent.hcl".into()];
    named.check("");
    let settings = named.load().settings;
    assert_eq!(settings.get(Setting::ToolTimeout).value.to_string(), "1");
    let mut named = Machine::new().file("/elsewhere/agent.hcl", text);
    named.inputs.extra_files = vec!["/elsewhere/agent.hcl".into()];
    let summary = named.summary();
    assert!(summary.starts_with("files = local npx ready"), "{summary}");
    assert!(!summary.contains("error"), "{summary}");
    let files = InMemory::default()
        .file("/h/repo/.git/HEAD", "")
        .file("/h/repo/vault/agent.hcl", vault)
        .file("/h/repo/agents/agent.hcl", text)
        .file("/h/repo/agents/x/y.txt", "");
    let root = |start: &str| project_root(Path::new(start), Path::new("/h"), &files);
    assert_eq!(root("/h/repo/vault"), Path::new("/h/repo"));
    assert_eq!(root("/h/repo/agents/x"), Path::new("/h/repo/agents"));
}

#[test]
fn settings_merge_value_by_value() {
    let machine = Machine::new()
        .file(
            USER,
            "[settings]\ntool_timeout_sec = 5\nlocal_connections = 4\n",
        )
        .file(PROJECT, "[settings]\ntool_timeout_sec = 9\n")
        .trusted();
    let settings = machine.load().settings;
    let value = settings.get(Setting::ToolTimeout);
    assert_eq!(
        (value.value.to_string(), value.origin.to_string()),
        ("9".into(), "/p/.mcp.toml:2:20".into())
    );
    let hidden: Vec<String> = value
        .shadowed
        .iter()
        .map(|(value, origin)| format!("{value} {origin}"))
        .collect();
    assert_eq!(
        hidden,
        ["5 /h/.config/switchboard/mcp.toml:2:20", "60 default"]
    );
    assert_eq!(settings.count(Setting::LocalConnections), 4);
}

#[test]
fn a_managed_file_with_a_warning_excludes_no_other() {
    let user = toml("s", "user");
    let merging = |more: &str| {
        let managed = format!("mode = \"merge\"\n{more}");
        let machine = Machine::new().file(USER, &user).file(ENTERPRISE, &managed);
        machine.load()
    };
    let config = merging("");
    assert!(config.server("s").is_some() && config.diagnostics.is_empty());
    let config = merging("unknown_key = 1\n");
    assert!(config.server("s").is_some() && !config.diagnostics.is_empty());
    // One that cannot be parsed still takes effect: nothing else is loaded.
    let config = merging("unknown_key = \n");
    assert!(config.server("s").is_none() && !config.diagnostics.is_empty());
}

#[test]
fn a_server_has_the_transport_that_its_entry_implies() {
    use switchboard_config::entry::Transport;
    let text = "[mcp_servers.program]
        command = 'a'
        [mcp_servers.remote]
        url = 'https://a.example'
        [mcp_servers.legacy]
        url = 'https://a.example'
        type = 'sse'
        ";
    let config = Machine::new().file(USER, text).load();
    for (name, transport) in [
        ("program", Transport::Stdio),
        ("remote", Transport::Http),
        ("legacy", Transport::Sse),
    ] {
        assert_eq!(config.server(name).unwrap().transport(), Some(transport));
    }
}

#[test]
fn a_missing_token_is_reported_where_its_variable_is_named() {
    let text = "[mcp_servers.s]
url = \"https://a.example\"
enabled = true
bearer_token_env_var = \"TOKEN\"
";
    let config = Machine::new().file(USER, text).load();
    let findings: Vec<String> = config.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 1);
    let finding = &findings[0];
    assert!(finding.starts_with(&format!("{USER}:4:")), "{finding}");
}
