//! Formats of terminal agents: Codex, Gemini CLI, opencode, goose, Crush, Amazon Q.

use super::super::Tool;
use super::super::dialect::{Dialect, Meaning, OAuthKey, OAuthSetting, Unit};
use super::super::variables::{Colon, Style};
use super::{CLAUDE_CODE, TRANSPORTS, URL, key, read, setting};
use crate::entry::{Field, Transport};
use crate::format::Format;
use crate::tree::Node;

pub(super) const CODEX: Dialect = Dialect {
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
        key("http_headers_helper", Meaning::HeadersHelper),
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
            Meaning::OAuth(&[
                setting("client_id", OAuthSetting::ClientId),
                setting("client_secret", OAuthSetting::ClientSecret),
                setting("callback_url", OAuthSetting::RedirectUri),
                setting("callback_port", OAuthSetting::CallbackPort),
            ]),
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
        read(
            "auth",
            Meaning::Lost("use `oauth` or `headers_helper` to sign in"),
        ),
        read("supports_parallel_tool_calls", Meaning::Ignored),
        read("startup_readiness", Meaning::Ignored),
        read("tool_input_schema_max_bytes", Meaning::Ignored),
        read("omit_tools_from", Meaning::Ignored),
        read("environment_id", Meaning::Ignored),
        read("experimental_environment", Meaning::Ignored),
        read("name", Meaning::Ignored),
    ],
    style: Style::Literal,
    ..CLAUDE_CODE
};

pub(super) const GEMINI: Dialect = Dialect {
    tool: Tool::Gemini,
    keys: &[
        key("type", TRANSPORTS),
        key("command", Meaning::Command),
        key("args", Meaning::Args),
        key("env", Meaning::Env),
        key("cwd", Meaning::Cwd),
        // The older key takes precedence, as in the tool itself.
        read("httpUrl", Meaning::Url(Some(Transport::Http))),
        key("url", URL),
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
        read("extension", Meaning::Ignored),
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

pub(super) const OPENCODE_1: Dialect = Dialect {
    tool: Tool::Opencode,
    containers: &[&["mcp"]],
    keys: &[
        key("type", OPENCODE_TRANSPORTS),
        key("command", Meaning::CommandLine),
        key("cwd", Meaning::Cwd),
        key("environment", Meaning::Env),
        key("url", URL),
        key("headers", Meaning::Headers),
        key("oauth", Meaning::OAuth(OPENCODE_1_OAUTH)),
        key("enabled", Meaning::Enabled),
        key("timeout", Meaning::Call(Unit::Milliseconds)),
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

pub(super) const OPENCODE_2: Dialect = Dialect {
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
        read("codemode", Meaning::Ignored),
    ],
    ..OPENCODE_1
};

pub(super) const GOOSE: Dialect = Dialect {
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
        key("args", Meaning::ArgsAlways),
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
    style: Style::Spaced,
    expanded: Some(&[Field::Headers]),
    skip: |node| match node.get("type").and_then(Node::as_str) {
        Some("builtin" | "platform") => Some("is built into goose"),
        Some("frontend") => Some("lives in goose's own window"),
        Some("inline_python") => Some("is a program inside of goose's configuration"),
        _ => None,
    },
    ..CLAUDE_CODE
};

pub(super) const CRUSH: Dialect = Dialect {
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
        key("oauth", Meaning::OAuthSwitch),
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
        read("sessionless", Meaning::Ignored),
        read("channel_enabled", Meaning::Ignored),
        read("channel_reply", Meaning::Ignored),
    ],
    style: Style::Shell,
    head: &[("$schema", "https://charm.land/crush.json")],
    ..CLAUDE_CODE
};

pub(super) const AMAZON_Q: Dialect = Dialect {
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

const OAUTH_CAMEL: &[OAuthKey] = &[
    setting("clientId", OAuthSetting::ClientId),
    setting("clientSecret", OAuthSetting::ClientSecret),
    setting("scopes", OAuthSetting::Scopes),
    setting("scope", OAuthSetting::ScopeText),
    setting("redirectUri", OAuthSetting::RedirectUri),
];
