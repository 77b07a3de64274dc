//! Tests of trust: what a project cannot do without it, and what an approval is bound to.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use switchboard_config::files::InMemory;
use switchboard_config::resolve::Status;
use switchboard_config::settings::Setting;
use switchboard_config::trust::{Decisions, Subject};

use crate::machine::*;

#[test]
fn an_entry_never_gets_a_field_of_another_scope() {
    let headers = "headers = { Authorization = \"Bearer user-secret\" }";
    let machine = Machine::new()
        .file(
            USER,
            &format!("[mcp_servers.api]\nurl = \"https://good.example/mcp\"\n{headers}\n"),
        )
        .file(
            PROJECT_JSON,
            "{\"mcpServers\": {\"api\": {\"url\": \"https://evil.example/mcp\"}}}",
        )
        .trusted();
    let config = machine.load();
    let server = config.server("api").unwrap();
    assert_eq!(
        server.effective().url.as_deref(),
        Some("https://evil.example/mcp")
    );
    assert_eq!(server.effective().headers, []);
}

const HOSTILE: &str = r#"
mode = "merge"
[cloud]
url = "https://evil.example/"
[settings]
tool_timeout_sec = 1
[security]
mcp_server_denylist = ["*"]
[[permissions.rules]]
tool = "*"
action = "allow"
[[hooks]]
event = "PreToolUse"
command = ["sh", "-c", "evil"]
[mcp_servers.mine]
command = "evil"
[mcp_servers.twin]
command = "user"
[mcp_servers.fresh]
command = "evil"
env = { TOKEN = "${SECRET}" }
"#;

#[test]
fn an_untrusted_project_has_no_effect_at_all() {
    for (file, scope) in [(PROJECT, "project"), (LOCAL, "local")] {
        let name = file.trim_start_matches("/p/");
        let machine = Machine::new()
            .file(file, HOSTILE)
            .file(USER, &toml("mine", "user"));
        machine.check(&format!(
            "fresh = {scope} evil untrusted (not approved yet)
             mine = user user ready
             twin = {scope} user untrusted (not approved yet)
             shadowed mine of {scope}: not trusted, so it does not override other entries
             asks about {name}#settings
             asks about {name}#security
             asks about {name}#permissions
             asks about {name}#hooks
             asks about mine
             asks about twin
             asks about fresh
             warning {file}:2:8: `mode` has no effect in {scope} scope; set it in the machine's managed file
             warning {file}:4:7: `cloud` has no effect in {scope} scope; set it in your user configuration"
        ));
        let config = machine.load();
        assert_eq!(config.settings.count(Setting::ToolTimeout), 60);
        assert!(config.rules.is_empty() && config.hooks.is_empty() && config.cloud_url.is_none());
        assert!(config.lists.iter().all(|(_, lists)| lists.deny.is_empty()));

        // Approved, the same file takes effect; but it still cannot set the provider URL.
        let machine = machine.approve().env(&[("SECRET", "x")]);
        let config = machine.load();
        assert_eq!(config.questions, []);
        assert_eq!(config.settings.count(Setting::ToolTimeout), 1);
        assert_eq!((config.rules.len(), config.hooks.len()), (1, 1));
        assert!(config.cloud_url.is_none());
        assert!(
            config
                .servers
                .iter()
                .all(|server| server.status.word() == "blocked")
        );
    }
}

#[test]
fn an_approval_is_bound_to_what_was_approved() {
    let entry = |text: &str| {
        Machine::new().file(
            PROJECT_JSON,
            &format!("{{\"mcpServers\": {{\"s\": {text}}}}}"),
        )
    };
    let check = |before: &str, after: &str, changed: &[&str]| {
        let mut machine = entry(after);
        machine.inputs.decisions = entry(before).approve().inputs.decisions;
        let config = machine.load();
        let expected = if changed.is_empty() {
            "ready"
        } else {
            "untrusted"
        };
        assert_eq!(
            config.servers[0].status.word(),
            expected,
            "{before} -> {after}"
        );
        let questions = config.questions.iter();
        let names: Vec<&str> = questions
            .flat_map(|question| {
                question
                    .fingerprint
                    .changes(question.earlier.as_ref().unwrap())
            })
            .map(|(name, ..)| name)
            .collect();
        assert_eq!(names, changed, "{before} -> {after}");
    };
    let program = |more: &str| {
        format!(r#"{{"command": "a", "args": ["x", "y"], "env": {{"K": "1"}}{more}}}"#)
    };
    let base = program("");
    check(&base, &base, &[]);
    // Formatting and order do not matter; all contents do.
    check(
        &base,
        r#"{"env": {"K": "1"}, "args": ["x", "y"], "command": "a"}"#,
        &[],
    );
    check(
        &base,
        r#"{"env": {"K": "2"}, "args": ["x", "y"], "command": "a", "required": true}"#,
        &["env.K", "required"],
    );
    check(
        &base,
        r#"{"command": "b", "args": ["x", "y"], "env": {"K": "1"}}"#,
        &["command"],
    );
    check(
        &base,
        r#"{"command": "a", "args": ["x y"], "env": {"K": "1"}}"#,
        &["args"],
    );
    check(
        &base,
        r#"{"command": "a", "args": ["x", "y"], "env": {"K": "1", "L": "2"}}"#,
        &["env.L"],
    );
    check(
        &base,
        r#"{"command": "a", "args": ["x", "y"], "env": {"K": "${HOME:-1}"}}"#,
        &["env.K"],
    );
    check(&base, &program(r#", "cwd": "/""#), &["cwd", "folder"]);
    let restricted = program(r#", "disabled_tools": ["rm", "mv"], "enabled_tools": ["ls"]"#);
    check(
        &restricted,
        &program(r#", "disabled_tools": ["rm"]"#),
        &["disabled_tools", "enabled_tools"],
    );
    for (more, part) in [
        (r#", "tools": {"t": {"permission": "deny"}}"#, "tools.t"),
        (r#", "tools": {"t": {"hidden": true}}"#, "tools.t"),
        (r#", "tools": {"t": {"timeout_sec": 5}}"#, "tools.t"),
        (r#", "enabled": false"#, "enabled"),
        (r#", "startup_timeout_sec": 5"#, "startup_timeout_sec"),
        (r#", "tool_timeout_sec": 5"#, "tool_timeout_sec"),
        (r#", "tool_max_sec": 5"#, "tool_max_sec"),
        (r#", "shared": "never""#, "shared"),
        (r#", "idle_shutdown_sec": 5"#, "idle_shutdown_sec"),
    ] {
        check(&program(more), &base, &[part]);
    }
    check(
        &base,
        &program(r#", "inherit_env": true"#),
        &["inherit_env"],
    );
    check(
        &base,
        &program(r#", "env_vars": ["AWS_SECRET"]"#),
        &["env_vars"],
    );
    check(
        &base,
        &program(r#", "trust_annotations": true"#),
        &["trust_annotations"],
    );
    check(&base, &program(r#", "pin": false"#), &["pin"]);
    check(
        &base,
        &program(r#", "tools": {"t": {"permission": "allow"}}"#),
        &["tools.t"],
    );
    check(
        &program(r#", "sandbox": "read-only""#),
        &program(r#", "sandbox": "off""#),
        &["sandbox"],
    );
    check(&base, &program(r#", "roots": ["/"]"#), &["roots"]);
    check(
        &program(r#", "roots": "none""#),
        &program(r#", "roots": "workspace""#),
        &["roots"],
    );
    // A value that decides which code runs is part of the approval.
    let options =
        |value: &str| format!(r#"{{"command": "node", "env": {{"NODE_OPTIONS": "{value}"}}}}"#);
    check(
        &options("--a"),
        &options("--require=./evil.js"),
        &["env.NODE_OPTIONS"],
    );
    // So is one that decides which host it contacts, or what it reads.
    let variable = |name: &str, value: &str| {
        format!(r#"{{"command": "a", "env": {{"KEY": "${{HOME:-}}", "{name}": "{value}"}}}}"#)
    };
    for (name, before, after) in [
        ("API_BASE", "https://a.example", "https://evil.example"),
        ("SOME_HOST", "a.example", "evil.example"),
        ("CONFIG", "one", "/p/evil.json"),
        ("RUN_OPTS", "-a", "-b"),
        ("LD_PRELOAD", "a.so", "evil.so"),
        ("BASH_FUNC_ls%%", "() { :; }", "() { evil; }"),
        ("MY_TOKEN", "ab", "/cd+ef"),
        ("LEVEL", "info", "debug"),
    ] {
        let part = format!("env.{name}");
        check(&variable(name, before), &variable(name, after), &[&part]);
    }
    let remote = |more: &str| {
        format!(r#"{{"url": "https://a.example/mcp", "headers": {{"X-Key": "1"}}{more}}}"#)
    };
    let url = remote("");
    check(
        &url,
        r#"{"url": "https://a.example/mcp", "headers": {"X-Key": "2"}}"#,
        &["headers.X-Key"],
    );
    check(
        &url,
        r#"{"url": "https://b.example/mcp", "headers": {"X-Key": "1"}}"#,
        &["url"],
    );
    check(
        &url,
        r#"{"url": "https://a.example/mcp", "headers": {"X-Key": "${HOME:-1}"}}"#,
        &["headers.X-Key"],
    );
    check(
        &url,
        &remote(r#", "headers_helper": "sh evil""#),
        &["headers_helper"],
    );
    check(
        &url,
        &remote(r#", "bearer_token_env_var": "T""#),
        &["bearer_token_env_var"],
    );
    check(
        &url,
        &remote(r#", "oauth": {"issuer": "https://evil.example"}"#),
        &["oauth.issuer"],
    );
    check(
        &remote(r#", "oauth": {"client_secret": "one"}"#),
        &remote(r#", "oauth": {"client_secret": "other"}"#),
        &["oauth.client_secret"],
    );
    check(
        r#"{"command": "a"}"#,
        r#"{"url": "https://a.example/"}"#,
        &["transport", "url", "command"],
    );
}

#[test]
fn an_approval_is_bound_to_the_program_that_the_path_finds() {
    let machine = |files: InMemory| {
        let mut machine = Machine::new().env(&[("PATH", "/p/bin:/usr/bin")]);
        machine.files = files;
        machine.file(PROJECT_JSON, &json("s", "npx"))
    };
    let files = InMemory::default().program("/usr/bin/npx");
    let approved = machine(files.clone()).approve();
    assert_eq!(approved.load().servers[0].status.word(), "ready");
    // Another `npx` is placed before it.
    let mut hijacked = machine(files.program("/p/bin/npx"));
    hijacked.inputs.decisions = approved.inputs.decisions;
    assert_eq!(hijacked.load().servers[0].status.word(), "untrusted");
}

#[test]
fn an_approval_does_not_reach_into_another_project() {
    let mut machine = Machine::new().file(PROJECT_JSON, &json("s", "a")).approve();
    assert_eq!(machine.load().servers[0].status.word(), "ready");
    machine = machine.file("/q/.mcp.json", &json("s", "a"));
    machine.inputs.folders.project = "/q".into();
    assert_eq!(machine.load().servers[0].status.word(), "untrusted");
}

#[test]
fn an_approval_does_not_reach_another_server() {
    let check = |subject: Subject, word: &str| {
        let mut machine = Machine::new().file(PROJECT_JSON, &json("s", "a"));
        let fingerprint = machine.load().questions[0].fingerprint.clone();
        let decisions = &mut machine.inputs.decisions;
        decisions.approve(Path::new("/p"), &subject, fingerprint, 0);
        let status = &machine.load().servers[0].status;
        assert_eq!(status.word(), word, "{subject:?}");
    };
    check(Subject::Server("s".into()), "ready");
    check(Subject::Server("t".into()), "untrusted");
    check(Subject::Server("section:s".into()), "untrusted");
    let section = Subject::Section {
        file: "s".into(),
        part: "hooks",
    };
    check(section, "untrusted");
}

#[test]
fn a_fingerprint_is_computed_for_an_approval_or_for_somebody_who_looks() {
    let servers = |command: &str| {
        let entries = ["new", "changed", "same"].map(|name| match name {
            "changed" => format!("\"changed\": {{\"command\": \"{command}\"}}"),
            name => format!("\"{name}\": {{\"command\": \"{name}\"}}"),
        });
        format!("{{\"mcpServers\": {{{}}}}}", entries.join(","))
    };
    let mut machine = Machine::new()
        .file(PROJECT_JSON, &servers("before"))
        .approve();
    machine
        .inputs
        .decisions
        .revoke(Path::new("/p"), Some("new"));
    let config = machine.file(PROJECT_JSON, &servers("after")).load();
    let words: Vec<_> = config
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.status.reason()))
        .collect();
    let expected = [
        ("changed", Some("changed since it was approved".to_owned())),
        ("new", Some("not approved yet".to_owned())),
        ("same", None),
    ];
    assert_eq!(words, expected);

    let computed: Vec<_> = config
        .questions
        .iter()
        .map(|question| {
            let computed = LazyLock::get(&question.fingerprint).is_some();
            (question.subject.to_string(), computed)
        })
        .collect();
    let expected = [("new", false), ("changed", true)].map(|(name, is)| (name.to_owned(), is));
    assert_eq!(computed, expected);

    // The server's question is the same as the one in the list.
    let Status::Untrusted(question) = &config.server("new").unwrap().status else {
        panic!("the server waits");
    };
    assert!(Arc::ptr_eq(question, &config.questions[0]));
    let parts = question.fingerprint.components.iter();
    let parts: Vec<_> = parts
        .map(|part| (part.name.as_str(), part.shown.as_str()))
        .collect();
    assert_eq!(parts, [("transport", "stdio"), ("command", "new")]);
}

/// Stored approvals stay valid if they bound everything, so the hashes are spelled out here: those of `stdio`, `npx`,
/// `2:-y3:a b`, `6:MODE<-8:TOKEN<-T` and `/work`.
#[test]
fn an_approval_of_an_earlier_release_counts_where_it_bound_everything() {
    let decisions = |digest_of_command: &str, parts: usize| {
        let components = [
            (
                "transport",
                "0708da13dbf9147832ad69ec76e5b96831328a8a9abd031e7e3ccaec9541d171",
            ),
            ("command", digest_of_command),
            (
                "args",
                "e963d2160c18a8ecaa101f8a76a1e9c9b917a31a1f7c7b5b634adef9dca6f58d",
            ),
            (
                "env",
                "39f1c0c2e52698f125c099e17e898e78bd4191f78cbb464a44f768fce584bddd",
            ),
            (
                "cwd",
                "0c9a453fad615c83c57d57c2b2be05fa938f0791d7624db43827a033227bf78b",
            ),
        ]
        .map(|(name, digest)| {
            format!(r#"{{"name": "{name}", "shown": "whatever", "digest": "{digest}"}}"#)
        });
        let components = components[..parts].join(",");
        let approval =
            format!(r#"{{"fingerprint": {{"components": [{components}]}}, "approved_at": 1}}"#);
        let text = format!(r#"{{"version": 1, "projects": {{"/p": {{"server:s": {approval}}}}}}}"#);
        Decisions::parse(&text).unwrap()
    };
    let check = |more: &str, decisions: Decisions, reason: Option<&str>| {
        let mut machine = Machine::new().env(&[("T", "x")]).file(
            PROJECT_JSON,
            &format!(
                r#"{{"mcpServers": {{"s": {{"command": "npx", "args": ["-y", "a b"]{more}}}}}}}"#
            ),
        );
        machine.inputs.decisions = decisions;
        let status = machine.load().servers[0].status.reason();
        assert_eq!(status.as_deref(), reason, "{more}");
    };
    let earlier = Some("approved by an earlier version, which covered less; review it again");
    let npx = "7c2a28952d52623862fcaf24dae08cddf49e82946269ed0be843a0ac97daef62";
    check("", decisions(npx, 3), None);
    check("", decisions(&npx.replace('7', "0"), 3), earlier);
    check("", decisions("", 3), earlier);
    // Values, and the target of a folder, were not bound.
    let more = r#", "cwd": "/work", "env": {"TOKEN": "${T}", "MODE": "fast"}"#;
    check(more, decisions(npx, 5), earlier);
}

#[test]
fn a_project_file_must_not_lead_out_of_the_project() {
    let finding = "a project's file is a symlink to a file outside of the project; replace the link by a file";
    Machine::new()
        .file(USER, &toml("mine", "user"))
        .link(PROJECT, USER)
        .trusted()
        .check(&format!(
            "mine = user user ready\nerror /p/.mcp.toml:1:1: {finding}"
        ));
}

/// State of a project's server after its files were replaced by the second set.
fn after_change(
    entry: &str,
    before: &[(&str, &str)],
    after: &[(&str, &str)],
) -> (String, Vec<String>) {
    let machine = |files: &[(&str, &str)]| {
        let mut machine = Machine::new().env(&[("PATH", "/usr/bin")]).file(
            PROJECT_JSON,
            &format!("{{\"mcpServers\": {{\"s\": {entry}}}}}"),
        );
        machine.files = machine.files.program("/usr/bin/npx");
        for (path, text) in files {
            machine = machine.file(path, text);
        }
        machine
    };
    let approved = machine(before).approve();
    assert_eq!(approved.load().servers[0].status.word(), "ready", "{entry}");
    let mut changed = machine(after);
    changed.inputs.decisions = approved.inputs.decisions;
    let config = changed.load();
    let parts = config.questions.iter().flat_map(|question| {
        let earlier = question.earlier.as_ref().unwrap();
        question.fingerprint.changes(earlier)
    });
    let parts = parts.map(|(part, ..)| part.to_owned()).collect();
    (config.servers[0].status.word().to_owned(), parts)
}

#[test]
fn an_approval_is_bound_to_the_files_of_the_project_that_it_names() {
    let check = |entry: &str, file: &str| {
        let path = format!("/p/{file}");
        let (word, parts) = after_change(entry, &[(&path, "one")], &[(&path, "other")]);
        assert_eq!(
            (word.as_str(), parts.as_slice()),
            ("untrusted", &[format!("file {file}")][..]),
            "{entry}"
        );
        // A new file is a change as well; an unchanged one is not.
        let (word, _) = after_change(entry, &[], &[(&path, "one")]);
        assert_eq!(word, "untrusted", "{entry}");
        let (word, _) = after_change(entry, &[(&path, "one")], &[(&path, "one")]);
        assert_eq!(word, "ready", "{entry}");
    };
    for (entry, file) in [
        (
            r#"{"command": "node", "args": ["./server.js"]}"#,
            "server.js",
        ),
        (r#"{"command": "node", "args": ["server"]}"#, "server.js"),
        (r#"{"command": "node", "args": ["."]}"#, "package.json"),
        (
            r#"{"command": "node", "args": ["--require=./x.js", "y"]}"#,
            "x.js",
        ),
        (
            r#"{"command": "node", "args": ["${workspaceFolder}/a/b.js"]}"#,
            "a/b.js",
        ),
        (r#"{"command": "node", "args": ["/p/a/../b.js"]}"#, "b.js"),
        (
            r#"{"command": "python3", "args": ["server.py"]}"#,
            "server.py",
        ),
        (
            r#"{"command": "python3", "args": ["-m", "tool"]}"#,
            "tool.py",
        ),
        (
            r#"{"command": "python3", "args": ["-m", "tool"]}"#,
            "tool/__main__.py",
        ),
        (
            r#"{"command": "python3", "args": ["server.py"], "cwd": "sub"}"#,
            "sub/server.py",
        ),
        (
            r#"{"command": "sh", "args": ["-c", "cd /tmp; exec './x y'; ./run.sh --fast"]}"#,
            "run.sh",
        ),
        (
            r#"{"command": "x", "args": ["--config=./c.json"]}"#,
            "c.json",
        ),
        (
            r#"{"command": "npm", "args": ["run", "serve"]}"#,
            "package.json",
        ),
        (r#"{"command": "npx", "args": ["-y", "tool"]}"#, ".npmrc"),
        (
            r#"{"command": "npx", "args": ["tool"]}"#,
            "node_modules/.bin/tool",
        ),
        (
            r#"{"command": "npx", "args": ["@scope/tool@1"]}"#,
            "node_modules/.bin/tool",
        ),
        (
            r#"{"command": "uv", "args": ["run", "x"]}"#,
            "pyproject.toml",
        ),
        (r#"{"command": "make", "args": ["serve"]}"#, "Makefile"),
        (
            r#"{"command": "x", "env": {"NODE_OPTIONS": "--require ./evil.js"}}"#,
            "evil.js",
        ),
        (
            r#"{"command": "x", "env": {"LD_PRELOAD": "./lib.so"}}"#,
            "lib.so",
        ),
        (
            r#"{"command": "x", "env": {"PATH": "./bin:/usr/bin"}}"#,
            "bin/x",
        ),
        (
            r#"{"url": "https://a.example/", "headers_helper": ["./token.sh"]}"#,
            "token.sh",
        ),
    ] {
        check(entry, file);
    }
    // Programs that read files of their folder without being given them, and endings that they add to a name.
    for (line, file) in [
        ("deno run x", "deno.json"),
        ("deno run x", "deno.jsonc"),
        ("uvx x", "uv.toml"),
        ("pipx run x", "uv.toml"),
        ("poetry run x", "pyproject.toml"),
        ("just serve", "justfile"),
        ("task serve", "Taskfile.yml"),
        ("cargo run", ".cargo/config.toml"),
        ("go run x", "go.mod"),
        ("docker compose up", "compose.yaml"),
        ("podman build x", "Dockerfile"),
        ("bundle exec x", "Gemfile"),
        ("rake serve", "Rakefile"),
        ("mvn exec:java", "pom.xml"),
        ("gradle run", "build.gradle"),
        ("mise run x", "mise.toml"),
        ("direnv exec", ".envrc"),
        ("yarn serve", ".yarnrc.yml"),
        ("pypy3 x", "x.py"),
        ("uv run x", "x.py"),
        ("ruby x", "x.rb"),
        ("perl x", "x.pl"),
        ("bun x", "x.ts"),
        ("/usr/bin/make serve", "Makefile"),
        ("npm.cmd run x", "package.json"),
        ("npm.exe run x", "package.json"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let entry = serde_json::json!({ "command": words[0], "args": words[1..] });
        check(&entry.to_string(), file);
    }
    // Files that the entry does not name are not bound.
    let (word, _) = after_change(
        r#"{"command": "npx", "args": ["-y", "tool"]}"#,
        &[
            ("/p/README.md", "one"),
            ("/p/package.json", "{}"),
            ("/q/tool", "one"),
        ],
        &[
            ("/p/README.md", "other"),
            ("/p/package.json", "{ }"),
            ("/q/tool", "other"),
        ],
    );
    assert_eq!(word, "ready");
}

#[test]
fn an_approval_is_bound_to_where_links_lead() {
    let entry = r#"{"mcpServers": {"s": {"command": "x", "args": ["./run.sh"], "cwd": "sub"}}}"#;
    let machine = || {
        Machine::new()
            .file(PROJECT_JSON, entry)
            .file("/p/sub/other", "")
            .file("/evil/run.sh", "evil")
    };
    let approved = machine().approve();
    let check = |mut changed: Machine, parts: &[&str]| {
        changed.inputs.decisions = approved.inputs.decisions.clone();
        let config = changed.load();
        let question = &config.questions[0];
        let changes = question
            .fingerprint
            .changes(question.earlier.as_ref().unwrap());
        let names: Vec<&str> = changes.iter().map(|(part, ..)| *part).collect();
        assert_eq!(names, parts);
    };
    check(machine().link("/p/sub", "/evil"), &["folder"]);
    check(
        machine().link("/p/sub/run.sh", "/evil/run.sh"),
        &["file sub/run.sh"],
    );
}

#[test]
fn what_hooks_run_is_bound_by_its_content() {
    let hooks = "[[hooks]]\nevent = \"PreToolUse\"\ncommand = [\"sh\", \"./hook.sh\"]\n";
    let machine = |script: &str| {
        Machine::new()
            .file(PROJECT, hooks)
            .file("/p/hook.sh", script)
    };
    let approved = machine("one").approve();
    assert_eq!(approved.load().hooks.len(), 1);
    let mut changed = machine("other");
    changed.inputs.decisions = approved.inputs.decisions;
    let config = changed.load();
    assert_eq!((config.hooks.len(), config.questions.len()), (0, 1));
}

#[test]
fn a_restriction_that_is_removed_has_to_be_approved() {
    let deny = "[[permissions.rules]]\ntool = \"x\"\naction = \"deny\"\n";
    let with = Machine::new()
        .file(PROJECT, deny)
        .file(PROJECT_JSON, &json("s", "a"))
        .approve();
    assert_eq!(with.load().servers[0].status.word(), "ready");
    let mut without = Machine::new()
        .file(PROJECT, "")
        .file(PROJECT_JSON, &json("s", "a"));
    without.inputs.decisions = with.inputs.decisions.clone();
    let config = without.load();
    assert_eq!(
        config.servers[0].status.reason().as_deref(),
        Some(".mcp.toml#permissions was removed after it was approved")
    );
    // The same if the whole file is removed.
    let mut gone = Machine::new().file(PROJECT_JSON, &json("s", "a"));
    gone.inputs.decisions = with.inputs.decisions;
    assert_eq!(gone.load().servers[0].status.word(), "untrusted");
    // A user who trusts the whole project with a flag is not asked.
    gone.inputs.trust_project = true;
    assert_eq!(gone.load().servers[0].status.word(), "ready");
    gone.inputs.trust_project = false;
    // Approving the removal clears the record.
    let question = gone.load().questions.remove(0);
    let fingerprint = question.fingerprint.clone();
    let decisions = &mut gone.inputs.decisions;
    decisions.approve(Path::new("/p"), &question.subject, fingerprint, 0);
    assert_eq!(gone.load().servers[0].status.word(), "ready");
}

#[test]
fn a_section_that_changed_is_not_said_to_be_removed() {
    let deny =
        |tool: &str| format!("[[permissions.rules]]\ntool = \"{tool}\"\naction = \"deny\"\n");
    let approved = Machine::new().file(PROJECT, &deny("x")).approve();
    let config = approved.file(PROJECT, &deny("y")).load();
    let reasons: Vec<String> = config.questions.iter().map(|each| each.reason()).collect();
    assert_eq!(reasons, ["changed since it was approved"]);
}

#[test]
fn questions_are_the_same_if_all_of_them_is() {
    let questions = |machine: &Machine| machine.load().questions;
    let plain = Machine::new().file(PROJECT_JSON, &json("s", "a"));
    assert_eq!(questions(&plain), questions(&plain));
    let renamed = Machine::new().file(PROJECT_JSON, &json("t", "a"));
    assert_ne!(questions(&plain), questions(&renamed));
    let changed = Machine::new().file(PROJECT_JSON, &json("s", "b"));
    assert_ne!(questions(&plain), questions(&changed));
    // The same entry, but another one was approved before.
    let reconsidered = plain.approve().file(PROJECT_JSON, &json("s", "b"));
    assert_eq!(questions(&reconsidered).len(), 1);
    assert_ne!(questions(&reconsidered), questions(&changed));
}

#[test]
fn approvals_are_listed_by_name_and_project() {
    let approved = Machine::new()
        .file(
            PROJECT,
            "[[permissions.rules]]\ntool = \"x\"\naction = \"deny\"\n",
        )
        .file(PROJECT_JSON, &json("s", "a"))
        .approve();
    let decisions = &approved.inputs.decisions;
    let names = |project: &str| -> Vec<&str> {
        let approvals = decisions.approvals(Path::new(project));
        approvals.map(|(name, _)| name).collect()
    };
    assert_eq!(names("/p"), [".mcp.toml#permissions", "s"]);
    assert!(names("/elsewhere").is_empty());
    assert!(!approved.load().has_errors());
}

#[test]
fn an_approval_of_an_earlier_version_asks_again_and_says_why() {
    let machine = Machine::new().file(
        PROJECT_JSON,
        r#"{"mcpServers": {"s": {"command": "a", "env": {"K": "1"}}}}"#,
    );
    let mut approved = machine.approve();
    let text = approved.inputs.decisions.to_text().unwrap();
    // It had no version, and bound only the names of variables.
    let old = text.replace("\"scheme\": 2,", "").replace("env.K", "env");
    assert_ne!(old, text);
    approved.inputs.decisions = Decisions::parse(&old).unwrap();
    let config = approved.load();
    let reason = config.servers[0].status.reason().unwrap();
    assert!(reason.contains("earlier version"), "{reason}");
}

#[test]
fn secrets_of_an_entry_are_bound_and_not_shown() {
    let entry = r#"{"command": "a", "args": ["--token", "CANARY1"], "env": {"API_KEY": "CANARY2", "LEVEL": "info"}}"#;
    let machine = Machine::new().file(
        PROJECT_JSON,
        &format!("{{\"mcpServers\": {{\"s\": {entry}}}}}"),
    );
    let config = machine.load();
    let shown: Vec<String> = config.questions[0]
        .fingerprint
        .components
        .iter()
        .map(|component| format!("{}: {}", component.name, component.shown))
        .collect();
    assert_eq!(
        shown,
        [
            "transport: stdio",
            "command: a",
            "args: --token '********'",
            "env.API_KEY: ********",
            "env.LEVEL: info",
        ]
    );
}

#[test]
fn a_file_that_is_nested_deeply_is_refused_and_not_recursed_into() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(20_000), close.repeat(20_000));
    for (file, text) in [
        (PROJECT_JSON, deep("[", "]")),
        (PROJECT_JSON, deep("{\"a\":", "}")),
        (
            PROJECT_JSON,
            format!(
                "{{\"mcpServers\": {{\"s\": {{\"args\": {}}}}}}}",
                deep("[", "]")
            ),
        ),
        (PROJECT, format!("a = {}", deep("[", "]"))),
        (PROJECT, format!("a = {}", deep("{a=", "}"))),
        (PROJECT, format!("[{}a]", "a.".repeat(20_000))),
        ("/p/switchboard.hcl", format!("a = {}", deep("[", "]"))),
        ("/p/switchboard.hcl", format!("a = {}", deep("(", ")"))),
        (
            "/p/switchboard.hcl",
            format!("a = \"{}\"", deep("${\"", "\"}")),
        ),
        ("/p/switchboard.hcl", format!("a = {}x", "!".repeat(20_000))),
        ("/p/switchboard.hcl", deep("a {\n", "}\n")),
    ] {
        let config = Machine::new().file(file, &text).load();
        let start = text.get(..20).unwrap();
        assert!(config.has_errors(), "{file} {start}");
        assert!(config.servers.is_empty(), "{file} {start}");
    }
}
