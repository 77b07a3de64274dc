//! Recognises names that announce a secret: of flags, variables, headers, query parameters, connection strings.
//!
//! Names are split into words (`apiKey`, `API_KEY` and `--api-key` are the same two words), so that `--author` does not
//! match `auth`, nor `max_tokens` a token.

/// Longer texts are not names.
const LONGEST_NAME: usize = 200;

/// Words that announce a secret anywhere in a name.
const SECRET_WORDS: &[&str] = &[
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "auth",
    "authorization",
    "authentication",
    "credential",
    "credentials",
    "bearer",
    "cookie",
    "cookies",
    "jwt",
    "privatekey",
    "accesskey",
    "secretkey",
    "accountkey",
    "sig",
    "signature",
    "sessionid",
];

/// Substrings that announce a secret in joined words: `mytoken`, `dbpassword`.
const SECRET_PARTS: &[&str] = &["password", "passwd", "secret", "apikey", "authtoken"];

/// Words that make a following `key` secret.
const KEY_OWNERS: &[&str] = &[
    "api",
    "access",
    "account",
    "private",
    "secret",
    "signing",
    "encryption",
    "master",
    "service",
    "subscription",
    "admin",
    "auth",
    "license",
    "shared",
];

/// Last words of names whose values are not secret themselves.
const HARMLESS_ENDINGS: &[&str] = &[
    "command",
    "cmd",
    "helper",
    "script",
    "program",
    "file",
    "path",
    "dir",
    "directory",
    "folder",
    "url",
    "uri",
    "endpoint",
    "host",
    "port",
    "type",
    "method",
    "mode",
    "name",
    "var",
    "env",
    "provider",
    "server",
    "header",
    "scheme",
    "ttl",
    "expiry",
    "expires",
    "timeout",
    "count",
    "limit",
    "length",
    "budget",
    "size",
    "tokens",
    "tokenizer",
    "id",
];

/// Whether a name announces a secret value.
pub(crate) fn sounds_secret(name: &str) -> bool {
    // The shortest matches are `key`, `pwd` and `sig`.
    if !(3..=LONGEST_NAME).contains(&name.len()) {
        return false;
    }
    let is_upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let words = words(name);
    let Some(last) = words.last() else {
        return false;
    };
    if words.len() > 1 && HARMLESS_ENDINGS.contains(&last.as_str()) {
        // A session id grants access to the session.
        return last == "id" && words.iter().any(|word| word == "session");
    }
    let is_secret_word = |word: &String| {
        SECRET_WORDS.contains(&word.as_str())
            || SECRET_PARTS.iter().any(|part| word.contains(part))
            || (word.len() > 5 && word.ends_with("token"))
    };
    if words.iter().any(is_secret_word) {
        return true;
    }
    let is_owner = |word: &String| KEY_OWNERS.contains(&word.as_str());
    match words.as_slice() {
        [only] => only == "key" || only == "pass",
        // `STRIPE_KEY` and `DB_PASS` are typical variables; `sort-key` is a typical flag.
        [.., before, last] if last == "key" => {
            words.iter().any(is_owner) || (is_upper && before != "public")
        }
        [.., last] => last == "pass" && is_upper,
        [] => false,
    }
}

/// Lowercase words of a name, split at `-`, `_`, `.`, blanks and camel case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut goes_on = false;
    let mut before_is_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() {
            goes_on = false;
            before_is_lower = false;
            continue;
        }
        if goes_on && before_is_lower && character.is_uppercase() {
            goes_on = false;
        }
        before_is_lower = character.is_lowercase() || character.is_ascii_digit();
        let lower = character.to_ascii_lowercase();
        match words.last_mut() {
            Some(word) if goes_on => word.push(lower),
            _ => words.push(lower.into()),
        }
        goes_on = true;
    }
    words
}

/// Headers whose values are never secret; all others are masked.
const HARMLESS_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "host",
    "origin",
    "referer",
    "user-agent",
    "mcp-protocol-version",
];

/// Whether the value of a header may be shown.
pub(crate) fn is_harmless_header(name: &str) -> bool {
    let name = name.trim();
    HARMLESS_HEADERS
        .iter()
        .any(|harmless| harmless.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_word_by_word() {
        for secret in [
            "token",
            "--api-key",
            "apiKey",
            "API_KEY",
            "ApiKey",
            "X-Api-Key",
            "Authorization",
            "-key",
            "KEY",
            "PGPASSWORD",
            "DB_PASS",
            "Pwd",
            "Password",
            "AccountKey",
            "SharedAccessKey",
            "SharedAccessSignature",
            "sig",
            "GITHUB_TOKEN",
            "githubToken",
            "accessToken",
            "access_token",
            "authtoken",
            "client_secret",
            "STRIPE_KEY",
            "private-key",
            "dbpassword",
            "Cookie",
            "X-Auth-Token",
            "session_id",
            "AWS_SESSION_TOKEN",
            "personal-access-token",
            "OPENAI_API_KEY",
            "--password",
            "Ocp-Apim-Subscription-Key",
        ] {
            assert!(sounds_secret(secret), "{secret}");
        }
        for plain in [
            "",
            "-",
            "--keyboard",
            "--author",
            "authority",
            "max_tokens",
            "MAX_OUTPUT_TOKENS",
            "tokenizer",
            "--sort-key",
            "PUBLIC_KEY",
            "monkey",
            "--compass",
            "TOKEN_URL",
            "--auth-command",
            "bearer_token_env_var",
            "--token-file",
            "client_id",
            "signal",
            "bypass",
        ] {
            assert!(!sounds_secret(plain), "{plain}");
        }
        assert!(!sounds_secret(&"token_".repeat(1_000_000)));
    }
}
