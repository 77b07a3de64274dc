//! The tools' formats, one table each, from the tools' own documentation.

use super::Tool;
use super::dialect::{Dialect, Key, Meaning, OAuthKey, OAuthSetting, Unit};
use super::variables::{Colon, Style};
use crate::entry::{Field, Transport};
use crate::format::Format;
use crate::tree::{Node, Value};

/// The format of a tool; the tree of an existing file decides where a tool has several.
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
        Tool::Opencode if root.is_some_and(is_first_opencode) => &OPENCODE_1,
        Tool::Opencode => &OPENCODE_2,
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

/// A VS Code `settings.json` keeps its servers inside of `mcp`.
fn is_editor_settings(root: &Node<'_>) -> bool {
    root.get("servers").is_none() && root.get("mcp").is_some_and(|mcp| mcp.as_table().is_some())
}

/// opencode's first version had its servers directly in `mcp`; the second has them in `mcp.servers`. A server
/// of the first version may be called `servers`, and then has a type that is a text.
fn is_first_opencode(root: &Node<'_>) -> bool {
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
    members
        .iter()
        .any(|member| !is_settings(&member.key) || is_server(&member.value))
}

/// Continue's JSON files are those of other tools: a table of servers.
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

/// A key that is understood but not written.
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
const OAUTH_CAMEL: &[OAuthKey] = &[
    setting("clientId", OAuthSetting::ClientId),
    setting("clientSecret", OAuthSetting::ClientSecret),
    setting("scopes", OAuthSetting::Scopes),
    setting("scope", OAuthSetting::ScopeText),
    setting("redirectUri", OAuthSetting::RedirectUri),
];

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
        read("alwaysLoad", Meaning::Ignored),
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

const CODEX: Dialect = Dialect {
    tool: Tool::Codex,
    format: Format::Toml,
    containers: &[&["mcp_servers"]],
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("env_vars", Meaning::EnvNames),
        key("cwd", Meaning::Cwd),
        key("url", URL),
        key("bearer_token_env_var", Meaning::BearerVariable),
        key("http_headers", Meaning::Headers),
        key("env_http_headers", Meaning::EnvHeaders),
        key("enabled", Meaning::Enabled),
        key("required", Meaning::Required),
        key("startup_timeout_sec", Meaning::Startup(Unit::Seconds)),
        read("startup_timeout_ms", Meaning::Startup(Unit::Milliseconds)),
        key("tool_timeout_sec", Meaning::Call(Unit::Seconds)),
        key("enabled_tools", Meaning::EnabledTools),
        key("disabled_tools", Meaning::DisabledTools),
        key(
            "scopes",
            Meaning::OAuthSetting(setting("scopes", OAuthSetting::Scopes)),
        ),
        key(
            "oauth",
            Meaning::OAuth(&[setting("client_id", OAuthSetting::ClientId)]),
        ),
        key(
            "oauth_resource",
            Meaning::OAuthSetting(setting("oauth_resource", OAuthSetting::Resource)),
        ),
        key("tools", Meaning::ToolApprovals),
        read("default_tools_approval_mode", Meaning::Approval),
        read(
            "bearer_token",
            Meaning::Lost("name the variable that holds it in `bearer_token_env_var`"),
        ),
        read("supports_parallel_tool_calls", Meaning::Ignored),
        read("experimental_environment", Meaning::Ignored),
        read("name", Meaning::Ignored),
    ],
    style: Style::Literal,
    ..CLAUDE_CODE
};

const VS_CODE: Dialect = Dialect {
    tool: Tool::VsCode,
    containers: &[
        &["servers"],
        &["mcp", "servers"],
        &["customizations", "vscode", "mcp", "servers"],
    ],
    keys: &[
        key("type", TRANSPORTS),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::LooseEnv),
        key("cwd", Meaning::Cwd),
        key("url", URL),
        key("headers", Meaning::Headers),
        key(
            "oauth",
            Meaning::OAuth(&[setting("clientId", OAuthSetting::ClientId)]),
        ),
        read("envFile", ENV_FILE),
        read(
            "sandboxEnabled",
            Meaning::Lost("state `sandbox` in the imported entry"),
        ),
        read(
            "sandbox",
            Meaning::Lost("state `sandbox` in the imported entry"),
        ),
        read("dev", Meaning::Ignored),
        read("gallery", Meaning::Ignored),
        read("version", Meaning::Ignored),
    ],
    style: Style::Colon(Colon::Editor),
    ..CLAUDE_CODE
};

const VS_CODE_SETTINGS: Dialect = Dialect {
    containers: &[&["mcp", "servers"]],
    ..VS_CODE
};

const CURSOR: Dialect = Dialect {
    tool: Tool::Cursor,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("cwd", Meaning::Cwd),
        key("url", URL),
        key("headers", Meaning::Headers),
        key(
            "auth",
            Meaning::OAuth(&[
                setting("CLIENT_ID", OAuthSetting::ClientId),
                setting("CLIENT_SECRET", OAuthSetting::ClientSecret),
                setting("scopes", OAuthSetting::Scopes),
            ]),
        ),
        read("type", TRANSPORTS),
        read("envFile", ENV_FILE),
        read("autoApprove", Meaning::Approval),
        read("alwaysAllow", Meaning::Approval),
    ],
    style: Style::Colon(Colon::Editor),
    ..CLAUDE_CODE
};

const GEMINI: Dialect = Dialect {
    tool: Tool::Gemini,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("cwd", Meaning::Cwd),
        key("httpUrl", Meaning::Url(Some(Transport::Http))),
        key("url", Meaning::Url(Some(Transport::Sse))),
        read("type", TRANSPORTS),
        key("headers", Meaning::Headers),
        key("timeout", Meaning::Call(Unit::Milliseconds)),
        key("includeTools", Meaning::EnabledTools),
        key("excludeTools", Meaning::DisabledTools),
        key(
            "oauth",
            Meaning::OAuth(&[
                setting("clientId", OAuthSetting::ClientId),
                setting("clientSecret", OAuthSetting::ClientSecret),
                setting("scopes", OAuthSetting::Scopes),
                setting("issuer", OAuthSetting::Issuer),
                setting("redirectUri", OAuthSetting::RedirectUri),
                setting("enabled", OAuthSetting::Ignored),
            ]),
        ),
        read("trust", Meaning::Approval),
        read("description", Meaning::Ignored),
        read(
            "authProviderType",
            Meaning::Lost("use `oauth` or `headers_helper` to sign in"),
        ),
        read(
            "targetAudience",
            Meaning::Lost("use `oauth` or `headers_helper` to sign in"),
        ),
        read(
            "targetServiceAccount",
            Meaning::Lost("use `oauth` or `headers_helper` to sign in"),
        ),
        read("tcp", Meaning::Lost("use `url` with the ws:// address")),
    ],
    style: Style::Dollar,
    ..CLAUDE_CODE
};

const ZED: Dialect = Dialect {
    tool: Tool::Zed,
    containers: &[&["context_servers"]],
    keys: &[
        key("command", Meaning::CommandOrTable),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("enabled", Meaning::Enabled),
        key("timeout", Meaning::Call(Unit::Seconds)),
        key(
            "oauth",
            Meaning::OAuth(&[
                setting("client_id", OAuthSetting::ClientId),
                setting("client_secret", OAuthSetting::ClientSecret),
            ]),
        ),
        read("source", Meaning::Ignored),
        read("remote", Meaning::Ignored),
        read(
            "settings",
            Meaning::Lost("pass settings by `args` or `env`"),
        ),
    ],
    style: Style::Literal,
    skip: |node| {
        let stated = |key: &str| node.get(key).is_some();
        let from_extension = node.get("source").and_then(Node::as_str) == Some("extension")
            || (stated("settings") && !stated("command") && !stated("url"));
        from_extension.then_some("comes from an extension of Zed")
    },
    ..CLAUDE_CODE
};

const OPENCODE_TRANSPORTS: Meaning =
    Meaning::Transport(&[("local", Transport::Stdio), ("remote", Transport::Http)]);

fn opencode_toggle(node: &Node<'_>) -> Option<&'static str> {
    let stated = |key: &str| node.get(key).is_some();
    let only_switches = (stated("enabled") || stated("disabled"))
        && !stated("type")
        && !stated("command")
        && !stated("url");
    only_switches.then_some("only switches a server that stands elsewhere")
}

const OPENCODE_1: Dialect = Dialect {
    tool: Tool::Opencode,
    containers: &[&["mcp"]],
    keys: &[
        key("type", OPENCODE_TRANSPORTS),
        key("command", Meaning::CommandLine),
        key("environment", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("oauth", Meaning::OAuth(OPENCODE_1_OAUTH)),
        key("enabled", Meaning::Enabled),
        key("timeout", Meaning::Startup(Unit::Milliseconds)),
    ],
    style: Style::Curly,
    head: &[("$schema", "https://opencode.ai/config.json")],
    skip: opencode_toggle,
    ..CLAUDE_CODE
};

const OPENCODE_1_OAUTH: &[OAuthKey] = &[
    setting("clientId", OAuthSetting::ClientId),
    setting("clientSecret", OAuthSetting::ClientSecret),
    setting("scope", OAuthSetting::ScopeText),
    setting("callbackPort", OAuthSetting::CallbackPort),
    setting("redirectUri", OAuthSetting::RedirectUri),
];

const OPENCODE_2: Dialect = Dialect {
    containers: &[&["mcp", "servers"]],
    keys: &[
        key("type", OPENCODE_TRANSPORTS),
        key("command", Meaning::CommandLine),
        key("cwd", Meaning::Cwd),
        key("environment", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key(
            "oauth",
            Meaning::OAuth(&[
                setting("client_id", OAuthSetting::ClientId),
                setting("client_secret", OAuthSetting::ClientSecret),
                setting("scope", OAuthSetting::ScopeText),
                setting("callback_port", OAuthSetting::CallbackPort),
                setting("redirect_uri", OAuthSetting::RedirectUri),
            ]),
        ),
        key("disabled", Meaning::Disabled),
        key("timeout", Meaning::Deadlines),
    ],
    ..OPENCODE_1
};

const GOOSE: Dialect = Dialect {
    tool: Tool::Goose,
    format: Format::Yaml,
    containers: &[&["extensions"]],
    keys: &[
        key(
            "type",
            Meaning::Transport(&[
                ("stdio", Transport::Stdio),
                ("streamable_http", Transport::Http),
                ("sse", Transport::Sse),
            ]),
        ),
        key("name", Meaning::Name),
        key("description", Meaning::Ignored),
        key("enabled", Meaning::EnabledAlways),
        key("cmd", Meaning::Command),
        key("args", Meaning::Args),
        key("uri", URL),
        key("headers", Meaning::Headers),
        key("envs", Meaning::Env),
        key("env_keys", Meaning::EnvOrHeaderNames),
        key("timeout", Meaning::Call(Unit::Seconds)),
        key("available_tools", Meaning::EnabledTools),
        read("display_name", Meaning::Ignored),
        read("bundled", Meaning::Ignored),
        read("socket", Meaning::Lost("use a unix:// address in `url`")),
    ],
    style: Style::Dollar,
    expanded: Some(&[Field::Headers]),
    skip: |node| match node.get("type").and_then(Node::as_str) {
        Some("builtin" | "platform") => Some("is built into goose"),
        Some("frontend") => Some("lives in goose's own window"),
        Some("inline_python") => Some("is a program inside of goose's configuration"),
        _ => None,
    },
    ..CLAUDE_CODE
};

const WINDSURF: Dialect = Dialect {
    tool: Tool::Windsurf,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("serverUrl", URL),
        read("url", URL),
        read("type", TRANSPORTS),
        key("headers", Meaning::Headers),
        key("disabled", Meaning::Disabled),
        key("disabledTools", Meaning::DisabledTools),
        read("alwaysAllow", Meaning::Approval),
        read("autoApprove", Meaning::Approval),
    ],
    style: Style::Colon(Colon::Files),
    ..CLAUDE_CODE
};

const KIRO: Dialect = Dialect {
    tool: Tool::Kiro,
    keys: &[
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("cwd", Meaning::Cwd),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("disabled", Meaning::Disabled),
        key("disabledTools", Meaning::DisabledTools),
        key("timeout", Meaning::Call(Unit::Milliseconds)),
        key(
            "oauthScopes",
            Meaning::OAuthSetting(setting("oauthScopes", OAuthSetting::Scopes)),
        ),
        key(
            "oauth",
            Meaning::OAuth(&[
                setting("redirectUri", OAuthSetting::RedirectUri),
                setting("clientId", OAuthSetting::ClientId),
            ]),
        ),
        read("type", TRANSPORTS),
        read("autoApprove", Meaning::Approval),
    ],
    style: Style::Braces { project: None },
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

const CONTINUE_TRANSPORTS: Meaning = Meaning::Transport(&[
    ("stdio", Transport::Stdio),
    ("streamable-http", Transport::Http),
    ("sse", Transport::Sse),
    ("http", Transport::Http),
]);

const CONTINUE: Dialect = Dialect {
    tool: Tool::Continue,
    format: Format::Yaml,
    listed: true,
    keys: &[
        key("name", Meaning::Name),
        key("type", CONTINUE_TRANSPORTS),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("cwd", Meaning::Cwd),
        key("url", URL),
        key("requestOptions", Meaning::HeadersInside),
        key("connectionTimeout", Meaning::Startup(Unit::Milliseconds)),
        read(
            "apiKey",
            Meaning::Lost("name the variable that holds it in `bearer_token_env_var`"),
        ),
        read("serverName", Meaning::Ignored),
        read("faviconUrl", Meaning::Ignored),
        read("sourceFile", Meaning::Ignored),
    ],
    style: Style::Secrets,
    head: &[
        ("name", "Switchboard"),
        ("version", "0.0.1"),
        ("schema", "v1"),
    ],
    ..CLAUDE_CODE
};

const CONTINUE_JSON: Dialect = Dialect {
    tool: Tool::Continue,
    keys: &[
        key(
            "type",
            Meaning::Transport(&[
                ("stdio", Transport::Stdio),
                ("http", Transport::Http),
                ("sse", Transport::Sse),
            ]),
        ),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        read("envFile", ENV_FILE),
    ],
    // Continue turns these into references to its secrets when it reads such a file.
    style: Style::Braces { project: None },
    ..CLAUDE_CODE
};

const CRUSH: Dialect = Dialect {
    tool: Tool::Crush,
    containers: &[&["mcp"]],
    keys: &[
        key(
            "type",
            Meaning::Transport(&[
                ("stdio", Transport::Stdio),
                ("http", Transport::Http),
                ("sse", Transport::Sse),
            ]),
        ),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("disabled", Meaning::Disabled),
        key("disabled_tools", Meaning::DisabledTools),
        key("enabled_tools", Meaning::EnabledTools),
        key("timeout", Meaning::Startup(Unit::Seconds)),
        key(
            "oauth_client_id",
            Meaning::OAuthSetting(setting("oauth_client_id", OAuthSetting::ClientId)),
        ),
        key(
            "oauth_client_secret",
            Meaning::OAuthSetting(setting("oauth_client_secret", OAuthSetting::ClientSecret)),
        ),
        key(
            "oauth_callback_port",
            Meaning::OAuthSetting(setting("oauth_callback_port", OAuthSetting::CallbackPort)),
        ),
        read("oauth", Meaning::Ignored),
        read("sessionless", Meaning::Ignored),
        read("channel_enabled", Meaning::Ignored),
        read("channel_reply", Meaning::Ignored),
    ],
    style: Style::Shell,
    head: &[("$schema", "https://charm.land/crush.json")],
    ..CLAUDE_CODE
};

const AMAZON_Q: Dialect = Dialect {
    tool: Tool::AmazonQ,
    keys: &[
        key(
            "type",
            Meaning::Transport(&[("stdio", Transport::Stdio), ("http", Transport::Http)]),
        ),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("timeout", Meaning::Call(Unit::Milliseconds)),
        key("disabled", Meaning::Disabled),
        key("disabledTools", Meaning::DisabledTools),
        key(
            "oauthScopes",
            Meaning::OAuthSetting(setting("oauthScopes", OAuthSetting::Scopes)),
        ),
        read("oauth", Meaning::OAuth(OAUTH_CAMEL)),
        read("autoApprove", Meaning::Approval),
    ],
    style: Style::Colon(Colon::Plain),
    ..CLAUDE_CODE
};

/// Whether a value says nothing: an absent, false or empty one.
pub(super) fn says_nothing(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => matches!(text.as_ref(), "" | "auto" | "prompt"),
        Value::Array(elements) => elements.is_empty(),
        Value::Table(members) => members.is_empty(),
        _ => false,
    }
}
