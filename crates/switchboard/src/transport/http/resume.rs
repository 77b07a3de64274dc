//! Resumes event streams that ended early (stateful era).
//!
//! Waits between attempts as long as the server asks (`retry`), otherwise with a growing backoff. A server may close a
//! stream on purpose after an event with an id, to be polled later; that is not a failure as long as there is progress.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::answer::Delivered;
use super::channel::{Content, content};
use super::events::EventStream;
use super::sse::Decoded;
use super::streamable::Shared;
use crate::transport::{HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Lower bound of the pause, whatever the server asks for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of attempts without progress.
const MOST_FRUITLESS: u32 = 8;
/// How long to read on after an answer before the stream is dropped. A connection can be reused only if it was read to
/// the end.
const AFTER_ANSWER: Duration = Duration::from_secs(1);

enum End {
    Answered,
    Early(Option<TransportError>),
}

/// Backoff between attempts.
#[derive(Debug, Default)]
struct Pace {
    fruitless: u32,
}

impl Pace {
    fn progressed(&mut self) {
        self.fruitless = 0;
    }

    fn pause(&mut self, retry: Option<Duration>) -> Duration {
        let own = |attempt: u32| {
            let factor = 2_u32.saturating_pow(attempt);
            FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
        };
        let attempt = self.fruitless;
        self.fruitless = self.fruitless.saturating_add(1);
        match (retry, attempt.checked_sub(1)) {
            (None, _) => own(attempt),
            (Some(retry), None) => retry.max(SHORTEST_PAUSE),
            // Without progress the pause grows, whatever the server asks for.
            (Some(retry), Some(before)) => retry.max(own(before)),
        }
    }
}

impl Shared {
    /// Reads a request's stream until it is answered, resuming it if the server sent event ids.
    pub(super) async fn read_answer(
        &self,
        request: u64,
        mut stream: EventStream,
        resumable: bool,
    ) -> Result<(), RequestFailure> {
        let mut pace = Pace::default();
        let mut retry = None;
        loop {
            let cause = match self
                .read_until_answered(request, &mut stream, &mut pace)
                .await?
            {
                End::Answered => return Ok(()),
                End::Early(cause) => cause,
            };
            retry = stream.decoder().retry().or(retry);
            let last_id = stream.decoder().last_id().filter(|_| resumable).cloned();
            // Returns the connection to the pool before the pause.
            drop(stream);
            let Some(last_id) = last_id else {
                return Err(lost(cause));
            };
            let Some(resumed) = self
                .take_up(request, &last_id, retry, &mut pace, cause)
                .await?
            else {
                return Ok(());
            };
            stream = resumed;
        }
    }

    /// Reads the stream of unsolicited messages for as long as the link lives.
    pub(super) async fn listen(&self) {
        let mut pace = Pace::default();
        let mut retry = None;
        let mut last_id: Option<Bytes> = None;
        loop {
            let opened = self.open_stream(last_id.as_ref()).await;
            self.has_listened();
            match opened {
                Ok(response) if content(&response) == Content::Events => {
                    let mut stream = EventStream::new(response, self.limit(), last_id.take());
                    self.hear(&mut stream, &mut pace).await;
                    last_id = stream.decoder().last_id().cloned();
                    retry = stream.decoder().retry().or(retry);
                }
                // A success without a stream: the server sends no unsolicited messages.
                Ok(_) => return,
                Err(RequestFailure::Refused(refusal)) if is_final(&refusal) => {
                    // The event id may be too old to resume from; the stream can still be opened without it.
                    let may_be_the_id = matches!(refusal.status, 400 | 410 | 412 | 422);
                    if last_id.take().is_none() || !may_be_the_id {
                        return;
                    }
                }
                Err(_) => {}
            }
            tokio::time::sleep(pace.pause(retry)).await;
        }
    }

    async fn hear(&self, stream: &mut EventStream, pace: &mut Pace) {
        let _listening = self.listening();
        let opened = Instant::now();
        let first_id = stream.decoder().last_id().cloned();
        while let Ok(Some(decoded)) = stream.next(self.address()).await {
            self.answers().deliver_event(decoded, None);
            pace.progressed();
        }
        // Proxies end quiet streams after a while, which is not a fault of the server.
        if opened.elapsed() > LONGEST_PAUSE || stream.decoder().last_id() != first_id.as_ref() {
            pace.progressed();
        }
    }

    async fn read_until_answered(
        &self,
        request: u64,
        stream: &mut EventStream,
        pace: &mut Pace,
    ) -> Result<End, RequestFailure> {
        let first_id = stream.decoder().last_id().cloned();
        let end = loop {
            let decoded = match stream.next(self.address()).await {
                Ok(Some(decoded)) => decoded,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            pace.progressed();
            let data = match &decoded {
                Decoded::Event { data, .. } => data.clone(),
                Decoded::Oversized { start } => start.clone(),
            };
            match self.answers().deliver_event(decoded, Some(request)) {
                Delivered::Answer => {
                    self.read_out(stream).await;
                    return Ok(End::Answered);
                }
                Delivered::UnaddressedError => return Err(self.unaddressed(&data)),
                Delivered::TooLarge => {
                    return Err(RequestFailure::TooLarge {
                        limit: self.limit(),
                    });
                }
                Delivered::Other => {}
            }
        };
        if stream.decoder().last_id() != first_id.as_ref() {
            pace.progressed();
        }
        Ok(End::Early(end))
    }

    /// Reads the rest of a stream after its answer, normally only the end.
    async fn read_out(&self, stream: &mut EventStream) {
        let rest = async {
            while let Ok(Some(decoded)) = stream.next(self.address()).await {
                self.answers().deliver_event(decoded, None);
            }
        };
        let _ = tokio::time::timeout(AFTER_ANSWER, rest).await;
    }

    /// Requests the rest of a request's stream; `None` if the answer has arrived on another stream.
    async fn take_up(
        &self,
        request: u64,
        last_id: &Bytes,
        retry: Option<Duration>,
        pace: &mut Pace,
        cause: Option<TransportError>,
    ) -> Result<Option<EventStream>, RequestFailure> {
        loop {
            if pace.fruitless >= MOST_FRUITLESS {
                return Err(lost(cause));
            }
            tokio::time::sleep(pace.pause(retry)).await;
            if self.answers().is_answered(request) {
                return Ok(None);
            }
            match self.open_stream(Some(last_id)).await {
                Ok(response) => match content(&response) {
                    Content::Events => {
                        let limit = self.limit();
                        return Ok(Some(EventStream::new(
                            response,
                            limit,
                            Some(last_id.clone()),
                        )));
                    }
                    Content::Body => {
                        self.take_body(request, response).await?;
                        return Ok(None);
                    }
                    Content::Nothing => return Err(lost(cause)),
                },
                Err(RequestFailure::Refused(refusal)) if is_final(&refusal) => {
                    return Err(RequestFailure::Lost(TransportError::new(
                        TransportErrorKind::Protocol,
                        format!("the answer's stream ended early and cannot be resumed: {refusal}"),
                    )));
                }
                Err(_) => {}
            }
        }
    }
}

/// Whether a retry would get the same response.
fn is_final(refusal: &HttpRefusal) -> bool {
    !matches!(refusal.status, 408 | 425 | 429 | 500 | 502..=599)
}

fn lost(cause: Option<TransportError>) -> RequestFailure {
    RequestFailure::Lost(cause.unwrap_or_else(|| {
        TransportError::new(
            TransportErrorKind::Closed,
            "the server ended the stream without an answer",
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_the_server_and_grows_when_nothing_comes() {
        let check = |retry: Option<u64>, expected: &[u64]| {
            let mut pace = Pace::default();
            let retry = retry.map(Duration::from_millis);
            for (attempt, expected) in expected.iter().enumerate() {
                let pause = pace.pause(retry);
                assert_eq!(
                    pause,
                    Duration::from_millis(*expected),
                    "{retry:?} {attempt}"
                );
            }
            pace.progressed();
            assert_eq!(pace.pause(retry), Duration::from_millis(expected[0]));
        };
        check(None, &[500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        check(Some(0), &[100, 500, 1000, 2000]);
        check(Some(1500), &[1500, 1500, 1500, 2000]);
    }
}
