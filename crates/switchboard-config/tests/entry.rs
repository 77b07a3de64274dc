//! Tests of server entries in every format, and of the findings about invalid ones.

use std::time::Duration;

use switchboard_config::entry::{
    OAuthEntry, Permission, RootsEntry, Sandbox, SandboxMode, ServerEntry, Sharing, ToolEntry,
    Transport,
};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::schema::schema;
use switchboard_config::secret::{MASK, Secret};

fn load(file: &str, text: &str) -> Config {
    let folders = Folders {
        home: "/h".into(),
        config: "/c".into(),
        state: "/s".into(),
        project: "/p".into(),
        managed_file: None,
    };
    Config::load(
        &Inputs {
            folders,
            ..Inputs::default()
        },
        &InMemory::default().file(format!("/c/{file}"), text),
    )
}

fn findings(config: &Config) -> Vec<String> {
    let finding = |diagnostic: &switchboard_config::diagnostic::Diagnostic| {
        format!("{} {diagnostic}", diagnostic.severity).replace("/c/mcp.", "")
    };
    config.diagnostics.iter().map(finding).collect()
}

fn everything() -> ServerEntry {
    ServerEntry {
        transport: Some(Transport::Stdio),
        command: Some("npx".into()),
        args: vec!["-y".into(), "server".into()],
        env: vec![
            ("B".into(), Secret::new("2")),
            ("A".into(), Secret::new("1")),
        ],
        env_vars: vec!["HOME".into()],
        inherit_env: Some(false),
        cwd: Some("/tmp".into()),
        enabled: Some(true),
        required: Some(true),
        startup_timeout: Some(Duration::from_millis(1500)),
        tool_timeout: Some(Duration::from_secs(5)),
        tool_max: Some(Duration::from_secs(50)),
        enabled_tools: vec!["a".into(), "b".into()],
        disabled_tools: vec!["b".into()],
        tools: vec![(
            "a".into(),
            ToolEntry {
                timeout: Some(Duration::from_secs(9)),
                permission: Some(Permission::Ask),
                hidden: Some(true),
            },
        )],
        trust_annotations: Some(true),
        pin: Some(false),
        sandbox: Some(Sandbox {
            mode: SandboxMode::Workspace,
            network: Some(false),
        }),
        shared: Some(Sharing::Always),
        idle_shutdown: Some(Duration::from_secs(600)),
        roots: Some(RootsEntry::Folders(vec!["/srv".into(), "docs".into()])),
        ..ServerEntry::default()
    }
}

fn remote() -> ServerEntry {
    ServerEntry {
        transport: Some(Transport::Http),
        url: Some("https://a.example/mcp".into()),
        headers: vec![("X-Key".into(), Secret::new("k"))],
        headers_helper: vec!["helper".into(), "two words".into()],
        bearer_token_env_var: Some("TOKEN".into()),
        ca_file: Some("/ca.pem".into()),
        oauth: Some(OAuthEntry {
            client_id: Some("id".into()),
            client_secret: Some(Secret::new("s")),
            scopes: vec!["read".into(), "write".into()],
            callback_port: Some(8080),
            issuer: Some("https://i.example".into()),
            metadata_url: Some("https://i.example/m".into()),
            resource: Some("https://a.example".into()),
            redirect_uri: Some("http://localhost:8080/x".into()),
            client_secret_env_var: Some("SECRET".into()),
            grant_type: Some("enterprise_managed".into()),
            private_key_file: Some("/k.pem".into()),
            private_key_env_var: Some("KEY".into()),
            key_id: Some("k1".into()),
            client_metadata_url: Some("https://c.example/client.json".into()),
            idp_token_endpoint: Some("https://idp.example/token".into()),
            idp_client_id: Some("idp".into()),
            idp_client_secret_env_var: Some("IDP".into()),
            assertion_file: Some("/token".into()),
            assertion_env_var: Some("ASSERTION".into()),
            dpop: Some(true),
        }),
        ..ServerEntry::default()
    }
}

#[test]
fn every_key_is_read_in_every_format() {
    let toml = r#"
[mcp_servers.all]
transport = "stdio"
command = "npx"
args = ["-y", "server"]
env = { B = "2", A = "1" }
env_vars = ["HOME"]
inherit_env = false
cwd = "/tmp"
enabled = true
required = true
startup_timeout_sec = 1.5
tool_timeout_sec = 5
tool_max_sec = 50
enabled_tools = ["a", "b"]
disabled_tools = ["b"]
trust_annotations = true
pin = false
sandbox = { mode = "workspace", network = false }
shared = "always"
idle_shutdown_sec = 600
roots = ["/srv", "docs"]
tools.a = { timeout_sec = 9, permission = "ask", hidden = true }

[mcp_servers.remote]
transport = "streamable-http"
url = "https://a.example/mcp"
headers = { X-Key = "k" }
headers_helper = "helper 'two words'"
bearer_token_env_var = "TOKEN"
ca_file = "/ca.pem"

[mcp_servers.remote.oauth]
client_id = "id"
client_secret = "s"
scopes = "read write"
callback_port = 8080
issuer = "https://i.example"
metadata_url = "https://i.example/m"
resource = "https://a.example"
redirect_uri = "http://localhost:8080/x"
client_secret_env_var = "SECRET"
grant_type = "enterprise_managed"
private_key_file = "/k.pem"
private_key_env_var = "KEY"
key_id = "k1"
client_metadata_url = "https://c.example/client.json"
idp_token_endpoint = "https://idp.example/token"
idp_client_id = "idp"
idp_client_secret_env_var = "IDP"
assertion_file = "/token"
assertion_env_var = "ASSERTION"
dpop = true
"#;
    // Alternative spellings: camel case, `type`, `program`, `disabled`, `timeout` in milliseconds.
    let json = r#"{ "mcpServers": {
  "all": {
    "type": "stdio", "program": "npx", "args": ["-y", "server"], "env": { "B": "2", "A": "1" }, "envVars": ["HOME"],
    "inheritEnv": false, "cwd": "/tmp", "disabled": false, "required": true, "startupTimeoutSec": 1.5, "timeout": 5000,
    "toolMaxSec": 50, "enabledTools": ["a", "b"], "disabledTools": ["b"], "trustAnnotations": true, "pin": false,
    "sandbox": { "mode": "workspace", "network": false }, "shared": "always", "idleShutdownSec": 600,
    "roots": ["/srv", "docs"],
    "tools": { "a": { "timeoutSec": 9, "permission": "ask", "hidden": true } }, // a comment
  },
  "remote": {
    "type": "http", "url": "https://a.example/mcp", "headers": { "X-Key": "k" }, "headersHelper": ["helper", "two words"],
    "bearerTokenEnvVar": "TOKEN",
    "caFile": "/ca.pem",
    "oauth": {
      "clientId": "id", "clientSecret": "s", "scopes": ["read", "write"], "callbackPort": 8080,
      "issuer": "https://i.example", "metadataUrl": "https://i.example/m", "resource": "https://a.example",
      "redirectUri": "http://localhost:8080/x", "clientSecretEnvVar": "SECRET", "grantType": "enterprise_managed",
      "privateKeyFile": "/k.pem", "privateKeyEnvVar": "KEY", "keyId": "k1",
      "clientMetadataUrl": "https://c.example/client.json", "idpTokenEndpoint": "https://idp.example/token",
      "idpClientId": "idp", "idpClientSecretEnvVar": "IDP", "assertionFile": "/token",
      "assertionEnvVar": "ASSERTION",
      "dpop": true
    }
  }
} }"#;
    let hcl = r#"
mcp_servers "all" {
  transport           = "stdio"
  command             = "npx"
  args                = ["-y", "server"]
  env                 = { B = "2", "A" = "1" }
  env_vars            = ["HOME"]
  inherit_env         = false
  cwd                 = "/tmp"
  enabled             = true
  required            = true
  startup_timeout_sec = 1.5
  tool_timeout_sec    = 5
  tool_max_sec        = 50
  enabled_tools       = ["a", "b"]
  disabled_tools      = ["b"]
  trust_annotations   = true
  pin                 = false
  shared              = "always"
  idle_shutdown_sec   = 600
  roots               = ["/srv", "docs"]
  sandbox {
    mode    = "workspace"
    network = false
  }
  tools "a" {
    timeout_sec = 9
    permission  = "ask"
    hidden      = true
  }
}
mcp_servers {
  name                 = "remote"
  transport            = "http"
  url                  = "https://a.example/mcp"
  headers              = { "X-Key" = "k" }
  headers_helper       = ["helper", "two words"]
  bearer_token_env_var = "TOKEN"
  ca_file = "/ca.pem"
  oauth {
    client_id     = "id"
    client_secret = "s"
    scopes        = ["read", "write"]
    callback_port = 8080
    issuer = "https://i.example"
    metadata_url = "https://i.example/m"
    resource = "https://a.example"
    redirect_uri = "http://localhost:8080/x"
    client_secret_env_var = "SECRET"
    grant_type = "enterprise_managed"
    private_key_file = "/k.pem"
    private_key_env_var = "KEY"
    key_id = "k1"
    client_metadata_url = "https://c.example/client.json"
    idp_token_endpoint = "https://idp.example/token"
    idp_client_id = "idp"
    idp_client_secret_env_var = "IDP"
    assertion_file = "/token"
    assertion_env_var = "ASSERTION"
    dpop = true
  }
}
"#;
    for (file, text) in [("mcp.toml", toml), ("mcp.json", json), ("mcp.hcl", hcl)] {
        let config = load(file, text);
        // The variables with its secrets are not set here.
        let mut findings = findings(&config);
        findings.retain(|finding| !finding.contains("is not set, which"));
        assert_eq!(findings, Vec::<String>::new(), "{file}");
        let entries: Vec<_> = config
            .servers
            .iter()
            .map(|server| (server.name.as_str(), server.entry.clone()))
            .collect();
        assert_eq!(
            entries,
            [("all", everything()), ("remote", remote())],
            "{file}"
        );
    }
}

#[test]
fn the_shapes_of_a_list_of_servers() {
    let check = |file: &str, text: &str| {
        let config = load(file, text);
        assert_eq!(findings(&config), Vec::<String>::new(), "{text}");
        let names: Vec<_> = config
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"], "{text}");
    };
    check(
        "mcp.toml",
        "mcp_servers = { a = { command = 'x' }, b = { command = 'x' } }",
    );
    check(
        "mcp.toml",
        "[[mcp_servers]]\nname = 'a'\ncommand = 'x'\n[[mcp_servers]]\nname = 'b'\ncommand = 'x'",
    );
    check(
        "mcp.toml",
        "mcp_servers.a.command = 'x'\nmcp_servers.b.command = 'x'",
    );
    check(
        "mcp.json",
        r#"{"mcp_servers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#,
    );
    check(
        "mcp.json",
        r#"{"mcpServers": [{"name": "a", "command": "x"}, {"name": "b", "command": "x"}]}"#,
    );
    check(
        "mcp.hcl",
        "mcp_servers a {\n  command = \"x\"\n}\nmcp_servers \"b\" {\n  command = \"x\"\n}\n",
    );
    check(
        "mcp.hcl",
        "mcp_servers {\n  name = \"a\"\n  command = \"x\"\n}\nmcp_servers {\n  name = \"b\"\n  command = \"x\"\n}\n",
    );
    check(
        "mcp.hcl",
        "mcp_servers \"a\" {\n  command = \"x\"\n}\nmcp_servers {\n  name = \"b\"\n  command = \"x\"\n}\n",
    );
    check(
        "mcp.hcl",
        "mcp_servers {\n  name = \"a\"\n  command = \"x\"\n}\nmcp_servers \"b\" {\n  command = \"x\"\n}\n",
    );
    check(
        "mcp.hcl",
        "mcp_servers = {\n  a = { command = \"x\" }\n  b = { command = \"x\" }\n}\n",
    );
    check(
        "mcp.hcl",
        "mcp_servers {\n  a = { command = \"x\" }\n  b = { command = \"x\" }\n}\n",
    );
}

#[test]
fn a_wrong_entry_is_told_where_and_how_to_mend_it() {
    let check = |entry: &str, expected: &[&str]| {
        let config = load(
            "mcp.toml",
            &format!("[mcp_servers.s]\n{entry}\n[mcp_servers.fine]\ncommand = 'x'\n"),
        );
        assert_eq!(findings(&config), expected, "{entry}");
        assert_eq!(
            config.server("fine").unwrap().status.word(),
            "ready",
            "{entry}"
        );
        let faulty = expected.iter().any(|finding| finding.starts_with("error"));
        assert_eq!(
            config.server("s").unwrap().status.word(),
            if faulty { "invalid" } else { "ready" },
            "{entry}"
        );
    };
    check(
        "",
        &[
            "error toml:1:14: the entry has neither `command` nor `url`; add `command` for a program, or `url` for a remote server",
        ],
    );
    check(
        "command = ''",
        &["error toml:2:11: `command` must not be empty; name the program to start"],
    );
    check(
        "command = ['npx', 'x']",
        &["error toml:2:11: `command` must be a string, but is an array; write command = \"…\""],
    );
    check(
        "command = 'x'\nargs = 'y'",
        &["error toml:3:8: `args` must be a list of strings, but is a string; write [\"y\"]"],
    );
    check(
        "command = 'x'\nargs = ['a', 8080]",
        &["error toml:3:14: `args[1]` must be a string, but is an integer; put it in quotes"],
    );
    check(
        "command = 'x'\nenv = { PORT = 8080 }",
        &["error toml:3:16: `env.PORT` must be a string, but is an integer; put it in quotes"],
    );
    check(
        "command = 'x'\nenv = { 'A=B' = '1' }",
        &[
            "error toml:3:9: `env` has a variable with the invalid name \"A=B\"; a name is not empty and has no `=`",
        ],
    );
    check(
        "command = 'x'\nenabled = 'yes'",
        &[
            "error toml:3:11: `enabled` must be true or false, but is a string; write true or false without quotes",
        ],
    );
    check(
        "command = 'x'\ntool_timeout_sec = 0",
        &[
            "error toml:3:20: `tool_timeout_sec` must be above zero and at most 1000000000 seconds, but is 0 seconds; write a positive number, such as 60",
        ],
    );
    check(
        "command = 'x'\ntool_timeout_sec = -1.5",
        &[
            "error toml:3:20: `tool_timeout_sec` must be above zero and at most 1000000000 seconds, but is -1.5 seconds; write a positive number, such as 60",
        ],
    );
    check(
        "command = 'x'\ntool_timeout_sec = nan",
        &[
            "error toml:3:20: `tool_timeout_sec` must be above zero and at most 1000000000 seconds, but is NaN seconds; write a positive number, such as 60",
        ],
    );
    check(
        "command = 'x'\ntransport = 'stdoi'",
        &["error toml:3:13: `transport` cannot be \"stdoi\"; did you mean \"stdio\"?"],
    );
    check(
        "command = 'x'\ntransport = 'pigeon'",
        &[
            "error toml:3:13: `transport` cannot be \"pigeon\"; write one of stdio, http, sse, ws, sdk, streamable-http, streamable_http, websocket",
        ],
    );
    check(
        "command = 'x'\ntransport = 'http'",
        &[
            "error toml:1:14: a server with transport http needs `url`; change `transport` to \"stdio\", or add `url`",
        ],
    );
    check(
        "url = 'https://x.example'\ncommand = 'x'",
        &[
            "error toml:2:7: the entry has both `command` and `url`; keep one of the two, or state `transport`",
        ],
    );
    check(
        "url = 'x.example/mcp'",
        &[
            "error toml:2:7: `url` must start with http://, https://, ws://, wss:// or unix://, but is \"x.example/mcp\"; write the whole address, such as https://example.com/mcp",
        ],
    );
    check(
        "url = 'file:///etc/passwd'",
        &[
            "error toml:2:7: `url` must start with http://, https://, ws://, wss:// or unix://, but is \"file:///etc/passwd\"; write the whole address, such as https://example.com/mcp",
        ],
    );
    check(
        "url = 'https://x.example'\nheaders = { 'bad name' = 'x' }",
        &[
            "error toml:3:13: `headers` has the invalid name \"bad name\"; a header name has letters, digits and dashes",
        ],
    );
    check(
        "url = 'https://x.example'\nheaders = { X = \"a\\r\\nY: b\" }",
        &["error toml:3:13: the value of the header X contains a line break; write it on one line"],
    );
    check(
        "url = 'https://x.example'\n[mcp_servers.s.headers]\nGood = 'x'\n'bad name' = 'x'",
        &[
            "error toml:5:1: `headers` has the invalid name \"bad name\"; a header name has letters, digits and dashes",
        ],
    );
    check(
        "command = 'x'\nargs = [\n  'a',\n  '${NOT_SET}',\n  '${}',\n]",
        &[
            "error toml:5:4: the environment variable `NOT_SET` is not set, which `args` of server `s` needs; set NOT_SET, or give a default: ${NOT_SET:-default}",
            "error toml:6:4: in `args` of server `s`, `${}` is not a variable; write ${VAR}, ${VAR:-default}, ${env:VAR}, ${workspaceFolder} or ${home}, or `$${` for a literal `${`",
        ],
    );
    check(
        "command = '${NOT_SET:-}'",
        &[
            "error toml:2:11: `command` must not be empty, after variable expansion; name the program to start",
        ],
    );
    check(
        "url = '${NOT_SET:-file:///etc/passwd}'",
        &[
            "error toml:2:7: `url` must start with http://, https://, ws://, wss:// or unix://, after variable expansion; write the whole address, such as https://example.com/mcp",
        ],
    );
    check(
        "url = 'https://x.example'\nheaders = { X = \"${NOT_SET:-a\\nY: b}\" }",
        &["error toml:3:13: the value of the header X contains a line break; write it on one line"],
    );
    check(
        "url = 'https://'",
        &[
            "error toml:2:7: `url` must be an address (empty host), but is \"https://\"; write the whole address, such as https://example.com/mcp",
        ],
    );
    check(
        "command = 'npx -y server'",
        &[
            "warning toml:2:11: `command` contains a space, but is not split into words by a shell; name the program in `command` and list the rest in `args`",
        ],
    );
    check(
        "command = 'x'\nurl = 5",
        &["error toml:3:7: `url` must be a string, but is an integer; put it in quotes"],
    );
    check(
        "command = 'x'\nprogram = 'y'",
        &["error toml:3:1: `program` repeats the key on line 2; keep one of the two"],
    );
    check(
        "command = 'x'\ncomand = 'y'",
        &["warning toml:3:1: unknown key `comand`; did you mean `command`?"],
    );
    check(
        "command = 'x'\nautoApprove = ['*']",
        &[
            "warning toml:3:1: `autoApprove` is ignored: an entry cannot approve its own calls; use [[permissions.rules]] in your user configuration",
        ],
    );
    check(
        "command = 'x'\nheaders = { A = 'b' }",
        &["warning toml:3:11: `headers` has no effect on a program that is started; remove it"],
    );
    check(
        "command = 'x'\nsandbox = 'workspce'",
        &["error toml:3:11: `sandbox` cannot be \"workspce\"; did you mean \"workspace\"?"],
    );
    check(
        "command = 'x'\nroots = 'workspce'",
        &["error toml:3:9: `roots` cannot be \"workspce\"; did you mean \"workspace\"?"],
    );
    check(
        "command = 'x'\nroots = '/srv'",
        &[
            "error toml:3:9: `roots` is one folder, and must be a list of folders; put it in brackets",
        ],
    );
    check(
        "command = 'x'\nroots = ['/srv', ' ']",
        &[
            "error toml:3:9: `roots` contains an empty folder name; remove it, or write \"workspace\" for the folder of the project",
        ],
    );
    check(
        "command = 'x'\nroots = true",
        &[
            "error toml:3:9: `roots` must be a list of strings, but is a boolean; write roots = [\"…\"]",
        ],
    );
    check(
        "command = 'x'\nsandbox = { network = true }",
        &["error toml:3:11: `sandbox` needs a mode; write mode = \"workspace\""],
    );
    check(
        "command = 'x'\ntools.a.permission = 'maybe'",
        &[
            "error toml:3:22: `tools.a.permission` cannot be \"maybe\"; write one of allow, ask, deny",
        ],
    );
    check(
        "url = 'https://x.example'\noauth = { callback_port = 70000 }",
        &[
            "error toml:3:27: `oauth.callback_port` must be a port from 1 to 65535; write a port number",
        ],
    );
    check(
        "url = 'https://x.example'\nheaders_helper = \"a 'b\"",
        &[
            "error toml:3:18: `headers_helper` has an unclosed quote; close the quote, or write a list",
        ],
    );
}

#[test]
fn a_name_must_be_one_that_can_be_shown() {
    for (name, fault) in [
        ("", "is empty"),
        ("a\\u202eb", "has a control or invisible character"),
        (&"x".repeat(129), "is longer than 128 characters"),
    ] {
        let config = load(
            "mcp.json",
            &format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#),
        );
        assert!(
            findings(&config)[0].contains(fault),
            "{name}: {:?}",
            findings(&config)
        );
    }
}

#[test]
fn duplicate_names_and_keys_keep_the_first() {
    let check = |file: &str, text: &str| {
        let config = load(file, text);
        assert_eq!(config.servers.len(), 1, "{text}");
        let problems = findings(&config);
        assert!(
            problems
                .iter()
                .any(|problem| problem.starts_with("error") && problem.contains("2:")),
            "{text}: {problems:?}"
        );
    };
    check(
        "mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}",
    );
    check(
        "mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"command\": \"y\"}}}",
    );
    check(
        "mcp.hcl",
        "mcp_servers a {\n  command = \"x\"\n}\nmcp_servers a {\n  command = \"y\"\n}\n"
            .replace("x\"\n}\n", "x\" }\n")
            .replace("{\n  command = \"x\"", "{ command = \"x\"")
            .as_str(),
    );
    check(
        "mcp.toml",
        "mcp_servers.a = { command = 'x' }\nmcp_servers.a = { command = 'y' }",
    );
}

#[test]
fn operators_of_hcl_are_refused_before_its_parser_tries_all_their_readings() {
    // Found by fuzzing: without the check, parsing this takes practically forever.
    let inner = "au%cc/cc[ au%ccccutjcccccccco%qcc[ au%ccc.ccocccc%autqcc[ au%cchqcc[ ";
    let text = format!(
        "nv=f%autjcccccccco%auuqcc[ {}<+\"\"\"\"S*]\\\\\\  au",
        inner.repeat(12)
    );
    let findings = findings(&load("mcp.hcl", &text));
    assert_eq!(
        findings,
        [
            "error hcl:1:5: expressions are not evaluated here; use a literal, a list, an object, env(\"VAR\") or \"${VAR}\""
        ]
    );
}

#[test]
fn a_secret_cannot_be_printed() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret} {secret:?}"), format!("{MASK} {MASK}"));
    assert_eq!(Secret::new("Bearer ${TOKEN}").shown(), "Bearer ${TOKEN}");
    assert_eq!(secret.shown(), MASK);
    assert!(!format!("{:?}", everything()).contains("\"2\""));
}

#[test]
fn the_schema_accepts_what_reading_accepts() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let check = |text: &str, clean: bool| {
        let config = load("mcp.json", text);
        assert_eq!(
            config.diagnostics.is_empty(),
            clean,
            "{text}: {:?}",
            findings(&config)
        );
        let instance: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(validator.is_valid(&instance), clean, "{text}");
    };
    check("{}", true);
    check(
        r#"{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "b"}}}}"#,
        true,
    );
    check(
        r#"{"mcp_servers": {"a": {"url": "https://x.example", "oauth": {"scopes": ["a"]}, "tool_timeout_sec": 1.5}}}"#,
        true,
    );
    check(r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#, true);
    check(
        r#"{"mcpServers": {"a": {"command": "x", "sandbox": "read-only"}}}"#,
        true,
    );
    check(
        r#"{"settings": {"tool_timeout_sec": 5, "tool_search": "auto:20", "local_connections": 2}}"#,
        true,
    );
    check(
        r#"{"security": {"mcp_server_allowlist": ["a", {"url": "https://x/*"}]}}"#,
        true,
    );
    check(
        r#"{"permissions": {"rules": [{"tool": "mcp__*", "action": "ask", "arguments": {"path": {"under": "/x"}}}]}}"#,
        true,
    );
    check(
        r#"{"hooks": [{"event": "PreToolUse", "command": ["x"]}]}"#,
        true,
    );
    check(r#"{"colour": 1}"#, false);
    check(r#"{"mcpServers": {"a": {}}}"#, false);
    check(r#"{"mcpServers": {"a": {"command": 5}}}"#, false);
    check(
        r#"{"mcpServers": {"a": {"command": "x", "args": "y"}}}"#,
        false,
    );
    check(r#"{"mcpServers": [{"command": "x"}]}"#, false);
    check(r#"{"settings": {"tool_timeout_sec": 0}}"#, false);
    check(r#"{"settings": {"tool_search": "sometimes"}}"#, false);
    check(r#"{"permissions": {"rules": [{"tool": "x"}]}}"#, false);
    check(
        r#"{"hooks": [{"event": "Never", "command": ["x"]}]}"#,
        false,
    );
}
