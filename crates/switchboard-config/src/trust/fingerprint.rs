//! What a fingerprint is made of: the parts of a server or of a section that an approval is bound to.
//!
//! Owns which parts count and how each is hashed. A hash that changes takes back every approval that people have
//! given, so a new kind of part is left out where it is empty.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::entry::{Permission, RootsEntry, ServerEntry};
use crate::expand::references;
use crate::mask;
use crate::secret::Secret;

/// The name of the one component of a part of a file. Its text alone is shown line by line.
pub const SECTION_TEXT: &str = "text";

/// What an approval is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The parts, each with a text that may be shown.
    pub components: Vec<Component>,
}

/// One part of a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// What it is, such as `command`.
    pub name: String,
    /// What it says, with secrets masked.
    pub shown: String,
    /// The hash of what it says.
    pub digest: String,
}

/// Variables that decide which code runs or whom it talks to: their values count, not only their names.
const STEERING_VARIABLES: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELL",
    "HOME",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "EDITOR",
    "PAGER",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];
const STEERING_ENDINGS: &[&str] = &[
    "_URL",
    "_URI",
    "_HOST",
    "_ENDPOINT",
    "_PROXY",
    "_OPTS",
    "_OPTIONS",
    "_ARGS",
    "_FLAGS",
    "_COMMAND",
    "_CMD",
    "_WRAPPER",
];
const STEERING_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "PYTHON",
    "NPM_CONFIG_",
    "UV_",
    "PIP_",
    "GIT_CONFIG_",
];

impl Fingerprint {
    /// The fingerprint of a server: what it runs or reaches, which secrets it is given, and what it may do.
    /// Values of variables and headers do not count, so that a rotated key asks nobody; which variables
    /// they refer to does.
    pub fn of_server(entry: &ServerEntry, program: Option<&Path>) -> Self {
        let mut components = Components::default();
        components.text(
            "transport",
            entry
                .effective_transport()
                .map_or("", |transport| transport.name()),
        );
        components.text("command", entry.command.as_deref().unwrap_or_default());
        let program = program
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        components.text("program", &program);
        components.list("args", &entry.args, &mask::arguments(&entry.args));
        components.pairs("env", &entry.env, steers);
        components.texts("env_vars", &entry.env_vars);
        components.text(
            "inherit_env",
            if entry.inherit_env == Some(true) {
                "true"
            } else {
                ""
            },
        );
        components.text("cwd", entry.cwd.as_deref().unwrap_or_default());
        let url = entry.url.as_deref().unwrap_or_default();
        components.push("url", mask::url(url).into_owned(), url);
        components.pairs("headers", &entry.headers, |_, _| false);
        if !entry.headers_helper.is_empty() {
            let shown = mask::arguments(&entry.headers_helper);
            components.list("headers_helper", &entry.headers_helper, &shown);
        }
        components.text(
            "bearer_token_env_var",
            entry.bearer_token_env_var.as_deref().unwrap_or_default(),
        );
        if let Some(oauth) = &entry.oauth {
            let secret = oauth
                .client_secret
                .as_ref()
                .map(Secret::expose)
                .unwrap_or_default();
            let parts = [
                oauth.client_id.as_deref().unwrap_or_default().to_owned(),
                oauth.client_secret_env_var.clone().unwrap_or_default(),
                references(secret).join(","),
                oauth.issuer.clone().unwrap_or_default(),
                oauth.metadata_url.clone().unwrap_or_default(),
                oauth.resource.clone().unwrap_or_default(),
                oauth.redirect_uri.clone().unwrap_or_default(),
                oauth.scopes.join(","),
                oauth.grant_type.clone().unwrap_or_default(),
                oauth.private_key_file.clone().unwrap_or_default(),
                oauth.private_key_env_var.clone().unwrap_or_default(),
                oauth.key_id.clone().unwrap_or_default(),
                oauth.client_metadata_url.clone().unwrap_or_default(),
                oauth.idp_token_endpoint.clone().unwrap_or_default(),
                oauth.idp_client_id.clone().unwrap_or_default(),
                oauth.idp_client_secret_env_var.clone().unwrap_or_default(),
                oauth.assertion_file.clone().unwrap_or_default(),
                oauth.assertion_env_var.clone().unwrap_or_default(),
            ];
            components.texts("oauth", &parts);
        }
        components.text(
            "trust_annotations",
            if entry.trust_annotations == Some(true) {
                "true"
            } else {
                ""
            },
        );
        let pin = if entry.pin == Some(false) {
            "false"
        } else {
            ""
        };
        components.text("pin", pin);
        let sandbox = entry
            .sandbox
            .map(|sandbox| format!("{} network={:?}", sandbox.mode.name(), sandbox.network));
        components.text("sandbox", &sandbox.unwrap_or_default());
        match &entry.roots {
            None => {}
            Some(RootsEntry::Workspace) => components.text("roots", "workspace"),
            Some(RootsEntry::None) => components.text("roots", "none"),
            Some(RootsEntry::Folders(folders)) => components.texts("roots", folders),
        }
        let grants = entry
            .tools
            .iter()
            .filter(|(_, tool)| tool.permission == Some(Permission::Allow));
        let grants: Vec<String> = grants.map(|(name, _)| name.clone()).collect();
        components.texts("allowed tools", &grants);
        Self {
            components: components.0,
        }
    }

    /// The fingerprint of another part of a file: its text.
    pub fn of_section(text: &str) -> Self {
        let mut components = Components::default();
        components.push(SECTION_TEXT, mask::text(text), text);
        Self {
            components: components.0,
        }
    }

    /// Whether an approval of the other one is an approval of this one: the same parts with the same hashes.
    /// How they are shown does not count.
    pub fn is_bound_like(&self, other: &Fingerprint) -> bool {
        fn bound(fingerprint: &Fingerprint) -> impl Iterator<Item = (&str, &str)> {
            let components = fingerprint.components.iter();
            components.map(|component| (component.name.as_str(), component.digest.as_str()))
        }
        bound(self).eq(bound(other))
    }

    /// What differs from an earlier fingerprint: part, before, now.
    pub fn changes<'f>(
        &'f self,
        earlier: &'f Fingerprint,
    ) -> Vec<(&'f str, Option<&'f str>, Option<&'f str>)> {
        fn find<'f>(components: &'f [Component], name: &str) -> Option<&'f Component> {
            components.iter().find(|component| component.name == name)
        }
        let mut names: Vec<&str> = self
            .components
            .iter()
            .map(|component| component.name.as_str())
            .collect();
        names.extend(
            earlier
                .components
                .iter()
                .map(|c| c.name.as_str())
                .filter(|name| find(&self.components, name).is_none()),
        );
        let changed = |name: &&'f str| {
            let (before, now) = (
                find(&earlier.components, name),
                find(&self.components, name),
            );
            before.map(|c| &c.digest) != now.map(|c| &c.digest)
        };
        let row = |name: &'f str| {
            let shown = |components: &'f [Component]| {
                find(components, name).map(|component| component.shown.as_str())
            };
            (name, shown(&earlier.components), shown(&self.components))
        };
        names.into_iter().filter(changed).map(row).collect()
    }
}

/// Whether a variable decides which code runs or whom it talks to: by its name, or because its value is an
/// address or a path. A key that happens to begin like a path is still a key.
fn steers(variable: &str, value: &str) -> bool {
    let upper = variable.to_ascii_uppercase();
    let is_path = ["/", "./", "../", "~", "${workspaceFolder}"]
        .iter()
        .any(|start| value.starts_with(start));
    value.contains("://")
        || (is_path && !mask::sounds_secret(variable))
        || STEERING_ENDINGS
            .iter()
            .any(|ending| upper.ends_with(ending))
        || STEERING_VARIABLES.contains(&upper.as_str())
        || STEERING_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
}

#[derive(Default)]
struct Components(Vec<Component>);

impl Components {
    /// Adds a part; an empty one is left out, so that a new kind of part asks nobody who does not use it.
    fn push(&mut self, name: &str, shown: String, value: &str) {
        if !value.is_empty() {
            self.add(name, shown, Sha256::new().chain_update(value));
        }
    }

    fn add(&mut self, name: &str, shown: String, hasher: Sha256) {
        self.0.push(Component {
            name: name.to_owned(),
            shown,
            digest: hex(&hasher.finalize()),
        });
    }

    fn text(&mut self, name: &str, value: &str) {
        self.push(name, value.to_owned(), value);
    }

    fn list(&mut self, name: &str, values: &[String], shown: &[String]) {
        if values.is_empty() {
            return;
        }
        let mut hasher = Sha256::new();
        for text in values {
            // The length before each value keeps ["a b"] and ["a", "b"] apart.
            hasher.update(text.len().to_string());
            hasher.update(":");
            hasher.update(text);
        }
        self.add(name, crate::words::join(shown), hasher);
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        if values.iter().any(|value| !value.is_empty()) {
            self.list(name, values, values);
        }
    }

    /// Names, the variables their values refer to, and the values that `counts` wants.
    fn pairs(
        &mut self,
        name: &str,
        pairs: &[(String, Secret)],
        counts: impl Fn(&str, &str) -> bool,
    ) {
        let mut pairs: Vec<_> = pairs.iter().collect();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut values = Vec::new();
        let mut shown = Vec::new();
        for (key, value) in pairs {
            if counts(key, value.expose()) {
                values.push(format!("{key}={}", value.expose()));
                let pair = format!("{key}={}", value.expose());
                shown.push(mask::argument(&pair).into_owned());
            } else {
                let names = references(value.expose());
                values.push(format!("{key}<-{}", names.join(",")));
                let from: Vec<String> = names.iter().map(|name| format!("${{{name}}}")).collect();
                let key = mask::name(key);
                shown.push(if from.is_empty() {
                    key.into_owned()
                } else {
                    format!("{key}={}", from.concat())
                });
            }
        }
        self.list(name, &values, &shown);
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.extend([digit(byte >> 4), digit(byte & 0xF)]);
    }
    digits
}
