//! Keys of a server entry: the single list behind decoding, encoding, schema and suggestions.

use super::{Permission, SandboxMode, Sharing, Transport};

/// A field of [`super::ServerEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each variant is the field of the same name, described in KEYS"
)]
pub enum Field {
    Transport,
    Command,
    Args,
    Env,
    EnvVars,
    InheritEnv,
    Cwd,
    Url,
    Headers,
    HeadersHelper,
    BearerTokenEnvVar,
    OAuth,
    CaFile,
    Enabled,
    Required,
    StartupTimeout,
    ToolTimeout,
    ToolMax,
    EnabledTools,
    DisabledTools,
    Tools,
    TrustAnnotations,
    Pin,
    Sandbox,
    Shared,
    IdleShutdown,
    Roots,
    Limits,
}

/// Type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// A list of strings.
    TextList,
    /// A table of strings.
    TextMap,
    /// `true` or `false`.
    Bool,
    /// Seconds above zero.
    Seconds,
    /// A whole number above zero.
    Count,
    /// A number of at least 1.
    Factor,
    /// A number of tokens, or `auto`.
    Window,
    /// A whole number from 1 to 65,535.
    Port,
    /// `auto`, `auto:N`, `on` or `off`.
    ToolSearch,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A command: a text, or a list of program and arguments.
    Command,
    /// Servers by name, or a list of servers with a `name`.
    Servers,
    /// The `[settings]` table.
    Settings,
    /// A list of permission rules.
    Rules,
    /// A list of hooks.
    Hooks,
    /// A list of server patterns.
    PatternList,
    /// A table of conditions on arguments.
    Conditions,
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose every value is a table with these keys.
    MapOf(&'static [Key]),
    /// One of these words, or a table with these keys.
    WordOrTable(&'static [&'static str], &'static [Key]),
    /// One of these words, or a list of strings.
    WordOrList(&'static [&'static str]),
}

/// A key of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Spelling in our own files.
    pub name: &'static str,
    /// Type of the value.
    pub shape: Shape,
    /// Description for the reference and the schema.
    pub about: &'static str,
}

impl Field {
    /// The key of this field.
    pub fn key(self) -> &'static Key {
        // `KEYS` is in the order of the enum; a test checks it.
        &KEYS[self as usize].1
    }

    /// Spelling in our own files.
    pub fn name(self) -> &'static str {
        self.key().name
    }

    /// Looks up a key in our own spelling.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        KEYS.iter()
            .find(|(_, known)| known.name == key)
            .map(|(field, _)| *field)
    }
}

/// The names of all values of a type, and other words that mean one of them.
macro_rules! names {
    ($type:ty $(, $other:literal)*) => {{
        const OTHERS: &[&str] = &[$($other),*];
        const ALL: usize = <$type>::ALL.len();
        const NAMES: [&str; ALL + OTHERS.len()] = {
            let mut names = [""; ALL + OTHERS.len()];
            let mut index = 0;
            while index < names.len() {
                names[index] = if index < ALL {
                    <$type>::ALL[index].name()
                } else {
                    OTHERS[index - ALL]
                };
                index += 1;
            }
            names
        };
        &NAMES
    }};
}

/// The names of the transports, as the schema lists them.
pub(crate) const TRANSPORTS: &[&str] =
    names!(Transport, "streamable-http", "streamable_http", "websocket");
pub(crate) const PERMISSIONS: &[&str] = names!(Permission);
/// The strictest last.
pub(crate) const SHARING: &[&str] = names!(Sharing);
pub(crate) const SANDBOXES: &[&str] = names!(SandboxMode);
pub(crate) const ROOTS: &[&str] = &["workspace", "none"];
pub(crate) const GRANTS: &[&str] = &[
    "authorization_code",
    "client_credentials",
    "enterprise_managed",
    "workload_identity",
];

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

/// Every key of a server entry.
#[rustfmt::skip]
pub const KEYS: [(Field, Key); 28] = [
    (Field::Transport, key("transport", Shape::OneOf(TRANSPORTS), "How the server is reached; inferred from `command` or `url` when absent. `type` means the same.")),
    (Field::Command, key("command", Shape::Text, "The program of a stdio server. No shell is involved. `program` means the same.")),
    (Field::Args, key("args", Shape::TextList, "The program's arguments.")),
    (Field::Env, key("env", Shape::TextMap, "Environment variables for the program.")),
    (Field::EnvVars, key("env_vars", Shape::TextList, "Names of environment variables that are passed on to the program.")),
    (Field::InheritEnv, key("inherit_env", Shape::Bool, "Pass the whole environment on to the program. Off by default.")),
    (Field::Cwd, key("cwd", Shape::Text, "The folder the program starts in.")),
    (Field::Url, key("url", Shape::Text, "The address of a remote server: http, https, ws, wss or unix.")),
    (Field::Headers, key("headers", Shape::TextMap, "HTTP headers sent with every request.")),
    (Field::HeadersHelper, key("headers_helper", Shape::Command, "A command that prints further headers as a JSON object.")),
    (Field::BearerTokenEnvVar, key("bearer_token_env_var", Shape::Text, "The environment variable that holds a bearer token.")),
    (Field::OAuth, key("oauth", Shape::Table(OAUTH_KEYS), "OAuth settings, where discovery is not enough.")),
    (Field::CaFile, key("ca_file", Shape::Text, "A PEM file with certificates that are trusted for this server, besides those of the machine.")),
    (Field::Enabled, key("enabled", Shape::Bool, "Whether the server may connect. On by default.")),
    (Field::Required, key("required", Shape::Bool, "Whether start-up waits for the server and fails without it.")),
    (Field::StartupTimeout, key("startup_timeout_sec", Shape::Seconds, "Deadline in seconds from spawn to listed tools. 60 by default.")),
    (Field::ToolTimeout, key("tool_timeout_sec", Shape::Seconds, "Idle deadline of a call in seconds, reset by progress. 60 by default.")),
    (Field::ToolMax, key("tool_max_sec", Shape::Seconds, "Total deadline of a call in seconds. 100,000 by default.")),
    (Field::EnabledTools, key("enabled_tools", Shape::TextList, "If not empty, the only tools that are offered.")),
    (Field::DisabledTools, key("disabled_tools", Shape::TextList, "Tools that are not offered.")),
    (Field::Tools, key("tools", Shape::MapOf(TOOL_KEYS), "Settings of single tools, by the tool's own name.")),
    (Field::TrustAnnotations, key("trust_annotations", Shape::Bool, "Whether the server's read-only and destructive hints count for permissions.")),
    (Field::Pin, key("pin", Shape::Bool, "Whether a tool that changed is set aside until you approve the change. On by default.")),
    (Field::Sandbox, key("sandbox", Shape::WordOrTable(SANDBOXES, SANDBOX_KEYS), "What the program may access.")),
    (Field::Shared, key("shared", Shape::OneOf(SHARING), "Whether clients of the daemon share one process of the server.")),
    (Field::IdleShutdown, key("idle_shutdown_sec", Shape::Seconds, "Stop the server after this many idle seconds; it restarts on next use.")),
    (Field::Roots, key("roots", Shape::WordOrList(ROOTS), "Folders that the server is told about: `workspace`, `none`, or a list. When absent: the workspace, unless its own arguments name folders.")),
    (Field::Limits, key("limits", Shape::Table(LIMIT_KEYS), "How many calls run at once, and when calls are paused after failures.")),
];

/// The keys of `tools.NAME`.
pub const TOOL_KEYS: &[Key] = &[
    key(
        "timeout_sec",
        Shape::Seconds,
        "Idle deadline of this tool's calls in seconds.",
    ),
    key(
        "permission",
        Shape::OneOf(PERMISSIONS),
        "What calls of this tool need.",
    ),
    key(
        "hidden",
        Shape::Bool,
        "Whether the tool is hidden from the model.",
    ),
];

/// The keys of `limits`.
pub const LIMIT_KEYS: &[Key] = &[
    key(
        "concurrent_calls",
        Shape::Count,
        "Calls that run at once. 256 by default.",
    ),
    key(
        "queued_calls",
        Shape::Count,
        "Further calls that wait; more fail at once. 1,024 by default.",
    ),
    key(
        "failures",
        Shape::Count,
        "Failures in a row (lost connections, timeouts, HTTP 5xx) after which calls are paused. 10 by default.",
    ),
    key(
        "pause_sec",
        Shape::Seconds,
        "How long calls are paused before one is tried. 10 by default.",
    ),
];

/// The keys of `sandbox` when it is a table.
pub const SANDBOX_KEYS: &[Key] = &[
    key(
        "mode",
        Shape::OneOf(SANDBOXES),
        "Which files the program may access.",
    ),
    key(
        "network",
        Shape::Bool,
        "Whether the program may use the network.",
    ),
];

/// The keys of `oauth`.
pub const OAUTH_KEYS: &[Key] = &[
    key("client_id", Shape::Text, "A client registered beforehand."),
    key(
        "client_secret",
        Shape::Text,
        "Its secret; `client_secret_env_var` keeps it out of the file.",
    ),
    key(
        "client_secret_env_var",
        Shape::Text,
        "The environment variable that holds the secret.",
    ),
    key("scopes", Shape::TextList, "The scopes to ask for."),
    key(
        "issuer",
        Shape::Text,
        "The authorization server, to override discovery.",
    ),
    key(
        "metadata_url",
        Shape::Text,
        "The authorization server's metadata document, when it is at a non-standard URL.",
    ),
    key(
        "resource",
        Shape::Text,
        "The resource indicator, when it is not the server's URL.",
    ),
    key(
        "callback_port",
        Shape::Port,
        "The port of the loopback callback.",
    ),
    key(
        "redirect_uri",
        Shape::Text,
        "The whole redirect URI, when the port is not enough.",
    ),
    key(
        "grant_type",
        Shape::OneOf(GRANTS),
        "How a token is obtained.",
    ),
    key(
        "private_key_file",
        Shape::Text,
        "The file with the client's private key (PKCS #8 in PEM), when it signs instead of showing a secret.",
    ),
    key(
        "private_key_env_var",
        Shape::Text,
        "The environment variable that holds that key.",
    ),
    key(
        "key_id",
        Shape::Text,
        "The name of that key, where the authorization server wants one.",
    ),
    key(
        "client_metadata_url",
        Shape::Text,
        "The URL of a client metadata document, for authorization servers that support it.",
    ),
    key(
        "idp_token_endpoint",
        Shape::Text,
        "The token endpoint of the identity provider, for `enterprise_managed`.",
    ),
    key(
        "idp_client_id",
        Shape::Text,
        "The client at the identity provider, when it is not `client_id`.",
    ),
    key(
        "idp_client_secret_env_var",
        Shape::Text,
        "The environment variable that holds its secret there.",
    ),
    key(
        "assertion_file",
        Shape::Text,
        "The file with the identity token that is exchanged, for `enterprise_managed` and `workload_identity`.",
    ),
    key(
        "assertion_env_var",
        Shape::Text,
        "The environment variable that holds that token.",
    ),
    key(
        "dpop",
        Shape::Bool,
        "Whether tokens are bound to a key; when absent, only if the server requires it.",
    ),
];

/// The known key most similar to a mistyped one, if any is similar enough.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let typed = snake_case(typed);
    let scored = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&typed, name), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + name.len() / 4).then_some(name)
}

/// Converts `enabledTools` and `enabled-tools` to our spelling, `enabled_tools`.
pub(crate) fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            if !snake.is_empty() && !snake.ends_with('_') {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
        } else {
            snake.push(if character == '-' { '_' } else { character });
        }
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_fields() {
        for (index, (field, key)) in KEYS.iter().enumerate() {
            assert_eq!(*field as usize, index);
            assert_eq!(Field::from_key(key.name), Some(*field));
        }
    }

    #[test]
    fn the_nearest_key_is_named_only_when_it_is_near() {
        let names = || KEYS.iter().map(|(_, key)| key.name);
        assert_eq!(nearest("comand", names()), Some("command"));
        assert_eq!(nearest("enabledTool", names()), Some("enabled_tools"));
        assert_eq!(
            nearest("startupTimeoutSec", names()),
            Some("startup_timeout_sec")
        );
        assert_eq!(nearest("colour", names()), None);
    }
}
