//! Exports one server: maps fields to keys, and notes fields without a key.

use std::collections::HashSet;

use super::super::Tool;
use super::super::dialect::{Dialect, Key, Meaning, Unit};
use super::fields::{filled, filled_table, only_variable};
use crate::diagnostic::{Diagnostic, Place};
use crate::entry::{Field, ServerEntry, Transport};
use crate::tree::{Node, Value};

/// State shared by all servers of an export.
#[derive(Default)]
pub(super) struct Shared {
    /// Inputs that VS Code prompts for.
    pub(super) inputs: Vec<(String, Node<'static>)>,
    /// Servers that Gemini keeps disabled.
    pub(super) excluded: Vec<String>,
}

pub(super) struct Writer<'w> {
    pub(super) dialect: &'static Dialect,
    pub(super) name: &'w str,
    pub(super) entry: &'w ServerEntry,
    pub(super) covered: HashSet<Field>,
    pub(super) covered_oauth: HashSet<&'static str>,
    pub(super) notes: &'w mut Vec<Diagnostic>,
    pub(super) shared: &'w mut Shared,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        dialect: &'static Dialect,
        name: &'w str,
        entry: &'w ServerEntry,
        notes: &'w mut Vec<Diagnostic>,
        shared: &'w mut Shared,
    ) -> Self {
        Self {
            dialect,
            name,
            entry,
            covered: HashSet::new(),
            covered_oauth: HashSet::new(),
            notes,
            shared,
        }
    }

    /// Exports the server; `None` if the tool does not support it.
    pub(super) fn write(&mut self) -> Option<Node<'static>> {
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

    /// The transport, if the tool supports it.
    fn transport(&mut self) -> Option<Transport> {
        let Some(transport) = self.entry.effective_transport() else {
            self.note(
                "left-out",
                "it has neither `command` nor `url`, so it is left out",
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
                let message = format!("{} cannot express the transport sse", self.dialect.tool);
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

    /// The value of one key, if any.
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
            Meaning::ArgsAlways if is_remote => None,
            Meaning::ArgsAlways => self
                .list(Field::Args, &entry.args)
                .or_else(|| Some(Node::detached(Value::Array(Vec::new())))),
            Meaning::Env | Meaning::LooseEnv => self.env(),
            Meaning::EnvOrHeaderNames if is_remote => self.header_variables(),
            Meaning::EnvNames | Meaning::EnvOrHeaderNames => {
                self.covered.insert(Field::EnvVars);
                let passed = self.passed_on();
                let names = entry.env_vars.iter().map(String::as_str).chain(passed);
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
                let call =
                    self.deadline(Field::ToolTimeout, entry.tool_timeout, Unit::Milliseconds);
                // The tool has separate deadlines for listing and calling tools; we have one.
                let members = [
                    ("startup", startup),
                    ("catalog", call.clone()),
                    ("execution", call),
                ];
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
            Meaning::OAuthSwitch => entry.oauth.as_ref().map(|_| Node::detached(true)),
            Meaning::Approval | Meaning::BearerToken | Meaning::Lost(_) => None,
        }
    }

    /// Notes every field without a key.
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

    pub(super) fn writes(&self, meaning: Meaning) -> bool {
        self.dialect
            .keys
            .iter()
            .any(|key| key.written && key.meaning == meaning)
    }

    pub(super) fn lost(&mut self, field: &str) {
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

    pub(super) fn note(&mut self, code: &'static str, message: impl AsRef<str>, hint: &str) {
        let place = Place::Outside(format!("export to {}", self.dialect.tool));
        let message = format!("{}: {}", self.name, message.as_ref());
        self.notes.push(
            Diagnostic::warning(code, place, message)
                .with_hint(hint)
                .about(self.name),
        );
    }
}

/// The tool's word for a transport, if this key has one.
fn word(key: &Key, transport: Transport) -> Option<&'static str> {
    match key.meaning {
        Meaning::Transport(words) => words
            .iter()
            .find(|(_, other)| *other == transport)
            .map(|(word, _)| *word),
        _ => None,
    }
}
