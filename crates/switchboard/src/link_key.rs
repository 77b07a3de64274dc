//! What the link to a server depends on, as a key that stays the same from run to run and from build to build.
//!
//! Owns which fields of an entry count and how they are hashed. Each is hashed under its own name, and one that is not
//! stated not at all, so that a new field changes no key of an entry that does not use it. What is cached under these
//! keys (lists, protocol revisions, logins that are wanted) is lost when they change: then [`VERSION`] changes too.

use switchboard_config::entry::{OAuthEntry, RootsEntry, ServerEntry};
use switchboard_config::secret::Secret;

use crate::spec::ConnectionKey;

/// The form of the keys.
const VERSION: &str = "link 1";

/// The key of an entry's link. What an entry says about its tools and deadlines is left out: it can change under a
/// connection.
pub(crate) fn key(name: &str, entry: &ServerEntry) -> ConnectionKey {
    // Taken apart in full, so that whoever adds a field decides whether the link depends on it.
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
    fields.key()
}

/// Fields by name, each with its parts.
#[derive(Default)]
struct Fields(Vec<Vec<u8>>);

impl Fields {
    fn add<'p>(&mut self, name: &'p str, parts: impl IntoIterator<Item = &'p str>) {
        let mut field = Vec::new();
        // The length before each part keeps ["a b"] and ["a", "b"] apart.
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
        let OAuthEntry {
            client_id,
            client_secret,
            client_secret_env_var,
            scopes,
            issuer,
            metadata_url,
            resource,
            callback_port,
            redirect_uri,
            grant_type,
            private_key_file,
            private_key_env_var,
            key_id,
            client_metadata_url,
            idp_token_endpoint,
            idp_client_id,
            idp_client_secret_env_var,
            assertion_file,
            assertion_env_var,
            dpop,
        } = oauth;
        // A table that is there and empty is not the same as none.
        self.add("oauth", []);
        self.text(
            "oauth.client_secret",
            client_secret.as_ref().map(Secret::expose),
        );
        for (name, text) in [
            ("oauth.client_id", client_id),
            ("oauth.client_secret_env_var", client_secret_env_var),
            ("oauth.issuer", issuer),
            ("oauth.metadata_url", metadata_url),
            ("oauth.resource", resource),
            ("oauth.redirect_uri", redirect_uri),
            ("oauth.grant_type", grant_type),
            ("oauth.private_key_file", private_key_file),
            ("oauth.private_key_env_var", private_key_env_var),
            ("oauth.key_id", key_id),
            ("oauth.client_metadata_url", client_metadata_url),
            ("oauth.idp_token_endpoint", idp_token_endpoint),
            ("oauth.idp_client_id", idp_client_id),
            ("oauth.idp_client_secret_env_var", idp_client_secret_env_var),
            ("oauth.assertion_file", assertion_file),
            ("oauth.assertion_env_var", assertion_env_var),
        ] {
            self.text(name, text.as_deref());
        }
        self.list("oauth.scopes", scopes);
        let port = callback_port.map(|port| port.to_string());
        self.text("oauth.callback_port", port.as_deref());
        self.flag("oauth.dpop", *dpop);
    }

    fn key(self) -> ConnectionKey {
        let fields = self.0.iter().map(Vec::as_slice);
        let parts: Vec<&[u8]> = [VERSION.as_bytes()].into_iter().chain(fields).collect();
        ConnectionKey::of(&parts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use switchboard_config::entry::{Sandbox, SandboxMode, Transport};

    use super::*;

    fn program() -> ServerEntry {
        ServerEntry {
            command: Some("server".into()),
            args: vec!["a".into(), "b".into()],
            env: vec![("KEY".into(), Secret::new("value"))],
            ..ServerEntry::default()
        }
    }

    /// What is cached under a key must be found by the next build.
    #[test]
    fn a_key_is_the_same_in_every_build() {
        let hex = |name: &str, entry: &ServerEntry| key(name, entry).to_hex();
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

    #[test]
    fn a_key_differs_by_what_the_link_depends_on_and_by_nothing_else() {
        type Change = fn(&mut ServerEntry);
        let same = key("s", &program());
        let different: [Change; 15] = [
            |entry| entry.transport = Some(Transport::Stdio),
            |entry| entry.command = Some("other".into()),
            |entry| entry.args = vec!["a b".into()],
            |entry| entry.env = vec![("KEY".into(), Secret::new("other"))],
            |entry| entry.env.clear(),
            |entry| entry.env_vars = vec!["A".into()],
            |entry| entry.inherit_env = Some(true),
            |entry| entry.cwd = Some("/".into()),
            |entry| entry.headers = vec![("KEY".into(), Secret::new("value"))],
            |entry| entry.headers_helper = vec!["a".into(), "b".into()],
            |entry| entry.bearer_token_env_var = Some("T".into()),
            |entry| entry.oauth = Some(OAuthEntry::default()),
            |entry| {
                entry.sandbox = Some(Sandbox {
                    mode: SandboxMode::Workspace,
                    network: None,
                });
            },
            |entry| entry.roots = Some(RootsEntry::None),
            |entry| entry.roots = Some(RootsEntry::Folders(vec!["none".into()])),
        ];
        let mut keys = vec![key("t", &program())];
        for change in different {
            let mut entry = program();
            change(&mut entry);
            keys.push(key("s", &entry));
        }
        for (index, one) in keys.iter().enumerate() {
            assert_ne!(*one, same, "change {index}");
            assert!(!keys[..index].contains(one), "change {index}");
        }
        let alike: [Change; 4] = [
            |entry| entry.enabled = Some(false),
            |entry| entry.startup_timeout = Some(Duration::from_secs(1)),
            |entry| entry.disabled_tools = vec!["t".into()],
            |entry| entry.pin = Some(false),
        ];
        for change in alike {
            let mut entry = program();
            change(&mut entry);
            assert_eq!(key("s", &entry), same);
        }
    }
}
