//! Exports individual fields, in the tool's syntax and units.

use std::collections::HashSet;
use std::time::Duration;

use super::super::Tool;
use super::super::dialect::{Meaning, OAuthKey, OAuthSetting, Unit};
use super::super::read::seconds;
use super::super::variables::{Piece, Style, is_exact, is_name, parse, render};
use super::writer::Writer;
use crate::entry::{Field, OAuthEntry, Permission};
use crate::secret::Secret;
use crate::tree::{Node, Value};

impl<'w> Writer<'w> {
    pub(super) fn text(&mut self, field: Field, text: Option<&str>) -> Option<Node<'static>> {
        self.covered.insert(field);
        Some(self.rendered(field, field.name(), text?))
    }

    pub(super) fn flag(&mut self, field: Field, flag: Option<bool>) -> Option<Node<'static>> {
        self.covered.insert(field);
        flag.map(Node::detached)
    }

    pub(super) fn list(&mut self, field: Field, texts: &[String]) -> Option<Node<'static>> {
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

    pub(super) fn map<'p>(
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

    /// Environment variables. Passed-on names become `NAME=${NAME}` if the tool has no key for names but expands
    /// variables.
    pub(super) fn env(&mut self) -> Option<Node<'static>> {
        let entry = self.entry;
        let passed = self.passed_on();
        let own = entry
            .env
            .iter()
            .filter(|(name, _)| !passed.contains(&name.as_str()));
        let mut pairs: Vec<(String, Secret)> = own.cloned().collect();
        let has_names = self.writes(Meaning::EnvNames) || self.writes(Meaning::EnvOrHeaderNames);
        if !has_names && self.dialect.style_of(Field::Env) != Style::Literal {
            if entry.env_vars.iter().all(|name| is_name(name)) {
                self.covered.insert(Field::EnvVars);
            }
            let mut taken: HashSet<&str> =
                entry.env.iter().map(|(name, _)| name.as_str()).collect();
            let names = entry.env_vars.iter().filter(|name| is_name(name));
            let names = names.filter(|name| taken.insert(name.as_str()));
            pairs.extend(names.map(|name| (name.clone(), variable_text(name))));
        }
        self.map(Field::Env, pairs.iter())
    }

    /// Headers with literal values, as opposed to those given by variable names.
    pub(super) fn headers(&mut self) -> Option<Node<'static>> {
        let by_variable = self.writes(Meaning::EnvHeaders);
        let bearer = self.bearer_header();
        let is_bearer = |name: &str| bearer.is_some() && name.eq_ignore_ascii_case("authorization");
        let entry = self.entry;
        let plain = entry.headers.iter().filter(|(name, value)| {
            let is_by_variable = by_variable && only_variable(value).is_some();
            !is_by_variable && !is_bearer(name)
        });
        let mut pairs: Vec<(String, Secret)> = plain.cloned().collect();
        pairs.extend(self.header_of_bearer());
        self.map(Field::Headers, pairs.iter())
    }

    /// A bearer token as a header, if the tool has no key for the variable but expands variables in headers.
    fn header_of_bearer(&mut self) -> Option<(String, Secret)> {
        let variable = self.entry.bearer_token_env_var.as_ref()?;
        let expands = self.dialect.style_of(Field::Headers) != Style::Literal;
        let is_free = |(name, _): &(String, Secret)| !name.eq_ignore_ascii_case("authorization");
        if self.writes(Meaning::BearerVariable)
            || !expands
            || !is_name(variable)
            || !self.entry.headers.iter().all(is_free)
        {
            return None;
        }
        self.covered.insert(Field::BearerTokenEnvVar);
        let value = format!("Bearer {}", variable_text(variable).expose());
        Some(("Authorization".to_owned(), Secret::new(value)))
    }

    /// The variable of `Authorization: Bearer ${VAR}`, if the tool has a key for it.
    pub(super) fn bearer_header(&self) -> Option<String> {
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

    /// Variables of `env` that only pass on one of the same name, if the tool has a key for that.
    pub(super) fn passed_on(&self) -> Vec<&'w str> {
        if !self.writes(Meaning::EnvNames) && !self.writes(Meaning::EnvOrHeaderNames) {
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

    /// goose requires a list of the variables used in headers.
    pub(super) fn header_variables(&mut self) -> Option<Node<'static>> {
        let mut names: Vec<String> = Vec::new();
        let bearer = self.header_of_bearer();
        for (_, value) in self.entry.headers.iter().chain(bearer.iter()) {
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

    pub(super) fn deadline(
        &mut self,
        field: Field,
        duration: Option<Duration>,
        unit: Unit,
    ) -> Option<Node<'static>> {
        self.covered.insert(field);
        let duration = duration?;
        // Round up: a shorter deadline would be the greater surprise.
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

    pub(super) fn oauth(&mut self, oauth: &OAuthEntry, key: OAuthKey) -> Option<Node<'static>> {
        let field = key.ours.name();
        if !self.covered_oauth.insert(field) {
            return None;
        }
        // If the tool expands variables, a reference can replace the secret.
        let secret_variable = oauth
            .client_secret_env_var
            .as_deref()
            .filter(|name| is_name(name) && self.dialect.style_of(Field::OAuth) != Style::Literal);
        let secret_variable = secret_variable.map(variable_text);
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
            OAuthSetting::ClientSecret => {
                if oauth.client_secret.is_none() && secret_variable.is_some() {
                    self.covered_oauth.insert("client_secret_env_var");
                }
                let secret = oauth.client_secret.as_ref().or(secret_variable.as_ref());
                secret.map(Secret::expose)
            }
            OAuthSetting::Issuer => oauth.issuer.as_deref(),
            OAuthSetting::MetadataUrl => oauth.metadata_url.as_deref(),
            OAuthSetting::Resource => oauth.resource.as_deref(),
            OAuthSetting::RedirectUri => oauth.redirect_uri.as_deref(),
            OAuthSetting::Ignored => None,
        };
        Some(self.rendered(Field::OAuth, &format!("oauth.{field}"), text?))
    }

    pub(super) fn tool_approvals(&mut self) -> Option<Node<'static>> {
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

    /// Renders a text in the tool's variable syntax.
    pub(super) fn rendered(&mut self, field: Field, key: &str, text: &str) -> Node<'static> {
        let style = self.dialect.style_of(field);
        let pieces = parse(Style::Ours, text);
        if self.dialect.tool == Tool::VsCode
            && let Some(rendered) = self.with_inputs(&pieces, style)
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

    /// VS Code has no defaults for variables, but it has inputs with defaults, which it prompts for once.
    pub(super) fn with_inputs(&mut self, pieces: &[Piece], style: Style) -> Option<String> {
        let mut text = String::new();
        let mut inputs: Vec<(String, Node<'static>)> = Vec::new();
        let mut found = false;
        for piece in pieces {
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
            let mut known = self.shared.inputs.iter().chain(&inputs);
            match known.find(|(id, _)| id == name) {
                // An input has only one default.
                Some((_, other)) if *other != input => return None,
                Some(_) => {}
                None => inputs.push((name.clone(), input)),
            }
            found = true;
            text.extend(["${input:", name, "}"]);
        }
        self.shared.inputs.extend(inputs);
        found.then_some(text)
    }
}

/// The variable name, if the value is a single variable.
pub(super) fn only_variable(value: &Secret) -> Option<String> {
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

/// A reference in our own syntax.
fn variable_text(name: &str) -> Secret {
    let piece = Piece::Variable {
        name: name.to_owned(),
        default: None,
    };
    Secret::new(render(Style::Ours, &[piece]))
}

/// Whether an input of that name is imported as a variable of the same name.
fn is_input_name(name: &str) -> bool {
    is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

pub(super) fn filled(elements: Vec<Node<'static>>) -> Option<Node<'static>> {
    (!elements.is_empty()).then(|| Node::detached(elements.into_iter().collect::<Value<'_>>()))
}

pub(super) fn filled_table(members: Vec<(String, Node<'static>)>) -> Option<Node<'static>> {
    (!members.is_empty()).then(|| Node::table(members))
}
