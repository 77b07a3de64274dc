//! A message on its way to a server, the same in both HTTP transports: who waits until it was taken, and for how long.

use std::time::Duration;

use reqwest::Response;
use tokio::sync::oneshot;

use super::channel::{Channel, Exchange};
use crate::transport::{
    RequestFailure, Sending, Sent, TransportError, TransportErrorKind, sending, sent,
};

/// How long the server may take to take a message that is no request, and then once more for what it says to it.
pub(super) const TAKE_DEADLINE: Duration = Duration::from_secs(30);

/// A message that was begun: what tells when the server has taken it, or `None` for a request, whose answer tells.
pub(super) type Begun = Result<Option<oneshot::Receiver<Sent>>, TransportError>;

/// Waits until the server has taken a message.
pub(super) fn taken<'a>(begun: Begun) -> Sending<'a> {
    match begun {
        Ok(None) => sent(Ok(())),
        Ok(Some(taken)) => sending(async { taken.await.unwrap_or_else(|_| Err(closed())) }),
        Err(error) => sent(Err(error)),
    }
}

/// Sends a message that is no request and reports whether the server took it; what it said to it, if it did.
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

/// The error of a link that has ended.
pub(super) fn closed() -> TransportError {
    TransportError::new(TransportErrorKind::Closed, "the link has been closed")
}

/// The error of a message that the server did not take in time.
fn not_taken() -> TransportError {
    TransportError::new(
        TransportErrorKind::Timeout,
        format!(
            "the server did not take the message within {} seconds",
            TAKE_DEADLINE.as_secs()
        ),
    )
}

/// The failure of a message that has no answer to wait for.
pub(super) fn plain(failure: RequestFailure) -> TransportError {
    match failure {
        RequestFailure::Refused(refusal) => TransportError::refused(refusal),
        RequestFailure::NotSent(error) | RequestFailure::Lost(error) => error,
        RequestFailure::TooLarge { .. } => {
            TransportError::new(TransportErrorKind::Protocol, failure.to_string())
        }
    }
}
