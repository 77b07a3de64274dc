//! Streams that end before their time, taken up again (stateful era).
//!
//! Owns the pace: the server's own wish (`retry`) where it has one, otherwise a growing pause. A server may close a
//! stream on purpose, after an event with an id, to be asked again later; that is no failure as long as something
//! comes of it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::answer::Delivered;
use super::channel::{Content, content};
use super::events::EventStream;
use super::sse::Decoded;
use super::streamable::Shared;
use crate::transport::{HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Even a server that asks for it is not asked more often.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Attempts to find a request's answer that brought nothing.
const MOST_FRUITLESS: u32 = 8;
/// What a server may still say after an answer before its stream is dropped. Read to its end, a connection can be
/// used again.
const AFTER_ANSWER: Duration = Duration::from_secs(1);

/// How a stream ended.
enum End {
    Answered,
    Early(Option<TransportError>),
}

/// The pauses between attempts.
#[derive(Debug, Default)]
struct Pace {
    fruitless: u32,
}

impl Pace {
    fn progressed(&mut self) {
        self.fruitless = 0;
    }

    /// The pause before the next attempt.
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
            // Whoever brings nothing is asked ever more seldom, whatever it wishes.
            (Some(retry), Some(before)) => retry.max(own(before)),
        }
    }
}

impl Shared {
    /// Reads a request's stream until it is answered, taking it up again where the server has given ids.
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
            // The connection is given back before the pause.
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

    /// Listens to the stream of the server's own messages for as long as the link lives.
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
                // A success that is no stream: the server has nothing to say.
                Ok(_) => return,
                Err(RequestFailure::Refused(refusal)) if is_final(&refusal) => {
                    // The place may be too old to go on from; the stream itself is then still to be had.
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
        let begun = Instant::now();
        let first_id = stream.decoder().last_id().cloned();
        while let Ok(Some(decoded)) = stream.next(self.address()).await {
            self.answers().deliver_event(decoded, None);
            pace.progressed();
        }
        // Proxies end quiet streams after a while, which is no fault of the server.
        if begun.elapsed() > LONGEST_PAUSE || stream.decoder().last_id() != first_id.as_ref() {
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

    /// Reads what comes after an answer, which should be nothing but the end.
    async fn read_out(&self, stream: &mut EventStream) {
        let rest = async {
            while let Ok(Some(decoded)) = stream.next(self.address()).await {
                self.answers().deliver_event(decoded, None);
            }
        };
        let _ = tokio::time::timeout(AFTER_ANSWER, rest).await;
    }

    /// Asks for the rest of a request's stream; nothing if the answer has come by another way.
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
                        format!(
                            "the answer's stream ended early and cannot be taken up again: {refusal}"
                        ),
                    )));
                }
                Err(_) => {}
            }
        }
    }
}

/// Whether asking again would get the same answer.
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
