//! Authorization: how the host proves to a remote server that it may speak with it.
//!
//! | where | what |
//! |---|---|
//! | [`Authorizer`] | what a transport asks before each request, and after each refusal |
//! | [`Login`], [`logout`] (`login.rs`) | a person's consent: from the authorization URL to stored tokens |
//! | [`ProtectedServer`] (`server.rs`) | one server and what its entry says about authorization |
//! | [`Fetcher`] (`fetch.rs`) | the guarded HTTP client of everything that is no MCP |
//! | [`vault`] | where secrets are kept, and the lock that lets one process at a time renew them |
//!
//! Nothing in here waits for a person: where one is needed, the answer says so, and the server's state becomes
//! needs-auth. A token is sent to the resource it was issued for and nowhere else.

mod authorizer;
mod fetch;
mod login;
mod server;
pub mod vault;

pub use authorizer::{Authorizer, Credentials, Refusal, Target, Verdict};
pub use fetch::{FetchError, FetchErrorKind, Fetcher};
pub use login::{Callback, Login, LoginError, LoginErrorKind, LoginStart, logout};
pub use server::{AuthSettings, Grant, ProtectedServer};
