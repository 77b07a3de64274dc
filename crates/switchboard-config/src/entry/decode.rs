//! Decodes a syntax tree into a [`ServerEntry`].

use super::keys::{self, Field, Key};
use super::validate::{header_fault, validate, variable_fault};
use super::{
    Decoded, LimitsEntry, OAuthEntry, Permission, Reader, RootsEntry, Sandbox, SandboxMode,
    ServerEntry, Sharing, ToolEntry, Transport,
};
use crate::tree::{Member, Node, Span};

/// Decodes one server table. Errors are reported, and mark the entry as faulty.
pub(crate) fn decode(
    name: &str,
    name_span: Span,
    node: &Node<'_>,
    reader: &mut Reader<'_, '_>,
) -> Decoded {
    reader.enter(name);
    let mut entry = ServerEntry::default();
    let mut spans: Vec<(Field, Span)> = Vec::with_capacity(6);
    if let Some(members) = reader.table(name, node) {
        for member in members {
            if let Some(field) = member_into(&mut entry, member, reader) {
                if let Some((_, earlier)) = spans.iter().find(|(other, _)| *other == field) {
                    let line = reader.file().position(earlier.start).line;
                    let message = format!("`{}` repeats the key on line {line}", member.key);
                    reader.error(
                        "duplicate-key",
                        member.key_span,
                        message,
                        "keep one of the two",
                    );
                }
                spans.push((field, member.value.span));
            }
        }
        validate(name, &entry, &spans, name_span, reader);
    }
    let faults = std::mem::take(&mut reader.faults);
    reader.leave();
    Decoded {
        entry,
        spans,
        faults,
    }
}

/// Decodes one member; returns its field if the key is known.
fn member_into(
    entry: &mut ServerEntry,
    member: &Member<'_>,
    reader: &mut Reader<'_, '_>,
) -> Option<Field> {
    let node = &member.value;
    let normal = Reader::normal(&member.key);
    let key = normal.as_ref();
    let field = match key {
        // Common alternative spellings.
        "type" => Field::Transport,
        "program" => Field::Command,
        "environment" => Field::Env,
        "disabled" => {
            entry.enabled = reader.boolean(key, node).map(|disabled| !disabled);
            return Some(Field::Enabled);
        }
        "timeout" => {
            entry.tool_timeout = reader.milliseconds(key, node);
            return Some(Field::ToolTimeout);
        }
        // `name` is part of the list form; see `document`.
        "name" | "description" => return None,
        "auto_approve" | "always_allow" | "trust" => {
            reader.warning(
                "approval-ignored",
                member.key_span,
                format!(
                    "`{}` is ignored: an entry cannot approve its own calls",
                    member.key
                ),
                "use [[permissions.rules]] in your user configuration",
            );
            return None;
        }
        _ => {
            if let Some(field) = Field::from_key(key) {
                field
            } else {
                reader.unknown_key(member, keys::KEYS.iter().map(|(_, key)| key.name));
                return None;
            }
        }
    };
    let key = member.key.as_ref();
    match field {
        Field::Transport => {
            entry.transport = reader.word(key, node, keys::TRANSPORTS, Transport::from_name);
        }
        Field::Command => entry.command = reader.text(key, node),
        Field::Args => entry.args = reader.texts(key, node).unwrap_or_default(),
        Field::Env => {
            entry.env = reader
                .secret_map(key, node, variable_fault)
                .unwrap_or_default();
        }
        Field::EnvVars => entry.env_vars = reader.texts(key, node).unwrap_or_default(),
        Field::InheritEnv => entry.inherit_env = reader.boolean(key, node),
        Field::Cwd => entry.cwd = reader.text(key, node),
        Field::Url => entry.url = reader.text(key, node),
        Field::Headers => {
            entry.headers = reader
                .secret_map(key, node, header_fault)
                .unwrap_or_default();
        }
        Field::HeadersHelper => {
            entry.headers_helper = reader.command(key, node).unwrap_or_default();
        }
        Field::BearerTokenEnvVar => entry.bearer_token_env_var = reader.text(key, node),
        Field::CaFile => entry.ca_file = reader.text(key, node),
        Field::OAuth => entry.oauth = oauth(key, node, reader),
        Field::Enabled => entry.enabled = reader.boolean(key, node),
        Field::Required => entry.required = reader.boolean(key, node),
        Field::StartupTimeout => entry.startup_timeout = reader.seconds(key, node),
        Field::ToolTimeout => entry.tool_timeout = reader.seconds(key, node),
        Field::ToolMax => entry.tool_max = reader.seconds(key, node),
        Field::EnabledTools => entry.enabled_tools = reader.texts(key, node).unwrap_or_default(),
        Field::DisabledTools => entry.disabled_tools = reader.texts(key, node).unwrap_or_default(),
        Field::Tools => entry.tools = tools(key, node, reader),
        Field::TrustAnnotations => entry.trust_annotations = reader.boolean(key, node),
        Field::Pin => entry.pin = reader.boolean(key, node),
        Field::Sandbox => entry.sandbox = sandbox(key, node, reader),
        Field::Shared => entry.shared = sharing(key, node, reader),
        Field::IdleShutdown => entry.idle_shutdown = reader.seconds(key, node),
        Field::Roots => entry.roots = roots(key, node, reader),
        Field::Limits => entry.limits = limits(key, node, reader),
    }
    Some(field)
}

fn tools(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<(String, ToolEntry)> {
    let Some(members) = reader.table(key, node) else {
        return Vec::new();
    };
    members
        .iter()
        .filter_map(|member| {
            let path = format!("{key}.{}", member.key);
            Some((
                member.key.to_string(),
                tool(&path, reader.table(&path, &member.value)?, reader),
            ))
        })
        .collect()
}

fn tool(path: &str, members: &[Member<'_>], reader: &mut Reader<'_, '_>) -> ToolEntry {
    let mut tool = ToolEntry::default();
    for member in members {
        let (node, path) = (&member.value, format!("{path}.{}", member.key));
        match Reader::normal(&member.key).as_ref() {
            "timeout_sec" => tool.timeout = reader.seconds(&path, node),
            "permission" => {
                tool.permission =
                    reader.word(&path, node, keys::PERMISSIONS, Permission::from_name);
            }
            "hidden" => tool.hidden = reader.boolean(&path, node),
            _ => reader.unknown_key(member, names(keys::TOOL_KEYS)),
        }
    }
    tool
}

fn limits(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<LimitsEntry> {
    let mut limits = LimitsEntry::default();
    for member in reader.table(key, node)? {
        let (node, path) = (&member.value, format!("{key}.{}", member.key));
        match Reader::normal(&member.key).as_ref() {
            "concurrent_calls" => limits.concurrent_calls = reader.count(&path, node),
            "queued_calls" => limits.queued_calls = reader.count(&path, node),
            "failures" => limits.failures = reader.count(&path, node),
            "pause_sec" => limits.pause = reader.seconds(&path, node),
            _ => reader.unknown_key(member, names(keys::LIMIT_KEYS)),
        }
    }
    Some(limits)
}

fn sandbox(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<Sandbox> {
    if node.as_table().is_none() {
        let mode = reader.word(key, node, keys::SANDBOXES, SandboxMode::from_name)?;
        return Some(Sandbox {
            mode,
            network: None,
        });
    }
    let mut mode = None;
    let mut network = None;
    for member in reader.table(key, node)? {
        let path = format!("{key}.{}", member.key);
        match member.key.as_ref() {
            "mode" => {
                mode = reader.word(
                    &path,
                    &member.value,
                    keys::SANDBOXES,
                    SandboxMode::from_name,
                );
            }
            "network" => network = reader.boolean(&path, &member.value),
            _ => reader.unknown_key(member, names(keys::SANDBOX_KEYS)),
        }
    }
    if mode.is_none() && reader.faults.is_empty() {
        reader.error(
            "missing-key",
            node.span,
            format!("`{key}` needs a mode"),
            "write mode = \"workspace\"",
        );
    }
    Some(Sandbox {
        mode: mode?,
        network,
    })
}

fn sharing(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<Sharing> {
    // Before there were words, this was a flag.
    match node.as_bool() {
        Some(true) => Some(Sharing::Always),
        Some(false) => Some(Sharing::Never),
        None => reader.word(key, node, keys::SHARING, Sharing::from_name),
    }
}

fn roots(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<RootsEntry> {
    if let Some(text) = node.as_str() {
        // A single folder instead of a list is a likely mistake; suggesting a keyword would not help.
        if text.contains(['/', '\\', '$', '~']) || text.starts_with('.') {
            reader.error(
                "bad-value",
                node.span,
                format!("`{key}` is one folder, and must be a list of folders"),
                "put it in brackets",
            );
            return None;
        }
        return reader.word(key, node, keys::ROOTS, RootsEntry::from_name);
    }
    let folders = reader.texts(key, node)?;
    if folders.iter().any(|folder| folder.trim().is_empty()) {
        reader.error(
            "bad-value",
            node.span,
            format!("`{key}` contains an empty folder name"),
            "remove it, or write \"workspace\" for the folder of the project",
        );
        return None;
    }
    Some(if folders.is_empty() {
        RootsEntry::None
    } else {
        RootsEntry::Folders(folders)
    })
}

fn oauth(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<OAuthEntry> {
    // Some tools write `oauth: false` for a server without login.
    if node.as_bool() == Some(false) {
        return None;
    }
    let mut oauth = OAuthEntry::default();
    for member in reader.table(key, node)? {
        let (node, path) = (&member.value, format!("{key}.{}", member.key));
        match Reader::normal(&member.key).as_ref() {
            "client_id" => oauth.client_id = reader.text(&path, node),
            "client_secret" => oauth.client_secret = reader.secret(&path, node),
            "client_secret_env_var" => oauth.client_secret_env_var = reader.text(&path, node),
            // OAuth itself writes scopes as one space-separated text.
            "scopes" | "scope" if node.as_str().is_some() => {
                let text = reader.text(&path, node).unwrap_or_default();
                oauth.scopes = text.split_whitespace().map(String::from).collect();
            }
            "scopes" | "scope" => oauth.scopes = reader.texts(&path, node).unwrap_or_default(),
            "issuer" => oauth.issuer = reader.text(&path, node),
            "metadata_url" | "auth_server_metadata_url" => {
                oauth.metadata_url = reader.text(&path, node);
            }
            "resource" => oauth.resource = reader.text(&path, node),
            "callback_port" => oauth.callback_port = reader.port(&path, node),
            "redirect_uri" => oauth.redirect_uri = reader.text(&path, node),
            "grant_type" => {
                let known = |word: &str| keys::GRANTS.contains(&word).then(|| word.to_owned());
                oauth.grant_type = reader.word(&path, node, keys::GRANTS, known);
            }
            "private_key_file" => oauth.private_key_file = reader.text(&path, node),
            "private_key_env_var" => oauth.private_key_env_var = reader.text(&path, node),
            "key_id" => oauth.key_id = reader.text(&path, node),
            "client_metadata_url" => oauth.client_metadata_url = reader.text(&path, node),
            "idp_token_endpoint" => oauth.idp_token_endpoint = reader.text(&path, node),
            "idp_client_id" => oauth.idp_client_id = reader.text(&path, node),
            "idp_client_secret_env_var" => {
                oauth.idp_client_secret_env_var = reader.text(&path, node);
            }
            "assertion_file" => oauth.assertion_file = reader.text(&path, node),
            "assertion_env_var" => oauth.assertion_env_var = reader.text(&path, node),
            "dpop" => oauth.dpop = reader.boolean(&path, node),
            _ => reader.unknown_key(member, names(keys::OAUTH_KEYS)),
        }
    }
    Some(oauth)
}

fn names(keys: &'static [Key]) -> impl Iterator<Item = &'static str> + Clone {
    keys.iter().map(|key| key.name)
}
