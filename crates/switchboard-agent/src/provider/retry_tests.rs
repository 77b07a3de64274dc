#![expect(
    clippy::unnecessary_wraps,
    reason = "what stands in a stream is a result"
)]

use std::sync::Mutex;

use futures_util::stream;
use tokio::time::Instant;

use super::super::models::{Kind, describe};
use super::super::{ModelReply, ProviderErrorKind, Stop, Usage};
use super::*;
use crate::message::{Message, Role};

/// Provider that returns scripted answers in order.
#[derive(Debug)]
struct Scripted {
    model: Model,
    answers: Mutex<Vec<Vec<Result<Chunk, ProviderError>>>>,
}

impl Provider for Scripted {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, _: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let answer = self.answers.lock().unwrap().remove(0);
        Box::pin(stream::iter(answer))
    }
}

const POLICY: RetryPolicy = RetryPolicy {
    attempts: 3,
    first_wait: Duration::from_secs(1),
    longest_wait: Duration::from_secs(3),
    longest_asked_for: Duration::from_secs(60),
};

fn text(text: &str) -> Result<Chunk, ProviderError> {
    Ok(Chunk::Text(text.to_owned()))
}

fn end() -> Result<Chunk, ProviderError> {
    Ok(Chunk::End(ModelReply {
        message: Message::text(Role::Assistant, "done"),
        stop: Stop::Done,
        usage: Usage::default(),
    }))
}

fn failure(kind: ProviderErrorKind, retry_after: Option<u64>) -> Result<Chunk, ProviderError> {
    let mut error = ProviderError::new("x", kind, "no");
    error.retry_after = retry_after.map(Duration::from_secs);
    Err(error)
}

/// Received items, the elapsed seconds (rounded up), and waits in whole seconds.
async fn heard(answers: Vec<Vec<Result<Chunk, ProviderError>>>) -> (Vec<String>, u64) {
    let provider = Scripted {
        model: describe(Kind::Local, "x"),
        answers: Mutex::new(answers),
    };
    let retrying = Retrying::new(Arc::new(provider), POLICY);
    let begin = Instant::now();
    let request = Request {
        system: "",
        tools: &[],
        messages: &[],
        max_output_tokens: None,
    };
    let items = retrying.ask(request).map(|item| match item {
        Ok(Chunk::Text(text)) => text,
        Ok(Chunk::Again(retry)) => {
            assert!(retry.wait <= Duration::from_secs(60));
            format!("again {}: {}", retry.attempt, retry.reason)
        }
        Ok(Chunk::End(_)) => "end".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("failed: {error}"),
    });
    let items = items.collect().await;
    (
        items,
        begin
            .elapsed()
            .as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again() {
    use ProviderErrorKind as Kind;
    for kind in [
        Kind::Unreachable,
        Kind::RateLimited,
        Kind::Unavailable,
        Kind::Broken,
        Kind::TimedOut,
    ] {
        let (items, seconds) = heard(vec![
            vec![failure(kind, None)],
            vec![text("half of it"), failure(kind, None)],
            vec![text("all of it"), end()],
        ])
        .await;
        assert_eq!(
            items,
            [
                "again 2: x: no",
                "half of it",
                "again 3: x: no",
                "all of it",
                "end"
            ],
            "{kind:?}"
        );
        // Between half and all of one second, then of two.
        assert!((2..=3).contains(&seconds), "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_told_at_once() {
    use ProviderErrorKind as Kind;
    for kind in [
        Kind::Unauthorized,
        Kind::UnknownModel,
        Kind::TooLong,
        Kind::Refused,
    ] {
        let outcome = heard(vec![vec![text("a"), failure(kind, Some(1))]]).await;
        assert_eq!(
            outcome,
            (vec!["a".to_owned(), "failed: x: no".to_owned()], 0),
            "{kind:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_an_end_to_trying() {
    let broken = || vec![failure(ProviderErrorKind::Unavailable, None)];
    let (items, _) = heard(vec![broken(), broken(), broken()]).await;
    assert_eq!(items, ["again 2: x: no", "again 3: x: no", "failed: x: no"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_asked_for_is_kept_within_a_bound() {
    let limited = |seconds| vec![failure(ProviderErrorKind::RateLimited, Some(seconds))];
    let (items, seconds) = heard(vec![limited(40), vec![end()]]).await;
    assert_eq!((items.len(), seconds), (2, 40));
    let (items, seconds) = heard(vec![limited(61)]).await;
    assert_eq!((items, seconds), (vec!["failed: x: no".to_owned()], 0));
}

#[test]
fn waits_grow_to_a_bound() {
    let provider = Scripted {
        model: describe(Kind::Local, "x"),
        answers: Mutex::default(),
    };
    let waits = |attempt: u32| {
        let asking = Asking {
            provider: &provider,
            policy: POLICY,
            request: Request {
                system: "",
                tools: &[],
                messages: &[],
                max_output_tokens: None,
            },
            attempt,
            state: AttemptState::Ended,
        };
        (0..100).map(|_| asking.wait()).collect::<Vec<_>>()
    };
    for (attempt, most) in [
        (1, 1000),
        (2, 2000),
        (3, 3000),
        (4, 3000),
        (40, 3000),
        (400, 3000),
    ] {
        let (least, most) = (Duration::from_millis(most / 2), Duration::from_millis(most));
        let waits = waits(attempt);
        assert!(
            waits.iter().all(|wait| (least..=most).contains(wait)),
            "{attempt}: {waits:?}"
        );
        assert!(
            waits.iter().any(|wait| wait != &waits[0]),
            "there is no chance in {waits:?}"
        );
    }
}
