//! The part of a login that a person sees: a browser, the address it is sent back to, or an answer that is pasted.
//!
//! Owns the way of the answer from the authorization server to this program, and nothing of what is in it: that is the
//! business of [`Login`]. Never prints and never reads the environment; both come from the front end.
//!
//! | where | what |
//! |---|---|
//! | [`Attempt`] | one login from its first to its last step |
//! | [`callback`] | the address on this machine that the browser is sent back to |
//! | [`paste`] | the same answer, pasted by a person |
//! | [`logins`] | logins that a model begins, waiting in the background |
//! | [`browser`] | opening an address in the user's browser |

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

/// A login that waits for a person.
#[derive(Debug)]
pub struct Attempt {
    url: Url,
    redirect_uri: Url,
    listener: Option<CallbackListener>,
    state: Secret,
    login: Login,
}

/// Why a login could not begin.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The entry's address for the callback cannot be used.
    #[error("the redirect URI {0} cannot be used")]
    RedirectUri(String),
    /// No port is to be had for the callback.
    #[error("cannot listen on {address} for the answer: {error}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// The authorization server, or the way to it.
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl BeginError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::RedirectUri(_) => Some(
                "set `oauth.redirect_uri` to an address such as http://127.0.0.1:8765/callback"
                    .to_owned(),
            ),
            Self::Listen { .. } => {
                Some("end what uses the port, or set another `oauth.callback_port`".to_owned())
            }
            Self::Login(error) => hint(error),
        }
    }
}

/// What to do about a login that failed.
pub fn hint(error: &LoginError) -> Option<String> {
    match &error.kind {
        LoginErrorKind::Vault(error) => error.hint.clone(),
        _ => error.hint().map(ToString::to_string),
    }
}

impl Attempt {
    /// Listens for the answer, and finds out where the person is to go.
    pub async fn begin(
        server: ProtectedServer,
        fetcher: Fetcher,
        vault: Arc<dyn Vault>,
        address: CallbackAddress,
    ) -> Result<Self, BeginError> {
        let listening = CallbackListener::bind(&address).await;
        let (redirect_uri, listener) = match listening {
            Ok(listener) => (listener.redirect_uri().clone(), Some(listener)),
            // The browser is sent somewhere else, so the answer can only be pasted.
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

    /// Where the person is to go: an `http` or `https` address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the browser can bring the answer by itself.
    pub fn listens(&self) -> bool {
        self.listener.is_some()
    }

    /// Waits for the browser to bring the answer. Waits for ever where nothing listens; the caller has a deadline.
    pub async fn answer(&self) -> Callback {
        match &self.listener {
            Some(listener) => listener.answer(&self.state).await,
            None => std::future::pending().await,
        }
    }

    /// Reads an answer that a person has pasted.
    pub fn read_pasted(&self, text: &str) -> Result<Callback, PasteError> {
        paste::read(text, &self.redirect_uri, &self.state)
    }

    /// Redeems the answer and keeps the login.
    pub async fn finish(self, answer: Callback) -> Result<(), LoginError> {
        self.login.finish(answer).await
    }
}
