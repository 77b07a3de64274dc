//! Scalar settings: the `[settings]` tables, merged by key, each value with its origin.

use crate::sort;
use std::fmt;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place};
use crate::entry::keys::{Key, SANDBOXES, Shape};
use crate::entry::{Reader, SandboxMode};
use crate::expand::Environment;
use crate::format::{self, Format};
use crate::scope::Scope;
use crate::source::{Origin, SourceFile};
use crate::tree::{Node, Value};

/// Commented defaults, compiled into the program.
pub(crate) const DEFAULTS: &str = include_str!("defaults.toml");

/// A scalar setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each variant is the key of the same name, described in SETTINGS"
)]
pub enum Setting {
    StartupTimeout,
    ToolTimeout,
    ToolMax,
    MaxOutputTokens,
    MaxMessageBytes,
    LocalConnections,
    RemoteConnections,
    HealthInterval,
    HealthTimeout,
    ReconnectAttempts,
    ReconnectInitial,
    ReconnectMax,
    ReconnectFactor,
    CatalogTtl,
    NeedsAuthMemory,
    ProgressInterval,
    ToolSearch,
    MinContextWindow,
    ModelWindow,
    MaxDescriptionChars,
    DefaultPermission,
    UnattendedPermission,
    AuditMaxAge,
    AuditMaxBytes,
    LoginStore,
    MaxWaitingQuestions,
    QuestionsPerMinute,
    Pins,
    Audit,
    BashSandbox,
    HealthFailures,
    InstallTimeout,
}

/// Environment variable that overrides a setting, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Override {
    None,
    Milliseconds(&'static str),
    Plain(&'static str),
}

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

#[rustfmt::skip]
const SETTINGS: [(Setting, Key, Override); 32] = [
    (Setting::StartupTimeout, key("startup_timeout_sec", Shape::Seconds, "Deadline from starting a server to having its tools, for servers whose entry sets none. MCP_TIMEOUT (milliseconds) overrides it."), Override::Milliseconds("MCP_TIMEOUT")),
    (Setting::ToolTimeout, key("tool_timeout_sec", Shape::Seconds, "How long a call may be silent, for servers and tools whose entry sets nothing. MCP_TOOL_TIMEOUT (milliseconds) overrides it."), Override::Milliseconds("MCP_TOOL_TIMEOUT")),
    (Setting::ToolMax, key("tool_max_sec", Shape::Seconds, "Maximum total duration of a call."), Override::None),
    (Setting::MaxOutputTokens, key("max_output_tokens", Shape::Count, "Output beyond this is cut for the model and kept whole in a file."), Override::Plain("MAX_MCP_OUTPUT_TOKENS")),
    (Setting::MaxMessageBytes, key("max_message_bytes", Shape::Count, "Maximum size of a message."), Override::None),
    (Setting::LocalConnections, key("local_connections", Shape::Count, "How many local servers start at once."), Override::Plain("MCP_SERVER_CONNECTION_BATCH_SIZE")),
    (Setting::RemoteConnections, key("remote_connections", Shape::Count, "How many remote servers connect at once."), Override::Plain("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE")),
    (Setting::HealthInterval, key("health_interval_sec", Shape::Seconds, "Interval of health checks on idle connections."), Override::None),
    (Setting::HealthTimeout, key("health_timeout_sec", Shape::Seconds, "Timeout of a health check."), Override::None),
    (Setting::ReconnectAttempts, key("reconnect_attempts", Shape::Count, "Maximum number of attempts to reconnect."), Override::None),
    (Setting::ReconnectInitial, key("reconnect_initial_sec", Shape::Seconds, "Wait before the first attempt to reconnect; up to half of each wait is taken off at random."), Override::None),
    (Setting::ReconnectMax, key("reconnect_max_sec", Shape::Seconds, "Longest wait between two attempts to reconnect."), Override::None),
    (Setting::ReconnectFactor, key("reconnect_factor", Shape::Factor, "How much longer each wait is than the one before it: 1 or more."), Override::None),
    (Setting::CatalogTtl, key("catalog_ttl_sec", Shape::Seconds, "How long the tool lists of a server are cached."), Override::None),
    (Setting::NeedsAuthMemory, key("needs_auth_memory_sec", Shape::Seconds, "How long the result that a server requires a login is cached."), Override::None),
    (Setting::ProgressInterval, key("progress_interval_sec", Shape::Seconds, "Interval of progress reports of a long call."), Override::None),
    (Setting::ToolSearch, key("tool_search", Shape::ToolSearch, "Whether the model searches for tools: auto, auto:N, on, off."), Override::Plain("ENABLE_TOOL_SEARCH")),
    (Setting::MinContextWindow, key("min_context_window", Shape::Count, "Smallest window, in tokens, of a model that searches for tools in auto mode."), Override::None),
    (Setting::ModelWindow, key("model_window", Shape::Window, "Window of your own model in tokens, or auto to ask its endpoint. Models of Anthropic and OpenAI are known."), Override::None),
    (Setting::MaxDescriptionChars, key("max_description_chars", Shape::Count, "Characters of a tool's description and of a server's instructions that the model sees."), Override::None),
    (Setting::DefaultPermission, key("default_permission", Shape::OneOf(DEFAULT_PERMISSIONS), "Permission of calls that match no rule: auto, allow, ask, deny. If several files set it, the strictest value applies."), Override::None),
    (Setting::UnattendedPermission, key("unattended_permission", Shape::OneOf(UNATTENDED_PERMISSIONS), "Decision on a call that needs consent when no user is available: deny, allow."), Override::None),
    (Setting::AuditMaxAge, key("audit_max_age_sec", Shape::Seconds, "Maximum age of audit log entries."), Override::None),
    (Setting::AuditMaxBytes, key("audit_max_bytes", Shape::Count, "Maximum size of the audit log."), Override::None),
    (Setting::LoginStore, key("login_store", Shape::OneOf(&LoginStore::WORDS), "Where the key of the logins is kept: auto, keyring, file."), Override::None),
    (Setting::MaxWaitingQuestions, key("max_waiting_questions", Shape::Count, "Maximum number of pending questions of one server; more are rejected."), Override::None),
    (Setting::QuestionsPerMinute, key("questions_per_minute", Shape::Count, "Maximum number of questions per minute of one server to you or your model; more are rejected."), Override::None),
    (Setting::Pins, key("pins", Shape::OneOf(PINS), "Whether a tool that cannot be pinned is set aside (required) or offered (best-effort). If several files set it, the strictest value applies."), Override::None),
    (Setting::Audit, key("audit", Shape::OneOf(AUDITS), "Whether a call that cannot be recorded is made with a warning (on) or refused (required). If several files set it, the strictest value applies."), Override::None),
    (Setting::BashSandbox, key("bash_sandbox", Shape::OneOf(SANDBOXES), "What the agent's commands may access: own-files (all but Switchboard's own files), workspace, read-only, off. A project's file can only make it stricter."), Override::None),
    (Setting::HealthFailures, key("health_failures", Shape::Count, "Number of consecutive failed health checks after which a connection counts as lost."), Override::None),
    (Setting::InstallTimeout, key("install_timeout_sec", Shape::Seconds, "How long a package runner (npx, uvx, …) may install while it makes progress."), Override::None),
];

/// `auto` depends on the front end: calls of the user are allowed, calls of a model need consent.
const DEFAULT_PERMISSIONS: &[&str] = &["auto", "allow", "ask", "deny"];
const UNATTENDED_PERMISSIONS: &[&str] = &["deny", "allow"];
const PINS: &[&str] = &[REQUIRED, "best-effort"];
const AUDITS: &[&str] = &["on", REQUIRED];
/// The stricter of the two words.
const REQUIRED: &str = "required";

impl Setting {
    /// All settings.
    pub fn all() -> impl Iterator<Item = Setting> + Clone {
        SETTINGS.iter().map(|(setting, ..)| *setting)
    }

    /// The key of this setting.
    pub fn key(self) -> &'static Key {
        // `SETTINGS` is in the order of the enum; a test checks it.
        &SETTINGS[self as usize].1
    }

    fn from_key(name: &str) -> Option<Self> {
        SETTINGS
            .iter()
            .find(|(_, key, _)| key.name == name)
            .map(|(setting, ..)| *setting)
    }
}

/// When the model finds tools by search instead of getting all definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSearch {
    /// If the definitions take at least this percentage of the context window.
    Auto(u8),
    /// Always.
    On,
    /// Never.
    Off,
}

impl ToolSearch {
    /// Default percentage of the context window.
    const DEFAULT_PERCENT: u8 = 10;

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(ToolSearch::Auto(Self::DEFAULT_PERCENT)),
            "on" | "true" | "1" => Some(ToolSearch::On),
            "off" | "false" | "0" => Some(ToolSearch::Off),
            _ => {
                let percent = name
                    .strip_prefix("auto:")?
                    .parse()
                    .ok()
                    .filter(|percent| *percent <= 100)?;
                Some(ToolSearch::Auto(percent))
            }
        }
    }
}

/// Where the encryption key of stored logins is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginStore {
    /// The system keyring if it works, else a file.
    #[default]
    Auto,
    /// The system keyring.
    Keyring,
    /// A file.
    File,
}

impl LoginStore {
    const WORDS: [&'static str; 3] = ["auto", "keyring", "file"];

    fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Keyring, Self::File]
            .into_iter()
            .find(|store| store.word() == name)
    }

    /// Name in files.
    pub const fn word(self) -> &'static str {
        let [auto, keyring, file] = Self::WORDS;
        match self {
            Self::Auto => auto,
            Self::Keyring => keyring,
            Self::File => file,
        }
    }
}

/// Value of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingValue {
    /// A duration.
    Duration(Duration),
    /// A number above zero.
    Count(u64),
    /// Value of `tool_search`.
    ToolSearch(ToolSearch),
    /// One of the words of the setting.
    Word(&'static str),
    /// A number of at least 1.
    Factor(f64),
    /// `auto`: determined at run time.
    Auto,
}

impl fmt::Display for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Duration(duration) => write!(formatter, "{}", duration.as_secs_f64()),
            SettingValue::Count(count) => write!(formatter, "{count}"),
            SettingValue::ToolSearch(ToolSearch::Auto(percent)) => {
                write!(formatter, "auto:{percent}")
            }
            SettingValue::ToolSearch(ToolSearch::On) => formatter.write_str("on"),
            SettingValue::ToolSearch(ToolSearch::Off) => formatter.write_str("off"),
            SettingValue::Word(word) => formatter.write_str(word),
            SettingValue::Factor(factor) => write!(formatter, "{factor}"),
            SettingValue::Auto => formatter.write_str("auto"),
        }
    }
}

/// Origin of a setting's value.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingOrigin {
    /// Default of the program.
    Default,
    /// Position in a file.
    File(Origin),
    /// Name of an environment variable.
    Environment(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => formatter.write_str("default"),
            SettingOrigin::File(origin) => write!(formatter, "{origin}"),
            SettingOrigin::Environment(variable) => write!(formatter, "${variable}"),
        }
    }
}

/// Effective value of a setting, with its origin and the values it overrides.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The effective value.
    pub value: SettingValue,
    /// Where the value was set.
    pub origin: SettingOrigin,
    /// Overridden values of lower scopes, nearest first.
    pub shadowed: Vec<(SettingValue, SettingOrigin)>,
}

/// Effective values of all settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings(Vec<Effective>);

impl Default for Settings {
    /// The built-in defaults.
    fn default() -> Self {
        let mut defaults = defaults();
        sort::by_key(&mut defaults, |(setting, ..)| *setting as usize);
        let effective = defaults.into_iter().map(|(_, value, _)| Effective {
            value,
            origin: SettingOrigin::Default,
            shadowed: Vec::new(),
        });
        Self(effective.collect())
    }
}

impl Settings {
    /// One setting with its origin.
    pub fn get(&self, setting: Setting) -> &Effective {
        &self.0[setting as usize]
    }

    /// Value of a duration setting.
    pub fn duration(&self, setting: Setting) -> Duration {
        match self.get(setting).value {
            SettingValue::Duration(duration) => duration,
            SettingValue::Count(count) => Duration::from_secs(count),
            _ => Duration::ZERO,
        }
    }

    /// Value of a number setting.
    pub fn count(&self, setting: Setting) -> u64 {
        match self.get(setting).value {
            SettingValue::Count(count) => count,
            SettingValue::Duration(duration) => duration.as_secs(),
            _ => 0,
        }
    }

    /// Value of a factor setting.
    pub fn factor(&self, setting: Setting) -> f64 {
        match self.get(setting).value {
            SettingValue::Factor(factor) => factor,
            _ => 1.0,
        }
    }

    /// Context window of a self-hosted model in tokens; `None`: ask its endpoint.
    pub fn model_window(&self) -> Option<u64> {
        match self.get(Setting::ModelWindow).value {
            SettingValue::Count(tokens) => Some(tokens),
            _ => None,
        }
    }

    /// When the model finds tools by search.
    pub fn tool_search(&self) -> ToolSearch {
        match self.get(Setting::ToolSearch).value {
            SettingValue::ToolSearch(value) => value,
            _ => ToolSearch::Auto(ToolSearch::DEFAULT_PERCENT),
        }
    }

    /// Whether a tool that cannot be pinned is set aside, even if it is new.
    pub fn requires_pins(&self) -> bool {
        self.is_required(Setting::Pins)
    }

    /// Whether a call that cannot be recorded is rejected.
    pub fn requires_audit(&self) -> bool {
        self.is_required(Setting::Audit)
    }

    /// Whether any file requires it, or the default if no file sets it: a file can only make it stricter.
    fn is_required(&self, setting: Setting) -> bool {
        let Effective {
            value,
            origin,
            shadowed,
        } = self.get(setting);
        let is_required = |value: &SettingValue| *value == SettingValue::Word(REQUIRED);
        let of_files = shadowed
            .iter()
            .filter(|(_, origin)| *origin != SettingOrigin::Default);
        is_required(value)
            || (*origin != SettingOrigin::Default
                && of_files.into_iter().any(|(value, _)| is_required(value)))
    }

    /// Sandbox of the agent's commands. Files that others can write (of a repository, a plugin, or fetched) can make it
    /// stricter than the user or the machine does, but never laxer.
    pub fn bash_sandbox(&self) -> SandboxMode {
        let effective = self.get(Setting::BashSandbox);
        let first = std::iter::once((&effective.value, &effective.origin));
        let shadowed = effective.shadowed.iter();
        let stated = first.chain(shadowed.map(|(value, origin)| (value, origin)));
        let mut own = None;
        let mut strictest = 0;
        for (value, origin) in stated {
            let SettingValue::Word(word) = value else {
                continue;
            };
            let strictness = SANDBOXES.iter().position(|known| known == word);
            let strictness = strictness.unwrap_or_default();
            let is_own = match origin {
                SettingOrigin::Default | SettingOrigin::Environment(_) => true,
                SettingOrigin::File(origin) => matches!(
                    origin.scope(),
                    Scope::Enterprise | Scope::Local | Scope::User
                ),
            };
            if is_own {
                own.get_or_insert(strictness);
            } else {
                strictest = strictest.max(strictness);
            }
        }
        let strictness = own.unwrap_or_default().max(strictest);
        let word = SANDBOXES.get(strictness).copied().unwrap_or_default();
        SandboxMode::from_name(word).unwrap_or(SandboxMode::OwnFiles)
    }

    /// Where the encryption key of stored logins is kept.
    pub fn login_store(&self) -> LoginStore {
        match self.get(Setting::LoginStore).value {
            SettingValue::Word(word) => LoginStore::from_name(word).unwrap_or_default(),
            _ => LoginStore::default(),
        }
    }
}

pub(crate) type Stated = Vec<(Setting, SettingValue, Origin)>;

pub(crate) fn decode(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Stated {
    let mut stated = Stated::new();
    for member in reader.table("settings", node).unwrap_or_default() {
        let Some(setting) = Setting::from_key(&Reader::normal(&member.key)) else {
            reader.unknown_key(member, Setting::all().map(|setting| setting.key().name));
            continue;
        };
        if let Some(value) = value(setting, &member.value, reader) {
            stated.push((setting, value, reader.origin(member.value.span)));
        }
    }
    stated
}

/// Resolves all settings: environment over files (highest scope first) over defaults.
pub(crate) fn resolve<'s>(
    stated: impl IntoIterator<Item = &'s Stated>,
    environment: &Environment,
    diagnostics: &mut Vec<Diagnostic>,
) -> Settings {
    let mut values: Vec<Vec<(SettingValue, SettingOrigin)>> = vec![Vec::new(); SETTINGS.len()];
    for (index, (_, key, variable)) in SETTINGS.iter().enumerate() {
        values[index].extend(from_environment(key, *variable, environment, diagnostics));
    }
    for (setting, value, origin) in stated.into_iter().flatten() {
        values[*setting as usize].push((*value, SettingOrigin::File(origin.clone())));
    }
    for (setting, value, _) in defaults() {
        values[setting as usize].push((value, SettingOrigin::Default));
    }
    let effective = values.into_iter().filter_map(|mut values| {
        // The defaults file has every setting; a test checks it.
        (!values.is_empty())
            .then(|| values.remove(0))
            .map(|(value, origin)| Effective {
                value,
                origin,
                shadowed: values,
            })
    });
    let settings = Settings(effective.collect());
    check_waits(&settings, diagnostics);
    settings
}

/// Warns if the initial reconnect delay exceeds the maximum, which would then be every delay.
fn check_waits(settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    let [initial, longest] =
        [Setting::ReconnectInitial, Setting::ReconnectMax].map(|setting| settings.get(setting));
    if settings.duration(Setting::ReconnectInitial) <= settings.duration(Setting::ReconnectMax) {
        return;
    }
    // At least one of the two was set in a file, as the defaults are consistent.
    let origin = [initial, longest]
        .into_iter()
        .find_map(|effective| match &effective.origin {
            SettingOrigin::File(origin) => Some(origin.clone()),
            _ => None,
        });
    let Some(origin) = origin else { return };
    let message = format!(
        "`reconnect_initial_sec` is {}, above `reconnect_max_sec`, which is {}: every wait is {} seconds",
        initial.value, longest.value, longest.value
    );
    diagnostics.push(
        Diagnostic::warning("contradiction", origin, message)
            .with_hint("raise `reconnect_max_sec`, or lower `reconnect_initial_sec`"),
    );
}

fn defaults() -> Stated {
    let file = SourceFile::new("defaults.toml", Scope::Cloud, DEFAULTS);
    let mut diagnostics = Vec::new();
    let root = format::parse(&file, Format::Toml, &mut diagnostics);
    let mut reader = Reader::new(&file, &mut diagnostics);
    let table = root.as_ref().and_then(|root| root.get("settings"));
    table
        .map(|table| decode(table, &mut reader))
        .unwrap_or_default()
}

fn value(setting: Setting, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<SettingValue> {
    let key = setting.key();
    match key.shape {
        Shape::Seconds => reader.seconds(key.name, node).map(SettingValue::Duration),
        Shape::Count => reader.count(key.name, node).map(SettingValue::Count),
        Shape::Factor => reader.factor(key.name, node).map(SettingValue::Factor),
        Shape::Window => match &node.value {
            Value::String(text) if text.as_ref() == "auto" => Some(SettingValue::Auto),
            _ => reader.window(key.name, node).map(SettingValue::Count),
        },
        Shape::OneOf(words) => {
            let known = |text: &str| words.iter().find(|word| **word == text).copied();
            reader
                .word(key.name, node, words, known)
                .map(SettingValue::Word)
        }
        _ => {
            let text = match node.value {
                Value::Bool(on) => Node::detached(if on { "on" } else { "off" }),
                _ => node.clone(),
            };
            let words = ["auto", "on", "off"];
            reader
                .word(key.name, &text, &words, ToolSearch::from_name)
                .map(SettingValue::ToolSearch)
        }
    }
}

fn from_environment(
    key: &Key,
    variable: Override,
    environment: &Environment,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(SettingValue, SettingOrigin)> {
    let name = match variable {
        Override::None => return None,
        Override::Milliseconds(name) | Override::Plain(name) => name,
    };
    let text = environment
        .get(name)
        .map(str::trim)
        .filter(|text| !text.is_empty())?;
    let above_zero = || text.parse::<u64>().ok().filter(|number| *number > 0);
    let value = match (variable, key.shape) {
        (Override::Milliseconds(_), _) => {
            above_zero().map(|number| SettingValue::Duration(Duration::from_millis(number)))
        }
        (_, Shape::Count) => above_zero().map(SettingValue::Count),
        _ => ToolSearch::from_name(text).map(SettingValue::ToolSearch),
    };
    if value.is_none() {
        let message = format!(
            "the environment variable {name} has the invalid value \"{text}\" and is ignored"
        );
        let hint = match key.shape {
            Shape::ToolSearch => "set it to auto, auto:N, true or false",
            _ => "set it to a whole number above zero, or unset it",
        };
        diagnostics.push(
            Diagnostic::warning(
                "bad-environment",
                Place::Outside("environment".into()),
                message,
            )
            .with_hint(hint),
        );
    }
    value.map(|value| (value, SettingOrigin::Environment(name)))
}

pub(crate) fn keys() -> Vec<Key> {
    SETTINGS.iter().map(|(_, key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().copied().collect()
    }

    #[test]
    fn every_setting_has_a_default_and_stands_in_its_place() {
        let defaults = defaults();
        assert_eq!(defaults.len(), SETTINGS.len());
        for (index, (setting, key, _)) in SETTINGS.iter().enumerate() {
            assert_eq!(*setting as usize, index);
            assert!(
                defaults.iter().any(|(stated, ..)| stated == setting),
                "{} has no default",
                key.name
            );
        }
    }

    #[test]
    fn the_environment_wins_over_files_and_files_over_defaults() {
        let file = SourceFile::new(
            "a.toml",
            Scope::User,
            "[settings]\ntool_timeout_sec = 5\nlocal_connections = 7\nlogin_store = \"file\"\n",
        );
        let mut diagnostics = Vec::new();
        let root = format::parse(&file, Format::Toml, &mut diagnostics).unwrap();
        let stated = decode(
            root.get("settings").unwrap(),
            &mut Reader::new(&file, &mut diagnostics),
        );
        let environment = environment(&[
            ("MCP_TOOL_TIMEOUT", "1500"),
            ("ENABLE_TOOL_SEARCH", "auto:25"),
        ]);
        let settings = resolve([&stated], &environment, &mut diagnostics);
        assert_eq!(diagnostics, []);
        assert_eq!(
            settings.duration(Setting::ToolTimeout),
            Duration::from_millis(1500)
        );
        assert_eq!(settings.get(Setting::ToolTimeout).shadowed.len(), 2);
        assert_eq!(settings.count(Setting::LocalConnections), 7);
        assert_eq!(settings.count(Setting::RemoteConnections), 20);
        assert_eq!(settings.tool_search(), ToolSearch::Auto(25));
        assert_eq!(settings.login_store(), LoginStore::File);
    }

    #[test]
    fn a_project_can_only_make_the_sandbox_of_commands_stricter() {
        use SandboxMode::{Off, OwnFiles, ReadOnly, Workspace};
        use Scope::{Cloud, Enterprise, Local, Plugin, Project, User};

        let stated = |scope, word: &str| {
            let text = format!("[settings]\nbash_sandbox = \"{word}\"\n");
            let file = SourceFile::new("a.toml", scope, text);
            let mut diagnostics = Vec::new();
            let root = format::parse(&file, Format::Toml, &mut diagnostics).unwrap();
            let mut reader = Reader::new(&file, &mut diagnostics);
            decode(root.get("settings").unwrap(), &mut reader)
        };
        // Files, highest scope first, and the expected result.
        let check = |files: &[(Scope, &str)], expected| {
            let files: Vec<Stated> = files
                .iter()
                .map(|(scope, word)| stated(*scope, word))
                .collect();
            let settings = resolve(&files, &environment(&[]), &mut Vec::new());
            assert_eq!(settings.bash_sandbox(), expected, "{files:?}");
        };
        check(&[], OwnFiles);
        check(&[(User, "off")], Off);
        check(&[(Local, "off"), (User, "workspace")], Off);
        check(&[(Enterprise, "own-files"), (User, "off")], OwnFiles);
        for scope in [Project, Plugin, Cloud] {
            check(&[(scope, "off")], OwnFiles);
            check(&[(scope, "workspace")], Workspace);
        }
        check(&[(Project, "off"), (User, "workspace")], Workspace);
        check(&[(Project, "read-only"), (User, "off")], ReadOnly);
        check(&[(Local, "off"), (Project, "read-only")], ReadOnly);
    }

    #[test]
    fn a_store_of_logins_that_there_is_not_is_an_error() {
        let text = "[settings]\nlogin_store = \"keyrin\"\n";
        let file = SourceFile::new("a.toml", Scope::User, text);
        let mut diagnostics = Vec::new();
        let root = format::parse(&file, Format::Toml, &mut diagnostics).unwrap();
        let stated = decode(
            root.get("settings").unwrap(),
            &mut Reader::new(&file, &mut diagnostics),
        );
        assert_eq!(stated, []);
        let [diagnostic] = &diagnostics[..] else {
            panic!("{diagnostics:?}");
        };
        assert_eq!(diagnostic.message, "`login_store` cannot be \"keyrin\"");
        assert_eq!(
            diagnostic.hint.as_deref(),
            Some("did you mean \"keyring\"?")
        );
        let settings = resolve([&stated], &environment(&[]), &mut diagnostics);
        assert_eq!(settings.login_store(), LoginStore::Auto);
    }

    fn read(text: &str) -> (Settings, Vec<Diagnostic>) {
        let file = SourceFile::new("a.toml", Scope::User, format!("[settings]\n{text}\n"));
        let mut diagnostics = Vec::new();
        let root = format::parse(&file, Format::Toml, &mut diagnostics).unwrap();
        let stated = decode(
            root.get("settings").unwrap(),
            &mut Reader::new(&file, &mut diagnostics),
        );
        let settings = resolve([&stated], &environment(&[]), &mut diagnostics);
        (settings, diagnostics)
    }

    #[test]
    fn numbers_of_the_documents_can_be_set_and_bad_ones_are_named_with_their_line() {
        let (settings, diagnostics) = read(
            "min_context_window = 8000\nmodel_window = 16384\nmax_description_chars = 500\n\
             reconnect_initial_sec = 0.5\nreconnect_max_sec = 60\nreconnect_factor = 1.5",
        );
        assert_eq!(diagnostics, []);
        assert_eq!(settings.count(Setting::MinContextWindow), 8_000);
        assert_eq!(settings.model_window(), Some(16_384));
        assert_eq!(settings.count(Setting::MaxDescriptionChars), 500);
        let (initial, longest) = (Setting::ReconnectInitial, Setting::ReconnectMax);
        assert_eq!(settings.duration(initial), Duration::from_millis(500));
        assert_eq!(settings.duration(longest), Duration::from_secs(60));
        assert!((settings.factor(Setting::ReconnectFactor) - 1.5).abs() < f64::EPSILON);
        assert_eq!(read("model_window = \"auto\"").0.model_window(), None);
        for (text, message) in [
            (
                "min_context_window = 0",
                "`min_context_window` must be a whole number above zero",
            ),
            (
                "min_context_window = \"32k\"",
                "`min_context_window` must be a whole number above zero",
            ),
            (
                "max_description_chars = -1",
                "`max_description_chars` must be a whole number above zero",
            ),
            (
                "model_window = 100",
                "`model_window` must be \"auto\" or a whole number of tokens from 1024 on",
            ),
            (
                "model_window = \"big\"",
                "`model_window` must be \"auto\" or a whole number of tokens from 1024 on",
            ),
            (
                "reconnect_factor = 0.5",
                "`reconnect_factor` must be a number from 1 to 1000",
            ),
            (
                "reconnect_factor = \"2\"",
                "`reconnect_factor` must be a number from 1 to 1000",
            ),
            (
                "reconnect_factor = nan",
                "`reconnect_factor` must be a number from 1 to 1000",
            ),
            (
                "reconnect_initial_sec = 0",
                "`reconnect_initial_sec` must be above zero and at most",
            ),
            (
                "reconnect_initial_sec = 20",
                "`reconnect_initial_sec` is 20, above `reconnect_max_sec`, which is 10: every wait is 10 seconds",
            ),
            (
                "reconnect_max_sec = 0.01",
                "`reconnect_initial_sec` is 0.1, above `reconnect_max_sec`, which is 0.01: every wait is 0.01 seconds",
            ),
        ] {
            let (_, diagnostics) = read(text);
            let [diagnostic] = &diagnostics[..] else {
                panic!("{text}: {diagnostics:?}");
            };
            assert!(
                diagnostic.message.starts_with(message),
                "{text}: {}",
                diagnostic.message
            );
            assert!(diagnostic.hint.is_some(), "{text}");
            assert!(matches!(&diagnostic.place, Place::At(origin) if origin.position().line == 2));
        }
    }

    #[test]
    fn a_bad_variable_warns_and_the_default_stays() {
        for text in ["0", "-1", "soon", "1.5"] {
            let mut diagnostics = Vec::new();
            let settings = resolve([], &environment(&[("MCP_TIMEOUT", text)]), &mut diagnostics);
            assert_eq!(
                settings.duration(Setting::StartupTimeout),
                Duration::from_secs(60),
                "{text}"
            );
            assert_eq!(diagnostics.len(), 1, "{text}");
        }
    }
}
