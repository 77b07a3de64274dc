//! Any bytes as the params or the result of any method, and as each main type: what decodes must be written so that
//! it decodes to the same value again, detached from its input too.
//!
//! The first byte chooses how the rest is read.

#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use switchboard_protocol::{
    ErrorObject, Incoming, Limits, Message, Method, parse,
    types::{
        IntoOwned, Outcome,
        capabilities::*,
        completion::*,
        content::*,
        decode, decode_result_within, decode_within, defects,
        elicitation::*,
        elicitation_schema::*,
        encode,
        icon::*,
        input::*,
        lifecycle::*,
        meta::*,
        method::{self, Notification, Request},
        prompt::*,
        resource::*,
        roots::*,
        sampling::*,
        task::*,
        tool::*,
    },
};

/// Small enough for a short input to reach every one.
const LIMITS: Limits = Limits {
    max_bytes: 4096,
    max_depth: 32,
    max_batch: 8,
    max_items: 32,
    max_nested_content: 4,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let methods: Vec<Method> = Method::all().collect();
    let method = methods[usize::from(choice) % methods.len()];
    match parse(rest, &LIMITS) {
        Ok(Incoming::Single(received)) => message(method, &received.message),
        Ok(Incoming::Batch(members)) => members
            .iter()
            .flatten()
            .for_each(|received| message(method, &received.message)),
        Err(_) => {}
    }
    // The same bytes as a bare value, so that the fuzzer need not find the envelope first.
    if let Ok(value) = serde_json::from_slice::<&RawValue>(rest) {
        by_method(method, Some(value), Some(value));
        EVERY_TYPE[usize::from(choice) % EVERY_TYPE.len()](value);
    }
});

fn message(method: Method, message: &Message<'_>) {
    match message {
        Message::Request {
            method: name,
            params,
            ..
        }
        | Message::Notification {
            method: name,
            params,
        } => {
            by_method(Method::from_name(name).unwrap_or(method), *params, None);
        }
        Message::Response { result, .. } => by_method(method, None, Some(result)),
        Message::Error { error, .. } => {
            let written = encode(error);
            let again: ErrorObject<'_> = serde_json::from_str(&written).unwrap();
            assert_eq!(again, *error);
        }
    }
}

/// Reads the params and the result as those of `method`.
fn by_method(method: Method, params: Option<&RawValue>, result: Option<&RawValue>) {
    macro_rules! dispatch {
        (requests: $($request:ident)*; notifications: $($notification:ident)*) => {
            $(if method == method::$request::METHOD {
                if let Some(raw) = params {
                    request_params::<method::$request>(raw);
                }
                if let Some(raw) = result {
                    request_result::<method::$request>(raw);
                }
                return;
            })*
            $(if method == method::$notification::METHOD {
                if let Some(raw) = params {
                    notification_params::<method::$notification>(raw);
                }
                return;
            })*
        };
    }
    dispatch! {
        requests: Initialize Discover Ping ListTools CallTool ListPrompts GetPrompt ListResources
            ListResourceTemplates ReadResource SubscribeResource UnsubscribeResource Listen Complete
            SetLevel CreateMessage Elicit ListRoots GetTask GetTaskResult UpdateTask CancelTask ListTasks;
        notifications: Initialized Cancelled Progress LoggingMessage ToolListChanged
            PromptListChanged ResourceListChanged ResourceUpdated RootsListChanged
            SubscriptionsAcknowledged ElicitationComplete TaskStatusChanged TaskChanged
    }
    panic!("{method} is not dispatched");
}

fn request_params<R: Request>(given: &RawValue)
where
    for<'a> R::Params<'a>: PartialEq + Debug,
{
    let Ok(text) = R::decode_params(Some(given)).map(|params| encode(&params)) else {
        return;
    };
    assert_eq!(
        R::decode_params(Some(raw(&text))),
        R::decode_params(Some(given)),
        "{text}"
    );
}

fn notification_params<N: Notification>(given: &RawValue)
where
    for<'a> N::Params<'a>: PartialEq + Debug,
{
    let Ok(text) = N::decode_params(Some(given)).map(|params| encode(&params)) else {
        return;
    };
    assert_eq!(
        N::decode_params(Some(raw(&text))),
        N::decode_params(Some(given)),
        "{text}"
    );
}

fn request_result<R: Request>(given: &RawValue)
where
    for<'a> R::Result<'a>: PartialEq + Debug,
{
    // Within tight limits it may fail, and that is all it may do.
    let _ = decode_result_within::<R::Result<'_>>(given, &LIMITS);
    let text = match R::decode_result(given) {
        Ok(Outcome::Complete(result)) => encode(&result),
        Ok(Outcome::InputRequired(result)) => encode(&result),
        Ok(Outcome::Task(CreatedTask::Flat(task))) => encode(&task),
        Ok(Outcome::Task(CreatedTask::Nested(result))) => encode(&result),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(
        R::decode_result(raw(&text)),
        R::decode_result(given),
        "{text}"
    );
}

macro_rules! every {
    ($($type:ident)*) => {
        &[$(|given| {
            let _ = decode_within::<$type<'_>>(given, &LIMITS);
            let Ok(value) = decode::<$type<'_>>(given) else {
                return;
            };
            let told = defects(&value);
            let text = encode(&value);
            let again: $type<'_> = decode(raw(&text)).unwrap();
            assert_eq!(again, value, "{text}");
            assert_eq!(defects(&again), told, "{text}");
            assert_eq!(encode(&IntoOwned::into_owned(value)), text);
        }),*]
    };
}

const EVERY_TYPE: &[fn(&RawValue)] = every![
    ClientCapabilities Completion ContentBlock CreateMessageRequestParams ElicitRequestParams
    ElicitationSchema ErrorObject Icon Implementation InputRequest InputRequiredResult
    NotificationMeta PrimitiveSchema Prompt PromptMessage RequestMeta Resource ResourceContents
    ResourceTemplate ResultMeta Root SamplingMessage ServerCapabilities Task Tool
];

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}
