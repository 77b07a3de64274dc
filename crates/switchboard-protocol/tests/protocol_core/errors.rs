//! Error objects that we create.

use switchboard_protocol::{ErrorCode, ErrorObject, Revision, encode};

fn written(error: &ErrorObject<'_>) -> String {
    let mut buffer = Vec::new();
    encode::error(&mut buffer, Some(&1.into()), error).unwrap();
    String::from_utf8(buffer).unwrap()
}

#[test]
fn the_prescribed_errors_have_the_prescribed_data() {
    assert_eq!(
        written(&ErrorObject::unsupported_version(
            "1900-01-01",
            &[Revision::V2026_07_28, Revision::V2025_11_25]
        )),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25"],"requested":"1900-01-01"}}}"#
    );
    assert_eq!(
        written(&ErrorObject::missing_client_capability(
            "elicitation is needed",
            &serde_json::json!({"elicitation": {}})
        )),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"elicitation is needed","data":{"requiredCapabilities":{"elicitation":{}}}}}"#
    );
}

#[test]
fn words_for_a_code_are_passed_on() {
    let raw = crate::raw(r#"{"code":"E_BUSY","message":"later","data":[ 1 ]}"#);
    assert_eq!(
        written(&ErrorObject::from_raw(raw)),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E_BUSY","message":"later","data":[ 1 ]}}"#
    );
}

#[test]
fn statuses_are_those_of_the_specification() {
    for (code, status) in [
        (ErrorCode::METHOD_NOT_FOUND, 404),
        (ErrorCode::HEADER_MISMATCH, 400),
        (ErrorCode::MISSING_CLIENT_CAPABILITY, 400),
        (ErrorCode::UNSUPPORTED_VERSION, 400),
        (ErrorCode::INVALID_PARAMS, 200),
        (ErrorCode(-1), 200),
    ] {
        assert_eq!(code.http_status(), status, "{code}");
    }
}

#[test]
fn an_error_outlives_its_message() {
    let text = String::from(r#"{"code":1,"message":"m","data":{"a":1}}"#);
    let owned = ErrorObject::from_raw(crate::raw(&text)).into_owned();
    let expected = ErrorObject::new(ErrorCode(1), "m").with_data(&serde_json::json!({"a": 1}));
    drop(text);
    assert_eq!(owned, expected);
}
