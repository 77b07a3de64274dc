//! Converts composite values: commands, lists of names, headers, OAuth settings.

use super::super::dialect::{OAuthKey, OAuthSetting, Unit};
use super::super::variables::{Piece, Style, is_name, render};
use super::{Draft, EntryReader, at, member, text};
use crate::entry::Field;
use crate::tree::{Member, Node, Value};

impl EntryReader<'_, '_, '_> {
    pub(super) fn command_line(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
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
        draft.extend(Field::Args, at(node.span, args));
    }

    pub(super) fn command_table(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        for member in node.as_table().unwrap_or_default() {
            let (path, value) = (format!("{key}.{}", member.key), &member.value);
            match member.key.as_ref() {
                _ if matches!(value.value, Value::Null) => {}
                "path" => self.put_text(Field::Command, &path, value, draft),
                "args" => self.put_list(Field::Args, &path, value, draft),
                "env" => self.put_map(Field::Env, &path, value, draft),
                "timeout" => {
                    self.put_deadline(Field::ToolTimeout, &path, value, Unit::Seconds, draft);
                }
                _ => self
                    .reader
                    .unknown_key(member, ["path", "args", "env", "timeout"]),
            }
        }
    }

    pub(super) fn loose_env(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
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
                value: at(pair.value.span, value),
            });
        }
        self.put_map(Field::Env, key, &at(node.span, Value::Table(texts)), draft);
    }

    pub(super) fn names(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(elements) = node.as_array() else {
            // The check of a list reports the actual type.
            self.reader.texts(key, node);
            return;
        };
        let mut names = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = format!("{key}[{index}]");
            let is_table = element.as_table().is_some();
            if is_table && element.get("source").and_then(Node::as_str) == Some("remote") {
                let message =
                    format!("`{path}` is taken from a remote machine, which has no counterpart");
                let hint = "set the variable on this machine";
                self.reader
                    .warning("not-translated", element.span, message, hint);
            }
            let name = if is_table {
                element.get("name")
            } else {
                Some(element)
            };
            let Some(name) = name else {
                let message = format!("`{path}` needs a name");
                self.reader
                    .error("missing-key", element.span, message, "add name = \"…\"");
                continue;
            };
            names.extend(
                self.reader
                    .text(&path, name)
                    .map(|text_| text(text_, name.span)),
            );
        }
        draft.extend(Field::EnvVars, at(node.span, names.into_iter().collect()));
    }

    pub(super) fn headers_inside(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
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

    pub(super) fn env_headers(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let mut headers = Vec::new();
        for pair in self.reader.table(key, node).unwrap_or_default() {
            let path = format!("{key}.{}", pair.key);
            let Some(name) = self.reader.text(&path, &pair.value) else {
                continue;
            };
            if !is_name(&name) {
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
        draft.extend(Field::Headers, at(node.span, Value::Table(headers)));
    }

    pub(super) fn bearer_token(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(token) = self.translated(Field::Headers, key, node) else {
            return;
        };
        let value = format!("Bearer {}", token.as_str().unwrap_or_default());
        let header = member("Authorization", node.span, text(value, node.span));
        draft.drop_header("Authorization");
        draft.extend(Field::Headers, at(node.span, Value::Table(vec![header])));
    }

    pub(super) fn headers_helper(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let Some(line) = self.reader.text(key, node) else {
            return;
        };
        let expands = self.dialect.style_of(Field::HeadersHelper) != Style::Literal;
        let words = if needs_shell(&line, expands) {
            // The tool runs the line in a shell; we do so only if it uses shell syntax.
            Some(vec!["sh".to_owned(), "-c".to_owned(), line])
        } else {
            crate::words::split(&line)
        };
        let Some(words) = words else {
            let message = format!("`{key}` has an unclosed quote");
            self.reader
                .error("bad-value", node.span, message, "close the quote");
            return;
        };
        let words = words.into_iter().map(|word| text(word, node.span));
        let words: Vec<_> = words
            .filter_map(|word| self.translated(Field::HeadersHelper, key, &word))
            .collect();
        draft.put(
            Field::HeadersHelper,
            at(node.span, words.into_iter().collect()),
        );
    }

    pub(super) fn oauth(
        &mut self,
        key: &str,
        node: &Node<'_>,
        keys: &[OAuthKey],
        draft: &mut Draft,
    ) {
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

    pub(super) fn oauth_setting(
        &mut self,
        key: &str,
        node: &Node<'_>,
        setting: OAuthKey,
        draft: &mut Draft,
    ) {
        let value = match setting.ours {
            _ if matches!(node.value, Value::Null) => return,
            OAuthSetting::Ignored => return,
            OAuthSetting::CallbackPort => {
                let port = self.reader.port(key, node);
                port.map(|port| at(node.span, i64::from(port).into()))
            }
            OAuthSetting::Scopes | OAuthSetting::ScopeText if node.as_str().is_none() => {
                let texts = self.reader.texts(key, node);
                texts.map(|texts| {
                    at(
                        node.span,
                        texts
                            .into_iter()
                            .map(|scope| text(scope, node.span))
                            .collect(),
                    )
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
}

/// Whether a line uses shell syntax. The tool itself may expand `${VAR}` first.
fn needs_shell(line: &str, expands: bool) -> bool {
    let mut quote = None;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            (_, '`') => return true,
            (_, '$')
                if characters
                    .peek()
                    .is_some_and(|next| !expands || *next != '{') =>
            {
                return true;
            }
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '~' | '#' | '\n') => {
                return true;
            }
            _ => {}
        }
    }
    false
}
