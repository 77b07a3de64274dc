//! Formats of the supported tools, one table each, based on the tools' documentation.

mod agents;
mod editors;

use agents::{AMAZON_Q, CODEX, CRUSH, GEMINI, GOOSE, OPENCODE_1, OPENCODE_2};
use editors::{CONTINUE, CONTINUE_JSON, CURSOR, KIRO, VS_CODE, VS_CODE_SETTINGS, WINDSURF, ZED};

use super::Tool;
use super::dialect::{Dialect, Key, Meaning, OAuthKey, OAuthSetting, Unit};
use super::variables::Style;
use crate::entry::Transport;
use crate::format::Format;
use crate::tree::{Node, Value};

/// The format of a tool; if it has several, the existing file decides.
pub(super) fn dialect(tool: Tool, root: Option<&Node<'_>>) -> &'static Dialect {
    match tool {
        Tool::ClaudeCode => &CLAUDE_CODE,
        Tool::ClaudeDesktop => &CLAUDE_DESKTOP,
        Tool::Codex => &CODEX,
        Tool::VsCode if root.is_some_and(is_editor_settings) => &VS_CODE_SETTINGS,
        Tool::VsCode => &VS_CODE,
        Tool::Cursor => &CURSOR,
        Tool::Gemini => &GEMINI,
        Tool::Zed => &ZED,
        Tool::Opencode if root.is_some_and(is_second_opencode) => &OPENCODE_2,
        Tool::Opencode => &OPENCODE_1,
        Tool::Goose => &GOOSE,
        Tool::Windsurf => &WINDSURF,
        Tool::Kiro => &KIRO,
        Tool::LmStudio => &LM_STUDIO,
        Tool::Continue if root.is_some_and(is_continue_json) => &CONTINUE_JSON,
        Tool::Continue => &CONTINUE,
        Tool::Crush => &CRUSH,
        Tool::AmazonQ => &AMAZON_Q,
    }
}

/// A VS Code `settings.json` has its servers in `mcp`.
fn is_editor_settings(root: &Node<'_>) -> bool {
    root.get("servers").is_none() && root.get("mcp").is_some_and(|mcp| mcp.as_table().is_some())
}

/// opencode's first format has its servers directly in `mcp`, the second in `mcp.servers`. A server of the first format
/// may be named `servers`, and then has a `type` that is a text. New files use the first, which every release reads and
/// `opencode mcp add` writes.
fn is_second_opencode(root: &Node<'_>) -> bool {
    let Some(members) = root.get("mcp").and_then(Node::as_table) else {
        return false;
    };
    let is_settings = |key: &str| matches!(key, "servers" | "timeout");
    let is_server = |node: &Node<'_>| {
        node.get("type").is_some_and(|kind| kind.as_str().is_some())
            || node
                .get("command")
                .is_some_and(|line| line.as_array().is_some())
    };
    !members.is_empty()
        && members
            .iter()
            .all(|member| is_settings(&member.key) && !is_server(&member.value))
}

/// Continue's JSON files use the format of other tools: a table of servers.
fn is_continue_json(root: &Node<'_>) -> bool {
    root.get("mcpServers")
        .is_some_and(|servers| servers.as_table().is_some())
}

const fn key(name: &'static str, meaning: Meaning) -> Key {
    Key {
        name,
        meaning,
        written: true,
    }
}

/// A key that is read but not written.
const fn read(name: &'static str, meaning: Meaning) -> Key {
    Key {
        name,
        meaning,
        written: false,
    }
}

const fn setting(name: &'static str, ours: OAuthSetting) -> OAuthKey {
    OAuthKey { name, ours }
}

fn never(_: &Node<'_>) -> Option<&'static str> {
    None
}

const TRANSPORTS: Meaning = Meaning::Transport(&[
    ("stdio", Transport::Stdio),
    ("http", Transport::Http),
    ("sse", Transport::Sse),
    ("streamable-http", Transport::Http),
    ("streamable_http", Transport::Http),
    ("streamableHttp", Transport::Http),
    ("local", Transport::Stdio),
    ("remote", Transport::Http),
]);
const URL: Meaning = Meaning::Url(None);
const ENV_FILE: Meaning =
    Meaning::Lost("list the variables in `env`, or their names in `env_vars`");
const TOOL_PERMISSIONS: Meaning =
    Meaning::Lost("state `permission` for each tool in `tools` of the imported entry");
const CLAUDE_CODE: Dialect = Dialect {
    tool: Tool::ClaudeCode,
    format: Format::Json,
    containers: &[&["mcpServers"]],
    listed: false,
    keys: &[
        key(
            "type",
            Meaning::Transport(&[
                ("stdio", Transport::Stdio),
                ("http", Transport::Http),
                ("sse", Transport::Sse),
                ("ws", Transport::Ws),
                ("streamable-http", Transport::Http),
            ]),
        ),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("headersHelper", Meaning::HeadersHelper),
        key(
            "oauth",
            Meaning::OAuth(&[
                setting("clientId", OAuthSetting::ClientId),
                setting("callbackPort", OAuthSetting::CallbackPort),
                setting("authServerMetadataUrl", OAuthSetting::MetadataUrl),
                setting("scopes", OAuthSetting::ScopeText),
            ]),
        ),
        key("timeout", Meaning::Call(Unit::Milliseconds)),
        read("tools", TOOL_PERMISSIONS),
        read("toolPermissions", TOOL_PERMISSIONS),
        read("alwaysLoad", Meaning::Ignored),
        read("displayName", Meaning::Ignored),
        read("role", Meaning::Ignored),
        read("discoveryCache", Meaning::Ignored),
        read("bareElicitationCapability", Meaning::Ignored),
    ],
    style: Style::Braces {
        project: Some("CLAUDE_PROJECT_DIR"),
    },
    expanded: None,
    head: &[],
    skip: never,
};

const CLAUDE_DESKTOP: Dialect = Dialect {
    tool: Tool::ClaudeDesktop,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        read("type", Meaning::Transport(&[("stdio", Transport::Stdio)])),
    ],
    style: Style::Literal,
    ..CLAUDE_CODE
};

const LM_STUDIO: Dialect = Dialect {
    tool: Tool::LmStudio,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        read("type", TRANSPORTS),
    ],
    style: Style::Literal,
    ..CLAUDE_CODE
};

/// Whether a value is absent, false or empty.
pub(super) fn says_nothing(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => matches!(text.as_ref(), "" | "auto" | "prompt" | "writes"),
        Value::Array(elements) => elements.is_empty(),
        Value::Table(members) => members.is_empty(),
        _ => false,
    }
}
