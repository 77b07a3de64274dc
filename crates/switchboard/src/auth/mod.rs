//! OAuth authorization for remote servers.
//!
//! | where | what |
//! |---|---|
//! | [`Authorizer`] (`authorizer.rs`) | called by the transport before each request and after each refusal |
//! | [`OAuth`] (`session.rs`) | authorizer of one server: loads, sends, refreshes and drops its tokens |
//! | [`Login`], [`logout`] (`login.rs`) | interactive login: from the authorization URL to stored tokens |
//! | `grant.rs` | grants without user interaction |
//! | [`ProtectedServer`] (`server.rs`) | a server's URL and its authorization settings |
//! | `discovery.rs`, `challenge.rs` | discovery of the authorization server; `WWW-Authenticate` parser |
//! | `client.rs`, `token.rs`, `jose.rs` | client registration; token requests; JWT signing |
//! | [`Fetcher`] (`fetch.rs`, `ssrf.rs`) | HTTP client with an SSRF policy for OAuth requests |
//! | [`interactive`] | browser, callback listener, pasted response |
//! | [`vault`], `record.rs` | secret storage and the stored records |
//!
//! Only [`interactive`] waits for a user: everywhere else a required login is returned as such, and the server's state
//! becomes needs-auth. A token is sent only to the resource it was issued for. Reasons in
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
pub use discovery::signing_keys;
pub use error::{LoginError, LoginErrorKind};
pub(crate) use fetch::DPOP_NONCE;
pub use fetch::{FetchErrorKind, Fetcher};
pub use login::{Callback, Login, LoginStart, is_logged_in, logout};
pub use server::{AuthSettings, Grant, ProtectedServer, SecretSource};
pub use session::{OAuth, Renewals};
pub use ssrf::Network;
