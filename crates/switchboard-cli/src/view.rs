//! Renders configuration for display: secrets masked, invisible characters escaped, origins attached.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use switchboard_config::sort;

use serde_json::{Map, Number, Value as Json, json};
use switchboard_config::entry::{OAuthEntry, ServerEntry, Transport};
use switchboard_config::mask;
use switchboard_config::resolve::{Config, Server, ShadowReason, Shadowed};
use switchboard_config::scope::Scope;
use switchboard_config::secret::Secret;
use switchboard_config::source::Origin;
use switchboard_config::text::visible;
use switchboard_config::tree::{Node, Value};

/// Masks every secret of an entry. All output of entries goes through this function.
pub(crate) fn masked(entry: &ServerEntry) -> ServerEntry {
    let pairs = |pairs: &[(String, Secret)]| {
        pairs
            .iter()
            .map(|(name, secret)| (mask::name(name).into_owned(), Secret::new(secret.shown())))
            .collect()
    };
    let address = |text: &Option<String>| text.as_deref().map(|url| mask::url(url).into_owned());
    let oauth = |oauth: &OAuthEntry| OAuthEntry {
        client_secret: oauth
            .client_secret
            .as_ref()
            .map(|secret| Secret::new(secret.shown())),
        issuer: address(&oauth.issuer),
        metadata_url: address(&oauth.metadata_url),
        resource: address(&oauth.resource),
        redirect_uri: address(&oauth.redirect_uri),
        ..oauth.clone()
    };
    ServerEntry {
        args: mask::arguments(&entry.args),
        env: pairs(&entry.env),
        url: address(&entry.url),
        headers: pairs(&entry.headers),
        headers_helper: mask::arguments(&entry.headers_helper),
        oauth: entry.oauth.as_ref().map(oauth),
        ..entry.clone()
    }
}

/// An origin for people, as `file:line`.
pub(crate) fn place(origin: &Origin, home: &Path) -> String {
    let position = origin.position();
    format!("{}:{}", path(origin.path(), home), position.line)
}

/// A path for people, with the home folder as `~`.
pub(crate) fn path(path: &Path, home: &Path) -> String {
    let shown = match path.strip_prefix(home) {
        Ok(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    };
    visible(&shown).into_owned()
}

/// An origin as JSON, for scripts.
pub(crate) fn place_json(origin: &Origin) -> Json {
    let position = origin.position();
    json!({
        "scope": origin.scope().name(),
        "file": origin.path().display().to_string(),
        "line": position.line,
        "column": position.column,
    })
}

/// The same keys for values without a file: defaults and environment variables.
pub(crate) fn no_place_json(scope: &str) -> Json {
    json!({
        "scope": scope,
        "file": null,
        "line": null,
        "column": null,
    })
}

/// The same keys for an origin recorded as `file:line:column`.
pub(crate) fn text_place_json(text: &str) -> Json {
    let (rest, last) = number_at_end(text);
    let (file, before) = number_at_end(rest);
    let (line, column) = match (before, last) {
        (Some(line), column) => (Some(line), column),
        (None, line) => (line, None),
    };
    json!({
        "scope": null,
        "file": file,
        "line": line,
        "column": column,
    })
}

fn number_at_end(text: &str) -> (&str, Option<u64>) {
    let split = text.rsplit_once(':');
    let number = split.and_then(|(rest, number)| Some((rest, number.parse().ok()?)));
    number.map_or((text, None), |(rest, number)| (rest, Some(number)))
}

/// A server as JSON: every stated value with its origin, and the entries it shadows.
pub(crate) fn server_json(server: &Server, shadows: &Shadows<'_>) -> Json {
    let shown = masked(&server.entry);
    let node = shown.to_node();
    let values: Map<String, Json> = stated(server, &node)
        .map(|(name, value, origin)| {
            let place = origin.position();
            let value = json!({
                "value": node_json(value),
                "line": place.line,
                "column": place.column,
            });
            (name.to_owned(), value)
        })
        .collect();
    json!({
        "name": server.name,
        "scope": server.scope().name(),
        "transport": server.transport().map(Transport::name),
        "state": server.status.word(),
        "reason": server.status.reason(),
        "source": place_json(&server.origin),
        "values": values,
        "shadows": shadows.by(server).iter().map(|lost| shadowed_json(lost)).collect::<Vec<_>>(),
    })
}

/// A shadowed entry as JSON.
pub(crate) fn shadowed_json(shadowed: &Shadowed) -> Json {
    json!({
        "name": shadowed.name,
        "source": place_json(&shadowed.origin),
        "reason": shadowed.reason.to_string(),
    })
}

/// The values that a server's entry states, in the order of the keys.
pub(crate) fn stated<'s>(
    server: &'s Server,
    node: &'s Node<'s>,
) -> impl Iterator<Item = (&'static str, &'s Node<'s>, Origin)> {
    let mut fields: Vec<_> = server.fields().collect();
    sort::by_key(&mut fields, |(field, _)| *field);
    fields.dedup_by_key(|(field, _)| *field);
    fields.into_iter().filter_map(move |(field, origin)| {
        node.get(field.name())
            .map(|value| (field.name(), value, origin))
    })
}

/// Shadowed entries by the server that shadows them.
#[derive(Debug)]
pub(crate) struct Shadows<'c> {
    by_server: HashMap<&'c str, Vec<&'c Shadowed>>,
    servers: HashSet<&'c str>,
}

impl<'c> Shadows<'c> {
    pub(crate) fn of(config: &'c Config) -> Self {
        let mut by_server: HashMap<&str, Vec<&Shadowed>> = HashMap::new();
        for lost in &config.shadowed {
            let hidden_by = match &lost.reason {
                ShadowReason::SameEndpoint { name, .. } => name,
                _ => &lost.name,
            };
            by_server.entry(hidden_by).or_default().push(lost);
        }
        let servers = config.servers.iter().map(|server| server.name.as_str());
        Self {
            by_server,
            servers: servers.collect(),
        }
    }

    /// The entries that a server shadows.
    pub(crate) fn by(&self, server: &Server) -> &[&'c Shadowed] {
        self.by_server
            .get(server.name.as_str())
            .map_or(&[], Vec::as_slice)
    }

    /// Entries shadowed by an entry that is shadowed itself.
    pub(crate) fn indirect(&self) -> Vec<&'c Shadowed> {
        let hidden = self
            .by_server
            .iter()
            .filter(|(name, _)| !self.servers.contains(*name));
        let mut indirect: Vec<_> = hidden.flat_map(|(_, lost)| lost.iter().copied()).collect();
        sort::by(&mut indirect, |one, other| one.name.cmp(&other.name));
        indirect
    }
}

pub(crate) fn entry_json(entry: &ServerEntry) -> Json {
    node_json(&masked(entry).to_node())
}

/// A value as JSON. Numbers that JSON cannot represent become strings.
pub(crate) fn node_json(node: &Node<'_>) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Integer(value) => Json::from(*value),
        Value::Float(value) => {
            Number::from_f64(*value).map_or_else(|| Json::from(value.to_string()), Json::Number)
        }
        Value::String(text) => Json::from(text.as_ref()),
        Value::Array(elements) => elements.iter().map(node_json).collect(),
        Value::Table(members) => members
            .iter()
            .map(|member| (member.key.to_string(), node_json(&member.value)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// A value on one line in TOML syntax, sanitized.
pub(crate) fn inline(node: &Node<'_>) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(inline).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Table(members) if members.is_empty() => "{}".to_owned(),
        Value::Table(members) => {
            let member = |key: &str, value: &Node<'_>| format!("{} = {}", bare(key), inline(value));
            let members: Vec<_> = members
                .iter()
                .map(|each| member(&each.key, &each.value))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", visible(&escaped))
}

fn bare(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !key.is_empty() && key.bytes().all(plain) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// An entry in one line: its URL or its command line, masked.
pub(crate) fn target(entry: &ServerEntry) -> String {
    let entry = masked(entry);
    let text = match (&entry.url, &entry.command) {
        (Some(url), _) => url.clone(),
        (None, Some(command)) => {
            let words = std::iter::once(command).chain(&entry.args);
            switchboard_config::words::join(words)
        }
        (None, None) => String::new(),
    };
    visible(&text).into_owned()
}

/// Why commands cannot edit files of a scope; `None` if they can.
pub(crate) fn why_read_only(scope: Scope) -> Option<&'static str> {
    match scope {
        Scope::Enterprise => Some("the machine's administrator wrote it"),
        Scope::Plugin => Some("it is part of an installed plugin"),
        Scope::Cloud => Some("it is fetched from your provider"),
        Scope::Dynamic => Some("it was added at run time"),
        Scope::Local | Scope::Project | Scope::User => None,
    }
}
