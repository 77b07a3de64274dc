//! Delivery of a message by POST, common to both HTTP transports: completion and timeout.

use std::time::Duration;

use reqwest::Response;
use tokio::sync::oneshot;

use super::channel::{Channel, Exchange};
use crate::transport::{
    RequestFailure, Sending, Sent, TransportError, TransportErrorKind, sending, sent,
};

/// How long the server may take to accept a message other than a request, and as long again for the body of its
/// response.
pub(super) const TAKE_DEADLINE: Duration = Duration::from_secs(30);

/// A message being sent: the receiver completes when the server has accepted it; `None` for a request, whose answer is
/// awaited instead.
pub(super) type Begun = Result<Option<oneshot::Receiver<Sent>>, TransportError>;

/// Waits until the server has accepted a message.
pub(super) fn taken<'a>(begun: Begun) -> Sending<'a> {
    match begun {
        Ok(None) => sent(Ok(())),
        Ok(Some(taken)) => sending(async { taken.await.unwrap_or_else(|_| Err(closed())) }),
        Err(error) => sent(Err(error)),
    }
}

/// Sends a message other than a request and reports whether the server accepted it; returns the response if it did.
pub(super) async fn deliver(
    channel: &Channel,
    exchange: &Exchange,
    report: oneshot::Sender<Sent>,
) -> Option<Response> {
    let answer = tokio::time::timeout(TAKE_DEADLINE, channel.exchange(exchange)).await;
    let (outcome, response) = match answer {
        Ok(Ok(response)) => (Ok(()), Some(response)),
        Ok(Err(failure)) => (Err(plain(failure)), None),
        Err(_) => (Err(not_taken()), None),
    };
    let _ = report.send(outcome);
    response
}

pub(super) fn closed() -> TransportError {
    TransportError::new(TransportErrorKind::Closed, "the link has been closed")
}

fn not_taken() -> TransportError {
    TransportError::new(
        TransportErrorKind::Timeout,
        format!(
            "the server did not accept the message within {} seconds",
            TAKE_DEADLINE.as_secs()
        ),
    )
}

/// Converts the failure of a message without an answer.
pub(super) fn plain(failure: RequestFailure) -> TransportError {
    match failure {
        RequestFailure::Refused(refusal) => TransportError::refused(refusal),
        RequestFailure::NotSent(error) | RequestFailure::Lost(error) => error,
        RequestFailure::TooLarge { .. } => {
            TransportError::new(TransportErrorKind::Protocol, failure.to_string())
        }
    }
}
