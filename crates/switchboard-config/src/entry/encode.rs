//! Encodes a [`ServerEntry`] as a tree, with our own spelling and order of keys.

use std::time::Duration;

use super::keys::Field;
use super::{LimitsEntry, OAuthEntry, RootsEntry, Sandbox, ServerEntry, Sharing, ToolEntry};
use crate::secret::Secret;
use crate::tree::{Node, Value};

impl ServerEntry {
    /// Encodes the entry as a table, without absent fields.
    pub fn to_node(&self) -> Node<'_> {
        let mut table = Table::default();
        table.word(Field::Transport, self.transport.map(super::Transport::name));
        table.word(Field::Command, self.command.as_deref());
        table.list(Field::Args, &self.args);
        table.map(Field::Env, &self.env);
        table.list(Field::EnvVars, &self.env_vars);
        table.flag(Field::InheritEnv, self.inherit_env);
        table.word(Field::Cwd, self.cwd.as_deref());
        table.word(Field::Url, self.url.as_deref());
        table.map(Field::Headers, &self.headers);
        table.list(Field::HeadersHelper, &self.headers_helper);
        table.word(
            Field::BearerTokenEnvVar,
            self.bearer_token_env_var.as_deref(),
        );
        table.node(Field::OAuth, self.oauth.as_ref().map(oauth));
        table.word(Field::CaFile, self.ca_file.as_deref());
        table.flag(Field::Enabled, self.enabled);
        table.flag(Field::Required, self.required);
        table.seconds(Field::StartupTimeout, self.startup_timeout);
        table.seconds(Field::ToolTimeout, self.tool_timeout);
        table.seconds(Field::ToolMax, self.tool_max);
        table.list(Field::EnabledTools, &self.enabled_tools);
        table.list(Field::DisabledTools, &self.disabled_tools);
        let tools = || {
            Node::table(
                self.tools
                    .iter()
                    .map(|(name, settings)| (name.as_str(), tool(settings))),
            )
        };
        table.node(Field::Tools, (!self.tools.is_empty()).then(tools));
        table.flag(Field::TrustAnnotations, self.trust_annotations);
        table.flag(Field::Pin, self.pin);
        table.node(Field::Sandbox, self.sandbox.map(sandbox));
        table.word(Field::Shared, self.shared.map(Sharing::name));
        table.seconds(Field::IdleShutdown, self.idle_shutdown);
        table.node(Field::Roots, self.roots.as_ref().map(roots));
        table.node(Field::Limits, self.limits.map(limits));
        Node::table(table.0)
    }
}

/// Seconds, without a fraction if whole.
pub(crate) fn seconds(duration: Duration) -> Node<'static> {
    match (duration.subsec_nanos(), i64::try_from(duration.as_secs())) {
        (0, Ok(whole)) => Node::detached(whole),
        _ => Node::detached(duration.as_secs_f64()),
    }
}

#[derive(Default)]
struct Table<'a>(Vec<(&'a str, Node<'a>)>);

impl<'a> Table<'a> {
    fn node(&mut self, field: Field, node: Option<Node<'a>>) {
        self.0.extend(node.map(|node| (field.name(), node)));
    }

    fn word(&mut self, field: Field, word: Option<&'a str>) {
        self.node(field, word.map(Node::detached));
    }

    fn flag(&mut self, field: Field, flag: Option<bool>) {
        self.node(field, flag.map(Node::detached));
    }

    fn seconds(&mut self, field: Field, duration: Option<Duration>) {
        self.node(field, duration.map(seconds));
    }

    fn list(&mut self, field: Field, texts: &'a [String]) {
        self.node(field, (!texts.is_empty()).then(|| list(texts)));
    }

    fn map(&mut self, field: Field, pairs: &'a [(String, Secret)]) {
        let table = || {
            Node::table(
                pairs
                    .iter()
                    .map(|(name, value)| (name.as_str(), Node::detached(value.expose()))),
            )
        };
        self.node(field, (!pairs.is_empty()).then(table));
    }
}

fn list(texts: &[String]) -> Node<'_> {
    Node::detached(
        texts
            .iter()
            .map(|text| Node::detached(text.as_str()))
            .collect::<Value<'_>>(),
    )
}

fn tool(tool: &ToolEntry) -> Node<'_> {
    let members = [
        ("timeout_sec", tool.timeout.map(seconds)),
        (
            "permission",
            tool.permission
                .map(|permission| Node::detached(permission.name())),
        ),
        ("hidden", tool.hidden.map(Node::detached)),
    ];
    stated(members)
}

fn sandbox(sandbox: Sandbox) -> Node<'static> {
    let mode = Node::detached(sandbox.mode.name());
    match sandbox.network {
        None => mode,
        Some(network) => Node::table([("mode", mode), ("network", Node::detached(network))]),
    }
}

fn limits(limits: LimitsEntry) -> Node<'static> {
    let count = |count: u64| Node::detached(i64::try_from(count).unwrap_or(i64::MAX));
    stated([
        ("concurrent_calls", limits.concurrent_calls.map(count)),
        ("queued_calls", limits.queued_calls.map(count)),
        ("failures", limits.failures.map(count)),
        ("pause_sec", limits.pause.map(seconds)),
    ])
}

fn roots(roots: &RootsEntry) -> Node<'_> {
    match roots {
        RootsEntry::Workspace => Node::detached("workspace"),
        RootsEntry::None => Node::detached("none"),
        RootsEntry::Folders(folders) => list(folders),
    }
}

fn oauth(oauth: &OAuthEntry) -> Node<'_> {
    stated([
        ("client_id", text(oauth.client_id.as_deref())),
        (
            "client_secret",
            oauth
                .client_secret
                .as_ref()
                .map(|secret| Node::detached(secret.expose())),
        ),
        (
            "client_secret_env_var",
            text(oauth.client_secret_env_var.as_deref()),
        ),
        (
            "scopes",
            (!oauth.scopes.is_empty()).then(|| list(&oauth.scopes)),
        ),
        ("issuer", text(oauth.issuer.as_deref())),
        ("metadata_url", text(oauth.metadata_url.as_deref())),
        ("resource", text(oauth.resource.as_deref())),
        (
            "callback_port",
            oauth
                .callback_port
                .map(|port| Node::detached(i64::from(port))),
        ),
        ("redirect_uri", text(oauth.redirect_uri.as_deref())),
        ("grant_type", text(oauth.grant_type.as_deref())),
        ("private_key_file", text(oauth.private_key_file.as_deref())),
        (
            "private_key_env_var",
            text(oauth.private_key_env_var.as_deref()),
        ),
        ("key_id", text(oauth.key_id.as_deref())),
        (
            "client_metadata_url",
            text(oauth.client_metadata_url.as_deref()),
        ),
        (
            "idp_token_endpoint",
            text(oauth.idp_token_endpoint.as_deref()),
        ),
        ("idp_client_id", text(oauth.idp_client_id.as_deref())),
        (
            "idp_client_secret_env_var",
            text(oauth.idp_client_secret_env_var.as_deref()),
        ),
        ("assertion_file", text(oauth.assertion_file.as_deref())),
        (
            "assertion_env_var",
            text(oauth.assertion_env_var.as_deref()),
        ),
        ("dpop", oauth.dpop.map(Node::detached)),
    ])
}

fn text(text: Option<&str>) -> Option<Node<'_>> {
    text.map(Node::detached)
}

fn stated<'a, const N: usize>(members: [(&'static str, Option<Node<'a>>); N]) -> Node<'a> {
    Node::table(
        members
            .into_iter()
            .filter_map(|(key, node)| node.map(|node| (key, node))),
    )
}
