//! Tests that `Debug` output contains no secrets.

use std::fmt::Write as _;

use switchboard::internal::auth::{AuthSettings, Grant, SecretSource};
use switchboard_config::secret::Secret;

use crate::world::World;
use crate::{credentials, unauthorized};

#[tokio::test]
async fn what_can_be_printed_tells_no_secret() {
    let world = World::start().await;
    let settings = AuthSettings {
        client_id: Some("client".to_owned()),
        client_secret: Some(Secret::new("canary-secret")),
        private_key: Some(SecretSource::Value(Secret::new("canary-key"))),
        ..AuthSettings::default()
    };
    let mut printed = format!("{settings:?}");
    let grant = Grant::WorkloadIdentity {
        assertion: SecretSource::Value(Secret::new("canary-assertion")),
    };
    let _ = write!(printed, "{grant:?}");
    let settings = AuthSettings {
        private_key: None,
        ..settings
    };
    let server = world.server(settings);
    let start = world.begin(&server).await.unwrap();
    let _ = write!(printed, "{:?}", start.login);
    let callback = world.agree(&start.authorization_url);
    let _ = write!(printed, "{callback:?}");
    start.login.finish(callback).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    let _ = write!(printed, "{oauth:?} {shown:?} {:?}", world.vault);
    world.expire();
    let body = r#"{"error":"invalid_grant","error_description":"try another"}"#;
    let refusal = (400, None, body.to_owned());
    world.script().instead.insert("/token".to_owned(), refusal);
    let verdict = unauthorized(&world, &oauth, &shown).await;
    let _ = write!(printed, "{oauth:?} {verdict:?}");
    let error = world.log_in(&server).await.unwrap_err();
    let _ = write!(printed, "{error:?} {error}");

    let query = start.authorization_url.query_pairs();
    let state = query.into_owned().find(|(name, _)| name == "state");
    let (_, state) = state.expect("a state");
    let mut secrets = vec![state];
    secrets.extend(["canary-", "code-", "access-", "refresh-"].map(str::to_owned));
    for secret in secrets {
        assert!(!printed.contains(&secret), "{secret} is in {printed}");
    }
    // The output is not empty.
    assert!(printed.contains("OAuth(Inner"), "{printed}");
}
