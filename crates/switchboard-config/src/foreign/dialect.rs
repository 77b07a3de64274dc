//! Describes the configuration formats of other tools as data: the keys of an entry and their meaning.

use super::Tool;
use super::variables::Style;
use crate::entry::{Field, Transport};
use crate::format::Format;
use crate::tree::Node;

/// Format of one tool, or of one version of it.
pub(super) struct Dialect {
    pub(super) tool: Tool,
    /// Format of new files.
    pub(super) format: Format,
    /// Paths of the server tables; exports use the first.
    pub(super) containers: &'static [&'static [&'static str]],
    /// Whether servers are a list of elements with a `name`, instead of a table.
    pub(super) listed: bool,
    /// Keys of an entry, in output order; if two have the same meaning, the first wins.
    pub(super) keys: &'static [Key],
    /// Syntax of variables.
    pub(super) style: Style,
    /// Fields with variable expansion; `None`: all.
    pub(super) expanded: Option<&'static [Field]>,
    /// Further members of a new file.
    pub(super) head: &'static [(&'static str, &'static str)],
    /// Reason if an entry is not a server.
    pub(super) skip: fn(&Node<'_>) -> Option<&'static str>,
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
    /// Whether an export writes it.
    pub(super) written: bool,
}

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    /// Name of the entry.
    Name,
    /// Transport, by these words; the first word of a transport is written.
    Transport(&'static [(&'static str, Transport)]),
    Command,
    /// Program and arguments in one list.
    CommandLine,
    /// Program, or a table of `path`, `args` and `env`.
    CommandOrTable,
    Args,
    /// Arguments; written even if empty.
    ArgsAlways,
    Env,
    /// Environment variables whose values may be numbers, or null for unset.
    LooseEnv,
    /// Names of variables to pass on, each a text or a table with a `name`.
    EnvNames,
    /// The same, but for a remote server the variables used in its headers.
    EnvOrHeaderNames,
    Cwd,
    /// URL, and the transport it implies if none is stated.
    Url(Option<Transport>),
    Headers,
    /// HTTP headers inside another table.
    HeadersInside,
    /// HTTP headers whose values are names of variables.
    EnvHeaders,
    /// Shell command that prints headers.
    HeadersHelper,
    /// Variable that holds a bearer token.
    BearerVariable,
    /// Bearer token, converted to an `Authorization` header.
    BearerToken,
    /// Whether to use OAuth, next to its settings; written if there are any.
    OAuthSwitch,
    OAuth(&'static [OAuthKey]),
    /// A single OAuth setting in the entry itself.
    OAuthSetting(OAuthKey),
    Enabled,
    /// Whether it may connect; always written.
    EnabledAlways,
    Disabled,
    /// Whether start-up needs it.
    Required,
    /// Start-up deadline.
    Startup(Unit),
    /// Call deadline.
    Call(Unit),
    /// Table with the deadlines `startup`, `catalog` and `execution` in milliseconds.
    Deadlines,
    EnabledTools,
    DisabledTools,
    /// Tables by tool with an `approval_mode`.
    ToolApprovals,
    /// An approval, which is never imported.
    Approval,
    /// Irrelevant to us. An export writes an empty text if the tool requires the key.
    Ignored,
    /// Cannot be translated; the text is a hint.
    Lost(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OAuthKey {
    /// Key of the tool.
    pub(super) name: &'static str,
    pub(super) ours: OAuthSetting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OAuthSetting {
    ClientId,
    ClientSecret,
    Scopes,
    /// Scopes as one space-separated text.
    ScopeText,
    Issuer,
    MetadataUrl,
    Resource,
    CallbackPort,
    RedirectUri,
    /// Irrelevant to us.
    Ignored,
}

impl OAuthSetting {
    /// Key in our own files.
    pub(super) fn name(self) -> &'static str {
        match self {
            OAuthSetting::ClientId => "client_id",
            OAuthSetting::ClientSecret => "client_secret",
            OAuthSetting::Scopes | OAuthSetting::ScopeText => "scopes",
            OAuthSetting::Issuer => "issuer",
            OAuthSetting::MetadataUrl => "metadata_url",
            OAuthSetting::Resource => "resource",
            OAuthSetting::CallbackPort => "callback_port",
            OAuthSetting::RedirectUri => "redirect_uri",
            OAuthSetting::Ignored => "",
        }
    }
}

impl Dialect {
    /// Variable syntax of a field.
    pub(super) fn style_of(&self, field: Field) -> Style {
        match self.expanded {
            Some(fields) if !fields.contains(&field) => Style::Literal,
            _ => self.style,
        }
    }

    /// The tool's name for the first key with a matching meaning, for messages.
    pub(super) fn name_of(&self, matches: impl Fn(Meaning) -> bool) -> Option<&'static str> {
        self.keys
            .iter()
            .find(|key| matches(key.meaning))
            .map(|key| key.name)
    }
}
