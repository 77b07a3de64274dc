//! Who a server is, whatever its secrets are and whatever it may do: what its pins are kept under.
//!
//! A rotated key makes no other server, so values of variables and headers do not count here, unless they decide which
//! code runs or whom it talks to. A hash that changes separates a server from its pins: the parts keep their order and
//! their names.

use super::fingerprint::{Components, Fingerprint};
use crate::entry::ServerEntry;
use crate::expand::references;
use crate::mask;
use crate::secret::Secret;

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
    "BASH_FUNC_",
];

impl Fingerprint {
    /// What makes a server the one that it is: what it runs or reaches, and which secrets it is given.
    pub fn identity_of(entry: &ServerEntry) -> Self {
        let mut components = Components::default();
        components.text(
            "transport",
            entry
                .effective_transport()
                .map_or("", |transport| transport.name()),
        );
        components.text("command", entry.command.as_deref().unwrap_or_default());
        components.list("args", &entry.args, &mask::arguments(&entry.args));
        pairs(&mut components, "env", &entry.env, steers);
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
        pairs(&mut components, "headers", &entry.headers, |_, _| false);
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
        components.into_fingerprint()
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

/// Names, the variables their values refer to, and the values that `counts` wants.
fn pairs(
    components: &mut Components,
    name: &str,
    pairs: &[(String, Secret)],
    counts: impl Fn(&str, &str) -> bool,
) {
    let mut pairs: Vec<_> = pairs.iter().collect();
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let values: Vec<String> = pairs
        .into_iter()
        .map(|(key, value)| {
            if counts(key, value.expose()) {
                format!("{key}={}", value.expose())
            } else {
                format!("{key}<-{}", references(value.expose()).join(","))
            }
        })
        .collect();
    // Nobody is shown who a server is.
    components.list(name, &values, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(variable: &str, value: &str) -> Fingerprint {
        Fingerprint::identity_of(&ServerEntry {
            command: Some("a".to_owned()),
            env: vec![(variable.to_owned(), Secret::new(value))],
            ..ServerEntry::default()
        })
    }

    #[test]
    fn a_variable_that_steers_a_program_makes_another_server() {
        for variable in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "ld_preload",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONSTARTUP",
            "NPM_CONFIG_REGISTRY",
            "UV_INDEX",
            "PIP_INDEX",
            "GIT_CONFIG_COUNT",
            "BASH_FUNC_ls%%",
            "PATH",
            "BASH_ENV",
            "NODE_OPTIONS",
            "GIT_SSH",
            "ALL_PROXY",
            "SOME_URL",
            "SOME_HOST",
            "RUN_OPTS",
            "X_COMMAND",
            "RUSTC_WRAPPER",
        ] {
            assert_ne!(
                identity(variable, "one"),
                identity(variable, "other"),
                "{variable}"
            );
        }
        for (before, after) in [("one", "/p/evil"), ("one", "./evil"), ("x://a", "x://b")] {
            assert_ne!(
                identity("SOMETHING", before),
                identity("SOMETHING", after),
                "{after}"
            );
        }
    }

    #[test]
    fn a_rotated_key_makes_no_other_server() {
        for variable in ["API_KEY", "MY_TOKEN", "LEVEL", "XLD_PRELOAD", "COLD_START"] {
            assert_eq!(
                identity(variable, "one"),
                identity(variable, "other"),
                "{variable}"
            );
        }
        assert_eq!(identity("MY_TOKEN", "ab"), identity("MY_TOKEN", "/cd+ef"));
    }
}
