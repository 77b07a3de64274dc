//! Writes servers the way another tool wants them.

use std::collections::HashSet;
use std::time::Duration;

use super::Tool;
use super::dialect::{Dialect, Key, Meaning, OAuthKey, OAuthSetting, Unit};
use super::dialects::dialect;
use super::read::seconds;
use super::text;
use super::variables::{Piece, Style, is_exact, is_name, parse, render};
use crate::diagnostic::{Diagnostic, Place};
use crate::entry::{Field, OAuthEntry, Permission, ServerEntry, Transport};
use crate::format::Format;
use crate::secret::Secret;
use crate::tree::{Member, Node, Value};

/// Servers as another tool writes them.
#[derive(Debug)]
pub struct Exported {
    /// How the tool's file is written.
    pub format: Format,
    /// The keys that lead to the table or list of servers.
    pub container: &'static [&'static str],
    /// Whether that is a list, whose elements carry their names, and not a table.
    pub is_list: bool,
    /// Each server's name and what stands behind it.
    pub entries: Vec<(String, Node<'static>)>,
    /// What the entries need elsewhere in the file: lists, by the keys that lead to them.
    pub extra: Vec<(Vec<&'static str>, Node<'static>)>,
    /// What the tool cannot express, by server and field.
    pub notes: Vec<Diagnostic>,
    head: &'static [(&'static str, &'static str)],
}

/// Writes servers for a tool. A server that the tool cannot run, or could not keep disabled, is left out;
/// `notes` say so, and name every field that is lost.
///
/// `beside` is the tree of the file the servers will go into, if there is one: some tools have several formats,
/// and a file must not mix them.
pub fn export(tool: Tool, servers: &[(&str, &ServerEntry)], beside: Option<&Node<'_>>) -> Exported {
    let dialect = dialect(tool, beside);
    let mut exported = Exported {
        format: dialect.format,
        container: dialect.containers.first().copied().unwrap_or_default(),
        is_list: dialect.listed,
        entries: Vec::with_capacity(servers.len()),
        extra: Vec::new(),
        notes: Vec::new(),
        head: dialect.head,
    };
    let mut shared = Shared::default();
    for (name, entry) in servers {
        let mut writer = Writer {
            dialect,
            name,
            entry,
            covered: HashSet::new(),
            covered_oauth: HashSet::new(),
            notes: &mut exported.notes,
            shared: &mut shared,
        };
        if let Some(node) = writer.write() {
            exported.entries.push(((*name).to_owned(), node));
        }
    }
    if !shared.inputs.is_empty() {
        let mut path: Vec<_> = exported.container.to_vec();
        path.pop();
        path.push("inputs");
        exported.extra.push((
            path,
            Node::detached(
                shared
                    .inputs
                    .into_iter()
                    .map(|(_, node)| node)
                    .collect::<Value<'_>>(),
            ),
        ));
    }
    if !shared.excluded.is_empty() {
        let names = shared
            .excluded
            .into_iter()
            .map(Node::detached)
            .collect::<Value<'_>>();
        exported
            .extra
            .push((vec!["mcp", "excluded"], Node::detached(names)));
    }
    exported
}

impl Exported {
    /// A whole file with nothing but these servers.
    pub fn to_text(&self) -> String {
        let mut root = Node::table(
            self.head
                .iter()
                .map(|(key, value)| (*key, Node::detached(*value))),
        );
        let servers = if self.is_list {
            Node::detached(
                self.entries
                    .iter()
                    .map(|(_, node)| node.clone())
                    .collect::<Value<'_>>(),
            )
        } else {
            Node::table(
                self.entries
                    .iter()
                    .map(|(name, node)| (name.clone(), node.clone())),
            )
        };
        for (path, node) in &self.extra {
            insert(&mut root, path, node.clone());
        }
        insert(&mut root, self.container, servers);
        text::write(self.format, &root)
    }
}

/// What all servers of an export share.
#[derive(Default)]
struct Shared {
    inputs: Vec<(String, Node<'static>)>,
    excluded: Vec<String>,
}

struct Writer<'w> {
    dialect: &'static Dialect,
    name: &'w str,
    entry: &'w ServerEntry,
    covered: HashSet<Field>,
    covered_oauth: HashSet<&'static str>,
    notes: &'w mut Vec<Diagnostic>,
    shared: &'w mut Shared,
}

impl<'w> Writer<'w> {
    fn write(&mut self) -> Option<Node<'static>> {
        let transport = self.transport()?;
        if self.entry.enabled == Some(false) && !self.can_disable() {
            let message = format!(
                "{} cannot keep a server disabled in its file, so it is left out",
                self.dialect.tool
            );
            self.note("left-out", message, "enable it to export it");
            return None;
        }
        self.covered.extend([Field::Transport, Field::Enabled]);
        let keys = self.dialect.keys.iter().filter(|key| key.written);
        let mut members = Vec::new();
        for key in keys {
            if let Some(node) = self.value(key, transport) {
                members.push((key.name, node));
            }
        }
        self.uncovered();
        Some(Node::table(members))
    }

    /// The transport to write, if the tool has it.
    fn transport(&mut self) -> Option<Transport> {
        let Some(transport) = self.entry.effective_transport() else {
            self.note(
                "left-out",
                "it has neither a program nor an address, so it is left out",
                "complete the entry",
            );
            return None;
        };
        let written = || self.dialect.keys.iter().filter(|key| key.written);
        let has_word = written().any(|key| word(key, transport).is_some());
        let has_url =
            |wanted: Option<Transport>| written().any(|key| key.meaning == Meaning::Url(wanted));
        let takes_urls = written().any(|key| matches!(key.meaning, Meaning::Url(_)));
        let states_words = written().any(|key| matches!(key.meaning, Meaning::Transport(_)));
        match transport {
            _ if has_word => Some(transport),
            Transport::Stdio if !states_words => Some(transport),
            Transport::Http if has_url(None) && !states_words => Some(transport),
            _ if has_url(Some(transport)) => Some(transport),
            Transport::Sse if takes_urls => {
                let message = format!(
                    "{} cannot be told that the transport is sse, and finds out by itself",
                    self.dialect.tool
                );
                self.note("not-expressible", message, "check that it connects");
                Some(Transport::Http)
            }
            _ => {
                let message = format!(
                    "{} has no transport {transport}, so it is left out",
                    self.dialect.tool
                );
                self.note("left-out", message, "use it through `switchboard connect`");
                None
            }
        }
    }

    fn can_disable(&self) -> bool {
        self.dialect.tool == Tool::Gemini
            || self.dialect.keys.iter().any(|key| {
                key.written
                    && matches!(
                        key.meaning,
                        Meaning::Enabled | Meaning::EnabledAlways | Meaning::Disabled
                    )
            })
    }

    /// What stands behind one key, if anything.
    fn value(&mut self, key: &Key, transport: Transport) -> Option<Node<'static>> {
        let entry = self.entry;
        let is_remote = !transport.is_local();
        match key.meaning {
            Meaning::Name => Some(Node::detached(self.name.to_owned())),
            Meaning::Transport(_) => word(key, transport).map(Node::detached),
            Meaning::Command | Meaning::CommandOrTable => {
                self.text(Field::Command, entry.command.as_deref())
            }
            Meaning::CommandLine => {
                let program = self.text(Field::Command, entry.command.as_deref())?;
                let args = self.list(Field::Args, &entry.args);
                let args = args.and_then(|node| match node.value {
                    Value::Array(args) => Some(args),
                    _ => None,
                });
                Some(Node::detached(
                    std::iter::once(program)
                        .chain(args.unwrap_or_default())
                        .collect::<Value<'_>>(),
                ))
            }
            Meaning::Args => self.list(Field::Args, &entry.args),
            Meaning::Env | Meaning::LooseEnv => {
                let passed = self.passed_on();
                let pairs = entry
                    .env
                    .iter()
                    .filter(|(name, _)| !passed.contains(&name.as_str()));
                self.map(Field::Env, pairs)
            }
            Meaning::EnvOrHeaderNames if is_remote => self.header_variables(),
            Meaning::EnvNames | Meaning::EnvOrHeaderNames => {
                self.covered.insert(Field::EnvVars);
                let names = entry
                    .env_vars
                    .iter()
                    .map(String::as_str)
                    .chain(self.passed_on());
                filled(names.map(|name| Node::detached(name.to_owned())).collect())
            }
            Meaning::Cwd => self.text(Field::Cwd, entry.cwd.as_deref()),
            Meaning::Url(Some(only)) if only != transport => None,
            Meaning::Url(_) => self.text(Field::Url, entry.url.as_deref()),
            Meaning::Headers => self.headers(),
            Meaning::HeadersInside => self
                .headers()
                .map(|headers| Node::table([("headers", headers)])),
            Meaning::EnvHeaders => {
                let pairs = entry.headers.iter().filter_map(|(name, value)| {
                    let variable = only_variable(value)?;
                    Some((name.clone(), Node::detached(variable)))
                });
                filled_table(pairs.collect())
            }
            Meaning::HeadersHelper => {
                self.covered.insert(Field::HeadersHelper);
                let line = crate::words::join(&entry.headers_helper);
                (!line.is_empty())
                    .then(|| self.rendered(Field::HeadersHelper, "headers_helper", &line))
            }
            Meaning::BearerVariable => {
                self.covered.insert(Field::BearerTokenEnvVar);
                let variable = entry
                    .bearer_token_env_var
                    .clone()
                    .or_else(|| self.bearer_header());
                variable.map(Node::detached)
            }
            Meaning::OAuth(keys) => {
                let oauth = entry.oauth.as_ref()?;
                self.covered.insert(Field::OAuth);
                let settings = keys
                    .iter()
                    .filter_map(|key| Some((key.name.to_owned(), self.oauth(oauth, *key)?)));
                filled_table(settings.collect())
            }
            Meaning::OAuthSetting(setting) => {
                let oauth = entry.oauth.as_ref()?;
                self.covered.insert(Field::OAuth);
                self.oauth(oauth, setting)
            }
            Meaning::Enabled => entry.enabled.map(Node::detached),
            Meaning::EnabledAlways => Some(Node::detached(entry.enabled != Some(false))),
            Meaning::Disabled => entry.enabled.map(|enabled| Node::detached(!enabled)),
            Meaning::Required => self.flag(Field::Required, entry.required),
            Meaning::Startup(unit) => {
                self.deadline(Field::StartupTimeout, entry.startup_timeout, unit)
            }
            Meaning::Call(unit) => self.deadline(Field::ToolTimeout, entry.tool_timeout, unit),
            Meaning::Deadlines => {
                let startup = self.deadline(
                    Field::StartupTimeout,
                    entry.startup_timeout,
                    Unit::Milliseconds,
                );
                let request =
                    self.deadline(Field::ToolTimeout, entry.tool_timeout, Unit::Milliseconds);
                let members = [("startup", startup), ("request", request)];
                filled_table(
                    members
                        .into_iter()
                        .filter_map(|(key, node)| Some((key.to_owned(), node?)))
                        .collect(),
                )
            }
            Meaning::EnabledTools => self.list(Field::EnabledTools, &entry.enabled_tools),
            Meaning::DisabledTools => self.list(Field::DisabledTools, &entry.disabled_tools),
            Meaning::ToolApprovals => self.tool_approvals(),
            Meaning::Ignored => Some(Node::detached("")),
            Meaning::Approval | Meaning::Lost(_) => None,
        }
    }

    fn text(&mut self, field: Field, text: Option<&str>) -> Option<Node<'static>> {
        self.covered.insert(field);
        Some(self.rendered(field, field.name(), text?))
    }

    fn flag(&mut self, field: Field, flag: Option<bool>) -> Option<Node<'static>> {
        self.covered.insert(field);
        flag.map(Node::detached)
    }

    fn list(&mut self, field: Field, texts: &[String]) -> Option<Node<'static>> {
        self.covered.insert(field);
        let texts = texts.iter().enumerate();
        filled(
            texts
                .map(|(index, text)| {
                    self.rendered(field, &format!("{}[{index}]", field.name()), text)
                })
                .collect(),
        )
    }

    fn map<'p>(
        &mut self,
        field: Field,
        pairs: impl Iterator<Item = &'p (String, Secret)>,
    ) -> Option<Node<'static>> {
        self.covered.insert(field);
        let value = |(name, value): &(String, Secret)| {
            let value = self.rendered(field, &format!("{}.{name}", field.name()), value.expose());
            (name.clone(), value)
        };
        filled_table(pairs.map(value).collect())
    }

    /// The headers that are written with their values, and not by the variables that hold them.
    fn headers(&mut self) -> Option<Node<'static>> {
        let by_variable = self.writes(Meaning::EnvHeaders);
        let bearer = self.bearer_header();
        let is_bearer = |name: &str| bearer.is_some() && name.eq_ignore_ascii_case("authorization");
        let entry = self.entry;
        let plain = entry.headers.iter().filter(|(name, value)| {
            !(by_variable && only_variable(value).is_some()) && !is_bearer(name)
        });
        self.map(Field::Headers, plain)
    }

    /// The variable of an `Authorization: Bearer ${VAR}`, where the tool has a key for just that.
    fn bearer_header(&self) -> Option<String> {
        if !self.writes(Meaning::BearerVariable) || self.entry.bearer_token_env_var.is_some() {
            return None;
        }
        let (_, value) = self
            .entry
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
        match parse(Style::Ours, value.expose()).as_slice() {
            [
                Piece::Text(scheme),
                Piece::Variable {
                    name,
                    default: None,
                },
            ] if scheme == "Bearer " => Some(name.clone()),
            _ => None,
        }
    }

    /// Variables of `env` that only pass on one of the same name, where the tool has a key for just that.
    fn passed_on(&self) -> Vec<&'w str> {
        if !self.writes(Meaning::EnvNames) {
            return Vec::new();
        }
        let same = |(name, value): &&(String, Secret)| {
            only_variable(value).as_deref() == Some(name.as_str())
        };
        self.entry
            .env
            .iter()
            .filter(same)
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// goose wants to know which variables it has to look up for the headers.
    fn header_variables(&mut self) -> Option<Node<'static>> {
        let mut names: Vec<String> = Vec::new();
        for (_, value) in &self.entry.headers {
            for piece in parse(Style::Ours, value.expose()) {
                let name = match piece {
                    Piece::Variable { name, .. } => name,
                    Piece::Home => "HOME".to_owned(),
                    _ => continue,
                };
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        filled(names.into_iter().map(Node::detached).collect())
    }

    fn deadline(
        &mut self,
        field: Field,
        duration: Option<Duration>,
        unit: Unit,
    ) -> Option<Node<'static>> {
        self.covered.insert(field);
        let duration = duration?;
        // Where a tool counts in whole numbers, a shorter deadline would be the greater surprise.
        let whole = |number: u128, is_exact: bool, this: &mut Self| {
            if !is_exact {
                let message = format!("`{}` is rounded up to a whole number", field.name());
                this.note(
                    "not-expressible",
                    message,
                    "nothing to do, if that is near enough",
                );
            }
            Node::detached(i64::try_from(number).unwrap_or(i64::MAX))
        };
        Some(match unit {
            Unit::Milliseconds => {
                let number = duration.as_nanos().div_ceil(1_000_000);
                whole(number, duration.as_nanos().is_multiple_of(1_000_000), self)
            }
            Unit::Seconds if self.dialect.tool == Tool::Codex => seconds(duration),
            Unit::Seconds => {
                let number = duration.as_nanos().div_ceil(1_000_000_000);
                whole(number, duration.subsec_nanos() == 0, self)
            }
        })
    }

    fn oauth(&mut self, oauth: &OAuthEntry, key: OAuthKey) -> Option<Node<'static>> {
        let field = key.ours.name();
        if !self.covered_oauth.insert(field) {
            return None;
        }
        let text = match key.ours {
            OAuthSetting::Scopes => {
                let scopes = oauth
                    .scopes
                    .iter()
                    .map(|scope| Node::detached(scope.clone()));
                return filled(scopes.collect());
            }
            OAuthSetting::ScopeText => {
                return (!oauth.scopes.is_empty()).then(|| Node::detached(oauth.scopes.join(" ")));
            }
            OAuthSetting::CallbackPort => {
                return oauth
                    .callback_port
                    .map(|port| Node::detached(i64::from(port)));
            }
            OAuthSetting::ClientId => oauth.client_id.as_deref(),
            OAuthSetting::ClientSecret => oauth.client_secret.as_ref().map(Secret::expose),
            OAuthSetting::Issuer => oauth.issuer.as_deref(),
            OAuthSetting::MetadataUrl => oauth.metadata_url.as_deref(),
            OAuthSetting::Resource => oauth.resource.as_deref(),
            OAuthSetting::RedirectUri => oauth.redirect_uri.as_deref(),
            OAuthSetting::Ignored => None,
        };
        Some(self.rendered(Field::OAuth, &format!("oauth.{field}"), text?))
    }

    fn tool_approvals(&mut self) -> Option<Node<'static>> {
        self.covered.insert(Field::Tools);
        let mut tools = Vec::new();
        for (name, tool) in &self.entry.tools {
            if tool.permission == Some(Permission::Ask) {
                let mode = Node::table([("approval_mode", Node::detached("prompt"))]);
                tools.push((name.clone(), mode));
            } else if let Some(permission) = tool.permission {
                let field = format!("tools.{name}.permission");
                self.note(
                    "not-expressible",
                    format!("`{field}` = {permission} is not exported"),
                    "set it in the tool itself",
                );
            }
            for (key, is_stated) in [
                ("timeout_sec", tool.timeout.is_some()),
                ("hidden", tool.hidden.is_some()),
            ] {
                if is_stated {
                    self.lost(&format!("tools.{name}.{key}"));
                }
            }
        }
        filled_table(tools)
    }

    /// A text in the tool's syntax of variables.
    fn rendered(&mut self, field: Field, key: &str, text: &str) -> Node<'static> {
        let style = self.dialect.style_of(field);
        let mut pieces = parse(Style::Ours, text);
        if self.dialect.tool == Tool::VsCode
            && let Some(rendered) = self.with_inputs(&mut pieces, style)
        {
            return Node::detached(rendered);
        }
        if !is_exact(style, &pieces) {
            let message = format!(
                "{} cannot express the variables in `{key}` exactly",
                self.dialect.tool
            );
            self.note("not-expressible", message, "check the exported value");
        }
        Node::detached(render(style, &pieces))
    }

    /// VS Code has no default for a variable, but it has inputs with defaults, which it asks for once.
    fn with_inputs(&mut self, pieces: &mut [Piece], style: Style) -> Option<String> {
        let mut text = String::new();
        let mut found = false;
        for piece in pieces.iter() {
            let with_default = match piece {
                Piece::Variable {
                    name,
                    default: Some(default),
                } if is_input_name(name) => match default.as_slice() {
                    [] => Some((name, "")),
                    [Piece::Text(default)] => Some((name, default.as_str())),
                    _ => None,
                },
                _ => None,
            };
            let Some((name, default)) = with_default else {
                if !is_exact(style, std::slice::from_ref(piece)) {
                    return None;
                }
                text.push_str(&render(style, std::slice::from_ref(piece)));
                continue;
            };
            let input = Node::table([
                ("id", Node::detached(name.clone())),
                ("type", Node::detached("promptString")),
                ("description", Node::detached(format!("Value of {name}"))),
                ("default", Node::detached(default.to_owned())),
            ]);
            let existing = self.shared.inputs.iter().find(|(id, _)| id == name);
            match existing {
                // One input has one default.
                Some((_, other)) if *other != input => return None,
                Some(_) => {}
                None => self.shared.inputs.push((name.clone(), input)),
            }
            found = true;
            text.push_str(&format!("${{input:{name}}}"));
        }
        found.then_some(text)
    }

    /// Notes every field that no key took.
    fn uncovered(&mut self) {
        let entry = self.entry;
        if entry.enabled == Some(false) && self.dialect.tool == Tool::Gemini {
            self.shared.excluded.push(self.name.to_owned());
        }
        let node = entry.to_node();
        for member in node.as_table().unwrap_or_default() {
            match Field::from_key(&member.key) {
                Some(Field::OAuth) if self.covered.contains(&Field::OAuth) => {
                    for setting in member.value.as_table().unwrap_or_default() {
                        if !self.covered_oauth.contains(setting.key.as_ref()) {
                            self.lost(&format!("oauth.{}", setting.key));
                        }
                    }
                }
                Some(field) if !self.covered.contains(&field) => self.lost(&member.key),
                _ => {}
            }
        }
    }

    fn writes(&self, meaning: Meaning) -> bool {
        self.dialect
            .keys
            .iter()
            .any(|key| key.written && key.meaning == meaning)
    }

    fn lost(&mut self, field: &str) {
        let message = format!(
            "`{field}` has no counterpart in {} and is left out",
            self.dialect.tool
        );
        self.note(
            "not-expressible",
            message,
            "set it in the tool itself, if it has a place for it",
        );
    }

    fn note(&mut self, code: &'static str, message: impl AsRef<str>, hint: &str) {
        let place = Place::Outside(format!("export to {}", self.dialect.tool));
        let message = format!("{}: {}", self.name, message.as_ref());
        self.notes.push(
            Diagnostic::warning(code, place, message)
                .with_hint(hint)
                .about(self.name),
        );
    }
}

/// The word for a transport, if the key states transports and has one.
fn word(key: &Key, transport: Transport) -> Option<&'static str> {
    match key.meaning {
        Meaning::Transport(words) => words
            .iter()
            .find(|(_, other)| *other == transport)
            .map(|(word, _)| *word),
        _ => None,
    }
}

/// The name of the variable that a value is, when it is nothing else.
fn only_variable(value: &Secret) -> Option<String> {
    match parse(Style::Ours, value.expose()).as_slice() {
        [
            Piece::Variable {
                name,
                default: None,
            },
        ] => Some(name.clone()),
        _ => None,
    }
}

/// Whether an input of that name becomes a variable of that name again.
fn is_input_name(name: &str) -> bool {
    is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn filled(elements: Vec<Node<'static>>) -> Option<Node<'static>> {
    (!elements.is_empty()).then(|| Node::detached(elements.into_iter().collect::<Value<'_>>()))
}

fn filled_table(members: Vec<(String, Node<'static>)>) -> Option<Node<'static>> {
    (!members.is_empty()).then(|| Node::table(members))
}

/// Puts a node at the end of a path of keys, making the tables on the way.
fn insert(root: &mut Node<'static>, path: &[&'static str], node: Node<'static>) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = root;
    for key in way {
        let Value::Table(members) = &mut at.value else {
            return;
        };
        let index = members.iter().position(|member| member.key == *key);
        let index = index.unwrap_or_else(|| {
            members.push(member(key, Node::detached(Value::Table(Vec::new()))));
            members.len() - 1
        });
        let Some(next) = members.get_mut(index) else {
            return;
        };
        at = &mut next.value;
    }
    if let Value::Table(members) = &mut at.value {
        members.push(member(last, node));
    }
}

fn member(key: &'static str, value: Node<'static>) -> Member<'static> {
    Member {
        key: key.into(),
        key_span: crate::tree::Span::default(),
        value,
    }
}
