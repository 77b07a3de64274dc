//! Tests of authorization against a scripted authorization server on loopback: logins, attacks on them, token refresh.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of a test fail by panicking"
)]

mod attempt;
mod callback;
mod clients;
mod discovery;
mod entries;
mod grants;
mod guard;
mod passthrough;
mod possession;
mod proof;
mod rotation;
mod secrecy;
mod socket;
mod step_up;
mod world;

use std::sync::Arc;

use switchboard::internal::auth::{Authorizer, Credentials, OAuth, Refusal, Target, Verdict};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{RemoteServer, StreamableConnector};
use switchboard::{CallError, CallOutcome, CallRequest, Host, HostOptions, ServerName};
use world::World;

/// A host with the scripted server, after its first attempt to connect.
async fn host(world: &World, oauth: OAuth) -> Host {
    let host = Host::with_options(HostOptions::default());
    let mut server = RemoteServer::new(world.resource.as_str());
    server.authorizer = Some(Arc::new(oauth));
    let connector = StreamableConnector::new(&world.client, server).expect("a connector");
    let key = ConnectionKey::of(&[b"world"]);
    let spec = ServerSpec::new("world", Arc::new(connector), key);
    let _ = host.add_server(spec).await;
    host
}

fn state(host: &Host) -> &'static str {
    let status = host.status(&ServerName::from("world"));
    status.expect("the server is there").word()
}

/// Reconnects the server and waits until it has settled.
async fn restart(host: &Host) -> &'static str {
    host.restart(&ServerName::from("world")).await;
    host.settled().await;
    state(host)
}

async fn call(host: &Host) -> Result<CallOutcome, CallError> {
    let request = CallRequest {
        tool: "world/tool".to_owned(),
        ..CallRequest::default()
    };
    host.request(request).await
}

/// The credentials for a request to the scripted server.
async fn credentials(world: &World, oauth: &OAuth) -> Credentials {
    let target = Target {
        method: "POST",
        url: &world.resource,
    };
    oauth.credentials(target).await
}

/// The value of the authorization header.
fn authorization(credentials: &Credentials) -> Option<&str> {
    let mut headers = credentials.headers.iter();
    let found = headers.find(|(name, _)| *name == "authorization");
    found.map(|(_, value)| value.expose())
}

/// The verdict about a 401 for a request with these credentials.
async fn unauthorized(world: &World, oauth: &OAuth, shown: &Credentials) -> Verdict {
    refused(
        world,
        oauth,
        shown,
        401,
        "Bearer error=\"invalid_token\"",
        0,
    )
    .await
}

async fn refused(
    world: &World,
    oauth: &OAuth,
    shown: &Credentials,
    status: u16,
    challenge: &str,
    attempts: u32,
) -> Verdict {
    let target = Target {
        method: "POST",
        url: &world.resource,
    };
    let challenges = [challenge.to_owned()];
    let refusal = Refusal {
        status,
        challenges: &challenges,
        attempts,
    };
    oauth.refused(target, shown, refusal).await
}
