//! Why a login, or anything on the way to a token, failed.

use super::fetch::FetchError;
use super::vault::VaultError;

/// A login failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct LoginError {
    /// Why.
    pub kind: LoginErrorKind,
}

impl<K: Into<LoginErrorKind>> From<K> for LoginError {
    fn from(kind: K) -> Self {
        Self { kind: kind.into() }
    }
}

impl LoginError {
    /// What somebody can do about it, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.kind {
            LoginErrorKind::NoClient => {
                "register a client with the authorization server and set `oauth.client_id`"
            }
            LoginErrorKind::StateMismatch | LoginErrorKind::IssuerMismatch { .. } => {
                "begin the login again; if it happens again, somebody may be tampering with it"
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

    /// Whether it may work later: it was the network, and nobody has said no.
    pub fn is_passing(&self) -> bool {
        self.kind.is_passing()
    }
}

/// Why a login failed. Texts from servers have been made harmless; none of it is secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoginErrorKind {
    /// Something could not be fetched.
    #[error("{0}")]
    Fetch(FetchError),
    /// The login could not be kept, or what is kept not be read.
    #[error("{0}")]
    Vault(VaultError),
    /// A document of the server, or of its authorization server, cannot be used.
    #[error("{url} {problem}")]
    Document {
        /// Where it is from.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The metadata is for another resource than the server.
    #[error("the metadata of the server is for another resource, {0}")]
    ResourceMismatch(String),
    /// The authorization server is not the one it should be.
    #[error("the authorization server calls itself {found} and not {expected}")]
    IssuerMismatch {
        /// What was expected.
        expected: String,
        /// What came.
        found: String,
    },
    /// The authorization server promised to say who it is, and did not.
    #[error("the answer does not say which authorization server it is from, as it should")]
    IssuerMissing,
    /// The authorization server cannot do PKCE with S256.
    #[error(
        "the authorization server does not offer PKCE with S256, without which a login is not safe"
    )]
    NoPkce,
    /// There is no client to log in with, and none can be registered.
    #[error("the authorization server registers no clients by itself, and the entry names none")]
    NoClient,
    /// The callback belongs to another login, or to none.
    #[error("the answer does not belong to this login")]
    StateMismatch,
    /// The authorization server, or the person, said no.
    #[error("the login was refused: {error}{}", in_brackets(.description.as_deref()))]
    Refused {
        /// The code of the error, such as `access_denied`.
        error: String,
        /// The same in words.
        description: Option<String>,
    },
    /// The callback has neither a code nor an error.
    #[error("the answer holds neither a code nor an error")]
    NoCode,
    /// The authorization server cannot do it just now.
    #[error("the authorization server cannot answer just now (HTTP status {0})")]
    Unavailable(u16),
    /// The entry's way to a token needs no person.
    #[error("the server is not logged in to by a person")]
    NoPerson,
    /// Something that the entry names for it is missing.
    #[error("{0}")]
    Missing(String),
    /// The key that signs for the client cannot be used.
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
