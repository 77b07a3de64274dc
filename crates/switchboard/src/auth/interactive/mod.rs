//! Interactive part of a login: the browser, the callback, or a pasted response.
//!
//! Transports the authorization response to this process; [`Login`] interprets it. Never prints and never reads the
//! environment; the front end passes both in.
//!
//! | where | what |
//! |---|---|
//! | [`Attempt`] | one login from start to finish |
//! | [`callback`] | listener for the OAuth redirect |
//! | [`paste`] | parser for a response pasted by the user |
//! | [`logins`] | background logins started by a model |
//! | [`browser`] | opens a URL in the user's browser |

pub(crate) mod browser;
pub(crate) mod callback;
pub(crate) mod logins;
pub(crate) mod paste;

use std::io;
use std::sync::Arc;

use switchboard_config::secret::Secret;
use url::Url;

use super::vault::Vault;
use super::{Callback, Fetcher, Login, LoginError, LoginErrorKind, ProtectedServer};
use callback::{CallbackAddress, CallbackListener};
use paste::PasteError;

/// A login that waits for the callback or a pasted response.
#[derive(Debug)]
pub struct Attempt {
    url: Url,
    redirect_uri: Url,
    listener: Option<CallbackListener>,
    state: Secret,
    login: Login,
}

/// Cause of a failure to start a login.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The entry's redirect URI is invalid.
    #[error("invalid redirect URI {0}")]
    RedirectUri(String),
    /// Cannot bind the callback port.
    #[error("cannot listen on {address} for the callback: {error}")]
    Listen {
        /// Address and port.
        address: String,
        /// Error of the bind.
        error: Arc<io::Error>,
    },
    /// Discovery or client registration failed.
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl BeginError {
    /// Returns a remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::RedirectUri(_) => Some(
                "set `oauth.redirect_uri` to an address such as http://127.0.0.1:8765/callback"
                    .to_owned(),
            ),
            Self::Listen { .. } => Some(
                "stop the program that uses the port, or set another `oauth.callback_port`"
                    .to_owned(),
            ),
            Self::Login(error) => hint(error),
        }
    }
}

/// Returns a remedy for a failed login, if one is known.
pub fn hint(error: &LoginError) -> Option<String> {
    match &error.kind {
        LoginErrorKind::Vault(error) => error.hint.clone(),
        _ => error.hint().map(ToString::to_string),
    }
}

impl Attempt {
    /// Binds the callback listener and requests the authorization URL.
    pub async fn begin(
        server: ProtectedServer,
        fetcher: Fetcher,
        vault: Arc<dyn Vault>,
        address: CallbackAddress,
    ) -> Result<Self, BeginError> {
        let listening = CallbackListener::bind(&address).await;
        let (redirect_uri, listener) = match listening {
            Ok(listener) => (listener.redirect_uri().clone(), Some(listener)),
            // The redirect goes to another machine, so the response must be pasted.
            Err(callback::BindError::Elsewhere(url)) => (url, None),
            Err(callback::BindError::Unusable(url)) => return Err(BeginError::RedirectUri(url)),
            Err(callback::BindError::Io { address, error }) => {
                let error = Arc::new(error);
                return Err(BeginError::Listen { address, error });
            }
        };
        let start = Login::begin(server, fetcher, vault, redirect_uri.clone()).await?;
        let url = start.authorization_url;
        let mut parameters = url.query_pairs();
        let state = parameters.find(|(name, _)| name == "state");
        let state = Secret::new(state.map_or_else(String::new, |(_, value)| value.into_owned()));
        Ok(Self {
            url,
            redirect_uri,
            listener,
            state,
            login: start.login,
        })
    }

    /// Authorization URL for the user to open: `http` or `https`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether a callback listener is bound; otherwise the response must be pasted.
    pub fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Waits for the callback. Without a listener it never returns, so callers need a deadline.
    pub async fn answer(&self) -> Callback {
        match &self.listener {
            Some(listener) => listener.answer(&self.state).await,
            None => std::future::pending().await,
        }
    }

    /// Parses a pasted authorization response.
    pub fn read_pasted(&self, text: &str) -> Result<Callback, PasteError> {
        paste::read(text, &self.redirect_uri, &self.state)
    }

    /// Redeems the code and stores the tokens.
    pub async fn finish(self, answer: Callback) -> Result<(), LoginError> {
        self.login.finish(answer).await
    }
}
