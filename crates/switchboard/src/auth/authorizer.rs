//! The [`Authorizer`] trait: the transport calls it for credentials before each request and after each 401 or 403.

use std::fmt;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use url::Url;

/// Supplies the current credentials for requests to one server. Never waits for user interaction.
pub trait Authorizer: fmt::Debug + Send + Sync + 'static {
    /// Returns the headers that authorize this request, or none without a login.
    ///
    /// Refreshes a token that is about to expire. If the refresh fails, the old token is sent and the server decides.
    fn credentials<'a>(&'a self, target: Target<'a>) -> BoxFuture<'a, Credentials>;

    /// Handles a 401 or 403 response to `target`; decides whether a retry with other credentials can succeed.
    ///
    /// Retries are bounded: repeated calls for one request end with [`Verdict::NeedsPerson`] or [`Verdict::Final`].
    fn refused<'a>(
        &'a self,
        target: Target<'a>,
        shown: &'a Credentials,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Verdict>;

    /// Stores the nonce from a response, successful or not, for the next `DPoP` proof.
    fn nonce(&self, url: &Url, nonce: &str);
}

/// The request to authorize.
#[derive(Debug, Clone, Copy)]
pub struct Target<'r> {
    /// HTTP method, in upper case.
    pub method: &'r str,
    /// The request URL.
    pub url: &'r Url,
}

/// Authorization headers of one request.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Header names and values.
    pub headers: Vec<(&'static str, Secret)>,
    /// Generation of the token, so that a refusal of an old token never invalidates a newer one.
    pub generation: u64,
}

/// A 401 or 403 response.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'r> {
    /// 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: &'r [String],
    /// How many times this request has already been refused and retried.
    pub attempts: u32,
}

/// How to react to a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Retry the request with new credentials.
    Again,
    /// A user has to log in or to grant more scopes.
    NeedsPerson,
    /// The refusal is not about authorization and stands.
    Final,
    /// New credentials are temporarily unavailable, with the reason. The login stays valid.
    Unavailable(String),
}
