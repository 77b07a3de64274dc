//! Authorization: how the host proves to a remote server that it may speak with it.
//!
//! | where | what |
//! |---|---|
//! | [`Authorizer`] (`authorizer.rs`) | what a transport asks before each request, and after each refusal |
//! | [`OAuth`] (`session.rs`) | the authorizer of a server over time: loaded, shown, renewed, given up |
//! | [`Login`], [`logout`] (`login.rs`) | a person's consent: from the authorization URL to stored tokens |
//! | `grant.rs` | tokens that need no person |
//! | [`ProtectedServer`] (`server.rs`) | one server and what its entry says about authorization |
//! | `discovery.rs`, `challenge.rs` | where to log in, and what the server says about it |
//! | `client.rs`, `token.rs`, `jose.rs` | who the client is; one request to a token endpoint; what it signs |
//! | [`Fetcher`] (`fetch.rs`, `ssrf.rs`) | the HTTP client with the SSRF policy of everything that is no MCP |
//! | [`interactive`] | what a person sees of a login: a browser, its way back, an answer that is pasted |
//! | [`vault`], `record.rs` | where secrets are kept, and what of them |
//!
//! Nothing but [`interactive`] waits for a person: where one is needed, the answer says so, and the server's state becomes
//! needs-auth. A token is sent to the resource it was issued for and nowhere else. Reasons in
//! `docs/design/0004-authorization.md`.

mod authorizer;
mod challenge;
mod client;
mod discovery;
mod error;
mod fetch;
mod grant;
pub(crate) mod interactive;
mod jose;
mod login;
mod record;
mod server;
mod session;
mod ssrf;
mod token;
pub(crate) mod vault;

pub use authorizer::{Authorizer, Credentials, Refusal, Target, Verdict};
pub(crate) use challenge::wants_more_scope;
pub use error::{LoginError, LoginErrorKind};
pub(crate) use fetch::DPOP_NONCE;
pub use fetch::{FetchErrorKind, Fetcher};
pub use login::{Callback, Login, LoginStart, is_logged_in, logout};
pub use server::{AuthSettings, Grant, ProtectedServer, SecretSource};
pub use session::{OAuth, Renewals};
pub use ssrf::Network;
