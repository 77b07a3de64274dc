//! Finds plain-text secrets in an entry, and replaces them by variable references.

use super::ServerEntry;
use crate::expand::is_only_references;
use crate::mask;
use crate::secret::{MASK, Secret};

impl ServerEntry {
    /// Locations of plain-text secrets: `env.API_KEY`, `headers.Authorization`, `args`, `url`.
    pub fn literal_secrets(&self) -> Vec<String> {
        let mut places = Vec::new();
        for (name, value) in &self.env {
            if is_secret_variable(name, value) {
                places.push(format!("env.{}", mask::name(name)));
            }
        }
        for (name, value) in &self.headers {
            if is_secret_header(name, value) {
                places.push(format!("headers.{}", mask::name(name)));
            }
        }
        if mask::arguments(&self.args) != self.args {
            places.push("args".to_owned());
        }
        if self.url.as_deref().is_some_and(|url| mask::url(url) != url) {
            places.push("url".to_owned());
        }
        let oauth = self.oauth.as_ref();
        let client = oauth.and_then(|oauth| oauth.client_secret.as_ref());
        if client.is_some_and(|secret| secret.shown() == MASK) {
            places.push("oauth.client_secret".to_owned());
        }
        places
    }

    /// Replaces secrets in `env` and `headers` by references, and returns the variables to set. Secrets in arguments
    /// and URLs stay: which part of them is secret is a guess.
    pub fn with_variables(&self, server: &str) -> (Self, Vec<String>) {
        let mut entry = self.clone();
        let mut variables = Vec::new();
        for (name, value) in &mut entry.env {
            if is_secret_variable(name, value) && is_variable_name(name) {
                *value = Secret::new(format!("${{{name}}}"));
                variables.push(name.clone());
            }
        }
        let is_free = entry.bearer_token_env_var.is_none();
        entry.headers.retain_mut(|(name, value)| {
            if !is_secret_header(name, value) {
                return true;
            }
            let token = value
                .expose()
                .strip_prefix("Bearer ")
                .filter(|_| is_free && name.eq_ignore_ascii_case("Authorization"));
            if token.is_some() {
                let variable = variable_of(&[server, "token"]);
                variables.push(variable.clone());
                entry.bearer_token_env_var = Some(variable);
                return false;
            }
            let variable = variable_of(&[server, name]);
            *value = Secret::new(format!("${{{variable}}}"));
            variables.push(variable);
            true
        });
        if let Some(oauth) = &mut entry.oauth
            && oauth
                .client_secret
                .as_ref()
                .is_some_and(|secret| secret.shown() == MASK)
        {
            let variable = variable_of(&[server, "client_secret"]);
            oauth.client_secret = None;
            oauth.client_secret_env_var = Some(variable.clone());
            variables.push(variable);
        }
        (entry, variables)
    }
}

fn is_secret_variable(name: &str, value: &Secret) -> bool {
    let text = value.expose();
    !text.is_empty() && !is_only_references(text) && mask::named(name, text) != text
}

fn is_secret_header(name: &str, value: &Secret) -> bool {
    !mask::is_harmless_header(name) && !value.expose().is_empty() && value.shown() == MASK
}

fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Builds a variable name: `my-server`, `X-Key` becomes `MY_SERVER_X_KEY`.
fn variable_of(words: &[&str]) -> String {
    let name: String = words
        .join("_")
        .chars()
        .map(|character| match character {
            character if character.is_ascii_alphanumeric() => character.to_ascii_uppercase(),
            _ => '_',
        })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_plain_text_are_found_and_replaced() {
        let pair = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        let entry = ServerEntry {
            args: vec!["--api-key".to_owned(), "abc".to_owned()],
            env: vec![
                pair("API_KEY", "abc"),
                pair("LEVEL", "info"),
                pair("T_TOKEN", "${T}"),
            ],
            headers: vec![
                pair("Authorization", "Bearer abc"),
                pair("X-Key", "abc"),
                pair("Accept", "text/plain"),
            ],
            url: Some("https://h/?token=abc".to_owned()),
            ..ServerEntry::default()
        };
        assert_eq!(
            entry.literal_secrets(),
            [
                "env.API_KEY",
                "headers.Authorization",
                "headers.X-Key",
                "args",
                "url"
            ]
        );
        let (replaced, variables) = entry.with_variables("my-server");
        assert_eq!(variables, ["API_KEY", "MY_SERVER_TOKEN", "MY_SERVER_X_KEY"]);
        assert_eq!(replaced.literal_secrets(), ["args", "url"]);
        assert_eq!(
            replaced.bearer_token_env_var.as_deref(),
            Some("MY_SERVER_TOKEN")
        );
        assert_eq!(
            replaced.headers,
            [
                pair("X-Key", "${MY_SERVER_X_KEY}"),
                pair("Accept", "text/plain")
            ]
        );
        assert_eq!(
            replaced.env,
            [
                pair("API_KEY", "${API_KEY}"),
                pair("LEVEL", "info"),
                pair("T_TOKEN", "${T}")
            ]
        );
    }
}
