//! What a tool's servers look like, as data: the keys of an entry and what each means to us.

use super::Tool;
use super::variables::Style;
use crate::entry::{Field, Transport};
use crate::format::Format;
use crate::tree::Node;

/// How one tool (in one version of its format) writes servers.
pub(super) struct Dialect {
    pub(super) tool: Tool,
    /// How a fresh file is written.
    pub(super) format: Format,
    /// Where servers stand; the first place is written to.
    pub(super) containers: &'static [&'static [&'static str]],
    /// Whether servers are a list whose elements carry their `name`, not a table.
    pub(super) listed: bool,
    /// The keys of an entry, in the order in which they are written; of two that mean the same the first wins.
    pub(super) keys: &'static [Key],
    /// How variables are written.
    pub(super) style: Style,
    /// The fields in which variables are expanded; all when absent.
    pub(super) expanded: Option<&'static [Field]>,
    /// What a fresh file says beside its servers.
    pub(super) head: &'static [(&'static str, &'static str)],
    /// Why an entry is no server, if it is none.
    pub(super) skip: fn(&Node<'_>) -> Option<&'static str>,
}

/// One key of an entry.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
    /// Whether an export writes it.
    pub(super) written: bool,
}

/// What a key means to us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    /// The name of the entry itself.
    Name,
    /// The transport, by these words; the first word of a transport is the one written.
    Transport(&'static [(&'static str, Transport)]),
    /// The program.
    Command,
    /// Program and arguments in one list.
    CommandLine,
    /// The program, or a table of `path`, `args` and `env`.
    CommandOrTable,
    /// The arguments.
    Args,
    /// The arguments; written even when there are none.
    ArgsAlways,
    /// Environment variables.
    Env,
    /// Environment variables whose values may be numbers, or null for none.
    LooseEnv,
    /// Names of variables that are passed on, each a text or a table with a `name`.
    EnvNames,
    /// The same, but for a remote server the names of the variables in its headers.
    EnvOrHeaderNames,
    /// The folder.
    Cwd,
    /// The address, and the transport it implies where none is stated.
    Url(Option<Transport>),
    /// HTTP headers.
    Headers,
    /// HTTP headers inside of a further table.
    HeadersInside,
    /// HTTP headers whose values are names of variables.
    EnvHeaders,
    /// A shell command that prints headers.
    HeadersHelper,
    /// The variable of a bearer token.
    BearerVariable,
    /// A bearer token, which becomes the header that carries it.
    BearerToken,
    /// Whether to sign in with OAuth, beside the settings; written where there are some.
    OAuthSwitch,
    /// A table of OAuth settings.
    OAuth(&'static [OAuthKey]),
    /// One OAuth setting in the entry itself.
    OAuthSetting(OAuthKey),
    /// Whether it may connect.
    Enabled,
    /// Whether it may connect; always written.
    EnabledAlways,
    /// Whether it may not connect.
    Disabled,
    /// Whether start-up needs it.
    Required,
    /// The deadline of start-up.
    Startup(Unit),
    /// The deadline of a call.
    Call(Unit),
    /// A table with the deadlines of `startup`, `catalog` and `execution` in milliseconds.
    Deadlines,
    /// The only tools that are offered.
    EnabledTools,
    /// Tools that are not offered.
    DisabledTools,
    /// Tables by tool with an `approval_mode`.
    ToolApprovals,
    /// An approval, which is never taken over.
    Approval,
    /// Nothing: the tool's own business. An export writes an empty text where the tool insists on one.
    Ignored,
    /// Something that cannot be translated, and what to do instead.
    Lost(&'static str),
}

/// The unit of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// One OAuth setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OAuthKey {
    /// What the tool calls it.
    pub(super) name: &'static str,
    /// What we call it.
    pub(super) ours: OAuthSetting,
}

/// An OAuth setting of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OAuthSetting {
    ClientId,
    ClientSecret,
    /// A list.
    Scopes,
    /// One text with spaces between.
    ScopeText,
    Issuer,
    MetadataUrl,
    Resource,
    CallbackPort,
    RedirectUri,
    /// Nothing: the tool's own business.
    Ignored,
}

impl OAuthSetting {
    /// The key in our own files.
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
    /// The syntax of variables in a field.
    pub(super) fn style_of(&self, field: Field) -> Style {
        match self.expanded {
            Some(fields) if !fields.contains(&field) => Style::Literal,
            _ => self.style,
        }
    }

    /// What the tool calls the first key with one of these meanings, for messages.
    pub(super) fn name_of(&self, matches: impl Fn(Meaning) -> bool) -> Option<&'static str> {
        self.keys
            .iter()
            .find(|key| matches(key.meaning))
            .map(|key| key.name)
    }
}
