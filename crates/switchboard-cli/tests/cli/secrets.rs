//! No secret appears in any output of any command, for people or for scripts.

use crate::support::TestContext;

/// Prefix of every canary.
const CANARY: &str = "CANARY";

/// A server with a secret in every place that can hold one.
fn entry(scope: &str) -> String {
    format!(
        r#"
[mcp_servers.{scope}-program]
command = "npx"
args = ["--api-key", "CANARY{scope}args", "--token=CANARY{scope}joined", "https://u:CANARY{scope}url@x.example/?token=CANARY{scope}query", "--header", "Authorization: Bearer CANARY{scope}hdr", "-H", "X-Api-Key:CANARY{scope}hkey", "Server=x;Password=CANARY{scope}conn;Db=y", "https://x.example/s/sk_live_9CANARY{scope}path/mcp"]
env = {{ API_KEY = "CANARY{scope}env", HTTPS_PROXY = "http://u:CANARY{scope}proxy@p.example" }}

[mcp_servers.{scope}-remote]
url = "https://user:CANARY{scope}password@{scope}.example/mcp?api_key=CANARY{scope}key#CANARY{scope}fragment"
headers = {{ Authorization = "Bearer CANARY{scope}header", X-Other = "${{X:-CANARY{scope}default}}" }}
headers_helper = ["helper", "--secret", "CANARY{scope}helper"]
oauth = {{ client_id = "id", client_secret = "CANARY{scope}client" }}

[mcp_servers.{scope}-broken]
url = "htps://u:CANARY{scope}broken@x.example"
headers = {{ "Authorization: Bearer CANARY{scope}name" = "x" }}

[mcp_servers.{scope}-type]
command = "npx"
args = "--token CANARY{scope}type"
env = {{ TOKEN = 1, "API_TOKEN=CANARY{scope}variable" = "x" }}
"#
    )
}

fn seeded() -> TestContext {
    let context = TestContext::new();
    let mode = "mode = \"merge\"\n";
    context.write("managed.toml", format!("{mode}{}", entry("enterprise")));
    context.write("project/.switchboard.local.toml", entry("local"));
    let hooks =
        "[[hooks]]\nevent = \"PreToolUse\"\ncommand = [\"log\", \"--token\", \"CANARYhook\"]\n";
    context.write("project/.mcp.toml", format!("{}{hooks}", entry("project")));
    let cloud = "[cloud]\nurl = \"https://u:CANARYcloud@cloud.invalid/?token=CANARYcloudquery\"\n";
    context.write(
        "config/mcp.toml",
        format!("{cloud}{}{hooks}", entry("user")),
    );
    context.write("config/plugins/p/plugin.toml", entry("plugin"));
    context.write("state/dynamic.toml", entry("dynamic"));
    // Broken lines with secrets in them, in each format.
    context.write(
        "config/mcp.json",
        "{\"mcpServers\": {\"x\": {\"env\": {\"T\": \"CANARYjson\" \"CANARYstray\"}}}}",
    );
    context.write(
        "config/mcp.hcl",
        "mcp_servers \"x\" {\n  env = { T = \"CANARYhcl\" = \"CANARYtwice\" }\n}\n",
    );
    context.write(
        "project/switchboard.hcl",
        "mcp_servers \"x\" {\n  env = { T = CANARYbare \"CANARY\" }\n",
    );
    context.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"x\": {\"headers\": {\"T\": 12CANARYnumber}}}}",
    );
    context.write(
        "home/.cursor/mcp.json",
        "{\"mcpServers\": {\"c\": {\"url\": \"https://u:CANARYcursor@x.example\", \"headers\": {\"A\": \"CANARYcursorheader\"}}}}",
    );
    context
}

#[test]
fn no_command_shows_a_secret() {
    let context = seeded();
    let names = [
        "user-program",
        "user-remote",
        "project-program",
        "project-remote",
        "local-program",
    ];
    let mut lines: Vec<String> = [
        "config show", "config check", "config path", "config schema", "mcp list", "mcp list --no-connect",
        "trust list", "trust diff", "trust approve", "tools", "version", "mcp import --dry-run",
        "mcp export --to codex --output exported.toml", "mcp get nobody", "mcp remove nobody",
        "mcp add dup https://u:CANARYadd@x.example -H 'Authorization: Bearer CANARYaddheader' -e",
        "mcp add --scope project shared https://u:CANARYadd@x.example -H 'Authorization: Bearer CANARYaddheader'",
        "mcp add --scope project shared https://u:CANARYadd@x.example -H 'Authorization: Bearer CANARYaddheader'",
        "mcp add-json j '{\"url\": \"https://u:CANARYj@x.example\", \"headers\": {\"A\": \"CANARYjh\"}}'",
        "mcp add-json k '{\"command\": \"npx\", \"env\": {\"A\": \"CANARYk\"'",
        "mcp add-json l '{\"url\": \"u:CANARYl@x.example\"}'",
        "trust approve --yes", "config show", "trust list",
        "mcp disable user-program", "mcp enable user-program", "mcp import", "mcp remove user-remote",
        "trust revoke", "config check",
    ]
    .map(String::from)
    .to_vec();
    lines.extend(names.map(|name| format!("mcp get {name}")));
    lines.extend(names.map(|name| format!("trust diff {name}")));
    for line in lines {
        for flags in ["", "--json", "-v", "--json -v", "--color always"] {
            // Flags come first: after a command's words they would belong to it.
            let line = format!("{flags} {line}");
            let run = context.logged("trace", line.trim());
            let shown = run.all();
            let leaked: Vec<&str> = shown.lines().filter(|each| each.contains(CANARY)).collect();
            assert!(leaked.is_empty(), "{line}\n{}", leaked.join("\n"));
        }
    }
}

#[cfg(unix)]
#[test]
fn files_that_hold_secrets_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let context = TestContext::new();
    assert_eq!(context.line("mcp add --scope user a -e K=v -- npx").code, 0);
    assert_eq!(context.line("mcp add b -e K=v -- npx").code, 0);
    for file in [
        "config/mcp.toml",
        "project/.switchboard.local.toml",
        "state/trust.json",
    ] {
        let mode = context.path(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

/// Deletes or doubles one character at a time, which may move a secret to an unexpected place.
#[test]
fn a_broken_file_shows_no_secret() {
    let toml = "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"--token\", \"CANARY\"]\nenv = { API_KEY = \"CANARY\" }\n\n[mcp_servers.b]\nurl = \"https://u:CANARY@h.example/?token=CANARY\"\nheaders = { Authorization = \"Bearer CANARY\" }\n";
    let json = "{\"mcpServers\": {\n\"a\": {\"command\": \"npx\", \"args\": [\"--token\", \"CANARY\"], \"env\": {\"API_KEY\": \"CANARY\"}},\n\"b\": {\"url\": \"https://u:CANARY@h.example/?token=CANARY\",\n\"headers\": {\"Authorization\": \"Bearer CANARY\"}}}}\n";
    let hcl = "mcp_servers \"a\" {\n  command = \"npx\"\n  args = [\"--token\", \"CANARY\"]\n  env = { API_KEY = \"CANARY\" }\n}\n";
    let context = TestContext::new();
    let mut runs = 0;
    for (file, text) in [("mcp.toml", toml), ("mcp.json", json), ("mcp.hcl", hcl)] {
        let signs = text
            .char_indices()
            .filter(|(_, sign)| "\"={}[],:\n".contains(*sign));
        for (at, sign) in signs {
            for change in [String::new(), format!("{sign}{sign}")] {
                let broken = format!("{}{change}{}", &text[..at], &text[at + 1..]);
                context.write(&format!("config/{file}"), &broken);
                let run = context.run(&["config", "check"]);
                assert!([0, 3].contains(&run.code), "{broken}\n{}", run.all());
                assert!(!run.all().contains(CANARY), "{broken}\n{}", run.all());
                runs += 1;
            }
        }
        std::fs::remove_file(context.path(&format!("config/{file}"))).unwrap();
    }
    assert!(runs > 100);
}

/// A server that echoes its secrets wherever it can.
const PARROT: &str = r#"
import base64, json, os, sys, urllib.parse
token, argument = os.environ["API_TOKEN"], sys.argv[2]
spelled = [token, argument, base64.b64encode(("user:" + token).encode()).decode(), urllib.parse.quote(token, safe="")]
said = " and ".join(spelled)
print("started with " + said, file=sys.stderr, flush=True)
if sys.argv[3:] == ["exit"]:
    sys.exit(3)
def answer(id, **what):
    print(json.dumps({"jsonrpc": "2.0", "id": id, **what}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message["method"]
    if method == "initialize":
        info = {"name": "parrot", "version": "1"}
        version = message["params"]["protocolVersion"]
        answer(id, result={"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info})
        data = {"said": said}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": data}}), flush=True)
    elif method == "tools/list":
        answer(id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("reject", "fail", "fine")]})
    elif method == "tools/call" and message["params"]["name"] == "reject":
        answer(id, error={"code": -32000, "message": "bad credentials " + said, "data": {"sent": spelled}})
    elif method == "tools/call":
        failed = message["params"]["name"] == "fail"
        text = "bad credentials " + said if failed else "fine"
        answer(id, result={"content": [{"type": "text", "text": text}], "isError": failed})
    elif id is not None:
        answer(id, error={"code": -32601, "message": "no such method, " + said})
"#;

#[test]
fn secrets_echoed_by_a_server_are_masked() {
    let context = TestContext::new();
    context.write("parrot.py", PARROT);
    let script = context.path("parrot.py").display().to_string();
    let entry = |name: &str, more: &str| {
        format!(
            "[mcp_servers.{name}]\ncommand = {:?}\nargs = [{script:?}, \"--api-key\", \"CANARY argument\"{more}]\nenv = {{ API_TOKEN = \"CANARY/to+ken\" }}\n",
            *crate::servers::PYTHON
        )
    };
    let text = entry("parrot", "") + &entry("dying", ", \"exit\"");
    context.write("config/mcp.toml", text);
    for line in [
        "call mcp__parrot__reject",
        "call mcp__parrot__fail",
        "mcp list",
        "status --connect",
        "logs parrot",
        "logs dying",
        "doctor",
        "doctor parrot",
        "tools",
    ] {
        for flags in ["", "--json"] {
            let line = format!("{flags} {line}");
            let run = context.logged("trace", line.trim());
            let shown = run.all();
            let encoded = ["Q0FOQVJZ", "NBTkFSW", "DQU5BUl"];
            let leaks = |each: &&str| {
                each.contains(CANARY) || encoded.iter().any(|part| each.contains(part))
            };
            let leaked: Vec<&str> = shown.lines().filter(leaks).collect();
            assert!(leaked.is_empty(), "{line}\n{}", leaked.join("\n"));
        }
    }
    // The rest of its text is present.
    let run = context.line("call mcp__parrot__reject");
    assert!(
        run.stderr.contains("bad credentials ********"),
        "{}",
        run.all()
    );
    let run = context.line("call mcp__parrot__fail");
    assert!(
        run.all().contains("bad credentials ********"),
        "{}",
        run.all()
    );
}
