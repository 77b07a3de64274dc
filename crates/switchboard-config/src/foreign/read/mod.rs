//! Converts one server of another tool into a table of our own keys.
//!
//! Values keep their positions, so that the decoder of our own files can check the result and point into the foreign
//! file. Settings without a counterpart are reported here, under the tool's own name.

mod approvals;
mod texts;
mod values;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use super::dialect::{Dialect, Key, Meaning, Unit};
use super::dialects::says_nothing;
use super::variables::Names;
use crate::entry::{Field, Reader, Transport};
use crate::tree::{Member, Node, Span, Value};

/// A value that the tool prompts for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Input {
    /// Variable that replaces it.
    pub(super) variable: String,
    pub(super) default: Option<String>,
}

/// Inputs by id.
pub(super) type Inputs = HashMap<String, Input>;

/// A converted entry, before decoding.
#[derive(Default)]
pub(super) struct Draft {
    members: Vec<Member<'static>>,
    oauth: Vec<Member<'static>>,
    oauth_span: Span,
    stated: Option<Transport>,
    implied: Option<Transport>,
}

impl Draft {
    pub(super) fn into_node(mut self, span: Span) -> Node<'static> {
        if let Some(transport) = self.stated.or(self.implied) {
            let transport = text(transport.name(), span);
            self.members
                .insert(0, member(Field::Transport.name(), span, transport));
        }
        if !self.oauth.is_empty() {
            let oauth = at(self.oauth_span, Value::Table(self.oauth));
            self.members
                .push(member(Field::OAuth.name(), oauth.span, oauth));
        }
        at(span, Value::Table(self.members))
    }

    pub(super) fn has_endpoint(&self) -> bool {
        self.find(Field::Command).is_some() || self.find(Field::Url).is_some()
    }

    fn find(&self, field: Field) -> Option<usize> {
        self.members
            .iter()
            .position(|member| member.key == field.name())
    }

    fn put(&mut self, field: Field, node: Node<'static>) {
        self.members.push(member(field.name(), node.span, node));
    }

    /// Removes a header that another setting overrides.
    fn drop_header(&mut self, name: &str) {
        let headers = self.find(Field::Headers);
        let headers = headers.and_then(|at| self.members.get_mut(at));
        if let Some(Value::Table(pairs)) = headers.map(|member| &mut member.value.value) {
            pairs.retain(|pair| !pair.key.eq_ignore_ascii_case(name));
        }
    }

    /// Extends an existing table or list, or creates it.
    fn extend(&mut self, field: Field, node: Node<'static>) {
        let existing = self.find(field).and_then(|at| self.members.get_mut(at));
        match (existing.map(|member| &mut member.value.value), node.value) {
            (Some(Value::Table(members)), Value::Table(more)) => members.extend(more),
            (Some(Value::Array(elements)), Value::Array(more)) => elements.extend(more),
            (_, value) => self.put(field, Node { value, ..node }),
        }
    }
}

/// Converts the entries of one container.
pub(super) struct EntryReader<'r, 'f, 'd> {
    pub(super) dialect: &'static Dialect,
    pub(super) reader: &'r mut Reader<'f, 'd>,
    pub(super) inputs: &'r Inputs,
    pub(super) server: &'r str,
    /// Variables with values stated in the entry, for tools that insert them into headers.
    known: HashMap<String, String>,
    /// Names of placeholder variables in the entry.
    stand_ins: Names,
}

impl<'r, 'f, 'd> EntryReader<'r, 'f, 'd> {
    pub(super) fn new(
        dialect: &'static Dialect,
        reader: &'r mut Reader<'f, 'd>,
        inputs: &'r Inputs,
        server: &'r str,
    ) -> Self {
        let (known, stand_ins) = (HashMap::new(), Names::default());
        Self {
            dialect,
            reader,
            inputs,
            server,
            known,
            stand_ins,
        }
    }

    pub(super) fn read(&mut self, members: &[Member<'_>]) -> Draft {
        let mut draft = Draft::default();
        let is_remote = self.header_variables(members);
        let mut winners: Vec<(Field, &str)> = Vec::new();
        for key in self.dialect.keys {
            let Some(member) = members.iter().find(|member| member.key == key.name) else {
                continue;
            };
            // In JSON and YAML, null means absent.
            if matches!(member.value.value, Value::Null) {
                continue;
            }
            if let Some(field) = single_field(key.meaning) {
                if let Some((_, winner)) = winners.iter().find(|(other, _)| *other == field) {
                    let message = format!(
                        "`{}` is not used, because `{winner}` says the same",
                        key.name
                    );
                    self.reader.warning(
                        "shadowed-key",
                        member.key_span,
                        message,
                        "remove one of the two",
                    );
                    continue;
                }
                winners.push((field, key.name));
            }
            self.apply(key, member, is_remote, &mut draft);
        }
        for member in members {
            if !self.dialect.keys.iter().any(|key| key.name == member.key) {
                self.reader
                    .unknown_key(member, self.dialect.keys.iter().map(|key| key.name));
            }
        }
        draft
    }

    /// goose inserts the variables of a remote entry into its headers. Returns whether this is such an entry.
    fn header_variables(&mut self, members: &[Member<'_>]) -> bool {
        let has = |meaning: fn(Meaning) -> bool| {
            self.dialect
                .name_of(meaning)
                .and_then(|name| members.iter().find(|member| member.key == name))
        };
        let fills_headers = self
            .dialect
            .keys
            .iter()
            .any(|key| key.meaning == Meaning::EnvOrHeaderNames);
        let is_remote = has(|meaning| matches!(meaning, Meaning::Url(_))).is_some();
        if !fills_headers || !is_remote {
            return false;
        }
        let stated =
            has(|meaning| meaning == Meaning::Env).and_then(|member| member.value.as_table());
        self.known = stated
            .unwrap_or_default()
            .iter()
            .filter_map(|member| Some((member.key.to_string(), member.value.as_str()?.to_owned())))
            .collect();
        true
    }

    fn apply(&mut self, key: &Key, member: &Member<'_>, fills_headers: bool, draft: &mut Draft) {
        let (name, node) = (key.name, &member.value);
        match key.meaning {
            Meaning::Transport(words) => {
                let names: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
                let find = |text: &str| {
                    words
                        .iter()
                        .find(|(word, _)| word.eq_ignore_ascii_case(text))
                        .map(|(_, transport)| *transport)
                };
                draft.stated = self.reader.word(name, node, &names, find);
            }
            Meaning::CommandLine => self.command_line(name, node, draft),
            Meaning::CommandOrTable if node.as_table().is_some() => {
                self.command_table(name, node, draft);
            }
            Meaning::Command | Meaning::CommandOrTable => {
                self.put_text(Field::Command, name, node, draft);
            }
            Meaning::Args | Meaning::ArgsAlways => self.put_list(Field::Args, name, node, draft),
            Meaning::Env | Meaning::EnvOrHeaderNames if fills_headers => {}
            Meaning::Env => self.put_map(Field::Env, name, node, draft),
            Meaning::LooseEnv => self.loose_env(name, node, draft),
            Meaning::EnvNames | Meaning::EnvOrHeaderNames => self.names(name, node, draft),
            Meaning::Cwd => self.put_text(Field::Cwd, name, node, draft),
            Meaning::Url(implied) => {
                draft.implied = implied;
                self.put_text(Field::Url, name, node, draft);
            }
            Meaning::Headers => self.put_map(Field::Headers, name, node, draft),
            Meaning::HeadersInside => self.headers_inside(name, node, draft),
            Meaning::EnvHeaders => self.env_headers(name, node, draft),
            Meaning::HeadersHelper => self.headers_helper(name, node, draft),
            Meaning::BearerVariable => {
                if let Some(variable) = self.reader.text(name, node) {
                    draft.put(Field::BearerTokenEnvVar, text(variable, node.span));
                }
            }
            Meaning::BearerToken => self.bearer_token(name, node, draft),
            Meaning::OAuth(keys) => self.oauth(name, node, keys, draft),
            Meaning::OAuthSetting(setting) => self.oauth_setting(name, node, setting, draft),
            Meaning::Enabled | Meaning::EnabledAlways => {
                self.put_flag(Field::Enabled, name, node, |flag| flag, draft);
            }
            Meaning::Disabled => self.put_flag(Field::Enabled, name, node, |flag| !flag, draft),
            Meaning::Required => self.put_flag(Field::Required, name, node, |flag| flag, draft),
            Meaning::Startup(unit) => {
                self.put_deadline(Field::StartupTimeout, name, node, unit, draft);
            }
            Meaning::Call(unit) => self.put_deadline(Field::ToolTimeout, name, node, unit, draft),
            Meaning::Deadlines => {
                for (field, node) in deadlines(node) {
                    self.put_deadline(field, name, node, Unit::Milliseconds, draft);
                }
            }
            Meaning::EnabledTools => self.enabled_tools(name, node, draft),
            Meaning::DisabledTools => self.put_list(Field::DisabledTools, name, node, draft),
            Meaning::ToolApprovals => self.tool_approvals(name, node, draft),
            Meaning::Approval => self.approval(name, member),
            Meaning::Name | Meaning::Ignored | Meaning::OAuthSwitch => {}
            Meaning::Lost(hint) => {
                if !says_nothing(node) {
                    let message = format!(
                        "`{name}` of {} has no counterpart and is left out",
                        self.dialect.tool
                    );
                    self.reader
                        .warning("not-translated", member.key_span, message, hint);
                }
            }
        }
    }

    fn put_text(&mut self, field: Field, key: &str, node: &Node<'_>, draft: &mut Draft) {
        if let Some(node) = self.translated(field, key, node) {
            draft.put(field, node);
        }
    }

    fn put_list(&mut self, field: Field, key: &str, node: &Node<'_>, draft: &mut Draft) {
        // The check of the whole list reports elements that are not texts.
        if self.reader.texts(key, node).is_none() {
            return;
        }
        let elements = node.as_array().unwrap_or_default().iter().enumerate();
        let elements = elements.filter(|(_, element)| element.as_str().is_some());
        let list = elements.filter_map(|(index, element)| {
            self.translated(field, &format!("{key}[{index}]"), element)
        });
        let value = list.collect();
        draft.extend(field, at(node.span, value));
    }

    fn put_map(&mut self, field: Field, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(members) = self.reader.table(key, node) else {
            return;
        };
        let pairs = members.iter().filter_map(|pair| {
            let value = self.translated(field, &format!("{key}.{}", pair.key), &pair.value)?;
            Some(member(pair.key.to_string(), pair.key_span, value))
        });
        let value = Value::Table(pairs.collect());
        draft.extend(field, at(node.span, value));
    }

    fn put_flag(
        &mut self,
        field: Field,
        key: &str,
        node: &Node<'_>,
        means: fn(bool) -> bool,
        draft: &mut Draft,
    ) {
        if let Some(flag) = self.reader.boolean(key, node) {
            draft.put(field, at(node.span, means(flag).into()));
        }
    }

    fn put_deadline(
        &mut self,
        field: Field,
        key: &str,
        node: &Node<'_>,
        unit: Unit,
        draft: &mut Draft,
    ) {
        let duration = match unit {
            Unit::Seconds => self.reader.seconds(key, node),
            Unit::Milliseconds => self.reader.milliseconds(key, node),
        };
        if let Some(duration) = duration {
            draft.put(
                field,
                Node {
                    span: node.span,
                    ..seconds(duration)
                },
            );
        }
    }

    fn enabled_tools(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let empty_is_none = matches!(self.dialect.tool, super::Tool::Codex | super::Tool::Gemini);
        if empty_is_none && node.as_array().is_some_and(<[_]>::is_empty) {
            let message = format!(
                "an empty `{key}` offers no tools in {}, and all of them here",
                self.dialect.tool
            );
            self.reader.warning(
                "not-translated",
                node.span,
                message,
                "disable the server, or list its tools in `disabled_tools`",
            );
        }
        self.put_list(Field::EnabledTools, key, node, draft);
    }
}

/// Deadlines in a table: `startup`, and `execution` or `request` for a call. A single number is a call deadline.
pub(super) fn deadlines<'n, 'a>(node: &'n Node<'a>) -> Vec<(Field, &'n Node<'a>)> {
    if node.as_table().is_none() {
        return vec![(Field::ToolTimeout, node)];
    }
    let startup = node.get("startup");
    let call = node.get("execution").or_else(|| node.get("request"));
    [(Field::StartupTimeout, startup), (Field::ToolTimeout, call)]
        .into_iter()
        .filter_map(|(field, node)| Some((field, node?)))
        .collect()
}

/// Seconds, without a fraction if whole.
pub(super) fn seconds(duration: Duration) -> Node<'static> {
    match (duration.subsec_nanos(), i64::try_from(duration.as_secs())) {
        (0, Ok(whole)) => Node::detached(whole),
        _ => Node::detached(duration.as_secs_f64()),
    }
}

/// The field of a key that may occur only once.
fn single_field(meaning: Meaning) -> Option<Field> {
    match meaning {
        Meaning::Url(_) => Some(Field::Url),
        Meaning::Startup(_) => Some(Field::StartupTimeout),
        _ => None,
    }
}

fn text(text: impl Into<String>, span: Span) -> Node<'static> {
    at(span, Value::from(text.into()))
}

fn at(span: Span, value: Value<'_>) -> Node<'_> {
    Node { span, value }
}

fn member(
    key: impl Into<Cow<'static, str>>,
    key_span: Span,
    value: Node<'static>,
) -> Member<'static> {
    Member {
        key: key.into(),
        key_span,
        value,
    }
}
