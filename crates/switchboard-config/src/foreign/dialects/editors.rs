//! Formats of editors and their extensions: VS Code, Cursor, Zed, Windsurf, Kiro, Continue.

use super::super::Tool;
use super::super::dialect::{Dialect, Meaning, OAuthSetting, Unit};
use super::super::variables::{Colon, Style};
use super::{CLAUDE_CODE, ENV_FILE, TRANSPORTS, URL, key, read, setting};
use crate::entry::Transport;
use crate::format::Format;
use crate::tree::Node;

pub(super) const VS_CODE: Dialect = Dialect {
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

pub(super) const VS_CODE_SETTINGS: Dialect = Dialect {
    containers: &[&["mcp", "servers"]],
    ..VS_CODE
};

pub(super) const CURSOR: Dialect = Dialect {
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

pub(super) const ZED: Dialect = Dialect {
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

pub(super) const WINDSURF: Dialect = Dialect {
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

pub(super) const KIRO: Dialect = Dialect {
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

const CONTINUE_TRANSPORTS: Meaning = Meaning::Transport(&[
    ("stdio", Transport::Stdio),
    ("streamable-http", Transport::Http),
    ("sse", Transport::Sse),
    ("http", Transport::Http),
]);

pub(super) const CONTINUE: Dialect = Dialect {
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
        read("apiKey", Meaning::BearerToken),
        read("serverName", Meaning::Ignored),
        read("faviconUrl", Meaning::Ignored),
        read("sourceFile", Meaning::Ignored),
        read("sourceSlug", Meaning::Ignored),
    ],
    style: Style::Secrets,
    head: &[
        ("name", "Switchboard"),
        ("version", "0.0.1"),
        ("schema", "v1"),
    ],
    ..CLAUDE_CODE
};

pub(super) const CONTINUE_JSON: Dialect = Dialect {
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
    // Continue converts these to references to its secrets when it reads such a file.
    style: Style::Braces { project: None },
    ..CLAUDE_CODE
};
