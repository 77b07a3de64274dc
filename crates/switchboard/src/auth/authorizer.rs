//! What a transport asks before each request, and after each refusal.

use std::fmt;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use url::Url;

/// Gives requests to one server the credentials of the moment. It never waits for a person.
pub trait Authorizer: fmt::Debug + Send + Sync + 'static {
    /// The headers that authorize this request; none where there is no login.
    ///
    /// A token that is about to expire is renewed first. Where that fails, the old one is sent: the server has the
    /// last word.
    fn credentials<'a>(&'a self, target: Target<'a>) -> BoxFuture<'a, Credentials>;

    /// The server has answered `target` with 401 or 403. Is there something better to show it now?
    ///
    /// Bounded: asked again and again for one request, it ends with [`Verdict::NeedsPerson`] or
    /// [`Verdict::Final`].
    fn refused<'a>(
        &'a self,
        target: Target<'a>,
        shown: &'a Credentials,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Verdict>;

    /// The server has answered, well or not, and given this nonce for the next proof of possession.
    fn nonce(&self, url: &Url, nonce: &str);
}

/// The request that is to be authorized.
#[derive(Debug, Clone, Copy)]
pub struct Target<'r> {
    /// Its method, in capitals.
    pub method: &'r str,
    /// Where it goes.
    pub url: &'r Url,
}

/// What a request is shown with.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Names and values of headers.
    pub headers: Vec<(&'static str, Secret)>,
    /// Which token it is, so that a refusal is never laid at the door of a newer one.
    pub generation: u64,
}

/// What the server said when it refused.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'r> {
    /// 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: &'r [String],
    /// How often this request has been refused and sent again before.
    pub attempts: u32,
}

/// What to do about a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Send the request again, with new credentials.
    Again,
    /// A person has to log in, or to agree to more.
    NeedsPerson,
    /// Authorization has nothing to do with it: the refusal stands.
    Final,
    /// New credentials could not be had just now, for this reason. The login is not lost.
    Unavailable(String),
}
