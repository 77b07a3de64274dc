//! Reads typed values from the tree, and reports mismatches.

use std::sync::Arc;
use std::time::Duration;

use super::keys::{self, nearest};
use crate::diagnostic::Diagnostic;
use crate::format::Format;
use crate::mask;
use crate::secret::Secret;
use crate::source::{Origin, SourceFile};
use crate::tree::{Member, Node, Span, Value};

/// Maximum deadline (about 31 years), so that sums of deadlines never overflow.
const LONGEST_SECONDS: f64 = 1e9;
/// Smallest usable context window, in tokens.
pub(crate) const SMALLEST_WINDOW: u64 = 1_024;

/// Reads values of one file. A method that returns `None` has reported the reason.
pub(crate) struct Reader<'f, 'd> {
    file: &'f Arc<SourceFile>,
    diagnostics: &'d mut Vec<Diagnostic>,
    server: Option<String>,
    /// Errors since the last [`Reader::enter`].
    pub(crate) faults: Vec<String>,
}

impl<'f, 'd> Reader<'f, 'd> {
    pub(crate) fn new(file: &'f Arc<SourceFile>, diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self {
            file,
            diagnostics,
            server: None,
            faults: Vec::new(),
        }
    }

    /// Attributes further findings to this server.
    pub(crate) fn enter(&mut self, server: &str) {
        self.server = Some(server.to_owned());
        self.faults.clear();
    }

    /// Attributes further findings to the file.
    pub(crate) fn leave(&mut self) {
        self.server = None;
    }

    pub(crate) fn file(&self) -> &'f Arc<SourceFile> {
        self.file
    }

    pub(crate) fn origin(&self, span: Span) -> Origin {
        Origin {
            file: Arc::clone(self.file),
            span,
        }
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let message = message.into();
        self.faults.push(message.clone());
        let diagnostic = Diagnostic::error(code, self.origin(span), message).with_hint(hint);
        self.push(diagnostic);
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let diagnostic = Diagnostic::warning(code, self.origin(span), message).with_hint(hint);
        self.push(diagnostic);
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(match &self.server {
            Some(server) => diagnostic.about(server),
            None => diagnostic,
        });
    }

    fn mismatch(&mut self, key: &str, node: &Node<'_>, expected: &str, hint: impl Into<String>) {
        let message = format!("`{key}` must be {expected}, but is {}", node.kind());
        self.error("wrong-type", node.span, message, hint);
    }

    /// The hint "write this", in the syntax of the file.
    fn assignment(&self, key: &str, value: &str) -> String {
        let key = key.rsplit('.').next().unwrap_or(key);
        format!("write {}", self.member(key, value))
    }

    fn member(&self, key: &str, value: &str) -> String {
        match Format::of_path(self.file.path()) {
            Some(Format::Json) => format!("\"{key}\": {value}"),
            Some(Format::Yaml) => format!("{key}: {value}"),
            _ => format!("{key} = {value}"),
        }
    }

    pub(crate) fn text(&mut self, key: &str, node: &Node<'_>) -> Option<String> {
        match &node.value {
            Value::String(text) if text.contains('\0') => {
                self.error(
                    "bad-value",
                    node.span,
                    format!("`{key}` contains a NUL character"),
                    "remove it",
                );
                None
            }
            Value::String(text) => Some(text.as_ref().to_owned()),
            Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {
                self.mismatch(key, node, "a string", "put it in quotes");
                None
            }
            _ => {
                self.mismatch(key, node, "a string", self.assignment(key, "\"…\""));
                None
            }
        }
    }

    pub(crate) fn secret(&mut self, key: &str, node: &Node<'_>) -> Option<Secret> {
        self.text(key, node).map(Secret::new)
    }

    pub(crate) fn boolean(&mut self, key: &str, node: &Node<'_>) -> Option<bool> {
        let value = node.as_bool();
        if value.is_none() {
            self.mismatch(
                key,
                node,
                "true or false",
                "write true or false without quotes",
            );
        }
        value
    }

    pub(crate) fn texts(&mut self, key: &str, node: &Node<'_>) -> Option<Vec<String>> {
        let Some(elements) = node.as_array() else {
            let hint = match node.as_str() {
                Some(text) if !mask::hides_in_line(text) => {
                    format!("write [\"{}\"]", text.escape_debug())
                }
                _ => self.assignment(key, "[\"…\"]"),
            };
            self.mismatch(key, node, "a list of strings", hint);
            return None;
        };
        let mut texts = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match &element.value {
                Value::String(text) if !text.contains('\0') => texts.push(text.as_ref().to_owned()),
                _ => texts.extend(self.text(&format!("{key}[{index}]"), element)),
            }
        }
        Some(texts)
    }

    /// A table of strings. `fault` returns what is wrong with a name and its value, with a hint.
    pub(crate) fn secret_map(
        &mut self,
        key: &str,
        node: &Node<'_>,
        fault: impl Fn(&str, &str) -> Option<(String, &'static str)>,
    ) -> Option<Vec<(String, Secret)>> {
        let Some(members) = node.as_table() else {
            self.mismatch(
                key,
                node,
                "a table of strings",
                self.assignment(key, &format!("{{ {} }}", self.member("NAME", "\"value\""))),
            );
            return None;
        };
        let mut pairs = Vec::with_capacity(members.len());
        for Member {
            key: name,
            key_span,
            value,
        } in members
        {
            if let Some((message, hint)) = fault(name, value.as_str().unwrap_or_default()) {
                self.error("bad-value", *key_span, message, hint);
            }
            match &value.value {
                Value::String(text) if !text.contains('\0') => {
                    pairs.push((name.as_ref().to_owned(), Secret::new(text.as_ref())));
                }
                _ => {
                    let secret = self.secret(&format!("{key}.{name}"), value);
                    pairs.extend(secret.map(|secret| (name.as_ref().to_owned(), secret)));
                }
            }
        }
        Some(pairs)
    }

    pub(crate) fn seconds(&mut self, key: &str, node: &Node<'_>) -> Option<Duration> {
        self.duration(key, node, 1.0, "seconds")
    }

    pub(crate) fn milliseconds(&mut self, key: &str, node: &Node<'_>) -> Option<Duration> {
        self.duration(key, node, 1e-3, "milliseconds")
    }

    fn duration(
        &mut self,
        key: &str,
        node: &Node<'_>,
        unit: f64,
        unit_name: &str,
    ) -> Option<Duration> {
        let number = match node.value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "beyond 2^53 the value is refused as too long anyway"
            )]
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
            _ => {
                self.mismatch(
                    key,
                    node,
                    &format!("a number of {unit_name}"),
                    "write a number without quotes",
                );
                return None;
            }
        };
        let seconds = number * unit;
        if seconds > 0.0 && seconds <= LONGEST_SECONDS {
            return Some(Duration::from_secs_f64(seconds));
        }
        let message = format!(
            "`{key}` must be above zero and at most {LONGEST_SECONDS:.0} seconds, but is {number} {unit_name}"
        );
        self.error(
            "bad-value",
            node.span,
            message,
            "write a positive number, such as 60",
        );
        None
    }

    pub(crate) fn count(&mut self, key: &str, node: &Node<'_>) -> Option<u64> {
        let count = match node.value {
            Value::Integer(value) => u64::try_from(value).ok().filter(|count| *count > 0),
            _ => None,
        };
        if count.is_none() {
            self.error(
                "bad-value",
                node.span,
                format!("`{key}` must be a whole number above zero"),
                "write a number, such as 5",
            );
        }
        count
    }

    /// A multiplier for repeated use; at least 1, so that it never shrinks a value.
    pub(crate) fn factor(&mut self, key: &str, node: &Node<'_>) -> Option<f64> {
        let factor = match node.value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that large is refused anyway"
            )]
            Value::Integer(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            _ => None,
        };
        let factor = factor.filter(|factor| (1.0..=1_000.0).contains(factor));
        if factor.is_none() {
            self.error(
                "bad-value",
                node.span,
                format!("`{key}` must be a number from 1 to 1000"),
                "write a number, such as 2",
            );
        }
        factor
    }

    /// A context window in tokens, or `auto`.
    pub(crate) fn window(&mut self, key: &str, node: &Node<'_>) -> Option<u64> {
        let tokens = match node.value {
            Value::Integer(value) => u64::try_from(value).ok(),
            _ => None,
        };
        let tokens = tokens.filter(|tokens| *tokens >= SMALLEST_WINDOW);
        if tokens.is_none() {
            self.error(
                "bad-value",
                node.span,
                format!(
                    "`{key}` must be \"auto\" or a whole number of tokens from {SMALLEST_WINDOW} on"
                ),
                "write a number, such as 32768, or \"auto\"",
            );
        }
        tokens
    }

    pub(crate) fn port(&mut self, key: &str, node: &Node<'_>) -> Option<u16> {
        let port = match node.value {
            Value::Integer(value) => u16::try_from(value).ok().filter(|port| *port > 0),
            _ => None,
        };
        if port.is_none() {
            self.error(
                "bad-value",
                node.span,
                format!("`{key}` must be a port from 1 to 65535"),
                "write a port number",
            );
        }
        port
    }

    /// One of a few words.
    pub(crate) fn word<T>(
        &mut self,
        key: &str,
        node: &Node<'_>,
        words: &[&'static str],
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key, node)?;
        let value = from_name(&text);
        if value.is_none() {
            let hint = match nearest(&text, words.iter().copied()) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None => format!("write one of {}", words.join(", ")),
            };
            self.error(
                "bad-value",
                node.span,
                format!("`{key}` cannot be \"{text}\""),
                hint,
            );
        }
        value
    }

    /// A command: a text that is split into words like in a shell, or a list of program and arguments.
    pub(crate) fn command(&mut self, key: &str, node: &Node<'_>) -> Option<Vec<String>> {
        if node.as_array().is_some() {
            return self.texts(key, node);
        }
        let text = self.text(key, node)?;
        let words = crate::words::split(&text);
        if words.is_none() {
            self.error(
                "bad-value",
                node.span,
                format!("`{key}` has an unclosed quote"),
                "close the quote, or write a list",
            );
        }
        words
    }

    pub(crate) fn table<'n, 'a>(
        &mut self,
        key: &str,
        node: &'n Node<'a>,
    ) -> Option<&'n [Member<'a>]> {
        let table = node.as_table();
        if table.is_none() {
            self.mismatch(key, node, "a table", self.assignment(key, "{ … }"));
        }
        table
    }

    /// Warns of an unknown key, and suggests the most similar known one.
    pub(crate) fn unknown_key<'k>(
        &mut self,
        member: &Member<'_>,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) {
        let key = &member.key;
        let near = nearest(key, known.clone());
        let hint = match near {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(
                "known keys: {}",
                known.into_iter().collect::<Vec<_>>().join(", ")
            ),
        };
        self.warning(
            "unknown-key",
            member.key_span,
            // Masked: after a missing quote, the rest of a line can end up as a key.
            format!("unknown key `{}`", mask::name(key)),
            hint,
        );
    }

    /// Converts a key to our own spelling.
    pub(crate) fn normal(key: &str) -> std::borrow::Cow<'_, str> {
        if key
            .bytes()
            .any(|byte| byte.is_ascii_uppercase() || byte == b'-')
        {
            keys::snake_case(key).into()
        } else {
            key.into()
        }
    }
}
