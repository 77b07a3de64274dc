//! Errors of logins and token requests.

use super::fetch::FetchError;
use super::vault::VaultError;

/// Error of a login or a token request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct LoginError {
    /// Cause of the failure.
    pub kind: LoginErrorKind,
}

impl<K: Into<LoginErrorKind>> From<K> for LoginError {
    fn from(kind: K) -> Self {
        Self { kind: kind.into() }
    }
}

impl LoginError {
    /// Returns a remedy, if one is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.kind {
            LoginErrorKind::NoClient => {
                "register a client with the authorization server and set `oauth.client_id`"
            }
            LoginErrorKind::StateMismatch | LoginErrorKind::IssuerMismatch { .. } => {
                "start the login again; if it fails the same way, someone may be tampering with it"
            }
            LoginErrorKind::Fetch(error) if error.is_passing() => "try again later",
            LoginErrorKind::Unavailable(_) => "try again later",
            LoginErrorKind::NoPerson => {
                "the entry's `oauth.grant_type` needs no login; just use the server"
            }
            LoginErrorKind::BadKey(_) => {
                "use an unencrypted PKCS #8 key in PEM (`BEGIN PRIVATE KEY`): P-256, P-384, Ed25519 or RSA"
            }
            _ => return None,
        })
    }

    /// Whether a retry may succeed: a temporary failure, not a refusal.
    pub fn is_passing(&self) -> bool {
        self.kind.is_passing()
    }
}

/// Cause of a failed login. Texts from servers are sanitized; no variant holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoginErrorKind {
    /// A request failed.
    #[error("{0}")]
    Fetch(FetchError),
    /// The vault cannot be read or written.
    #[error("{0}")]
    Vault(VaultError),
    /// A document of the server or of its authorization server is invalid.
    #[error("{url} {problem}")]
    Document {
        /// URL of the document, without its query.
        url: String,
        /// Predicate that completes the sentence "`url` …".
        problem: String,
    },
    /// The metadata describes another resource.
    #[error("the server's metadata describes another resource, {0}")]
    ResourceMismatch(String),
    /// The issuer differs from the expected one.
    #[error("the authorization server identifies itself as {found} instead of {expected}")]
    IssuerMismatch {
        /// Issuer that led to the document or the login.
        expected: String,
        /// Issuer in the document or the callback.
        found: String,
    },
    /// The response lacks the `iss` parameter that the authorization server advertises.
    #[error("the response lacks the issuer that the authorization server promised to send")]
    IssuerMissing,
    /// The authorization server does not support PKCE with S256.
    #[error(
        "the authorization server does not support PKCE with S256, which a secure login requires"
    )]
    NoPkce,
    /// No client is configured, and dynamic registration is not available.
    #[error(
        "the authorization server does not support client registration, and the entry has no client id"
    )]
    NoClient,
    /// The callback's `state` matches no login in progress.
    #[error("the response does not belong to this login")]
    StateMismatch,
    /// The authorization server or the user denied the request.
    #[error("the login was refused: {error}{}", in_brackets(.description.as_deref()))]
    Refused {
        /// OAuth error code, such as `access_denied`.
        error: String,
        /// Human-readable `error_description`.
        description: Option<String>,
    },
    /// The callback has neither a code nor an error.
    #[error("the response contains neither a code nor an error")]
    NoCode,
    /// The authorization server answered 5xx or 429.
    #[error("the authorization server is unavailable (HTTP status {0})")]
    Unavailable(u16),
    /// The configured grant type needs no interactive login.
    #[error("the server needs no interactive login")]
    NoPerson,
    /// A value that the entry refers to is missing.
    #[error("{0}")]
    Missing(String),
    /// The client's private key is unusable.
    #[error("the private key cannot be used: {0}")]
    BadKey(&'static str),
}

impl LoginErrorKind {
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Fetch(error) => error.is_passing(),
            Self::Unavailable(_) | Self::Vault(_) => true,
            _ => false,
        }
    }
}

impl From<FetchError> for LoginErrorKind {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

impl From<VaultError> for LoginErrorKind {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

fn in_brackets(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}

#[cfg(test)]
mod tests {
    use super::super::fetch::FetchErrorKind;
    use super::*;

    fn fetch(kind: FetchErrorKind) -> LoginErrorKind {
        LoginErrorKind::Fetch(FetchError {
            url: "https://h/".to_owned(),
            kind,
        })
    }

    #[test]
    fn the_hint_names_the_remedy_of_its_error() {
        let mismatch = || LoginErrorKind::IssuerMismatch {
            expected: "a".to_owned(),
            found: "b".to_owned(),
        };
        for (kind, expected) in [
            (LoginErrorKind::NoClient, Some("oauth.client_id")),
            (LoginErrorKind::StateMismatch, Some("tampering")),
            (mismatch(), Some("tampering")),
            (fetch(FetchErrorKind::Timeout), Some("try again later")),
            (fetch(FetchErrorKind::TooLarge), None),
            (LoginErrorKind::Unavailable(503), Some("try again later")),
            (LoginErrorKind::NoPerson, Some("needs no login")),
            (LoginErrorKind::BadKey("x"), Some("PKCS #8")),
            (LoginErrorKind::NoPkce, None),
        ] {
            let hint = LoginError::from(kind.clone()).hint();
            match expected {
                Some(words) => assert!(hint.is_some_and(|hint| hint.contains(words)), "{kind}"),
                None => assert_eq!(hint, None, "{kind}"),
            }
        }
    }

    #[test]
    fn a_refusal_does_not_pass_and_a_failure_does() {
        let refused = |description: Option<&str>| LoginErrorKind::Refused {
            error: "access_denied".to_owned(),
            description: description.map(str::to_owned),
        };
        for (kind, is_passing) in [
            (fetch(FetchErrorKind::Timeout), true),
            (fetch(FetchErrorKind::Redirected), false),
            (LoginErrorKind::Unavailable(429), true),
            (LoginErrorKind::NoPkce, false),
            (refused(None), false),
        ] {
            let error = LoginError::from(kind);
            assert_eq!(error.is_passing(), is_passing, "{error}");
        }
        assert_eq!(
            refused(Some("not you")).to_string(),
            "the login was refused: access_denied (not you)"
        );
        assert_eq!(
            refused(None).to_string(),
            "the login was refused: access_denied"
        );
    }
}
