//! Tests of grants without user interaction.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use switchboard::internal::auth::{
    AuthSettings, Grant, LoginErrorKind, OAuth, SecretSource, Verdict,
};
use switchboard_config::secret::Secret;
use switchboard_store::Clock;
use url::Url;

use crate::rotation::Later;
use crate::world::World;
use crate::{call, credentials, host, state, unauthorized};

fn machine(grant: Grant) -> AuthSettings {
    AuthSettings {
        client_id: Some("machine".to_owned()),
        client_secret: Some(Secret::new("hunter2")),
        grant,
        ..AuthSettings::default()
    }
}

fn value(text: &str) -> SecretSource {
    SecretSource::Value(Secret::new(text))
}

/// Connects, calls, loses the token and calls again, all without user interaction.
async fn works_alone(world: &World, settings: AuthSettings, requests: &[&str]) {
    let server = world.server(settings);
    let host = host(world, world.oauth(&server)).await;
    assert_eq!(state(&host), "connected");
    call(&host).await.expect("the call is answered");
    world.expire();
    call(&host).await.expect("the call is answered again");
    host.shutdown().await;
    let kinds: Vec<String> = world
        .seen("auth POST /token")
        .into_iter()
        .map(|seen| seen.form["grant_type"].clone())
        .collect();
    assert_eq!(kinds, [requests, requests].concat());
}

#[tokio::test]
async fn a_client_of_its_own_needs_nobody() {
    let world = World::start().await;
    let settings = machine(Grant::ClientCredentials);
    works_alone(&world, settings, &["client_credentials"]).await;
}

#[tokio::test]
async fn a_client_signs_who_it_is() {
    let world = World::start().await;
    let document =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .expect("a key");
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        BASE64_STANDARD.encode(&document)
    );
    let settings = AuthSettings {
        client_id: Some("signer".to_owned()),
        private_key: Some(value(&pem)),
        key_id: Some("k1".to_owned()),
        grant: Grant::ClientCredentials,
        ..AuthSettings::default()
    };
    works_alone(&world, settings, &["client_credentials"]).await;

    let assertion = world.seen("auth POST /token")[0].form["client_assertion"].clone();
    let (signed, signature) = assertion.rsplit_once('.').expect("a token");
    let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64");
    let pair = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        document.as_ref(),
        &SystemRandom::new(),
    );
    let pair = pair.expect("a key");
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key())
        .verify(signed.as_bytes(), &decode(signature))
        .expect("the signature holds");
    let parts: Vec<Value> = signed
        .split('.')
        .map(|part| serde_json::from_slice(&decode(part)).expect("JSON"))
        .collect();
    assert_eq!(parts[0], json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
    let claims = &parts[1];
    assert_eq!(claims["iss"], "signer");
    assert_eq!(claims["sub"], "signer");
    assert_eq!(claims["aud"], world.issuer.as_str());
    let lifetime = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!(lifetime, 300);
}

#[tokio::test]
async fn an_enterprise_vouches_for_its_people() {
    let world = World::start().await;
    let settings = machine(Grant::EnterpriseManaged {
        token_endpoint: Url::parse(&format!("{}/token", world.issuer)).unwrap(),
        client_id: Some("at-the-provider".to_owned()),
        client_secret: None,
        id_token: value("id-token"),
    });
    let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    let bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    works_alone(&world, settings, &[exchange, bearer]).await;
}

#[tokio::test]
async fn a_platform_vouches_for_its_workloads() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "platform-token\n").unwrap();
    let settings = AuthSettings {
        client_id: Some("workload".to_owned()),
        grant: Grant::WorkloadIdentity {
            assertion: SecretSource::File(file),
        },
        ..AuthSettings::default()
    };
    let bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    works_alone(&world, settings, &[bearer]).await;
}

#[tokio::test]
async fn a_grant_that_is_refused_is_not_asked_for_again_at_once() {
    let world = World::start().await;
    let server = world.server(machine(Grant::WorkloadIdentity {
        assertion: value("forged"),
    }));
    let oauth = world.oauth(&server);
    for _ in 0..3 {
        let shown = credentials(&world, &oauth).await;
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert_eq!(verdict, Verdict::NeedsPerson);
    }
    assert_eq!(world.seen("auth POST /token").len(), 1);
}

#[tokio::test]
async fn a_refused_grant_is_requested_again_after_a_minute() {
    let world = World::start().await;
    let server = world.server(machine(Grant::WorkloadIdentity {
        assertion: value("forged"),
    }));
    let clock = Later::new();
    let oauth = OAuth::with_clock(
        server,
        world.fetcher(),
        world.vault(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    for (seconds, expected) in [(0, 1), (59, 1), (60, 2), (119, 2), (120, 3)] {
        clock.set(seconds);
        let shown = credentials(&world, &oauth).await;
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert_eq!(verdict, Verdict::NeedsPerson);
        let requests = world.seen("auth POST /token").len();
        assert_eq!(requests, expected, "at {seconds} s");
    }
}

#[tokio::test]
async fn a_workload_without_a_client_id_sends_none() {
    for client_id in [None, Some("workload")] {
        let world = World::start().await;
        let settings = AuthSettings {
            client_id: client_id.map(str::to_owned),
            grant: Grant::WorkloadIdentity {
                assertion: value("platform-token"),
            },
            ..AuthSettings::default()
        };
        let oauth = world.oauth(&world.server(settings));
        let shown = credentials(&world, &oauth).await;
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert_eq!(verdict, Verdict::Again);
        let seen = world.seen("auth POST /token");
        let sent = seen[0].form.get("client_id").map(String::as_str);
        assert_eq!((seen.len(), sent), (1, client_id));
    }
}

#[tokio::test]
async fn nobody_can_log_in_where_no_person_is_wanted() {
    let world = World::start().await;
    let server = world.server(machine(Grant::ClientCredentials));
    let error = world.log_in(&server).await.unwrap_err();
    assert!(matches!(error, LoginErrorKind::NoPerson), "{error}");
}

#[tokio::test]
async fn scopes_are_asked_for_if_there_are_any() {
    for (scopes, expected) in [(&["a", "b"][..], Some("a b")), (&[], None)] {
        let world = World::start().await;
        let grant = Grant::EnterpriseManaged {
            token_endpoint: Url::parse(&format!("{}/token", world.issuer)).unwrap(),
            client_id: None,
            client_secret: None,
            id_token: value("id-token"),
        };
        let settings = AuthSettings {
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            ..machine(grant)
        };
        let oauth = world.oauth(&world.server(settings));
        let shown = credentials(&world, &oauth).await;
        unauthorized(&world, &oauth, &shown).await;
        let seen = world.seen("auth POST /token");
        assert_eq!(seen.len(), 2, "an exchange and a grant");
        for request in seen {
            let scope = request.form.get("scope").map(String::as_str);
            assert_eq!(scope, expected);
        }
    }
}
