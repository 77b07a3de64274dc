//! Client-side era negotiation: every answer and its step.

use switchboard_protocol::{
    ErrorCode, ErrorObject, Limits, Revision,
    negotiate::{
        Because, Failure, HttpAnswer, NegotiationReply, NoAnswer, Offer, Step, StreamAnswer,
        VersionProblem, accept_version, after_discover, after_initialize, after_initialize_post,
        after_legacy_get, after_modern_post,
    },
    parse,
};

use crate::raw;

use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

const ALL: Offer<'static> = Offer {
    supported: &Revision::ALL,
    asked: V2026_07_28,
};

const AFTER_HANDSHAKE: Offer<'static> = Offer {
    supported: &Revision::ALL,
    asked: V2025_11_25,
};

fn fallback(because: Because) -> Step {
    Step::Initialize {
        revision: V2025_11_25,
        because,
    }
}

fn no_common(offered: &[&str]) -> Step {
    Step::Fail(Failure::NoCommonRevision {
        offered: offered.iter().map(ToString::to_string).collect(),
    })
}

fn discovered(versions: &str) -> String {
    format!(r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{}}}}"#)
}

#[test]
fn a_discover_result_decides() {
    let only_stateful = |revision| Step::Initialize {
        revision,
        because: Because::OnlyStatefulRevisions,
    };
    for (versions, expected) in [
        (r#"["2026-07-28"]"#, Step::Stateless(V2026_07_28)),
        (
            r#"["2025-11-25","2026-07-28"]"#,
            Step::Stateless(V2026_07_28),
        ),
        (
            r#"["2030-01-01","2026-07-28"]"#,
            Step::Stateless(V2026_07_28),
        ),
        (r#"[null,7,"2026-07-28"]"#, Step::Stateless(V2026_07_28)),
        (r#"["2025-06-18","2024-11-05"]"#, only_stateful(V2025_06_18)),
        (r#"["2030-01-01","2024-11-05"]"#, only_stateful(V2024_11_05)),
        (r#"["2030-01-01"]"#, no_common(&["2030-01-01"])),
        ("[]", fallback(Because::NotADiscoverResult)),
        ("[7]", fallback(Because::NotADiscoverResult)),
        (r#""2026-07-28""#, fallback(Because::NotADiscoverResult)),
        ("null", fallback(Because::NotADiscoverResult)),
    ] {
        let result = discovered(versions);
        assert_eq!(
            after_discover(ALL, NegotiationReply::Result(raw(&result))),
            expected,
            "{versions}"
        );
    }
    for result in ["{}", "null", "[]", "\"ok\"", r#"{"tools":[]}"#] {
        let step = after_discover(ALL, NegotiationReply::Result(raw(result)));
        assert_eq!(step, fallback(Because::NotADiscoverResult), "{result}");
    }
}

/// Modern errors with their required data.
fn modern_errors() -> Vec<(&'static str, Step)> {
    vec![
        (
            r#"{"code":-32022,"message":"m","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}"#,
            Step::Initialize {
                revision: V2025_06_18,
                because: Because::OnlyStatefulRevisions,
            },
        ),
        (
            r#"{"code":-32022,"message":"m","data":{"supported":["2030-01-01"],"requested":"2026-07-28"}}"#,
            no_common(&["2030-01-01"]),
        ),
        (
            r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}"#,
            Step::Retry(V2026_07_28),
        ),
        (
            r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28","2025-11-25"],"requested":"x"}}"#,
            fallback(Because::OnlyStatefulRevisions),
        ),
        (r#"{"code":-32020,"message":"m"}"#, Step::Retry(V2026_07_28)),
        (
            r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{}}}}"#,
            Step::Retry(V2026_07_28),
        ),
    ]
}

/// All other errors, including modern codes without their data.
const OTHER_ERRORS: [&str; 12] = [
    r#"{"code":-32601,"message":"Method not found"}"#,
    r#"{"code":-32602,"message":"Invalid request parameters"}"#,
    r#"{"code":-32600,"message":"not initialized"}"#,
    r#"{"code":-32603,"message":"internal"}"#,
    r#"{"code":-32000,"message":"Bad Request: Server not initialized"}"#,
    r#"{"code":-32002,"message":"Server not initialized"}"#,
    r#"{"code":-32001,"message":"Session not found"}"#,
    r#"{"code":0,"message":""}"#,
    r#"{"code":"NOT_READY"}"#,
    r#"{"code":-32022,"message":"no list"}"#,
    r#"{"code":-32022,"message":"empty list","data":{"supported":[]}}"#,
    r#"{"code":-32021,"message":"no capabilities","data":{}}"#,
];

#[test]
fn on_stdio_a_modern_error_stays_and_any_other_falls_back() {
    for (error, expected) in modern_errors() {
        let error = ErrorObject::from_raw(raw(error));
        assert_eq!(
            after_discover(ALL, NegotiationReply::Error(&error)),
            expected,
            "{error}"
        );
    }
    for error in OTHER_ERRORS {
        let error = ErrorObject::from_raw(raw(error));
        let expected = fallback(Because::Error(error.code));
        assert_eq!(
            after_discover(ALL, NegotiationReply::Error(&error)),
            expected,
            "{error}"
        );
    }
    assert_eq!(
        after_discover(ALL, NegotiationReply::Silence),
        fallback(Because::Silence)
    );
    assert_eq!(
        after_discover(ALL, NegotiationReply::Closed),
        fallback(Because::Closed)
    );
    assert_eq!(
        after_discover(ALL, NegotiationReply::Unreadable),
        fallback(Because::Unreadable)
    );
}

#[test]
fn without_a_stateful_revision_there_is_no_falling_back() {
    let modern_only = Offer {
        supported: &[V2026_07_28],
        asked: V2026_07_28,
    };
    let needed = Step::Fail(Failure::HandshakeNeeded(Because::Silence));
    assert_eq!(
        after_discover(modern_only, NegotiationReply::Silence),
        needed
    );
    let result = discovered(r#"["2025-11-25"]"#);
    assert_eq!(
        after_discover(modern_only, NegotiationReply::Result(raw(&result))),
        no_common(&["2025-11-25"])
    );
}

#[test]
fn the_answer_to_initialize_must_name_a_version_we_speak() {
    for (answered, expected) in [
        (Some("2025-11-25"), Ok(V2025_11_25)),
        (Some("2024-11-05"), Ok(V2024_11_05)),
        (Some("2026-07-28"), Err(VersionProblem::Stateless)),
        (Some("2025-06-17"), Err(VersionProblem::Unknown)),
        (Some(""), Err(VersionProblem::Unknown)),
        (None, Err(VersionProblem::Missing)),
    ] {
        assert_eq!(
            accept_version(answered, &Revision::ALL),
            expected,
            "{answered:?}"
        );
    }
    assert_eq!(
        accept_version(Some("2024-11-05"), &[V2025_11_25]),
        Err(VersionProblem::NotSupported)
    );
}

#[test]
fn initialize_succeeds_fails_or_turns_modern() {
    let check = |answer: NegotiationReply<'_>, expected: Step| {
        assert_eq!(
            after_initialize(AFTER_HANDSHAKE, answer),
            expected,
            "{answer:?}"
        );
    };
    let version = |answered: Option<&str>, why| {
        Step::Fail(Failure::Version {
            answered: answered.map(str::to_owned),
            why,
        })
    };
    check(
        NegotiationReply::Result(raw(r#"{"protocolVersion":"2025-06-18"}"#)),
        Step::Stateful(V2025_06_18),
    );
    check(
        NegotiationReply::Result(raw(r#"{"protocolVersion":"1.0"}"#)),
        version(Some("1.0"), VersionProblem::Unknown),
    );
    check(
        NegotiationReply::Result(raw(r#"{"protocolVersion":1}"#)),
        version(None, VersionProblem::Missing),
    );
    check(
        NegotiationReply::Result(raw("null")),
        version(None, VersionProblem::Missing),
    );
    check(
        NegotiationReply::Silence,
        Step::Fail(Failure::NoAnswer(NoAnswer::Silence)),
    );
    check(
        NegotiationReply::Closed,
        Step::Fail(Failure::NoAnswer(NoAnswer::Closed)),
    );
    check(
        NegotiationReply::Unreadable,
        Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
    );

    let refused = ErrorObject::new(ErrorCode(-32603), "no");
    check(
        NegotiationReply::Error(&refused),
        Step::Fail(Failure::Refused(refused.clone())),
    );
    let modern = ErrorObject::unsupported_version("2025-11-25", &[V2026_07_28]);
    check(NegotiationReply::Error(&modern), Step::Retry(V2026_07_28));
    let header = ErrorObject::new(ErrorCode::HEADER_MISMATCH, "no");
    check(NegotiationReply::Error(&header), Step::Retry(V2026_07_28));
    let other = ErrorObject::unsupported_version("2025-11-25", &[V2025_06_18]);
    check(
        NegotiationReply::Error(&other),
        Step::Initialize {
            revision: V2025_06_18,
            because: Because::OnlyStatefulRevisions,
        },
    );
}

enum Body {
    None,
    Result(String),
    Error(&'static str),
}

fn post(
    after: fn(Offer<'_>, HttpAnswer<'_>) -> Step,
    offer: Offer<'_>,
    status: u16,
    body: &Body,
) -> Step {
    let error;
    let answer = match body {
        Body::None => NegotiationReply::Unreadable,
        Body::Result(result) => NegotiationReply::Result(raw(result)),
        Body::Error(text) => {
            error = ErrorObject::from_raw(raw(text));
            NegotiationReply::Error(&error)
        }
    };
    after(offer, HttpAnswer { status, answer })
}

const METHOD_NOT_FOUND: &str = OTHER_ERRORS[0];

#[test]
fn a_modern_post_is_judged_by_its_body() {
    let check = |status: u16, body: &Body, expected: Step| {
        assert_eq!(
            post(after_modern_post, ALL, status, body),
            expected,
            "{status}"
        );
    };
    check(
        200,
        &Body::Result(discovered(r#"["2026-07-28"]"#)),
        Step::Stateless(V2026_07_28),
    );
    check(
        200,
        &Body::Result("{}".into()),
        fallback(Because::NotADiscoverResult),
    );
    check(202, &Body::None, fallback(Because::NotADiscoverResult));
    check(200, &Body::None, fallback(Because::NotADiscoverResult));
    for status in [200, 400, 404, 422] {
        for (error, expected) in modern_errors() {
            check(status, &Body::Error(error), expected);
        }
    }
    for status in [400, 405, 406, 415, 500] {
        check(status, &Body::None, fallback(Because::Status(status)));
        for error in OTHER_ERRORS {
            check(
                status,
                &Body::Error(error),
                fallback(Because::Status(status)),
            );
        }
    }
    for error in OTHER_ERRORS {
        let code = ErrorObject::from_raw(raw(error)).code;
        check(200, &Body::Error(error), fallback(Because::Error(code)));
    }
    check(
        404,
        &Body::Error(METHOD_NOT_FOUND),
        Step::Stateless(V2026_07_28),
    );
    check(
        404,
        &Body::Error(OTHER_ERRORS[1]),
        fallback(Because::Status(404)),
    );
    check(404, &Body::None, fallback(Because::Status(404)));
}

#[test]
fn some_statuses_say_nothing_about_the_era() {
    for after in [after_modern_post, after_initialize_post] {
        for (status, expected) in [
            (401, Step::Authorize),
            (403, Step::Authorize),
            (408, Step::TryLater),
            (429, Step::TryLater),
            (502, Step::TryLater),
            (503, Step::TryLater),
            (504, Step::TryLater),
            (302, Step::Fail(Failure::NotMcp { status: 302 })),
        ] {
            assert_eq!(post(after, ALL, status, &Body::None), expected, "{status}");
            assert_eq!(
                post(after, ALL, status, &Body::Error(METHOD_NOT_FOUND)),
                expected,
                "{status}"
            );
        }
    }
}

#[test]
fn an_initialize_post_leads_on_to_the_legacy_stream() {
    let check = |status: u16, body: &Body, expected: Step| {
        assert_eq!(
            post(after_initialize_post, AFTER_HANDSHAKE, status, body),
            expected,
            "{status}"
        );
    };
    check(
        200,
        &Body::Result(r#"{"protocolVersion":"2025-11-25"}"#.into()),
        Step::Stateful(V2025_11_25),
    );
    check(
        200,
        &Body::None,
        Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
    );
    for status in [400, 404, 405] {
        check(status, &Body::None, Step::TryLegacyStream);
        check(status, &Body::Error(OTHER_ERRORS[4]), Step::TryLegacyStream);
    }
    let refused = |error: &'static str| {
        Step::Fail(Failure::Refused(
            ErrorObject::from_raw(raw(error)).into_owned(),
        ))
    };
    check(
        404,
        &Body::Error(METHOD_NOT_FOUND),
        refused(METHOD_NOT_FOUND),
    );
    check(200, &Body::Error(OTHER_ERRORS[3]), refused(OTHER_ERRORS[3]));
    check(500, &Body::Error(OTHER_ERRORS[3]), refused(OTHER_ERRORS[3]));
    check(
        500,
        &Body::None,
        Step::Fail(Failure::NotMcp { status: 500 }),
    );
    check(
        400,
        &Body::Error(r#"{"code":-32020,"message":"m"}"#),
        Step::Retry(V2026_07_28),
    );
    check(
        400,
        &Body::Error(r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}"#),
        Step::Retry(V2026_07_28),
    );
}

#[test]
fn the_legacy_stream_shows_itself_by_its_first_event() {
    for (answer, expected) in [
        (StreamAnswer::Endpoint, Step::LegacyStream),
        (StreamAnswer::OtherStream, Step::Fail(Failure::NoEndpoint)),
        (
            StreamAnswer::Status(404),
            Step::Fail(Failure::NotMcp { status: 404 }),
        ),
        (
            StreamAnswer::Status(200),
            Step::Fail(Failure::NotMcp { status: 200 }),
        ),
        (StreamAnswer::Status(401), Step::Authorize),
        (StreamAnswer::Status(503), Step::TryLater),
    ] {
        assert_eq!(after_legacy_get(answer), expected, "{answer:?}");
    }
}

#[test]
fn failures_read_well() {
    let text_of = |step: Step| match step {
        Step::Fail(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        text_of(no_common(&["2030-01-01", "x\u{1b}"])),
        r"no protocol version in common, the server offers `2030-01-01`, `x\u{1b}`"
    );
    assert_eq!(
        text_of(after_initialize(
            ALL,
            NegotiationReply::Result(raw(r#"{"protocolVersion":"9"}"#))
        )),
        "the server answered initialize with `9`: this version is unknown here"
    );
    assert_eq!(
        text_of(after_initialize(ALL, NegotiationReply::Result(raw("{}")))),
        "the server answered initialize with no version: protocolVersion is missing or not a string"
    );
}

#[test]
fn a_message_is_an_answer_as_it_stands() {
    let step = |text: &str| {
        let incoming = parse(text.as_bytes(), &Limits::default()).unwrap();
        let message = incoming.into_messages().next().unwrap().unwrap().message;
        let offer = Offer {
            supported: &Revision::ALL,
            asked: Revision::LATEST,
        };
        after_discover(offer, NegotiationReply::from(&message))
    };
    let initialize = |because| Step::Initialize {
        revision: Revision::LATEST_STATEFUL,
        because,
    };
    assert_eq!(
        step(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#),
        Step::Stateless(Revision::LATEST)
    );
    assert_eq!(
        step(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#),
        initialize(Because::Error(ErrorCode::METHOD_NOT_FOUND))
    );
    assert_eq!(
        step(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        initialize(Because::Unreadable)
    );
}
