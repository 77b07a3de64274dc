//! The two digests of a server: its connection settings, and its identity.
//!
//! | | [`ConnectionKey`] | [`ServerIdentity`] |
//! |---|---|---|
//! | equal if | a connection can be reused | it is the same server, regardless of its secrets and permissions |
//! | key of | caches: lists, protocol revisions, required logins | pins, which are not rebuildable |
//! | on change | the server is reconnected | the server counts as new, without pins |
//!
//! Both hash named fields of an entry and are stable across builds. Unset fields are not hashed, so that adding a field
//! does not change the digests of entries without it.

use switchboard_config::entry::{FieldValue, OAuthEntry, RootsEntry, ServerEntry};
use switchboard_config::secret::Secret;
use switchboard_config::trust::Fingerprint;

use crate::digest::Digest;

/// The version of connection keys. Changes with the order or names of fields, and then invalidates caches.
const VERSION: &str = "link 1";

/// A digest of the settings that a connection depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionKey(Digest);

/// A digest that identifies a server to its user: the key of its pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerIdentity(Digest);

impl ServerIdentity {
    /// The identity of an entry's server: its name and the settings that an approval covers, except for its
    /// permissions. Neither a renewed secret nor an updated program changes it.
    pub(crate) fn of_entry(name: &str, entry: &ServerEntry) -> Self {
        let fingerprint = Fingerprint::identity_of(entry);
        let components = fingerprint.components.iter();
        let fields = components.flat_map(|component| [&component.name, &component.digest]);
        let parts = [name].into_iter().chain(fields.map(String::as_str));
        Self(Digest::of(parts.map(str::as_bytes)))
    }

    /// The identity of a server without an entry, such as one described in code: its connection key.
    pub const fn of_connection(key: ConnectionKey) -> Self {
        Self(key.0)
    }

    /// The key of its records in a store.
    pub fn to_hex(self) -> String {
        self.0.to_hex()
    }
}

impl ConnectionKey {
    /// The key of a server without an entry, such as one described in code: any parts that distinguish its connections.
    pub fn of(parts: &[&[u8]]) -> Self {
        Self(Digest::of(parts.iter().copied()))
    }

    /// The key of an entry's server. Excludes settings for tools and deadlines, which can change without reconnecting.
    pub(crate) fn of_entry(name: &str, entry: &ServerEntry) -> Self {
        // Destructured in full: a new field does not compile until its effect on the connection is decided.
        let ServerEntry {
            transport,
            command,
            args,
            env,
            env_vars,
            inherit_env,
            cwd,
            url,
            headers,
            headers_helper,
            bearer_token_env_var,
            ca_file,
            oauth,
            sandbox,
            roots,
            enabled: _,
            required: _,
            startup_timeout: _,
            tool_timeout: _,
            tool_max: _,
            enabled_tools: _,
            disabled_tools: _,
            tools: _,
            trust_annotations: _,
            pin: _,
            shared: _,
            idle_shutdown: _,
            limits: _,
        } = entry;
        let mut fields = Fields::default();
        fields.text("name", Some(name));
        fields.text(
            "transport",
            transport.map(switchboard_config::entry::Transport::name),
        );
        fields.text("command", command.as_deref());
        fields.list("args", args);
        fields.pairs("env", env);
        fields.list("env_vars", env_vars);
        fields.flag("inherit_env", *inherit_env);
        fields.text("cwd", cwd.as_deref());
        fields.text("url", url.as_deref());
        fields.pairs("headers", headers);
        fields.list("headers_helper", headers_helper);
        fields.text("bearer_token_env_var", bearer_token_env_var.as_deref());
        fields.text("ca_file", ca_file.as_deref());
        if let Some(sandbox) = sandbox {
            fields.text("sandbox.mode", Some(sandbox.mode.name()));
            fields.flag("sandbox.network", sandbox.network);
        }
        match roots {
            None => {}
            Some(RootsEntry::Workspace) => fields.text("roots", Some("workspace")),
            Some(RootsEntry::None) => fields.text("roots", Some("none")),
            Some(RootsEntry::Folders(folders)) => fields.list("roots.folders", folders),
        }
        if let Some(oauth) = oauth {
            fields.oauth(oauth);
        }
        ConnectionKey(fields.digest())
    }

    /// The key of its records in a store.
    pub fn to_hex(self) -> String {
        self.0.to_hex()
    }
}

/// Encoded fields, each with its name and parts.
#[derive(Default)]
struct Fields(Vec<Vec<u8>>);

impl Fields {
    fn add<'p>(&mut self, name: &'p str, parts: impl IntoIterator<Item = &'p str>) {
        let mut field = Vec::new();
        // Each part is preceded by its length, as in a digest.
        for part in [name].into_iter().chain(parts) {
            field.extend_from_slice(&(part.len() as u64).to_le_bytes());
            field.extend_from_slice(part.as_bytes());
        }
        self.0.push(field);
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.add(name, [text]);
        }
    }

    fn flag(&mut self, name: &str, flag: Option<bool>) {
        self.text(name, flag.map(|flag| if flag { "true" } else { "false" }));
    }

    fn list(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            self.add(name, texts.iter().map(String::as_str));
        }
    }

    fn pairs(&mut self, name: &str, pairs: &[(String, Secret)]) {
        if !pairs.is_empty() {
            let parts = pairs.iter();
            self.add(
                name,
                parts.flat_map(|(key, value)| [key.as_str(), value.expose()]),
            );
        }
    }

    fn oauth(&mut self, oauth: &OAuthEntry) {
        // An empty table differs from an absent one.
        self.add("oauth", []);
        // These are hashed after the scopes.
        let is_late = |name: &str| name == "callback_port" || name == "dpop";
        let early = oauth.fields().filter(|(name, _)| !is_late(name));
        let late = oauth.fields().filter(|(name, _)| is_late(name));
        for (field, value) in early.chain(late) {
            let name = format!("oauth.{field}");
            match value {
                FieldValue::Text(text) => self.text(&name, Some(text)),
                FieldValue::Secret(secret) => self.text(&name, Some(secret.expose())),
                FieldValue::List(texts) => self.list(&name, texts),
                FieldValue::Number(number) => self.text(&name, Some(&number.to_string())),
                FieldValue::Flag(flag) => self.flag(&name, Some(flag)),
            }
        }
    }

    fn digest(self) -> Digest {
        let fields = self.0.iter().map(Vec::as_slice);
        Digest::of([VERSION.as_bytes()].into_iter().chain(fields))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use switchboard_config::entry::{
        LimitsEntry, Sandbox, SandboxMode, Sharing, ToolEntry, Transport,
    };

    use super::*;

    fn program() -> ServerEntry {
        ServerEntry {
            command: Some("server".into()),
            args: vec!["a".into(), "b".into()],
            env: vec![("KEY".into(), Secret::new("value"))],
            ..ServerEntry::default()
        }
    }

    /// The next build must find existing cache records.
    #[test]
    fn a_key_is_the_same_in_every_build() {
        let hex = |name: &str, entry: &ServerEntry| ConnectionKey::of_entry(name, entry).to_hex();
        assert_eq!(
            hex("s", &program()),
            "d29044581fcb53420ea1bd35c396a3178ecaeb94334a7c0f3634a90dabe3ab52"
        );
        let remote = ServerEntry {
            transport: Some(Transport::Http),
            url: Some("https://example.com/mcp".into()),
            headers: vec![("X".into(), Secret::new("y"))],
            oauth: Some(OAuthEntry {
                client_id: Some("id".into()),
                scopes: vec!["read".into()],
                callback_port: Some(8080),
                ..OAuthEntry::default()
            }),
            ..ServerEntry::default()
        };
        assert_eq!(
            hex("s", &remote),
            "24ff7e9d98ce2b2c5cb6ca97360bb4b9e3b0bc05d90d979c00c8bc0d1ba5335d"
        );
    }

    /// Pins are found by identity, so it must not change between builds.
    #[test]
    fn an_identity_is_the_same_in_every_build() {
        assert_eq!(
            ServerIdentity::of_entry("s", &program()).to_hex(),
            "6a854e4556edcc522e42a9eea99f70d7163178fca0b0d625aea41c57ee7f5e46"
        );
    }

    /// The names of all fields of a type.
    macro_rules! fields {
        ($kind:ident: $($field:ident)*) => {{
            let $kind { $($field: _),* } = $kind::default();
            [$(stringify!($field)),*]
        }};
    }

    #[test]
    fn each_field_changes_the_connection_or_the_server_or_neither() {
        type Change = fn(&mut ServerEntry);
        const BOTH: [bool; 2] = [true, true];
        const CONNECTION: [bool; 2] = [true, false];
        const NEITHER: [bool; 2] = [false, false];
        fn oauth(entry: &mut ServerEntry) -> &mut OAuthEntry {
            entry.oauth.get_or_insert_default()
        }
        let base = ServerEntry {
            headers: vec![("X".into(), Secret::new("y"))],
            oauth: Some(OAuthEntry::default()),
            ..program()
        };
        let table: &[(&str, [bool; 2], Change)] = &[
            // An explicit default is the same server.
            ("transport", CONNECTION, |e| {
                e.transport = Some(Transport::Stdio);
            }),
            ("transport", BOTH, |e| e.transport = Some(Transport::Http)),
            ("command", BOTH, |e| e.command = Some("other".into())),
            ("args", BOTH, |e| e.args = vec!["a b".into()]),
            ("env", CONNECTION, |e| {
                e.env = vec![("KEY".into(), Secret::new("other"))];
            }),
            ("env", BOTH, |e| {
                e.env = vec![("OTHER".into(), Secret::new("value"))];
            }),
            ("env", BOTH, |e| {
                e.env = vec![("KEY".into(), Secret::new("https://other"))];
            }),
            ("env", BOTH, |e| e.env.clear()),
            ("env_vars", BOTH, |e| e.env_vars = vec!["A".into()]),
            ("inherit_env", BOTH, |e| e.inherit_env = Some(true)),
            ("inherit_env", CONNECTION, |e| e.inherit_env = Some(false)),
            ("cwd", BOTH, |e| e.cwd = Some("/".into())),
            ("url", BOTH, |e| e.url = Some("https://example.com".into())),
            ("headers", CONNECTION, |e| {
                e.headers = vec![("X".into(), Secret::new("z"))];
            }),
            ("headers", BOTH, |e| {
                e.headers = vec![("Y".into(), Secret::new("y"))];
            }),
            ("headers_helper", BOTH, |e| {
                e.headers_helper = vec!["a".into()];
            }),
            ("bearer_token_env_var", BOTH, |e| {
                e.bearer_token_env_var = Some("T".into());
            }),
            ("ca_file", CONNECTION, |e| e.ca_file = Some("ca.pem".into())),
            ("oauth", CONNECTION, |e| e.oauth = None),
            ("oauth.client_id", BOTH, |e| {
                oauth(e).client_id = Some("x".into());
            }),
            ("oauth.client_secret", CONNECTION, |e| {
                oauth(e).client_secret = Some(Secret::new("x"));
            }),
            ("oauth.client_secret_env_var", BOTH, |e| {
                oauth(e).client_secret_env_var = Some("x".into());
            }),
            ("oauth.scopes", BOTH, |e| oauth(e).scopes = vec!["x".into()]),
            ("oauth.issuer", BOTH, |e| oauth(e).issuer = Some("x".into())),
            ("oauth.metadata_url", BOTH, |e| {
                oauth(e).metadata_url = Some("x".into());
            }),
            ("oauth.resource", BOTH, |e| {
                oauth(e).resource = Some("x".into());
            }),
            ("oauth.callback_port", CONNECTION, |e| {
                oauth(e).callback_port = Some(1);
            }),
            ("oauth.redirect_uri", BOTH, |e| {
                oauth(e).redirect_uri = Some("x".into());
            }),
            ("oauth.grant_type", BOTH, |e| {
                oauth(e).grant_type = Some("x".into());
            }),
            ("oauth.private_key_file", BOTH, |e| {
                oauth(e).private_key_file = Some("x".into());
            }),
            ("oauth.private_key_env_var", BOTH, |e| {
                oauth(e).private_key_env_var = Some("x".into());
            }),
            ("oauth.key_id", BOTH, |e| oauth(e).key_id = Some("x".into())),
            ("oauth.client_metadata_url", BOTH, |e| {
                oauth(e).client_metadata_url = Some("x".into());
            }),
            ("oauth.idp_token_endpoint", BOTH, |e| {
                oauth(e).idp_token_endpoint = Some("x".into());
            }),
            ("oauth.idp_client_id", BOTH, |e| {
                oauth(e).idp_client_id = Some("x".into());
            }),
            ("oauth.idp_client_secret_env_var", BOTH, |e| {
                oauth(e).idp_client_secret_env_var = Some("x".into());
            }),
            ("oauth.assertion_file", BOTH, |e| {
                oauth(e).assertion_file = Some("x".into());
            }),
            ("oauth.assertion_env_var", BOTH, |e| {
                oauth(e).assertion_env_var = Some("x".into());
            }),
            ("oauth.dpop", CONNECTION, |e| oauth(e).dpop = Some(true)),
            ("sandbox", CONNECTION, |e| {
                e.sandbox = Some(Sandbox {
                    mode: SandboxMode::Workspace,
                    network: None,
                });
            }),
            ("sandbox", CONNECTION, |e| {
                e.sandbox = Some(Sandbox {
                    mode: SandboxMode::Workspace,
                    network: Some(false),
                });
            }),
            ("roots", CONNECTION, |e| e.roots = Some(RootsEntry::None)),
            ("roots", CONNECTION, |e| {
                e.roots = Some(RootsEntry::Folders(vec!["none".into()]));
            }),
            ("enabled", NEITHER, |e| e.enabled = Some(false)),
            ("required", NEITHER, |e| e.required = Some(true)),
            ("startup_timeout", NEITHER, |e| {
                e.startup_timeout = Some(Duration::from_secs(1));
            }),
            ("tool_timeout", NEITHER, |e| {
                e.tool_timeout = Some(Duration::from_secs(1));
            }),
            ("tool_max", NEITHER, |e| {
                e.tool_max = Some(Duration::from_secs(1));
            }),
            ("enabled_tools", NEITHER, |e| {
                e.enabled_tools = vec!["t".into()];
            }),
            ("disabled_tools", NEITHER, |e| {
                e.disabled_tools = vec!["t".into()];
            }),
            ("tools", NEITHER, |e| {
                e.tools = vec![("t".into(), ToolEntry::default())];
            }),
            ("trust_annotations", NEITHER, |e| {
                e.trust_annotations = Some(true);
            }),
            ("pin", NEITHER, |e| e.pin = Some(false)),
            ("shared", NEITHER, |e| e.shared = Some(Sharing::Always)),
            ("idle_shutdown", NEITHER, |e| {
                e.idle_shutdown = Some(Duration::from_secs(1));
            }),
            ("limits", NEITHER, |e| {
                e.limits = Some(LimitsEntry::default());
            }),
        ];
        let of = |name: &str, entry: &ServerEntry| {
            let key = ConnectionKey::of_entry(name, entry);
            (key, ServerIdentity::of_entry(name, entry))
        };
        let (key, identity) = of("s", &base);
        let (other_key, other_identity) = of("t", &base);
        assert!(other_key != key && other_identity != identity, "the name");
        let (mut keys, mut identities) = (vec![key, other_key], vec![identity, other_identity]);
        for (field, changes, change) in table {
            let mut entry = base.clone();
            change(&mut entry);
            let (new_key, new_identity) = of("s", &entry);
            let [changes_key, changes_identity] = *changes;
            assert_eq!(new_key != key, changes_key, "the key, by {field}");
            assert_eq!(
                new_identity != identity,
                changes_identity,
                "the identity, by {field}"
            );
            // No two changes result in the same key.
            assert!(!changes_key || !keys.contains(&new_key), "{field}");
            assert!(
                !changes_identity || !identities.contains(&new_identity),
                "{field}"
            );
            keys.push(new_key);
            identities.push(new_identity);
        }
        let entry_fields = fields! { ServerEntry:
            transport command args env env_vars inherit_env cwd url headers headers_helper
            bearer_token_env_var ca_file oauth sandbox roots enabled required startup_timeout
            tool_timeout tool_max enabled_tools disabled_tools tools trust_annotations pin shared
            idle_shutdown limits
        };
        let oauth_fields = fields! { OAuthEntry:
            client_id client_secret client_secret_env_var scopes issuer metadata_url resource
            callback_port redirect_uri grant_type private_key_file private_key_env_var key_id
            client_metadata_url idp_token_endpoint idp_client_id idp_client_secret_env_var
            assertion_file assertion_env_var dpop
        };
        let oauth_fields = oauth_fields.map(|field| format!("oauth.{field}"));
        let all = entry_fields
            .into_iter()
            .chain(oauth_fields.iter().map(String::as_str));
        for field in all {
            assert!(
                table.iter().any(|(name, ..)| *name == field),
                "{field} is not in the table"
            );
        }
    }
}
