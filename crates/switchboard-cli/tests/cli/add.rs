//! `mcp add` accepts lines from the documentation of four other tools; only the program's name differs.

use serde_json::Value;

use crate::support::{Run, TestContext};

/// Variables that the lines expect to hold secrets.
const SECRETS: &[&str] = &["ACROOL_PAT", "MCP_CLIENT_SECRET"];

/// Runs a line in an empty project and compares everything it wrote.
fn check(line: &str, file: &str, text: &str) {
    let context = TestContext::new();
    let (_, arguments) = line.split_once(' ').unwrap();
    let run = context.line(arguments);
    assert_eq!(run.code, 0, "{line}\n{}", run.all());
    assert_eq!(run.stdout, "", "{line}");
    assert_eq!(context.read(file).trim_end(), text.trim(), "{line}");
    // Variables with secrets must be set before the server is usable.
    let with_secrets = |words: &[&str]| {
        let mut command = context.command();
        for variable in SECRETS {
            command.env(variable, "x");
        }
        Run::of(&command.args(words).output().unwrap())
    };
    let check = with_secrets(&["config", "check"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, ""), "{line}");
    let list = with_secrets(&["mcp", "list", "--no-connect", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{line}");
    assert_eq!(list[0]["state"], "ready", "{line}");
}

const LOCAL: &str = "project/.switchboard.local.toml";
const USER: &str = "config/mcp.toml";
const PROJECT: &str = "project/.mcp.json";

#[test]
fn lines_of_claude_work_unchanged() {
    for (line, file, text) in [
        (
            "claude mcp add --transport http notion https://mcp.notion.com/mcp",
            LOCAL,
            "[mcp_servers.notion]\nurl = \"https://mcp.notion.com/mcp\"",
        ),
        (
            "claude mcp add --transport http secure-api https://api.example.com/mcp --header \"Authorization: Bearer your-token\"",
            LOCAL,
            "[mcp_servers.secure-api]\nurl = \"https://api.example.com/mcp\"\nheaders = { Authorization = \"Bearer your-token\" }",
        ),
        (
            "claude mcp add --transport sse asana https://mcp.asana.com/sse",
            LOCAL,
            "[mcp_servers.asana]\ntransport = \"sse\"\nurl = \"https://mcp.asana.com/sse\"",
        ),
        (
            "claude mcp add --transport sse private-api https://api.company.com/sse --header \"X-API-Key: your-key-here\"",
            LOCAL,
            "[mcp_servers.private-api]\ntransport = \"sse\"\nurl = \"https://api.company.com/sse\"\nheaders = { X-API-Key = \"your-key-here\" }",
        ),
        (
            "claude mcp add --transport stdio --env AIRTABLE_API_KEY=YOUR_KEY airtable -- npx -y airtable-mcp-server",
            LOCAL,
            "[mcp_servers.airtable]\ncommand = \"npx\"\nargs = [\"-y\", \"airtable-mcp-server\"]\nenv = { AIRTABLE_API_KEY = \"YOUR_KEY\" }",
        ),
        (
            "claude mcp add --transport stdio airtable --env AIRTABLE_API_KEY=YOUR_KEY -- npx -y airtable-mcp-server",
            LOCAL,
            "[mcp_servers.airtable]\ncommand = \"npx\"\nargs = [\"-y\", \"airtable-mcp-server\"]\nenv = { AIRTABLE_API_KEY = \"YOUR_KEY\" }",
        ),
        (
            "claude mcp add --transport stdio myserver -- python server.py --port 8080",
            LOCAL,
            "[mcp_servers.myserver]\ncommand = \"python\"\nargs = [\"server.py\", \"--port\", \"8080\"]",
        ),
        (
            "claude mcp add --transport http stripe --scope local https://mcp.stripe.com",
            LOCAL,
            "[mcp_servers.stripe]\nurl = \"https://mcp.stripe.com\"",
        ),
        (
            "claude mcp add --transport http hubspot --scope user https://mcp.hubspot.com/anthropic",
            USER,
            "[mcp_servers.hubspot]\nurl = \"https://mcp.hubspot.com/anthropic\"",
        ),
        (
            "claude mcp add --transport http paypal --scope project https://mcp.paypal.com/mcp",
            PROJECT,
            "{\n  \"mcpServers\": {\n    \"paypal\": {\n      \"type\": \"http\",\n      \"url\": \"https://mcp.paypal.com/mcp\"\n    }\n  }\n}",
        ),
        (
            "claude mcp add --transport http --client-id your-client-id --client-secret --callback-port 8080 my-server https://mcp.example.com/mcp",
            LOCAL,
            "[mcp_servers.my-server]\nurl = \"https://mcp.example.com/mcp\"\noauth = { client_id = \"your-client-id\", client_secret_env_var = \"MCP_CLIENT_SECRET\", callback_port = 8080 }",
        ),
        (
            "claude mcp add --transport http --callback-port 8080 my-server https://mcp.example.com/mcp",
            LOCAL,
            "[mcp_servers.my-server]\nurl = \"https://mcp.example.com/mcp\"\noauth = { callback_port = 8080 }",
        ),
        (
            "claude mcp add --transport stdio db -- npx -y @bytebase/dbhub --dsn \"postgresql://localhost:5432/analytics\"",
            LOCAL,
            "[mcp_servers.db]\ncommand = \"npx\"\nargs = [\"-y\", \"@bytebase/dbhub\", \"--dsn\", \"postgresql://localhost:5432/analytics\"]",
        ),
        (
            "claude mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem /Users/you/projects",
            LOCAL,
            "[mcp_servers.filesystem]\ncommand = \"npx\"\nargs = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/Users/you/projects\"]",
        ),
        (
            "claude mcp add zep-cloud -e ZEP_API_KEY=your-key -e ZEP_DEFAULT_USER_ID=your-user-id -- uvx --from git+https://github.com/fshamim/mcp-server-zep-cloud mcp-server-zep-cloud",
            LOCAL,
            "[mcp_servers.zep-cloud]\ncommand = \"uvx\"\nargs = [\"--from\", \"git+https://github.com/fshamim/mcp-server-zep-cloud\", \"mcp-server-zep-cloud\"]\nenv = { ZEP_API_KEY = \"your-key\", ZEP_DEFAULT_USER_ID = \"your-user-id\" }",
        ),
        (
            "claude mcp add -s user --transport http pulidam https://pulidam.example/mcp",
            USER,
            "[mcp_servers.pulidam]\nurl = \"https://pulidam.example/mcp\"",
        ),
        (
            "claude mcp add asana https://mcp.asana.com/v2/mcp --transport http --client-id 1213836286741692 --client-secret --callback-port 10000",
            LOCAL,
            "[mcp_servers.asana]\nurl = \"https://mcp.asana.com/v2/mcp\"\noauth = { client_id = \"1213836286741692\", client_secret_env_var = \"MCP_CLIENT_SECRET\", callback_port = 10000 }",
        ),
        (
            "claude mcp add --env A=1 B=2 --transport stdio two -- npx -y two",
            LOCAL,
            "[mcp_servers.two]\ncommand = \"npx\"\nargs = [\"-y\", \"two\"]\nenv = { A = \"1\", B = \"2\" }",
        ),
        (
            "claude mcp add -suser -eA=1 joined -- npx",
            USER,
            "[mcp_servers.joined]\ncommand = \"npx\"\nenv = { A = \"1\" }",
        ),
        (
            "claude mcp add -t streamable-http named-in-full https://api.example.com/mcp",
            LOCAL,
            "[mcp_servers.named-in-full]\nurl = \"https://api.example.com/mcp\"",
        ),
        (
            "claude mcp add dotted -e a.b=1 -- npx",
            LOCAL,
            "[mcp_servers.dotted]\ncommand = \"npx\"\nenv = { \"a.b\" = \"1\" }",
        ),
    ] {
        check(line, file, text);
    }
}

#[test]
fn lines_of_codex_work_unchanged() {
    for (line, file, text) in [
        (
            "codex mcp add context7 -- npx -y @upstash/context7-mcp",
            LOCAL,
            "[mcp_servers.context7]\ncommand = \"npx\"\nargs = [\"-y\", \"@upstash/context7-mcp\"]",
        ),
        (
            "codex mcp add my-tool --env VAR1=VALUE1 --env VAR2=VALUE2 -- uvx my-tool",
            LOCAL,
            "[mcp_servers.my-tool]\ncommand = \"uvx\"\nargs = [\"my-tool\"]\nenv = { VAR1 = \"VALUE1\", VAR2 = \"VALUE2\" }",
        ),
        (
            "codex mcp add --env YTDLP_REMOTE=tootie --env YTDLP_REMOTE_PATH=/media/music ytdl-mcp -- /path/to/ytdl-mcp",
            LOCAL,
            "[mcp_servers.ytdl-mcp]\ncommand = \"/path/to/ytdl-mcp\"\nenv = { YTDLP_REMOTE = \"tootie\", YTDLP_REMOTE_PATH = \"/media/music\" }",
        ),
        (
            "codex mcp add notion --url https://mcp.notion.com/mcp",
            LOCAL,
            "[mcp_servers.notion]\nurl = \"https://mcp.notion.com/mcp\"",
        ),
        (
            "codex mcp add --url https://docs.livekit.io/mcp livekit-docs",
            LOCAL,
            "[mcp_servers.livekit-docs]\nurl = \"https://docs.livekit.io/mcp\"",
        ),
        (
            "codex mcp add acrool --url https://api-workspace.acrool.com/mcp --bearer-token-env-var ACROOL_PAT",
            LOCAL,
            "[mcp_servers.acrool]\nurl = \"https://api-workspace.acrool.com/mcp\"\nbearer_token_env_var = \"ACROOL_PAT\"",
        ),
        (
            "codex mcp add diskhound --url http://127.0.0.1:51733/mcp --oauth-client-registration dcr",
            LOCAL,
            "[mcp_servers.diskhound]\nurl = \"http://127.0.0.1:51733/mcp\"",
        ),
        (
            "codex mcp add registered --url https://api.example.com/mcp --oauth-client-id client-1 --oauth-client-secret s3cret --oauth-resource https://api.example.com",
            LOCAL,
            "[mcp_servers.registered]\nurl = \"https://api.example.com/mcp\"\noauth = { client_id = \"client-1\", client_secret = \"s3cret\", resource = \"https://api.example.com\" }",
        ),
        (
            "codex mcp add zep-cloud -e ZEP_API_KEY=your-key -- uvx mcp-server-zep-cloud",
            LOCAL,
            "[mcp_servers.zep-cloud]\ncommand = \"uvx\"\nargs = [\"mcp-server-zep-cloud\"]\nenv = { ZEP_API_KEY = \"your-key\" }",
        ),
        (
            "codex mcp add 3dsmax-mcp -- uv run --directory \"C:\\\\path\\\\to\\\\3dsmax-mcp\" 3dsmax-mcp",
            LOCAL,
            "[mcp_servers.3dsmax-mcp]\ncommand = \"uv\"\nargs = [\"run\", \"--directory\", \"C:\\\\path\\\\to\\\\3dsmax-mcp\", \"3dsmax-mcp\"]",
        ),
    ] {
        check(line, file, text);
    }
}

#[test]
fn lines_of_gemini_work_unchanged() {
    for (line, file, text) in [
        (
            "gemini mcp add my-stdio-server -e API_KEY=123 /path/to/server arg1 arg2 arg3",
            LOCAL,
            "[mcp_servers.my-stdio-server]\ncommand = \"/path/to/server\"\nargs = [\"arg1\", \"arg2\", \"arg3\"]\nenv = { API_KEY = \"123\" }",
        ),
        (
            "gemini mcp add python-server python server.py --port 8080",
            LOCAL,
            "[mcp_servers.python-server]\ncommand = \"python\"\nargs = [\"server.py\", \"--port\", \"8080\"]",
        ),
        (
            "gemini mcp add python-server python server.py -- --server-arg my-value",
            LOCAL,
            "[mcp_servers.python-server]\ncommand = \"python\"\nargs = [\"server.py\", \"--server-arg\", \"my-value\"]",
        ),
        (
            "gemini mcp add --transport http http-server https://api.example.com/mcp/",
            LOCAL,
            "[mcp_servers.http-server]\nurl = \"https://api.example.com/mcp/\"",
        ),
        (
            "gemini mcp add --transport http --header \"Authorization: Bearer abc123\" secure-http https://api.example.com/mcp/",
            LOCAL,
            "[mcp_servers.secure-http]\nurl = \"https://api.example.com/mcp/\"\nheaders = { Authorization = \"Bearer abc123\" }",
        ),
        (
            "gemini mcp add --transport sse secure-sse https://api.example.com/sse/ --header \"Authorization: Bearer abc123\"",
            LOCAL,
            "[mcp_servers.secure-sse]\ntransport = \"sse\"\nurl = \"https://api.example.com/sse/\"\nheaders = { Authorization = \"Bearer abc123\" }",
        ),
        (
            "gemini mcp add -t http -H \"X-Api-Key: abc123\" -H \"Authorization: Bearer abc123\" two https://api.example.com/mcp",
            LOCAL,
            "[mcp_servers.two]\nurl = \"https://api.example.com/mcp\"\nheaders = { X-Api-Key = \"abc123\", Authorization = \"Bearer abc123\" }",
        ),
        (
            "gemini mcp add server-name npx package-name@latest --env API_KEY=value --env REGION=us-east-1",
            LOCAL,
            "[mcp_servers.server-name]\ncommand = \"npx\"\nargs = [\"package-name@latest\"]\nenv = { API_KEY = \"value\", REGION = \"us-east-1\" }",
        ),
        (
            "gemini mcp add -s user total-recall python -m total_recall.mcp_server",
            USER,
            "[mcp_servers.total-recall]\ncommand = \"python\"\nargs = [\"-m\", \"total_recall.mcp_server\"]",
        ),
        (
            "gemini mcp add -t stdio -s user svelte npx -y @sveltejs/mcp",
            USER,
            "[mcp_servers.svelte]\ncommand = \"npx\"\nargs = [\"-y\", \"@sveltejs/mcp\"]",
        ),
        (
            "gemini mcp add --timeout 30000 --include-tools read,write --exclude-tools delete tools npx -y tools",
            LOCAL,
            "[mcp_servers.tools]\ncommand = \"npx\"\nargs = [\"-y\", \"tools\"]\ntool_timeout_sec = 30\nenabled_tools = [\"read\", \"write\"]\ndisabled_tools = [\"delete\"]",
        ),
        (
            "gemini mcp add tools npx pkg --include-tools read write --exclude-tools delete drop --timeout 5000",
            LOCAL,
            "[mcp_servers.tools]\ncommand = \"npx\"\nargs = [\"pkg\"]\ntool_timeout_sec = 5\nenabled_tools = [\"read\", \"write\"]\ndisabled_tools = [\"delete\", \"drop\"]",
        ),
        (
            "gemini mcp add -e=A=1 joined npx --x=1",
            LOCAL,
            "[mcp_servers.joined]\ncommand = \"npx\"\nargs = [\"--x=1\"]\nenv = { A = \"1\" }",
        ),
        (
            "gemini mcp add -s user ytdl-mcp /path/to/ytdl-mcp -e YTDLP_REMOTE=tootie -e YTDLP_REMOTE_PATH=/media/music",
            USER,
            "[mcp_servers.ytdl-mcp]\ncommand = \"/path/to/ytdl-mcp\"\nenv = { YTDLP_REMOTE = \"tootie\", YTDLP_REMOTE_PATH = \"/media/music\" }",
        ),
        (
            "gemini mcp add --scope project telex telex serve",
            PROJECT,
            "{\n  \"mcpServers\": {\n    \"telex\": {\n      \"command\": \"telex\",\n      \"args\": [\"serve\"]\n    }\n  }\n}",
        ),
        (
            "gemini mcp add --transport http --trust mcpany http://localhost:50050",
            LOCAL,
            "[mcp_servers.mcpany]\nurl = \"http://localhost:50050\"",
        ),
    ] {
        check(line, file, text);
    }
}

#[test]
fn lines_of_opencode_work_unchanged() {
    for (line, file, text) in [
        (
            "opencode mcp add plain --env A=1 --env B=x=y -- npx -y pkg",
            LOCAL,
            "[mcp_servers.plain]\ncommand = \"npx\"\nargs = [\"-y\", \"pkg\"]\nenv = { A = \"1\", B = \"x=y\" }",
        ),
        (
            "opencode mcp add remote --url https://api.example.com/mcp --header X-A=b --header 'Authorization=Bearer a:b=c'",
            LOCAL,
            "[mcp_servers.remote]\nurl = \"https://api.example.com/mcp\"\nheaders = { X-A = \"b\", Authorization = \"Bearer a:b=c\" }",
        ),
    ] {
        check(line, file, text);
    }
}

#[test]
fn lines_of_our_own_and_pasted_whole() {
    for (line, file, text) in [
        (
            "switchboard mcp add notion https://mcp.notion.com/mcp",
            LOCAL,
            "[mcp_servers.notion]\nurl = \"https://mcp.notion.com/mcp\"",
        ),
        (
            "switchboard mcp add live wss://live.example.com/mcp",
            LOCAL,
            "[mcp_servers.live]\nurl = \"wss://live.example.com/mcp\"",
        ),
        (
            "switchboard mcp add claude mcp add --transport http notion https://mcp.notion.com/mcp",
            LOCAL,
            "[mcp_servers.notion]\nurl = \"https://mcp.notion.com/mcp\"",
        ),
        (
            "switchboard mcp add codex mcp add no-separator npx -y pkg --env Q=1 --url u",
            LOCAL,
            "[mcp_servers.no-separator]\ncommand = \"npx\"\nargs = [\"-y\", \"pkg\", \"--env\", \"Q=1\", \"--url\", \"u\"]",
        ),
        (
            "switchboard mcp add opencode mcp add far --url https://api.example.com/mcp",
            LOCAL,
            "[mcp_servers.far]\nurl = \"https://api.example.com/mcp\"",
        ),
        (
            "switchboard mcp add flags java -server -ea -jar server.jar",
            LOCAL,
            "[mcp_servers.flags]\ncommand = \"java\"\nargs = [\"-server\", \"-ea\", \"-jar\", \"server.jar\"]",
        ),
        (
            "switchboard mcp add --scope=user --env=A=b=c docs -- npx -y docs --scope x",
            USER,
            "[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\", \"--scope\", \"x\"]\nenv = { A = \"b=c\" }",
        ),
    ] {
        check(line, file, text);
    }
}

#[test]
fn the_entry_is_printed_as_json_with_secrets_masked() {
    let context = TestContext::new();
    let entry = context.json(
        "mcp add --json gh https://me:pw@api.example.com/mcp -H 'Authorization: Bearer abc' -H 'X-Key: ${KEY}' --quiet",
    );
    assert_eq!(
        entry,
        serde_json::json!({
            "name": "gh",
            "url": "https://********@api.example.com/mcp",
            "headers": {"Authorization": "********", "X-Key": "${KEY}"},
        })
    );
}

#[test]
fn invalid_lines_are_rejected_and_nothing_is_written() {
    for (line, expected) in [
        ("mcp add", "the server has no name"),
        ("mcp add --scope user", "the server has no name"),
        ("mcp add x", "no URL and no command for `x`"),
        (
            "mcp add x --url https://a.example -- npx",
            "both --url and a command",
        ),
        (
            "mcp add x --transport carrier-pigeon https://a.example",
            "--transport cannot be \"carrier-pigeon\"",
        ),
        (
            "mcp add x --scope everywhere https://a.example",
            "--scope cannot be \"everywhere\"",
        ),
        ("mcp add x -e NOVALUE -- npx", "--env takes NAME=VALUE"),
        ("mcp add x -e --scope=user -- npx", "--env takes NAME=VALUE"),
        ("mcp add x -e =user -- npx", "--env takes NAME=VALUE"),
        (
            "mcp add x https://a.example -H nonsense",
            "--header takes 'NAME: VALUE'",
        ),
        (
            "mcp add x https://a.example --transprot http",
            "did you mean --transport?",
        ),
        (
            "mcp add x https://a.example more",
            "unexpected words after the URL",
        ),
        ("mcp add x --timeout 0 -- npx", "--timeout cannot be \"0\""),
        (
            "mcp add x --callback-port 70000 https://a.example",
            "--callback-port cannot be \"70000\"",
        ),
        ("mcp add x --scope", "--scope needs a value"),
        ("mcp add x -t http a.example", "must start with http://"),
        ("mcp add '' https://a.example", "is empty"),
        (
            "mcp add \"a\u{202e}b\" https://a.example",
            "invisible character",
        ),
    ] {
        let context = TestContext::new();
        let run = context.line(line);
        assert_eq!(run.code, 2, "{line}\n{}", run.all());
        assert!(run.stderr.contains(expected), "{line}\n{}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
        for file in [LOCAL, USER, PROJECT, "state/trust.json"] {
            assert!(!context.exists(file), "{line} wrote {file}");
        }
    }
}
