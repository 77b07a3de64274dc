//! Encoding of messages.

use serde::{Serialize, Serializer};
use switchboard_protocol::{
    ErrorCode, ErrorObject, Message, RequestId, Revision,
    encode::{self, NO_PARAMS},
    meta::{MergeError, MetaMembers},
};

use crate::raw;

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), encode::EncodeError>) -> String {
    let mut buffer = b"before ".to_vec();
    write(&mut buffer).unwrap();
    let text = String::from_utf8(buffer).unwrap();
    text.strip_prefix("before ").unwrap().to_owned()
}

#[test]
fn each_kind_of_message_is_encoded() {
    let id = RequestId::from(7);
    assert_eq!(
        written(|buffer| encode::request(buffer, &id, "ping", NO_PARAMS)),
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#
    );
    assert_eq!(
        written(|buffer| encode::request(
            buffer,
            &id,
            "tools/call",
            Some(&serde_json::json!({"name": "é\n"}))
        )),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"é\n"}}"#
    );
    assert_eq!(
        written(|buffer| encode::notification(buffer, "no\"te", Some(raw(r#"{"a" : 1}"#)))),
        r#"{"jsonrpc":"2.0","method":"no\"te","params":{"a" : 1}}"#
    );
    assert_eq!(
        written(|buffer| encode::response(
            buffer,
            &RequestId::from_json("1.0").unwrap(),
            raw("{}")
        )),
        r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#
    );
    let error = ErrorObject::new(ErrorCode::PARSE_ERROR, "no JSON");
    assert_eq!(
        written(|buffer| encode::error(buffer, None, &error)),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no JSON"}}"#
    );
    assert_eq!(
        written(|buffer| encode::error(buffer, Some(&RequestId::null()), &error)),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#
    );
}

#[test]
fn multi_line_raw_values_become_one_line() {
    let params = raw("{\r\n  \"a\\n\": [\n1,\n2\n],\n\t\"b\": \"x\\r\\ny\"\n}");
    assert_eq!(
        written(|buffer| encode::notification(buffer, "m", Some(params))),
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{    \"a\\n\": [ 1, 2 ], \t\"b\": \"x\\r\\ny\" }}"
    );
    let id = RequestId::from(1);
    let mut members = MetaMembers::new();
    members.set("progressToken", &1).unwrap();
    assert_eq!(
        written(|buffer| encode::request_with_meta(
            buffer,
            &id,
            "m",
            Some(raw("{\n\"a\":\n1}")),
            &members
        )),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":1}, \"a\": 1}}"
    );
}

#[test]
fn the_buffer_is_appended_to() {
    let mut buffer = b"line one\n".to_vec();
    encode::notification(&mut buffer, "m", NO_PARAMS).unwrap();
    assert_eq!(buffer, b"line one\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}");
}

struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("never"))
    }
}

#[test]
fn a_failure_leaves_the_buffer_as_it_was() {
    let mut buffer = b"before".to_vec();
    let id = RequestId::from(1);
    assert!(encode::request(&mut buffer, &id, "m", Some(&Unwritable)).is_err());
    let members =
        MetaMembers::stateless(Revision::LATEST, &serde_json::json!({}), None::<&()>).unwrap();
    let refused = encode::request_with_meta(&mut buffer, &id, "m", Some(raw("[1]")), &members);
    assert!(matches!(
        refused,
        Err(encode::EncodeError::Meta(MergeError::ParamsNotAnObject))
    ));
    assert_eq!(buffer, b"before");
}

#[test]
fn batches_are_arrays() {
    let messages = [
        Message::Notification {
            method: "a".into(),
            params: None,
        },
        Message::Response {
            id: 1.into(),
            result: raw("{}"),
        },
    ];
    assert_eq!(
        written(|buffer| encode::batch(buffer, &messages)),
        r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]"#
    );
}
