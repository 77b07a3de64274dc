//! Properties that hold for any input.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, value::RawValue};
use switchboard_protocol::{
    Incoming, Limits, Message, ParseErrorKind, RequestId, Revision, encode,
    headers::{self, ReceivedHeaders},
    limits::depth_exceeded_at,
    meta::{self, MetaMembers},
    param_headers::ParamHeaders,
    parse, salvage,
};

use crate::raw;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| serde_json::Number::from_f64(number)
            .map(Value::from)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON text, compact or pretty-printed.
fn text_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = String> {
    (value, any::<bool>()).prop_map(|(value, spread)| {
        if spread {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        }
    })
}

fn object() -> impl Strategy<Value = Value> {
    vec(
        (
            prop_oneof![any::<String>(), Just("_meta".to_owned())],
            json(),
        ),
        0..6,
    )
    .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// An id in any spelling.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u32>().prop_map(|number| format!("{number}.0")),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ]
}

fn single(bytes: &[u8]) -> Message<'_> {
    match parse(bytes, &Limits::default()) {
        Ok(Incoming::Single(received)) => received.message,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(bytes)),
    }
}

/// The raw parts of a message.
fn parts<'m>(
    message: &'m Message<'_>,
) -> (
    Option<String>,
    Option<&'m str>,
    Option<&'m str>,
    Option<&'m str>,
) {
    let result = match message {
        Message::Response { result, .. } => Some(result.get()),
        _ => None,
    };
    (
        message.id().map(ToString::to_string),
        message.method(),
        message.params().map(RawValue::get),
        result,
    )
}

proptest! {
    #[test]
    fn encoding_a_parsed_message_preserves_raw_bytes(
        id in id(),
        method in any::<String>(),
        payload in json().prop_map(|value| value.to_string()),
        kind in 0..3,
    ) {
        let method_json = Value::from(method);
        let text = match kind {
            0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method_json},"params":{payload}}}"#),
            1 => format!(r#"{{"params":{payload},"method":{method_json},"extra":[]}}"#),
            _ => format!(r#"{{"result":{payload},"id":{id}}}"#),
        };
        let message = single(text.as_bytes());
        let mut buffer = Vec::new();
        encode::message(&mut buffer, &message).unwrap();
        let again = single(&buffer);
        prop_assert_eq!(parts(&again), parts(&message));
        if kind != 1 {
            prop_assert_eq!(message.id().map(ToString::to_string), Some(id));
        }
        if payload != "null" {
            let preserved = message.params().map(RawValue::get).or(parts(&message).3);
            prop_assert_eq!(preserved, Some(payload.as_str()));
        }
    }

    #[test]
    fn an_encoded_message_is_one_line_and_equivalent(payload in text_of(json())) {
        let mut buffer = Vec::new();
        encode::response(&mut buffer, &RequestId::from(1), raw(&payload)).unwrap();
        prop_assert!(!buffer.contains(&b'\n') && !buffer.contains(&b'\r'));
        let Message::Response { result, .. } = single(&buffer) else { panic!("no response") };
        let (preserved, original): (Value, Value) =
            (serde_json::from_str(result.get()).unwrap(), serde_json::from_str(&payload).unwrap());
        prop_assert_eq!(preserved, original);
    }

    #[test]
    fn arbitrary_bytes_are_an_answer_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let limits = Limits { max_bytes: 150, max_depth: 3, max_batch: 2, ..Limits::DEFAULT };
        let outcome = parse(&bytes, &limits);
        if let Err(error) = outcome {
            prop_assert!(!error.to_string().is_empty());
        }
        salvage(&bytes);
    }

    #[test]
    fn arbitrary_brackets_and_quotes_are_an_answer_or_an_error(text in r#"[\[\]{}",:\\idresult01 .e-]{0,80}"#) {
        let limits = Limits { max_depth: 4, max_batch: 3, ..Limits::default() };
        if let Ok(incoming) = parse(text.as_bytes(), &limits) {
            let messages = match &incoming {
                Incoming::Single(received) => vec![&received.message],
                Incoming::Batch(members) => members.iter().flatten().map(|received| &received.message).collect(),
            };
            let mut buffer = Vec::new();
            encode::batch(&mut buffer, messages).unwrap();
            prop_assert!(serde_json::from_slice::<&RawValue>(&buffer).is_ok());
        }
    }

    #[test]
    fn json_validity_agrees_with_serde_json(
        payload in text_of(json()),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![Just(None), any::<u8>().prop_map(Some), prop::sample::select(b"\"\\{}[]:, \n0.eE+-tfnu".to_vec()).prop_map(Some)],
    ) {
        let mut bytes = format!(r#"{{"id":1,"result":{payload}}}"#).into_bytes();
        if let Some(byte) = byte {
            let index = at.index(bytes.len());
            bytes[index] = byte;
        }
        // An object followed by other text is accepted as several messages, although it is not valid JSON.
        let ours = !matches!(
            parse(&bytes, &Limits::default()).map_err(|error| error.kind),
            Ok(Incoming::Batch(_))
                | Err(ParseErrorKind::NotJson { .. } | ParseErrorKind::NotUtf8 { .. } | ParseErrorKind::Empty)
        );
        // A raw value preserves numbers and surrogates that a tree would reject.
        let theirs = std::str::from_utf8(&bytes).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok());
        prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_cut_message_never_yields_another_id(payload in object().prop_map(|value| value.to_string()), at in 0.0..1.0_f64) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":77,"result":{payload}}}"#);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a cut anywhere will do")]
        let cut = (text.len() as f64 * at) as usize;
        let salvaged = salvage(&text.as_bytes()[..cut]);
        prop_assert!(!salvaged.has_method);
        let expected = (cut > r#"{"jsonrpc":"2.0","id":77"#.len()).then(|| RequestId::from(77));
        prop_assert_eq!(salvaged.id, expected);
    }

    #[test]
    fn the_depth_scan_agrees_with_counting(text in r#"[\[\]{}"a\\]{0,60}"#, max_depth in 0_usize..6) {
        prop_assert_eq!(depth_exceeded_at(text.as_bytes(), max_depth), counted(text.as_bytes(), max_depth));
    }

    #[test]
    fn equal_ids_hash_alike(left in id(), right in id()) {
        use std::hash::{BuildHasher, RandomState};
        let state = RandomState::new();
        let (left, right) = (RequestId::from_json(&left).unwrap(), RequestId::from_json(&right).unwrap());
        prop_assert_eq!(&left, &left.clone().into_owned());
        if left == right {
            prop_assert_eq!(state.hash_one(&left), state.hash_one(&right));
        }
    }

    #[test]
    fn header_values_survive_the_wire(value in any::<String>()) {
        let encoded = headers::encode_value(&value);
        prop_assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert_eq!(encoded.trim(), &*encoded);
        let decoded = headers::decode_value(encoded.as_bytes());
        prop_assert_eq!(decoded.as_deref(), Ok(value.as_str()));
    }

    #[test]
    fn what_a_client_mirrors_a_server_accepts(name in any::<String>(), value in prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        Just(Value::Null),
    ]) {
        let schema = serde_json::json!({"properties": {
            "outer": {"properties": {name.as_str(): {"type": "string", "x-mcp-header": "A"}}}
        }}).to_string();
        let arguments = serde_json::json!({"outer": {name.as_str(): value}}).to_string();
        let mirrored = ParamHeaders::from_schema(raw(&schema)).unwrap();
        let sent = mirrored.headers(Some(raw(&arguments))).unwrap();
        prop_assert_eq!(sent.len(), usize::from(!value.is_null()));
        let received: ReceivedHeaders<'_> =
            sent.iter().map(|header| (header.name.as_ref(), header.value.as_bytes())).collect();
        prop_assert_eq!(mirrored.check(&received, Some(raw(&arguments))), Ok(()));
    }

    #[test]
    fn merged_meta_keeps_everything_else(params in text_of(object()), token in any::<String>()) {
        let mut members =
            MetaMembers::stateless(Revision::LATEST, &serde_json::json!({}), None::<&()>).unwrap();
        members.set(meta::PROGRESS_TOKEN, &token).unwrap();
        let mut expected: Value = serde_json::from_str(&params).unwrap();
        match meta::merge(Some(raw(&params)), &members) {
            Ok(merged) => {
                if expected["_meta"].is_null() {
                    expected["_meta"] = serde_json::json!({});
                }
                expected["_meta"][meta::PROTOCOL_VERSION] = "2026-07-28".into();
                expected["_meta"][meta::CLIENT_CAPABILITIES] = serde_json::json!({});
                expected["_meta"][meta::PROGRESS_TOKEN] = token.into();
                let merged: Value = serde_json::from_str(merged.get()).unwrap();
                prop_assert_eq!(merged, expected);
            }
            Err(error) => {
                prop_assert_eq!(error, meta::MergeError::MetaNotAnObject);
                prop_assert!(!expected["_meta"].is_object());
            }
        }
    }
}

/// The depth scan, one byte at a time.
fn counted(bytes: &[u8], max_depth: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return Some(offset);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
