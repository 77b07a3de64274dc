//! `x-mcp-header`: any schema and any arguments; what a client sends, a server must accept.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use switchboard_protocol::{headers::ReceivedHeaders, param_headers::ParamHeaders};

fuzz_target!(|input: (&str, &str)| {
    let (Ok(schema), Ok(arguments)) = (
        serde_json::from_str::<&RawValue>(input.0),
        serde_json::from_str::<&RawValue>(input.1),
    ) else {
        return;
    };
    let Ok(mirrored) = ParamHeaders::from_schema(schema) else {
        return;
    };
    let Ok(sent) = mirrored.headers(Some(arguments)) else {
        return;
    };
    let received: ReceivedHeaders<'_> = sent
        .iter()
        .map(|header| (header.name.as_ref(), header.value.as_bytes()))
        .collect();
    assert_eq!(mirrored.check(&received, Some(arguments)), Ok(()));
});
