//! Identity of a server, independent of its secrets and permissions: the key of its pins.
//!
//! Rotating a key does not change the identity, so values of variables and headers do not count, unless they decide
//! which code runs or which host it contacts. Changing the hash separates a server from its pins: components keep their
//! order and names.

use super::fingerprint::{Components, Fingerprint};
use crate::entry::{OAuthEntry, ServerEntry};
use crate::expand::references;
use crate::mask;
use crate::secret::Secret;
use crate::sort;

/// Variables that decide which code runs or which host it contacts: their values count, not only their names.
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
    /// Computes the identity: what the server runs or contacts, and which secrets it gets.
    pub fn identity_of(entry: &ServerEntry) -> Self {
        // Destructured completely, so that a new field does not compile until it is handled here.
        let ServerEntry {
            transport: _,
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
            oauth,
            // Access settings do not change the identity.
            ca_file: _,
            sandbox: _,
            roots: _,
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
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut components = Components::default();
        components.text(
            "transport",
            entry
                .effective_transport()
                .map_or("", |transport| transport.name()),
        );
        components.text("command", &text(command));
        components.list("args", args, &mask::arguments(args));
        pairs(&mut components, "env", env, steers);
        components.texts("env_vars", env_vars);
        let inherits = *inherit_env == Some(true);
        components.text("inherit_env", if inherits { "true" } else { "" });
        components.text("cwd", &text(cwd));
        let url = text(url);
        components.push("url", mask::url(&url).into_owned(), &url);
        pairs(&mut components, "headers", headers, |_, _| false);
        components.list(
            "headers_helper",
            headers_helper,
            &mask::arguments(headers_helper),
        );
        components.text("bearer_token_env_var", &text(bearer_token_env_var));
        if let Some(oauth) = oauth {
            components.texts("oauth", &oauth_parts(oauth));
        }
        components.into_fingerprint()
    }
}

/// Components of the login identity, in fixed positions.
fn oauth_parts(oauth: &OAuthEntry) -> [String; 18] {
    let OAuthEntry {
        client_id,
        client_secret,
        client_secret_env_var,
        scopes,
        issuer,
        metadata_url,
        resource,
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
        // Details of the login flow do not count.
        callback_port: _,
        dpop: _,
    } = oauth;
    let secret = client_secret.as_ref().map_or("", Secret::expose);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        text(client_id),
        text(client_secret_env_var),
        references(secret).join(","),
        text(issuer),
        text(metadata_url),
        text(resource),
        text(redirect_uri),
        scopes.join(","),
        text(grant_type),
        text(private_key_file),
        text(private_key_env_var),
        text(key_id),
        text(client_metadata_url),
        text(idp_token_endpoint),
        text(idp_client_id),
        text(idp_client_secret_env_var),
        text(assertion_file),
        text(assertion_env_var),
    ]
}

/// Whether a variable decides which code runs or which host it contacts: by its name, or because its value is a URL or
/// a path. A key that starts like a path is still a key.
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

/// Names, the variables that their values refer to, and the values selected by `counts`.
fn pairs(
    components: &mut Components,
    name: &str,
    pairs: &[(String, Secret)],
    counts: impl Fn(&str, &str) -> bool,
) {
    let mut pairs: Vec<_> = pairs.iter().collect();
    sort::by(&mut pairs, |(one, _), (other, _)| one.cmp(other));
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
    // The identity is never displayed.
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

    #[test]
    fn inheriting_the_environment_is_part_of_the_identity() {
        let parts = |inherit_env| {
            let identity = Fingerprint::identity_of(&ServerEntry {
                command: Some("a".to_owned()),
                inherit_env,
                ..ServerEntry::default()
            });
            let components = identity.components.into_iter();
            components.map(|part| part.name).collect::<Vec<_>>()
        };
        // The default is left out: identities of earlier versions did not have this part.
        for inherit_env in [None, Some(false)] {
            assert_eq!(parts(inherit_env), ["transport", "command"]);
        }
        assert_eq!(parts(Some(true)), ["transport", "command", "inherit_env"]);
    }
}
