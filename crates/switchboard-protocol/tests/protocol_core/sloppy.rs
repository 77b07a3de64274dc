//! Malformed messages of real servers, one row per mistake.

use switchboard_protocol::{Incoming, Limits, Message, Quirk, parse};

use Quirk::{
    EmptyResult, MethodInResponse, NoVersion, NullId, OddError, OddParams, OtherVersion,
    RepeatedMember, ResultAndError,
};

/// A short form of the message: kind, id and payload.
fn short(message: &Message<'_>) -> String {
    let params = message
        .params()
        .map_or(String::new(), |params| format!(" {}", params.get()));
    match message {
        Message::Request { id, method, .. } => format!("request {id} {method}{params}"),
        Message::Notification { method, .. } => format!("notification {method}{params}"),
        Message::Response { id, result } => format!("response {id} {}", result.get()),
        Message::Error { id, error } => {
            let id = id.as_ref().map_or("-".to_owned(), ToString::to_string);
            format!("error {id} {} {error}", error.code)
        }
    }
}

fn check(text: &str, expected: &str, quirks: &[Quirk]) {
    match parse(text.as_bytes(), &Limits::default()) {
        Ok(Incoming::Single(received)) => {
            assert_eq!(short(&received.message), expected, "{text}");
            assert_eq!(received.quirks, quirks.iter().copied().collect(), "{text}");
        }
        other => panic!("{text}: {other:?}"),
    }
}

/// Checks the error, the id of the affected call, and whether the message had a method.
fn check_error(text: &str, expected: &str, id: Option<&str>, has_method: bool) {
    let error = parse(text.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), expected, "{text}");
    assert_eq!(error.id.map(|id| id.to_string()).as_deref(), id, "{text}");
    assert_eq!(error.has_method, has_method, "{text}");
}

#[test]
fn valid_messages_have_no_quirks() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        "request 1 ping",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1]}}"#,
        r#"request "a" m {"x":[1]}"#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "notification notifications/initialized",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        "response 1 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#,
        "error 1 -32601 no (code -32601)",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad"}}"#,
        "error - -32700 bad (code -32700)",
        &[],
    );
}

#[test]
fn the_version_member_may_be_missing_or_wrong() {
    check(r#"{"id":1,"result":{}}"#, "response 1 {}", &[NoVersion]);
    check(
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        "response 1 {}",
        &[OtherVersion],
    );
    check(
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
        "response 1 {}",
        &[OtherVersion],
    );
    check(
        r#"{"jsonrpc":null,"id":1,"result":{}}"#,
        "response 1 {}",
        &[OtherVersion],
    );
    check(
        r#"{"jsonrpc":{"v":[2]},"id":1,"method":"m"}"#,
        "request 1 m",
        &[OtherVersion],
    );
}

#[test]
fn ids_are_kept_as_written() {
    check(
        r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
        "response 1.0 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1e3,"result":{}}"#,
        "response 1e3 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#,
        "response -1 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        r#"response "7" {}"#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"\u0061\n","result":{}}"#,
        r#"response "\u0061\n" {}"#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"\ud800","result":{}}"#,
        r#"response "\ud800" {}"#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"","result":{}}"#,
        r#"response "" {}"#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}"#,
        "response 123456789012345678901234567890 {}",
        &[],
    );
}

#[test]
fn null_ids_are_forgiven_where_they_make_sense() {
    check(
        r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x"}"#,
        "notification notifications/x",
        &[NullId],
    );
    check(
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
        "error - 1 m (code 1)",
        &[],
    );
    check_error(
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        "a result without an id",
        None,
        false,
    );
    check_error(
        r#"{"jsonrpc":"2.0","result":{}}"#,
        "a result without an id",
        None,
        false,
    );
    check_error(
        r#"{"jsonrpc":"2.0","id":null}"#,
        "neither a request nor a response",
        None,
        false,
    );
}

#[test]
fn params_may_be_null_or_an_array() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
        "request 1 m",
        &[OddParams],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1, 2]}"#,
        "request 1 m [1, 2]",
        &[OddParams],
    );
    check(
        r#"{"jsonrpc":"2.0","method":"m","params":"x"}"#,
        r#"notification m "x""#,
        &[OddParams],
    );
}

#[test]
fn result_and_error_together_give_one_answer() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#,
        r#"response 1 {"a":1}"#,
        &[ResultAndError],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m"}}"#,
        "error 1 5 m (code 5)",
        &[ResultAndError],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5,"message":"m"}}"#,
        "error 1 5 m (code 5)",
        &[ResultAndError],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#,
        "response 1 null",
        &[ResultAndError, EmptyResult],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        "response 1 null",
        &[EmptyResult],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":[ ]}"#,
        "response 1 [ ]",
        &[EmptyResult],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":"done"}"#,
        r#"response 1 "done""#,
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#,
        "response 1 [1]",
        &[],
    );
}

#[test]
fn a_method_beside_an_answer_does_not_hide_it() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{}}"#,
        "response 1 {}",
        &[MethodInResponse],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":7,"result":{}}"#,
        "response 1 {}",
        &[MethodInResponse],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":null,"result":{}}"#,
        "response 1 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":null,"error":null}"#,
        "request 1 m",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","error":"no"}"#,
        "error 1 0 no",
        &[MethodInResponse, OddError],
    );
}

#[test]
fn errors_are_read_however_they_are_written() {
    let check_odd = |error: &str, expected: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        check(&text, &format!("error 1 {expected}"), &[OddError]);
    };
    check_odd(
        r#"{"code":"-32000","message":"m"}"#,
        "-32000 m (code -32000)",
    );
    check_odd(
        r#"{"code":"ECONNREFUSED","message":"m"}"#,
        "0 m (code ECONNREFUSED)",
    );
    check_odd(
        r#"{"code":-32000.0,"message":"m"}"#,
        "-32000 m (code -32000)",
    );
    check_odd(r#"{"code":-3.2e4,"message":"m"}"#, "-32000 m (code -32000)");
    check_odd(r#"{"code":1.5,"message":"m"}"#, "0 m");
    check_odd(r#"{"code":null,"message":"m"}"#, "0 m");
    check_odd(r#"{"code":99999999999999999999,"message":"m"}"#, "0 m");
    check_odd(r#"{"message":"m"}"#, "0 m");
    check_odd(
        r#"{"code":-32601}"#,
        "-32601 method not found (code -32601)",
    );
    check_odd(r#"{"code":-1}"#, "-1 the peer sent no message (code -1)");
    check_odd(
        r#"{"code":-1,"message":null,"data":"why"}"#,
        "-1 why (code -1)",
    );
    check_odd(
        r#"{"code":-1,"message":{"text":"m"}}"#,
        r#"-1 {"text":"m"} (code -1)"#,
    );
    check_odd(r#""plain words""#, "0 plain words");
    check_odd("-32603", "-32603 internal error (code -32603)");
    check_odd("true", "0 the peer sent no message");
    check_odd("[]", "0 the peer sent no message");
    check_odd("{}", "0 the peer sent no message");
}

#[test]
fn unknown_members_are_ignored_and_repeated_ones_count_last() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{},"trace":{"a":[[]]},"\ud800":1}"#,
        "response 1 {}",
        &[],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        "response 2 {}",
        &[RepeatedMember],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"result":{}}"#,
        "response 2 {}",
        &[RepeatedMember],
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{"a":2}}"#,
        r#"response 1 {"a":2}"#,
        &[RepeatedMember],
    );
}

#[test]
fn surrounding_noise_is_forgiven() {
    check(
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n",
        "response 1 {}",
        &[],
    );
    check(
        " \t{ \"jsonrpc\" : \"2.0\" ,\n \"id\" : 1 , \"result\" : { } } \n",
        "response 1 { }",
        &[],
    );
}

#[test]
fn invalid_messages_are_reported_with_reason_and_id() {
    check_error(
        r#"{"jsonrpc":"2.0","id":3}"#,
        "a response with neither a result nor an error",
        Some("3"),
        false,
    );
    check_error(
        r#"{"jsonrpc":"2.0","id":3,"error":null}"#,
        "a response with neither a result nor an error",
        Some("3"),
        false,
    );
    check_error(
        r#"{"jsonrpc":"2.0"}"#,
        "neither a request nor a response",
        None,
        false,
    );
    check_error("{}", "neither a request nor a response", None, false);
    check_error(
        r#"{"id":3,"method":7}"#,
        "the method is not a string",
        Some("3"),
        true,
    );
    check_error(
        r#"{"id":3,"method":"\ud800"}"#,
        "the method is not a string",
        Some("3"),
        true,
    );
    check_error(
        r#"{"id":true,"method":"m"}"#,
        "the id is neither a string nor a number",
        None,
        true,
    );
    check_error(
        r#"{"id":{"a":1},"result":{}}"#,
        "the id is neither a string nor a number",
        None,
        false,
    );
    check_error(
        r#"{"id":[1],"result":{}}"#,
        "the id is neither a string nor a number",
        None,
        false,
    );
    for scalar in ["null", "true", "1", "\"text\"", "-1.5e3"] {
        check_error(scalar, "a message must be a JSON object", None, false);
    }
    for blank in ["", " ", "\r\n", "\u{feff}"] {
        check_error(blank, "empty message", None, false);
    }
}

#[test]
fn logs_on_stdout_are_not_json() {
    check_error(
        "INFO server ready",
        "not JSON at byte 0: expected value, near `INFO server ready`",
        None,
        false,
    );
    check_error(
        "[INFO] server ready",
        "not JSON at byte 1: expected value, near `[INFO] server ready`",
        None,
        false,
    );
    check_error(
        "{level: info}",
        "not JSON at byte 1: key must be a string, near `{level: info}`",
        None,
        false,
    );
    check_error(
        "\u{1b}[32mready\u{1b}[0m",
        r"not JSON at byte 0: expected value, near `\u{1b}[32mready\u{1b}[0m`",
        None,
        false,
    );
}

#[test]
fn offsets_are_relative_to_the_frame() {
    check_error(
        "\u{feff} {\"id\":9,oops}",
        r#"not JSON at byte 12: key must be a string, near `{"id":9,oops}`"#,
        Some("9"),
        false,
    );
    check_error(
        "  oops",
        "not JSON at byte 2: expected value, near `oops`",
        None,
        false,
    );
}

#[test]
fn a_control_character_in_a_key_is_not_json() {
    check_error(
        "{\"id\":9,\"res\u{1}ult\":{}}",
        r#"not JSON at byte 11: control character (\u0000-\u001F) found while parsing a string, near `{"id":9,"res\u{1}ult":{}}`"#,
        Some("9"),
        false,
    );
}

/// Two threads of a server write concurrently, a log line lacks its newline, or the server uses the framing of language
/// servers.
#[test]
fn a_missing_newline_loses_no_message() {
    let check_shared = |text: &str, expected: &[&str]| {
        let Ok(Incoming::Batch(members)) = parse(text.as_bytes(), &Limits::default()) else {
            panic!("{text}: not several messages");
        };
        let found: Vec<String> = members
            .iter()
            .map(|member| match member {
                Ok(received) => {
                    let tidy = [Quirk::SharedFrame].into_iter().collect();
                    assert_eq!(received.quirks, tidy, "{text}");
                    short(&received.message)
                }
                Err(error) => {
                    let id = error.id.as_ref().map_or("-".into(), ToString::to_string);
                    format!("{error} [{id}]")
                }
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    let nine = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    let ten = r#"{"jsonrpc":"2.0","id":10,"result":{}}"#;
    check_shared(
        &format!("{nine}{ten}"),
        &["response 9 {}", "response 10 {}"],
    );
    check_shared(
        &format!(" {nine} \t{ten}\r\n"),
        &["response 9 {}", "response 10 {}"],
    );
    check_shared(
        &format!("{nine}Content-Length: 99"),
        &[
            "response 9 {}",
            r#"not JSON at byte 36: expected value, near `":9,"result":{}}Content-Length: 99` [-]"#,
        ],
    );
    check_shared(
        &format!(r#"  {nine}{{"id":10,"result":{{"cut"#),
        &[
            "response 9 {}",
            r#"not JSON at byte 61: EOF while parsing a string, near `0,"result":{"cut` [10]"#,
        ],
    );
    check_shared(
        &format!("{nine} 100%"),
        &[
            "response 9 {}",
            r#"not JSON at byte 40: trailing characters, near `"result":{}} 100%` [-]"#,
        ],
    );
    check_shared(
        &format!(r#"{{"level":"info"}}{ten}"#),
        &["neither a request nor a response [-]", "response 10 {}"],
    );
    // A line without a message is a log line.
    check_error(
        r#"{"level":"info"}{"level":"warn"}"#,
        r#"not JSON at byte 16: trailing characters, near `{"level":"info"}{"level":"warn"}`"#,
        None,
        false,
    );
    let limits = Limits {
        max_batch: 2,
        ..Limits::default()
    };
    assert!(parse(nine.repeat(2).as_bytes(), &limits).is_ok());
    assert_eq!(
        parse(nine.repeat(3).as_bytes(), &limits)
            .unwrap_err()
            .to_string(),
        "batch has more members than the limit of 2"
    );
}

#[test]
fn the_id_is_recovered_from_broken_json() {
    check_error(
        r#"{"jsonrpc":"2.0","id":9,"result":{"value":NaN}}"#,
        r#"not JSON at byte 42: expected value, near `esult":{"value":NaN}}`"#,
        Some("9"),
        false,
    );
    check_error(
        r#"{"jsonrpc":"2.0","result":{"value":Infinity},"id":"x"}"#,
        r#"not JSON at byte 35: expected value, near `esult":{"value":Infinity},"id":"x"}`"#,
        Some("\"x\""),
        false,
    );
    check_error(
        r#"{"id":9,"method":"m","params":{"#,
        r#"not JSON at byte 31: EOF while parsing an object, near `":"m","params":{`"#,
        Some("9"),
        true,
    );
    check_error(
        "{\"id\":9,\n\"result\":\n\"raw\nnewline\"}",
        "not JSON at byte 22: control character (\\u0000-\\u001F) found while parsing a string, near `9,\\n\"result\":\\n\"raw\\nnewline\"}`",
        Some("9"),
        false,
    );
}
