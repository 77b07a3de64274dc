//! Tests of a login's callback: its binding to the login and to the authorization server, and invalid parameters.

use switchboard::internal::auth::{AuthSettings, Callback, LoginErrorKind};
use switchboard_config::secret::Secret;

use crate::world::World;

/// Finishes a login with a tampered callback and returns the error. The code must not have left the client.
async fn tampered(tamper: impl FnOnce(&World, &mut Callback)) -> LoginErrorKind {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    let start = world.begin(&server).await.expect("a login");
    let mut callback = world.agree(&start.authorization_url);
    tamper(&world, &mut callback);
    let error = start.login.finish(callback).await.expect_err("no login");
    assert_eq!(world.seen("auth POST /token").len(), 0, "{error}");
    error.kind
}

#[tokio::test]
async fn a_callback_of_another_login_is_not_redeemed() {
    for state in [None, Some(""), Some("guess")] {
        let error = tampered(|_, callback| callback.state = state.map(Secret::new)).await;
        assert!(matches!(error, LoginErrorKind::StateMismatch), "{error}");
    }
}

#[tokio::test]
async fn a_callback_of_another_issuer_is_not_redeemed_nor_believed() {
    let wrong = |issuer: &str| {
        vec![
            "https://evil.example".to_owned(),
            format!("{issuer}/"),
            issuer.to_ascii_uppercase(),
            issuer.replace("127.0.0.1", "127.0.0.01"),
        ]
    };
    for index in 0..4 {
        for is_error in [false, true] {
            let error = tampered(|world, callback| {
                callback.iss = wrong(&world.issuer).into_iter().nth(index);
                if is_error {
                    callback.error = Some("access_denied".to_owned());
                }
            });
            let error = error.await;
            assert!(
                matches!(error, LoginErrorKind::IssuerMismatch { .. }),
                "{error}"
            );
        }
    }
    let error = tampered(|_, callback| callback.iss = None).await;
    assert!(matches!(error, LoginErrorKind::IssuerMissing), "{error}");
}

#[tokio::test]
async fn without_the_promise_of_an_issuer_none_is_needed_but_a_wrong_one_still_counts() {
    let world = World::start().await;
    world.script().metadata = serde_json::json!({
        "authorization_response_iss_parameter_supported": null,
    });
    let server = world.server(AuthSettings::default());
    for (issuer, is_accepted) in [(Some("https://evil.example"), false), (None, true)] {
        let start = world.begin(&server).await.expect("a login");
        let mut callback = world.agree(&start.authorization_url);
        callback.iss = issuer.map(str::to_owned);
        assert_eq!(start.login.finish(callback).await.is_ok(), is_accepted);
    }
}

#[tokio::test]
async fn a_refusal_is_told_and_made_harmless() {
    let error = tampered(|_, callback| {
        callback.code = None;
        callback.error = Some("access_denied".to_owned());
        callback.error_description = Some("no \u{1b}[31mthanks".to_owned());
    });
    let error = error.await.to_string();
    assert_eq!(
        error,
        "the login was refused: access_denied (no \\u{1b}[31mthanks)"
    );
    let error = tampered(|_, callback| callback.code = None).await;
    assert!(matches!(error, LoginErrorKind::NoCode), "{error}");
}

#[test]
fn a_callback_with_a_parameter_twice_is_worth_nothing() {
    let check = |query: &str, expected: (Option<&str>, Option<&str>, Option<&str>)| {
        let callback = Callback::from_query(query);
        let found = (
            callback.code.as_ref().map(Secret::expose),
            callback.state.as_ref().map(Secret::expose),
            callback.iss.as_deref(),
        );
        assert_eq!(found, expected, "{query}");
    };
    check(
        "code=a%2Bb&state=s&iss=https%3A%2F%2Fi&x=1",
        (Some("a+b"), Some("s"), Some("https://i")),
    );
    check("code=a&state=s&code=b", (None, None, None));
    check("state=s&state=s", (None, None, None));
    check("", (None, None, None));
}

#[test]
fn a_refusal_has_an_error_and_a_description() {
    let query = "error=access_denied&error_description=not%20you&state=s";
    let callback = Callback::from_query(query);
    assert_eq!(callback.error.as_deref(), Some("access_denied"));
    assert_eq!(callback.error_description.as_deref(), Some("not you"));
    assert_eq!(callback.state, Some(Secret::new("s")));
}
