//! Merging and parsing `_meta`.

use serde_json::{json, value::RawValue};
use switchboard_protocol::{
    Revision,
    meta::{self, DeclaredMeta, MergeError, MetaMembers},
};

use crate::raw;

fn stateless() -> MetaMembers {
    let info = json!({"name": "c", "version": "1"});
    MetaMembers::stateless(Revision::V2026_07_28, &json!({"roots": {}}), Some(&info)).unwrap()
}

const ADDED: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}"#,
);

fn check(params: Option<&str>, expected: &str) {
    let merged = meta::merge(params.map(raw), &stateless()).unwrap();
    assert_eq!(merged.get(), expected.replace("ADDED", ADDED), "{params:?}");
}

#[test]
fn the_stateless_members_are_merged_and_the_rest_stays_as_it_is() {
    check(None, r#"{"_meta":{ADDED}}"#);
    check(Some("null"), r#"{"_meta":{ADDED}}"#);
    check(Some("{}"), r#"{"_meta":{ADDED}}"#);
    check(Some("{ }"), r#"{"_meta":{ADDED} }"#);
    check(
        Some(r#"{"name":"t","arguments":{"_meta":1}}"#),
        r#"{"_meta":{ADDED},"name":"t","arguments":{"_meta":1}}"#,
    );
    check(
        Some(r#"{"name" : "t", "_meta" : {"progressToken":1.0 , "x/y" : [ 1 ]} , "z":"\u0061"}"#),
        r#"{"name" : "t", "_meta" : {ADDED,"progressToken":1.0,"x/y":[ 1 ]} , "z":"\u0061"}"#,
    );
    check(Some(r#"{"_meta":{},"a":1}"#), r#"{"_meta":{ADDED},"a":1}"#);
    check(
        Some(r#"{"_meta":null,"a":1}"#),
        r#"{"_meta":{ADDED},"a":1}"#,
    );
}

#[test]
fn our_members_replace_those_of_the_same_name() {
    check(
        Some(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","k":1,"io.modelcontextprotocol\/clientInfo":{}}}"#,
        ),
        r#"{"_meta":{ADDED,"k":1}}"#,
    );
    check(
        Some(r#"{"\u005fmeta":{"k":1}}"#),
        r#"{"\u005fmeta":{ADDED,"k":1}}"#,
    );
    check(
        Some(r#"{"_meta":{"first":1},"a":1,"_meta":{"last":1},"b":2}"#),
        r#"{"_meta":{ADDED,"last":1},"a":1,"b":2}"#,
    );
}

#[test]
fn params_that_cannot_carry_meta_are_refused() {
    for (params, expected) in [
        ("[]", MergeError::ParamsNotAnObject),
        ("\"x\"", MergeError::ParamsNotAnObject),
        ("7", MergeError::ParamsNotAnObject),
        (r#"{"_meta":[]}"#, MergeError::MetaNotAnObject),
        (r#"{"_meta":"x"}"#, MergeError::MetaNotAnObject),
    ] {
        let refused =
            meta::merge(Some(raw(params)), &stateless()).map(|merged| merged.get().to_owned());
        assert_eq!(refused, Err(expected), "{params}");
    }
}

#[test]
fn nothing_to_add_changes_nothing() {
    let text = r#"{ "a" : 1 }"#;
    assert_eq!(
        meta::merge(Some(raw(text)), &MetaMembers::new())
            .unwrap()
            .get(),
        text
    );
    assert_eq!(meta::merge(None, &MetaMembers::new()).unwrap().get(), "{}");
}

#[test]
fn members_are_set_once() {
    let mut members = MetaMembers::new();
    members.set("a", &1).unwrap();
    members.set(meta::PROGRESS_TOKEN, "t").unwrap();
    members.set("a", &2).unwrap();
    assert_eq!(
        meta::merge(None, &members).unwrap().get(),
        r#"{"_meta":{"progressToken":"t","a":2}}"#
    );
}

#[test]
fn a_request_has_its_own_progress_token() {
    let check = |members: &MetaMembers, params: Option<&str>, expected: &str| {
        let mut buffer = Vec::new();
        meta::merge_into(&mut buffer, params.map(raw), members.with_progress(7)).unwrap();
        assert_eq!(String::from_utf8(buffer).unwrap(), expected);
    };
    let none = MetaMembers::new();
    check(&none, None, r#"{"_meta":{"progressToken":7}}"#);
    check(
        &none,
        Some(r#"{"a":1}"#),
        r#"{"_meta":{"progressToken":7},"a":1}"#,
    );
    check(
        &none,
        Some(r#"{"_meta":{"progressToken":"theirs","v":2},"a":1}"#),
        r#"{"_meta":{"progressToken":7,"v":2},"a":1}"#,
    );
    let mut members = MetaMembers::new();
    members.set("k", &1).unwrap();
    check(&members, None, r#"{"_meta":{"k":1,"progressToken":7}}"#);
    members.set(meta::PROGRESS_TOKEN, "set").unwrap();
    check(&members, None, r#"{"_meta":{"k":1,"progressToken":"set"}}"#);
}

#[test]
fn merged_members_are_parsed_again() {
    let mut members = stateless();
    members.set(meta::LOG_LEVEL, "warning").unwrap();
    let params = meta::merge(Some(raw(r#"{"_meta":{"progressToken":7}}"#)), &members).unwrap();
    let read = DeclaredMeta::read(Some(&params));
    assert_eq!(read.protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(
        read.client_capabilities.map(RawValue::get),
        Some(r#"{"roots":{}}"#)
    );
    assert_eq!(
        read.client_info.map(RawValue::get),
        Some(r#"{"name":"c","version":"1"}"#)
    );
    assert_eq!(read.log_level.as_deref(), Some("warning"));
    assert_eq!(read.progress_token.map(RawValue::get), Some("7"));
    assert_eq!(read.subscription_id.map(RawValue::get), None);
}

#[test]
fn members_of_the_wrong_type_count_as_absent() {
    for params in [
        "[]",
        "{}",
        r#"{"_meta":7}"#,
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728,"io.modelcontextprotocol/clientCapabilities":[],"io.modelcontextprotocol/clientInfo":"c","io.modelcontextprotocol/logLevel":1,"progressToken":null}}"#,
    ] {
        let read = DeclaredMeta::read(Some(raw(params)));
        assert_eq!(
            format!("{read:?}"),
            format!("{:?}", DeclaredMeta::default()),
            "{params}"
        );
    }
}
