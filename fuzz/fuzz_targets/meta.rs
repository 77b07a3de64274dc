//! `_meta`: merged into any params, the rest must stay, and the members must be read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json, value::RawValue};
use switchboard_protocol::{
    Revision,
    meta::{self, MetaMembers, DeclaredMeta},
};

fuzz_target!(|text: &str| {
    let Ok(params) = serde_json::from_str::<&RawValue>(text) else {
        return;
    };
    DeclaredMeta::read(Some(params));
    let members = MetaMembers::stateless(Revision::LATEST, &json!({"a": {}}), None::<&()>).unwrap();
    let Ok(merged) = meta::merge(Some(params), &members) else {
        return;
    };
    let read = DeclaredMeta::read(Some(&merged));
    assert_eq!(read.protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(
        read.client_capabilities.map(RawValue::get),
        Some(r#"{"a":{}}"#)
    );

    // A value too deep, or a string that is no Unicode, is no `Value`; it is still merged above.
    let (Ok(mut before), Ok(mut after)) = (
        serde_json::from_str::<Value>(params.get()),
        serde_json::from_str::<Value>(merged.get()),
    ) else {
        return;
    };
    for value in [&mut before, &mut after] {
        if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove(meta::PROTOCOL_VERSION);
            meta.remove(meta::CLIENT_CAPABILITIES);
        }
        let empty = value
            .get("_meta")
            .is_none_or(|meta| meta.is_null() || *meta == json!({}));
        if let (true, Some(params)) = (empty, value.as_object_mut()) {
            params.remove("_meta");
        }
    }
    if before.is_null() {
        before = json!({});
    }
    assert_eq!(before, after);
});
