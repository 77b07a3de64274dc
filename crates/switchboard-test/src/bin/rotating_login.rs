//! One of several processes that share a login, for tests of concurrent token refresh.
//!
//! `rotating-login FOLDER URL` prints `ready`, waits for a line, gets the credentials for the server at `URL` from the
//! logins in `FOLDER`, as a transport does before a request, and prints the header. `rotating-login FOLDER hold` takes
//! the refresh lock, prints `ready`, and holds it until it is killed.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "output is its purpose, and a failure fails the test that started it"
)]

use std::io::Write as _;
use std::sync::Arc;

use switchboard::internal::auth::vault::sealed::SealedVault;
use switchboard::internal::auth::vault::{Vault, VaultKey};
use switchboard::internal::auth::{
    AuthSettings, Authorizer as _, Fetcher, OAuth, ProtectedServer, Target,
};
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard_config::settings::LoginStore;
use url::Url;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("a folder");
    let what = args.next().expect("an address, or hold");
    let vault: Arc<dyn Vault> = Arc::new(SealedVault::new(folder, LoginStore::File));
    if what == "hold" {
        let _lock = vault
            .lock(&VaultKey::of(&["held"]))
            .await
            .expect("the lock");
        ready();
        return std::future::pending().await;
    }
    let url = Url::parse(&what).expect("an address");
    let server = ProtectedServer::new(&url, AuthSettings::default()).expect("a server");
    let client = HttpClient::new(HttpSettings::default()).expect("a client");
    let oauth = OAuth::new(server, Fetcher::new(&client), vault);
    ready();
    let _ = std::io::stdin().read_line(&mut String::new());
    let (method, url) = ("POST", &url);
    let credentials = oauth.credentials(Target { method, url }).await;
    for (name, value) in credentials.headers {
        println!("{name}: {}", value.expose());
    }
}

fn ready() {
    println!("ready");
    let _ = std::io::stdout().flush();
}
