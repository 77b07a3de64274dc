//! Reads one server of another tool into a table of our own keys.
//!
//! Values keep the places they came from, so that the decoder of our own files can check the result and point
//! into the foreign file. What has no counterpart is reported here, by the name the tool gives it.

use std::borrow::Cow;
use std::time::Duration;

use super::dialect::{Dialect, Key, Meaning, OAuthKey, OAuthSetting, Unit};
use super::dialects::says_nothing;
use super::variables::{Foreign, Piece, Style, is_exact, merged, parse, render, variable_name};
use crate::entry::{Field, Reader, Transport};
use crate::tree::{Member, Node, Span, Value};

/// A value that the tool asks its user for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Input {
    pub(super) id: String,
    /// The variable that takes its place.
    pub(super) variable: String,
    pub(super) default: Option<String>,
}

/// An entry in our own keys, on its way to the decoder.
#[derive(Default)]
pub(super) struct Draft {
    members: Vec<Member<'static>>,
    oauth: Vec<Member<'static>>,
    oauth_span: Span,
    stated: Option<Transport>,
    implied: Option<Transport>,
}

impl Draft {
    /// The table, ready for the decoder.
    pub(super) fn into_node(mut self, span: Span) -> Node<'static> {
        if let Some(transport) = self.stated.or(self.implied) {
            self.members.insert(
                0,
                member(
                    Field::Transport.name(),
                    span,
                    Node {
                        span,
                        ..text(transport.name(), span)
                    },
                ),
            );
        }
        if !self.oauth.is_empty() {
            let span = self.oauth_span;
            let oauth = Node {
                span,
                value: Value::Table(self.oauth),
            };
            self.members.push(member(Field::OAuth.name(), span, oauth));
        }
        Node {
            span,
            value: Value::Table(self.members),
        }
    }

    /// Whether there is a program or an address.
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

    /// Adds to a table or a list that is there, or makes it.
    fn extend(&mut self, field: Field, node: Node<'static>) {
        let existing = self.find(field).and_then(|at| self.members.get_mut(at));
        match (existing.map(|member| &mut member.value.value), node.value) {
            (Some(Value::Table(members)), Value::Table(more)) => members.extend(more),
            (Some(Value::Array(elements)), Value::Array(more)) => elements.extend(more),
            (_, value) => self.put(field, Node { value, ..node }),
        }
    }
}

/// Reads the entries of one container.
pub(super) struct EntryReader<'r, 'f, 'd> {
    pub(super) dialect: &'static Dialect,
    pub(super) reader: &'r mut Reader<'f, 'd>,
    pub(super) inputs: &'r [Input],
    pub(super) server: &'r str,
    /// Variables whose values the entry itself states, for the tools that put them into headers.
    known: Vec<(String, String)>,
    /// How many stand-ins the entry has so far.
    stand_ins: Vec<String>,
}

impl<'r, 'f, 'd> EntryReader<'r, 'f, 'd> {
    pub(super) fn new(
        dialect: &'static Dialect,
        reader: &'r mut Reader<'f, 'd>,
        inputs: &'r [Input],
        server: &'r str,
    ) -> Self {
        let (known, stand_ins) = (Vec::new(), Vec::new());
        Self {
            dialect,
            reader,
            inputs,
            server,
            known,
            stand_ins,
        }
    }

    /// Reads every member of an entry.
    pub(super) fn read(&mut self, members: &[Member<'_>]) -> Draft {
        let mut draft = Draft::default();
        let is_remote = self.header_variables(members);
        let mut winners: Vec<(Field, &str)> = Vec::new();
        for key in self.dialect.keys {
            let Some(member) = members.iter().find(|member| member.key == key.name) else {
                continue;
            };
            // A null is how JSON and YAML leave a key out.
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

    /// goose puts the variables that a remote entry states into its headers. Whether this is such an entry.
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
            Meaning::Command => self.put_text(Field::Command, name, node, draft),
            Meaning::CommandLine => self.command_line(name, node, draft),
            Meaning::CommandOrTable if node.as_table().is_some() => {
                self.command_table(name, node, draft)
            }
            Meaning::CommandOrTable => self.put_text(Field::Command, name, node, draft),
            Meaning::Args => self.put_list(Field::Args, name, node, draft),
            Meaning::Env if fills_headers => {}
            Meaning::Env => self.put_map(Field::Env, name, node, draft),
            Meaning::LooseEnv => self.loose_env(name, node, draft),
            Meaning::EnvOrHeaderNames if fills_headers => {}
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
            Meaning::OAuth(keys) => self.oauth(name, node, keys, draft),
            Meaning::OAuthSetting(setting) => self.oauth_setting(name, node, setting, draft),
            Meaning::Enabled | Meaning::EnabledAlways => {
                self.put_flag(Field::Enabled, name, node, |flag| flag, draft)
            }
            Meaning::Disabled => self.put_flag(Field::Enabled, name, node, |flag| !flag, draft),
            Meaning::Required => self.put_flag(Field::Required, name, node, |flag| flag, draft),
            Meaning::Startup(unit) => {
                self.put_deadline(Field::StartupTimeout, name, node, unit, draft)
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
            Meaning::Name | Meaning::Ignored => {}
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
        // The check of the whole list reports what is no text.
        if self.reader.texts(key, node).is_none() {
            return;
        }
        let elements = node.as_array().unwrap_or_default().iter().enumerate();
        let elements = elements.filter(|(_, element)| element.as_str().is_some());
        let list = elements.filter_map(|(index, element)| {
            self.translated(field, &format!("{key}[{index}]"), element)
        });
        let value = list.collect();
        draft.extend(
            field,
            Node {
                span: node.span,
                value,
            },
        );
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
        draft.extend(
            field,
            Node {
                span: node.span,
                value,
            },
        );
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
            draft.put(
                field,
                Node {
                    span: node.span,
                    value: means(flag).into(),
                },
            );
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

    fn command_line(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(words) = self.reader.texts(key, node) else {
            return;
        };
        if words.is_empty() {
            self.reader.error(
                "bad-value",
                node.span,
                format!("`{key}` is empty"),
                "name the program to start",
            );
            return;
        }
        let words = node.as_array().unwrap_or_default();
        if let Some(program) = words.first().filter(|program| program.as_str().is_some()) {
            self.put_text(Field::Command, key, program, draft);
        }
        let args = words
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, word)| word.as_str().is_some());
        let args: Value<'_> = args
            .filter_map(|(index, word)| {
                self.translated(Field::Args, &format!("{key}[{index}]"), word)
            })
            .collect();
        draft.extend(
            Field::Args,
            Node {
                span: node.span,
                value: args,
            },
        );
    }

    fn command_table(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        for member in node.as_table().unwrap_or_default() {
            let (path, value) = (format!("{key}.{}", member.key), &member.value);
            match member.key.as_ref() {
                _ if matches!(value.value, Value::Null) => {}
                "path" => self.put_text(Field::Command, &path, value, draft),
                "args" => self.put_list(Field::Args, &path, value, draft),
                "env" => self.put_map(Field::Env, &path, value, draft),
                "timeout" => {
                    self.put_deadline(Field::ToolTimeout, &path, value, Unit::Seconds, draft)
                }
                _ => self
                    .reader
                    .unknown_key(member, ["path", "args", "env", "timeout"]),
            }
        }
    }

    fn loose_env(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(members) = self.reader.table(key, node) else {
            return;
        };
        let mut texts = Vec::with_capacity(members.len());
        for pair in members {
            let value = match &pair.value.value {
                Value::Integer(number) => Value::from(number.to_string()),
                Value::Float(number) => Value::from(number.to_string()),
                Value::Null => {
                    let message = format!(
                        "`{key}.{}` is unset by null, which has no counterpart",
                        pair.key
                    );
                    self.reader.warning(
                        "not-translated",
                        pair.key_span,
                        message,
                        "a server gets only the variables it names",
                    );
                    continue;
                }
                other => other.clone(),
            };
            texts.push(Member {
                key: pair.key.clone(),
                key_span: pair.key_span,
                value: Node {
                    span: pair.value.span,
                    value,
                },
            });
        }
        self.put_map(
            Field::Env,
            key,
            &Node {
                span: node.span,
                value: Value::Table(texts),
            },
            draft,
        );
    }

    fn names(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(elements) = node.as_array() else {
            // The check of a list reports what this is instead.
            self.reader.texts(key, node);
            return;
        };
        let mut names = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = format!("{key}[{index}]");
            let name = match element.as_table() {
                None => element,
                Some(_) => {
                    if element.get("source").and_then(Node::as_str) == Some("remote") {
                        let message = format!(
                            "`{path}` is taken from a remote machine, which has no counterpart"
                        );
                        self.reader.warning(
                            "not-translated",
                            element.span,
                            message,
                            "set the variable on this machine",
                        );
                    }
                    let Some(name) = element.get("name") else {
                        self.reader.error(
                            "missing-key",
                            element.span,
                            format!("`{path}` needs a name"),
                            "add name = \"…\"",
                        );
                        continue;
                    };
                    name
                }
            };
            names.extend(
                self.reader
                    .text(&path, name)
                    .map(|text_| text(text_, name.span)),
            );
        }
        draft.extend(
            Field::EnvVars,
            Node {
                span: node.span,
                value: names.into_iter().collect(),
            },
        );
    }

    fn headers_inside(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        for member in self.reader.table(key, node).unwrap_or_default() {
            if member.key == "headers" {
                self.put_map(
                    Field::Headers,
                    &format!("{key}.headers"),
                    &member.value,
                    draft,
                );
            } else {
                let message = format!("`{key}.{}` has no counterpart and is left out", member.key);
                self.reader.warning(
                    "not-translated",
                    member.key_span,
                    message,
                    "only `headers` of it are taken over",
                );
            }
        }
    }

    fn env_headers(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let mut headers = Vec::new();
        for pair in self.reader.table(key, node).unwrap_or_default() {
            let path = format!("{key}.{}", pair.key);
            let Some(name) = self.reader.text(&path, &pair.value) else {
                continue;
            };
            if !super::variables::is_name(&name) {
                let message = format!("`{path}` must name a variable");
                self.reader.error(
                    "bad-value",
                    pair.value.span,
                    message,
                    "write the variable's name alone",
                );
                continue;
            }
            let value = render(
                Style::Ours,
                &[Piece::Variable {
                    name,
                    default: None,
                }],
            );
            headers.push(member(
                pair.key.to_string(),
                pair.key_span,
                text(value, pair.value.span),
            ));
        }
        draft.extend(
            Field::Headers,
            Node {
                span: node.span,
                value: Value::Table(headers),
            },
        );
    }

    fn headers_helper(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(line) = self.reader.text(key, node) else {
            return;
        };
        let words = if line.contains(['|', '&', ';', '<', '>', '`', '(', ')', '*', '?', '~', '\n'])
        {
            // The tool hands the line to a shell; ours does so only when the words say it.
            vec!["sh".to_owned(), "-c".to_owned(), line]
        } else {
            match crate::words::split(&line) {
                Some(words) => words,
                None => {
                    self.reader.error(
                        "bad-value",
                        node.span,
                        format!("`{key}` has an unclosed quote"),
                        "close the quote",
                    );
                    return;
                }
            }
        };
        let words = words.into_iter().map(|word| text(word, node.span));
        let words: Vec<_> = words
            .filter_map(|word| self.translated(Field::HeadersHelper, key, &word))
            .collect();
        draft.put(
            Field::HeadersHelper,
            Node {
                span: node.span,
                value: words.into_iter().collect(),
            },
        );
    }

    fn oauth(&mut self, key: &str, node: &Node<'_>, keys: &[OAuthKey], draft: &mut Draft) {
        if node.as_bool() == Some(false) {
            let message = format!(
                "`{key}` = false has no counterpart: a server that asks for a sign-in gets one"
            );
            self.reader.warning(
                "not-translated",
                node.span,
                message,
                "state a header if the server wants one",
            );
            return;
        }
        for member in self.reader.table(key, node).unwrap_or_default() {
            match keys.iter().find(|known| known.name == member.key) {
                Some(known) => {
                    self.oauth_setting(
                        &format!("{key}.{}", member.key),
                        &member.value,
                        *known,
                        draft,
                    );
                }
                None => self
                    .reader
                    .unknown_key(member, keys.iter().map(|key| key.name)),
            }
        }
    }

    fn oauth_setting(&mut self, key: &str, node: &Node<'_>, setting: OAuthKey, draft: &mut Draft) {
        let value = match setting.ours {
            _ if matches!(node.value, Value::Null) => return,
            OAuthSetting::Ignored => return,
            OAuthSetting::CallbackPort => {
                let port = self.reader.port(key, node);
                port.map(|port| Node {
                    span: node.span,
                    value: i64::from(port).into(),
                })
            }
            OAuthSetting::Scopes | OAuthSetting::ScopeText if node.as_str().is_none() => {
                let texts = self.reader.texts(key, node);
                texts.map(|texts| Node {
                    span: node.span,
                    value: texts
                        .into_iter()
                        .map(|scope| text(scope, node.span))
                        .collect(),
                })
            }
            _ => self.translated(Field::OAuth, key, node),
        };
        if let Some(value) = value {
            draft.oauth_span = node.span;
            let ours = setting.ours.name();
            if draft.oauth.iter().all(|other| other.key != ours) {
                draft.oauth.push(member(ours, node.span, value));
            }
        }
    }

    fn enabled_tools(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        if node.as_array().is_some_and(<[_]>::is_empty) && self.dialect.tool == super::Tool::Codex {
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

    fn tool_approvals(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let mut tools = Vec::new();
        for tool in self.reader.table(key, node).unwrap_or_default() {
            let path = format!("{key}.{}", tool.key);
            for setting in self.reader.table(&path, &tool.value).unwrap_or_default() {
                match (setting.key.as_ref(), setting.value.as_str()) {
                    ("approval_mode", Some("prompt")) => {
                        let ask = member(
                            "permission",
                            setting.key_span,
                            text("ask", setting.value.span),
                        );
                        let table = Node {
                            span: tool.value.span,
                            value: Value::Table(vec![ask]),
                        };
                        tools.push(member(tool.key.to_string(), tool.key_span, table));
                    }
                    ("approval_mode", Some("auto")) => {}
                    ("approval_mode", Some("approve")) => {
                        let rule = rule(self.server, Some(&tool.key));
                        self.approval_note(
                            &format!("{path}.approval_mode"),
                            setting.key_span,
                            &rule,
                        );
                    }
                    ("approval_mode", _) => {
                        let modes = &["auto", "prompt", "approve"];
                        self.reader.word(
                            &format!("{path}.approval_mode"),
                            &setting.value,
                            modes,
                            |_| None::<()>,
                        );
                    }
                    _ => self.reader.unknown_key(setting, ["approval_mode"]),
                }
            }
        }
        if !tools.is_empty() {
            draft.put(
                Field::Tools,
                Node {
                    span: node.span,
                    value: Value::Table(tools),
                },
            );
        }
    }

    fn approval(&mut self, key: &str, member: &Member<'_>) {
        if says_nothing(&member.value) {
            return;
        }
        let tools: Vec<&str> = member
            .value
            .as_array()
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_str)
            .collect();
        let rules = match tools.as_slice() {
            [] | ["*"] => rule(self.server, None),
            tools => tools
                .iter()
                .map(|tool| rule(self.server, Some(tool)))
                .collect::<Vec<_>>()
                .join(" and "),
        };
        self.approval_note(key, member.key_span, &rules);
    }

    fn approval_note(&mut self, key: &str, span: Span, rules: &str) {
        let message = format!("`{key}` is ignored: an imported entry cannot approve its own calls");
        let hint = format!(
            "if you want that, add [[permissions.rules]] with {rules} to your user configuration"
        );
        self.reader.warning("approval-ignored", span, message, hint);
    }

    /// A text in our own syntax of variables.
    fn translated(&mut self, field: Field, key: &str, node: &Node<'_>) -> Option<Node<'static>> {
        let original = self.reader.text(key, node)?;
        let mut pieces = parse(self.dialect.style_of(field), &original);
        for piece in &mut pieces {
            match piece {
                Piece::Foreign(what) => {
                    let what = what.clone();
                    *piece = self.stand_in(key, node.span, &what);
                }
                Piece::Variable { name, .. } => {
                    if let Some((_, value)) = self.known.iter().find(|(known, _)| known == name) {
                        *piece = Piece::Text(value.clone());
                    }
                }
                Piece::Text(literal)
                    if parse(Style::Ours, literal)
                        .iter()
                        .any(|piece| !matches!(piece, Piece::Text(_))) =>
                {
                    let message = format!(
                        "`{key}` looks like a variable, which {} does not expand there; it is kept as text",
                        self.dialect.tool
                    );
                    self.reader.warning(
                        "kept-as-text",
                        node.span,
                        message,
                        "write ${…} in the imported entry to have it expanded",
                    );
                }
                _ => {}
            }
        }
        let pieces = merged(pieces);
        if !is_exact(Style::Ours, &pieces) {
            let message = format!("`{key}` cannot be written exactly in our syntax of variables");
            self.reader.warning(
                "not-translated",
                node.span,
                message,
                "check the imported value",
            );
        }
        Some(text(render(Style::Ours, &pieces), node.span))
    }

    /// A variable in place of something that only the tool can work out. As long as it is not set, the server
    /// is disabled with that reason.
    fn stand_in(&mut self, key: &str, span: Span, what: &Foreign) -> Piece {
        let tool = self.dialect.tool;
        if let Foreign::Input(id) = what {
            let input = self.inputs.iter().find(|input| input.id == *id);
            let name = input.map_or_else(|| variable_name(id), |input| input.variable.clone());
            let default = input.and_then(|input| input.default.clone());
            let default = default.map(|default| merged(vec![Piece::Text(default)]));
            let message = format!(
                "`{key}` is asked for by {tool} as \"{id}\"; here it is the variable {name}"
            );
            self.reader.warning(
                "stand-in",
                span,
                message,
                format!("set {name} in the environment"),
            );
            return Piece::Variable { name, default };
        }
        let owner = key.rsplit_once('.').map_or(key, |(_, last)| last);
        let base = if key
            .split('.')
            .next()
            .is_some_and(|head| head.starts_with("env"))
        {
            variable_name(owner)
        } else {
            variable_name(&format!("{}-{owner}", self.server))
        };
        let mut name = base.clone();
        let mut count = 1;
        while self.stand_ins.contains(&name) {
            count += 1;
            name = format!("{base}_{count}");
        }
        self.stand_ins.push(name.clone());
        let what = match what {
            Foreign::Command => "the output of a command, which is not run",
            Foreign::File => "the content of a file",
            _ => "something only that tool knows",
        };
        let message = format!("`{key}` holds {what}; the variable {name} takes its place");
        self.reader.warning(
            "stand-in",
            span,
            message,
            format!("set {name} in the environment"),
        );
        Piece::Variable {
            name,
            default: None,
        }
    }
}

/// The `startup` and `request` deadlines of a table; one number is the deadline of start-up.
pub(super) fn deadlines<'n, 'a>(node: &'n Node<'a>) -> Vec<(Field, &'n Node<'a>)> {
    if node.as_table().is_none() {
        return vec![(Field::StartupTimeout, node)];
    }
    [
        ("startup", Field::StartupTimeout),
        ("request", Field::ToolTimeout),
    ]
    .into_iter()
    .filter_map(|(key, field)| Some((field, node.get(key)?)))
    .collect()
}

/// A number of seconds as a person writes it.
pub(super) fn seconds(duration: Duration) -> Node<'static> {
    match (duration.subsec_nanos(), i64::try_from(duration.as_secs())) {
        (0, Ok(whole)) => Node::detached(whole),
        _ => Node::detached(duration.as_secs_f64()),
    }
}

/// The field of a key that stands at most once, whatever its name.
fn single_field(meaning: Meaning) -> Option<Field> {
    match meaning {
        Meaning::Url(_) => Some(Field::Url),
        Meaning::Startup(_) => Some(Field::StartupTimeout),
        _ => None,
    }
}

fn rule(server: &str, tool: Option<&str>) -> String {
    format!(
        "tool = \"mcp__{server}__{}\", action = \"allow\"",
        tool.unwrap_or("*")
    )
}

fn text(text: impl Into<String>, span: Span) -> Node<'static> {
    Node {
        span,
        value: Value::from(text.into()),
    }
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
