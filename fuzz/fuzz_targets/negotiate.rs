//! The era decisions on any answer, and the opening of any request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_protocol::{
    Incoming, Limits, Message, Revision,
    headers::ReceivedHeaders,
    negotiate::{self, HttpAnswer, NegotiationReply, Offer, Step},
    parse, serve,
};

fuzz_target!(|input: (u16, &[u8])| {
    let (status, bytes) = input;
    let Ok(Incoming::Single(received)) = parse(bytes, &Limits::DEFAULT) else {
        return;
    };
    let offer = Offer {
        supported: &Revision::ALL,
        asked: Revision::LATEST,
    };
    let message = &received.message;
    let answer = HttpAnswer {
        status,
        answer: message.into(),
    };
    check(&negotiate::after_modern_post(offer, answer));
    check(&negotiate::after_initialize_post(offer, answer));
    match message {
        Message::Response { result, .. } => {
            check(&negotiate::after_discover(
                offer,
                NegotiationReply::Result(result),
            ));
            check(&negotiate::after_initialize(
                offer,
                NegotiationReply::Result(result),
            ));
        }
        Message::Error { error, .. } => {
            check(&negotiate::after_discover(
                offer,
                NegotiationReply::Error(error),
            ));
            check(&negotiate::after_initialize(
                offer,
                NegotiationReply::Error(error),
            ));
        }
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            let serving = serve::Serving {
                supported: &Revision::ALL,
                settled: None,
            };
            let _ = serve::classify(serving, method, *params);
            let _ = serve::classify_http(serving, &ReceivedHeaders::default(), method, *params);
        }
    }
});

fn check(step: &Step) {
    if let Step::Fail(failure) = step {
        assert!(!failure.to_string().is_empty());
    }
}
