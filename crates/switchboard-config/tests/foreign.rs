//! Tests of import and export, with fixtures based on each tool's documentation.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails the test"
)]

#[path = "common/arbitrary.rs"]
mod arbitrary;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arbitrary::any_entry;
use proptest::prelude::*;
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::entry::{
    OAuthEntry, Permission, RootsEntry, Sandbox, SandboxMode, ServerEntry, Sharing, ToolEntry,
    Transport,
};
use switchboard_config::foreign::{
    Imported, ImportedServer, Places, Platform, Tool, export, import,
};
use switchboard_config::format::Format;
use switchboard_config::scope::Scope;
use switchboard_config::secret::Secret;
use switchboard_config::source::SourceFile;
use switchboard_config::tree::{Node, Value};

const PROJECT: &str = "/home/me/project";

/// Imports each fixture, and checks that a round trip through an export changes nothing.
#[test]
fn fixtures_are_read_and_written_back() {
    for (tool, path) in fixtures() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let format = Format::of_path(&path).unwrap();
        let shown = format!(
            "{}/{}",
            tool.name(),
            path.file_name().unwrap().to_str().unwrap()
        );
        let imported = read(tool, &shown, format, &text);
        let mut report = String::new();
        describe(&imported, &mut report);
        let (text, notes) = written(tool, &imported.servers, format, &text);
        let _ = write!(report, "\n--- exported\n{text}");
        list("export notes", &notes, &mut report);
        insta::with_settings!({
            snapshot_path => format!("foreign/{}", tool.name()),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, report);
        });
        assert_round_trip(tool, &shown, &imported.servers, &text);
    }
}

#[test]
fn every_tool_has_an_ordinary_and_a_quirky_fixture() {
    for tool in Tool::ALL {
        let count = fixtures()
            .into_iter()
            .filter(|(other, _)| *other == tool)
            .count();
        assert!(count >= 2, "{tool} has {count}");
    }
}

#[test]
fn files_are_where_each_system_keeps_them() {
    let mut report = String::new();
    for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
        let windows = platform == Platform::Windows;
        let places = Places {
            home: Path::new("~"),
            project: Path::new("."),
            config_home: None,
            app_data: windows.then(|| Path::new("%APPDATA%")),
            local_app_data: windows.then(|| Path::new("%LOCALAPPDATA%")),
            codex_home: None,
            platform,
        };
        let _ = writeln!(report, "{platform:?}");
        for tool in Tool::ALL {
            for file in tool.files(&places) {
                let star = if file.is_folder { "/*" } else { "" };
                let path = file.path.display();
                let _ = writeln!(
                    report,
                    "  {tool}: {path}{star} ({}, {:?})",
                    file.format.name(),
                    file.reach
                );
            }
        }
    }
    insta::with_settings!({
        snapshot_path => "foreign",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("files", report);
    });
}

#[test]
fn folders_of_the_environment_are_used_when_they_are_set() {
    let places = Places {
        home: Path::new("/home/me"),
        project: Path::new("/p"),
        config_home: Some(Path::new("/xdg")),
        app_data: None,
        local_app_data: None,
        codex_home: Some(Path::new("/codex")),
        platform: Platform::Linux,
    };
    let first = |tool: Tool| tool.files(&places).into_iter().next().unwrap().path;
    assert_eq!(first(Tool::Codex), Path::new("/codex/config.toml"));
    assert_eq!(first(Tool::Goose), Path::new("/xdg/goose/config.yaml"));
    assert_eq!(first(Tool::Zed), Path::new("/xdg/zed/settings.json"));
    assert_eq!(
        first(Tool::ClaudeDesktop),
        Path::new("/xdg/Claude/claude_desktop_config.json")
    );
    assert_eq!(first(Tool::ClaudeCode), Path::new("/home/me/.claude.json"));
}

#[test]
fn a_file_that_is_no_table_or_no_json_is_reported() {
    let check = |text: &str, expected: &[&str]| {
        let imported = read(Tool::Cursor, "mcp.json", Format::Json, text);
        assert_eq!(imported.servers, [], "{text}");
        let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes, expected, "{text}");
    };
    check("", &[]);
    check("{}", &[]);
    check(
        "[]",
        &["mcp.json:1:1: the file must hold a table, but holds an array; start it with `{`"],
    );
    check(
        "{\"mcpServers\": []}",
        &[
            "mcp.json:1:16: `mcpServers` must be a table, but is an array; write \"mcpServers\": { … }",
        ],
    );
    let imported = read(Tool::Cursor, "mcp.json", Format::Json, "{\"mcpServers\": {");
    assert_eq!(imported.notes.len(), 1);
    assert_eq!(imported.notes[0].code, "syntax");
}

#[test]
fn an_existing_file_decides_its_format() {
    let entry = ServerEntry {
        command: Some("x".into()),
        ..ServerEntry::default()
    };
    let check = |tool: Tool, text: &str, container: &[&str]| {
        let file = SourceFile::new("f.json", Scope::User, text);
        let tree = switchboard_config::format::parse(&file, Format::Json, &mut Vec::new()).unwrap();
        let exported = export(tool, &[("a", &entry)], Some(&tree));
        assert_eq!(exported.container, container, "{text}");
    };
    check(Tool::Opencode, "{}", &["mcp"]);
    check(Tool::Opencode, "{\"mcp\": {}}", &["mcp"]);
    check(
        Tool::Opencode,
        "{\"mcp\": {\"servers\": {}}}",
        &["mcp", "servers"],
    );
    check(
        Tool::Opencode,
        "{\"mcp\": {\"timeout\": {}}}",
        &["mcp", "servers"],
    );
    check(
        Tool::Opencode,
        "{\"mcp\": {\"a\": {\"enabled\": true}}}",
        &["mcp"],
    );
    check(
        Tool::Opencode,
        "{\"mcp\": {\"servers\": {\"type\": \"local\"}}}",
        &["mcp"],
    );
    check(Tool::VsCode, "{}", &["servers"]);
    check(Tool::VsCode, "{\"servers\": {}}", &["servers"]);
    check(Tool::VsCode, "{\"mcp\": {}}", &["mcp", "servers"]);
}

/// Exports every possible setting to every tool; all losses are reported.
#[test]
fn each_tool_is_told_what_it_cannot_express() {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let secret = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
    let local = ServerEntry {
        command: Some("${home}/server".into()),
        args: texts(&["--root", "${workspaceFolder}", "${A:-b}", "$${C}"]),
        env: vec![secret("TOKEN", "${TOKEN}"), secret("MODE", "x")],
        env_vars: texts(&["PASSED"]),
        inherit_env: Some(true),
        cwd: Some("/srv".into()),
        required: Some(true),
        startup_timeout: Some(Duration::from_millis(1500)),
        tool_timeout: Some(Duration::from_secs(2)),
        tool_max: Some(Duration::from_secs(3)),
        enabled_tools: texts(&["a"]),
        disabled_tools: texts(&["b"]),
        tools: vec![(
            "a".into(),
            ToolEntry {
                timeout: Some(Duration::from_secs(1)),
                permission: Some(Permission::Allow),
                hidden: Some(true),
            },
        )],
        trust_annotations: Some(true),
        pin: Some(false),
        sandbox: Some(Sandbox {
            mode: SandboxMode::Workspace,
            network: None,
        }),
        shared: Some(Sharing::Always),
        idle_shutdown: Some(Duration::from_secs(60)),
        roots: Some(RootsEntry::Workspace),
        ..ServerEntry::default()
    };
    let remote = ServerEntry {
        transport: Some(Transport::Sse),
        url: Some("https://example.com/${TENANT}".into()),
        headers: vec![secret("X-Key", "${KEY}")],
        headers_helper: texts(&["print-headers", "--all"]),
        bearer_token_env_var: Some("BEARER".into()),
        oauth: Some(OAuthEntry {
            client_id: Some("client-1".into()),
            client_secret_env_var: Some("SECRET".into()),
            scopes: texts(&["read"]),
            issuer: Some("https://issuer.example.com".into()),
            resource: Some("https://example.com".into()),
            grant_type: Some("client_credentials".into()),
            ..OAuthEntry::default()
        }),
        ..ServerEntry::default()
    };
    let socket = ServerEntry {
        url: Some("wss://example.com".into()),
        ..ServerEntry::default()
    };
    let disabled = ServerEntry {
        command: Some("x".into()),
        enabled: Some(false),
        ..ServerEntry::default()
    };
    let servers = [
        ("local", &local),
        ("remote", &remote),
        ("socket", &socket),
        ("disabled", &disabled),
    ];
    let mut report = String::new();
    for tool in Tool::ALL {
        let exported = export(tool, &servers, None);
        let names: Vec<&str> = exported
            .entries
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let _ = writeln!(report, "{tool}: {}", names.join(", "));
        for note in &exported.notes {
            let _ = writeln!(report, "  [{}] {}", note.code, note.message);
        }
    }
    insta::with_settings!({
        snapshot_path => "foreign",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("losses", report);
    });
}

fn fixtures() -> Vec<(Tool, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
    let mut fixtures = Vec::new();
    for tool in Tool::ALL {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(tool.name()))
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| Format::of_path(path).is_some())
            .collect();
        files.sort();
        fixtures.extend(files.into_iter().map(|path| (tool, path)));
    }
    fixtures
}

fn read(tool: Tool, path: &str, format: Format, text: &str) -> Imported {
    let scope = if path.contains("user") {
        Scope::User
    } else {
        Scope::Project
    };
    let file = SourceFile::new(path, scope, text);
    import(tool, &file, format, Path::new(PROJECT))
}

/// Servers as written to an opencode file like their source, or to a new file of another tool.
fn written(
    tool: Tool,
    servers: &[ImportedServer],
    format: Format,
    source: &str,
) -> (String, Vec<Diagnostic>) {
    let file = SourceFile::new("beside", Scope::Project, source);
    let beside = switchboard_config::format::parse(&file, format, &mut Vec::new())
        .filter(|_| tool == Tool::Opencode);
    let servers: Vec<(&str, &ServerEntry)> = servers
        .iter()
        .filter(|server| server.scope != Scope::Local)
        .map(|server| (server.name.as_str(), &server.entry))
        .collect();
    let exported = export(tool, &servers, beside.as_ref());
    (exported.to_text(), exported.notes)
}

/// Checks that import, export and import yield the same servers.
fn assert_round_trip(tool: Tool, path: &str, servers: &[ImportedServer], text: &str) {
    let format = match tool {
        Tool::Codex => Format::Toml,
        Tool::Goose | Tool::Continue => Format::Yaml,
        _ => Format::Json,
    };
    let again = read(tool, "again", format, text);
    let pairs = |servers: &[ImportedServer]| -> Vec<(String, ServerEntry)> {
        let servers = servers.iter().filter(|server| server.scope != Scope::Local);
        servers
            .map(|server| (server.name.clone(), server.entry.clone()))
            .collect()
    };
    assert_eq!(pairs(&again.servers), pairs(servers), "{path}\n{text}");
}

fn describe(imported: &Imported, report: &mut String) {
    for server in &imported.servers {
        let (name, scope) = (&server.name, server.scope);
        let line = server.origin.position().line;
        let _ = writeln!(report, "{name} ({scope}, line {line})");
        for member in server.entry.to_node().as_table().unwrap_or_default() {
            let _ = writeln!(report, "  {} = {}", member.key, json(&member.value));
        }
    }
    list("notes", &imported.notes, report);
}

fn list(title: &str, notes: &[Diagnostic], report: &mut String) {
    let _ = writeln!(report, "\n--- {title}");
    for note in notes {
        let _ = writeln!(report, "{}[{}] {note}", note.severity, note.code);
    }
}

fn json(node: &Node<'_>) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(text) => text.as_ref().into(),
        Value::Array(elements) => elements.iter().map(json).collect(),
        Value::Table(members) => {
            let pairs = members
                .iter()
                .map(|member| (member.key.to_string(), json(&member.value)));
            serde_json::Value::Object(pairs.collect())
        }
    }
}

/// The order of variables and headers is irrelevant.
fn sorted(mut entry: ServerEntry) -> ServerEntry {
    entry.env.sort_by(|one, other| one.0.cmp(&other.0));
    entry.headers.sort_by(|one, other| one.0.cmp(&other.0));
    entry
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// An export without notes imports as the same entry; a note names the server and has a hint.
    #[test]
    fn what_is_lost_is_said(name in "[a-z][a-z0-9. ü-]{0,8}", entry in any_entry()) {
        for tool in Tool::ALL {
            let exported = export(tool, &[(&name, &entry)], None);
            for note in &exported.notes {
                prop_assert_eq!(note.server.as_deref(), Some(name.as_str()));
                prop_assert!(note.hint.is_some());
            }
            let text = exported.to_text();
            let again = read(tool, "again", exported.format, &text);
            if exported.notes.is_empty() {
                let errors: Vec<_> = again.notes.iter().filter(|note| note.severity == Severity::Error).collect();
                prop_assert!(errors.is_empty(), "{} {:?}\n{}", tool, errors, text);
                prop_assert_eq!(again.servers.len(), 1, "{}\n{}", tool, text);
                let expected = sorted(as_said_by(tool, entry.clone()));
                let found = sorted(again.servers[0].entry.clone());
                prop_assert_eq!(json(&found.to_node()), json(&expected.to_node()), "{}\n{}", tool, text);
                prop_assert_eq!(found, expected, "{}\n{}", tool, text);
                prop_assert_eq!(&again.servers[0].name, &name);
            }
        }
    }

    /// Importing arbitrary input neither panics nor hangs.
    #[test]
    fn any_tree_can_be_imported(text in "[\\[\\]{}:,\"a-z$ 0-9]{0,60}") {
        for tool in Tool::ALL {
            let wrapped = format!("{{\"mcpServers\": {{\"a\": {text}}}, \"mcp\": {{\"a\": {text}}}, \"servers\": {text}}}");
            for text in [&text, &wrapped] {
                let imported = read(tool, "f.json", Format::Json, text);
                prop_assert!(imported.servers.len() <= 60);
            }
        }
    }
}

/// Converts an entry to what a tool without some keys writes: passed-on names become variables, and a bearer token
/// becomes a header.
fn as_said_by(tool: Tool, mut entry: ServerEntry) -> ServerEntry {
    let has_authorization = |entry: &ServerEntry| {
        entry
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    };
    if matches!(tool, Tool::Codex | Tool::Goose) {
        let is_passed = |(name, value): &(String, Secret)| value.expose() == format!("${{{name}}}");
        let passed = entry
            .env
            .iter()
            .filter(|pair| is_passed(pair))
            .map(|(name, _)| name.clone());
        entry.env_vars.extend(passed.collect::<Vec<_>>());
        entry.env.retain(|pair| !is_passed(pair));
    }
    if tool == Tool::Codex {
        return entry;
    }
    if tool != Tool::Goose {
        for name in std::mem::take(&mut entry.env_vars) {
            if entry.env.iter().all(|(other, _)| *other != name) {
                let value = Secret::new(format!("${{{name}}}"));
                entry.env.push((name, value));
            }
        }
    }
    if !has_authorization(&entry)
        && let Some(name) = entry.bearer_token_env_var.take()
    {
        entry.headers.push((
            "Authorization".into(),
            Secret::new(format!("Bearer ${{{name}}}")),
        ));
    }
    entry
}
