//! Routes a server's requests for client input (sampling, elicitation, roots) to the handler, in either era.
//!
//! In the stateful era such a request is a JSON-RPC request of the server; in the stateless era it is part of a result,
//! and the client repeats its request with the input. Both end in one function.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use switchboard_protocol::types::input::{InputRequest, InputRequests, InputRequiredResult};
use switchboard_protocol::types::method::{CreateMessage, Elicit, Request as _};
use switchboard_protocol::types::result::ResultType;
use switchboard_protocol::types::wire::{self, Encode as _};
use switchboard_protocol::{Era, ErrorCode, ErrorObject, Method, RequestId, encode};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::inbound::{Question, Receiver};
use super::{MAX_ROUNDS, RequestError, RequestOptions, Shared};
use crate::caller::AskedBy;
use crate::handler::{ClientHandler, too_many};
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::transport::{Link, Outgoing, OutgoingKind};

impl Shared {
    /// Answers the input requests of a result and repeats the request, until the result is final.
    pub(super) async fn give_input(
        &self,
        method: Method,
        params: Option<&RawValue>,
        first: SharedJson,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let mut result = first;
        for _ in 0..MAX_ROUNDS {
            let wanted: InputRequiredResult<'_> = wire::decode(result.raw())
                .map_err(|error| RequestError::Malformed(error.to_string()))?;
            let responses = self.fulfil(&wanted.input_requests, options).await?;
            let again = with_input(params, &responses, &wanted)?;
            result = self.exchange(method, Some(&again), options).await?;
            match self.unfinished(method, &result, options) {
                None => return Ok(result),
                Some(ResultType::Task) => {
                    return self.follow_task(&result, options).await;
                }
                Some(_) => {}
            }
        }
        Err(RequestError::TooManyRounds(MAX_ROUNDS))
    }

    /// The answers to the input requests, as the text of one JSON object.
    pub(super) async fn fulfil(
        &self,
        wanted: &InputRequests<'_>,
        options: &RequestOptions,
    ) -> Result<String, RequestError> {
        let by = AskedBy::from(options.caller.as_ref());
        by.scope(self.fulfil_all(wanted)).await
    }

    async fn fulfil_all(&self, wanted: &InputRequests<'_>) -> Result<String, RequestError> {
        let _answering = Answering::begin(&self.receiver);
        let mut responses = String::from("{");
        for (key, request) in wanted.iter() {
            let answer = match request {
                InputRequest::Elicit(request) => {
                    let params = (*request.params).clone();
                    let asked = self.handler.elicit(&self.server, params);
                    asked.await.map(|answer| wire::encode(&answer))
                }
                InputRequest::CreateMessage(request) => {
                    let params = (*request.params).clone();
                    let asked = self.handler.create_message(&self.server, params);
                    asked.await.map(|answer| wire::encode(&answer))
                }
                InputRequest::ListRoots(_) => {
                    let asked = self.handler.list_roots(&self.server);
                    asked.await.map(|answer| wire::encode(&answer))
                }
                InputRequest::Unknown(_) => Err(ErrorObject::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    "the server requests an unknown kind of input",
                )),
            };
            // The stateless era cannot answer an input request with an error, so a refusal fails the request.
            let answer = answer.map_err(|error| RequestError::Rejected(Box::new(error)))?;
            if responses.len() > 1 {
                responses.push(',');
            }
            key.encode(&mut responses);
            responses.push(':');
            responses.push_str(&answer);
        }
        responses.push('}');
        Ok(responses)
    }
}

/// The params of the repeated request: the original ones, with the answers and the server's state.
fn with_input(
    params: Option<&RawValue>,
    responses: &str,
    wanted: &InputRequiredResult<'_>,
) -> Result<Box<RawValue>, RequestError> {
    let params = params.map_or("{}", RawValue::get).trim_end();
    let inside = params
        .strip_suffix('}')
        .ok_or_else(|| RequestError::Unwritable("params are not an object".to_owned()))?;
    let mut again = String::with_capacity(inside.len() + responses.len() + 64);
    again.push_str(inside);
    if !inside.trim_end().ends_with('{') {
        again.push(',');
    }
    again.push_str("\"inputResponses\":");
    again.push_str(responses);
    if let Some(state) = &wanted.request_state {
        // Byte for byte: the server may have signed its state.
        again.push_str(",\"requestState\":");
        state.encode(&mut again);
    }
    again.push('}');
    RawValue::from_string(again).map_err(super::unwritable)
}

/// Answers a server's requests, several concurrently, until the link is gone.
pub(super) async fn answer_questions(
    mut questions: mpsc::Receiver<Question>,
    receiver: Weak<Receiver>,
    link: Weak<dyn Link>,
    server: ServerName,
    handler: Arc<dyn ClientHandler>,
) {
    let mut running = FuturesUnordered::new();
    let mut abortable = HashMap::new();
    loop {
        refuse_overflow(&receiver, &link, &server).await;
        tokio::select! {
            question = questions.recv() => match question {
                None => return,
                Some(Question::TakenBack(id)) => {
                    if let Some(handle) = abortable.remove(&id) {
                        AbortHandle::abort(&handle);
                    }
                }
                Some(Question::Asked { id, method, params, by }) => {
                    let (handle, registration) = AbortHandle::new_pair();
                    abortable.insert(id.clone(), handle);
                    let (receiver, server, handler) = (receiver.clone(), &server, &handler);
                    let answer = async move {
                        let receiver = receiver.upgrade();
                        let _answering = receiver.as_deref().map(Answering::begin);
                        let answer = answer(&method, params.as_ref(), server, &**handler);
                        by.scope(answer).await
                    };
                    running.push(async move { (id, Abortable::new(answer, registration).await) });
                }
            },
            Some((id, outcome)) = running.next(), if !running.is_empty() => {
                abortable.remove(&id);
                let (Ok(answer), Some(link)) = (outcome, link.upgrade()) else { continue };
                let Some(message) = response(&id, answer) else { continue };
                if let Err(error) = link.send(message).await {
                    tracing::debug!(%server, %error, "failed to send a response");
                }
            }
        }
    }
}

/// Refuses the server requests that exceeded the queue.
async fn refuse_overflow(receiver: &Weak<Receiver>, link: &Weak<dyn Link>, server: &ServerName) {
    let refused = match receiver.upgrade() {
        Some(receiver) => receiver.take_overflow(),
        None => return,
    };
    for id in refused {
        let Some(link) = link.upgrade() else { return };
        let message = response(&id, Err(too_many("too many requests at once")));
        let Some(message) = message else { continue };
        if let Err(error) = link.send(message).await {
            tracing::debug!(%server, %error, "failed to send a refusal");
            return;
        }
    }
}

async fn answer(
    method: &str,
    params: Option<&SharedJson>,
    server: &ServerName,
    handler: &dyn ClientHandler,
) -> Result<String, ErrorObject<'static>> {
    let invalid =
        |error: wire::DecodeError| ErrorObject::new(ErrorCode::INVALID_PARAMS, error.to_string());
    let params = params.map(SharedJson::raw);
    match Method::from_name(method) {
        Some(Method::Ping) => Ok("{}".to_owned()),
        Some(Method::RootsList) => {
            let roots = handler.list_roots(server).await?;
            Ok(wire::encode(&roots))
        }
        Some(Method::ElicitationCreate) => {
            let params = Elicit::decode_params(params).map_err(invalid)?;
            let answer = handler.elicit(server, params).await?;
            Ok(wire::encode(&answer))
        }
        Some(Method::SamplingCreateMessage) => {
            let params = CreateMessage::decode_params(params).map_err(invalid)?;
            let answer = handler.create_message(server, params).await?;
            Ok(wire::encode(&answer))
        }
        _ => {
            let answer = handler.other(server, method, params).await?;
            Ok(String::from(Box::<str>::from(answer)))
        }
    }
}

fn response(
    id: &RequestId<'static>,
    answer: Result<String, ErrorObject<'static>>,
) -> Option<Outgoing> {
    let mut payload = Vec::with_capacity(256);
    let written = match answer {
        Ok(result) => {
            let result = RawValue::from_string(result).ok()?;
            encode::response(&mut payload, id, &*result)
        }
        Err(error) => encode::error(&mut payload, Some(id), &error),
    };
    written.ok()?;
    Some(Outgoing {
        payload,
        kind: OutgoingKind::Response,
        // In the stateless era, input requests are part of results, and a new request answers them.
        era: Era::Stateful,
        headers: Vec::new(),
    })
}

/// Counts a server request while it is being answered, and measures the time.
pub(super) struct Answering<'a> {
    receiver: &'a Receiver,
    started: Instant,
}

impl<'a> Answering<'a> {
    pub(super) fn begin(receiver: &'a Receiver) -> Self {
        receiver.answering.fetch_add(1, Ordering::Relaxed);
        Self {
            receiver,
            started: Instant::now(),
        }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        let took = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.receiver.answered.fetch_add(took, Ordering::Relaxed);
        self.receiver.answering.fetch_sub(1, Ordering::Relaxed);
    }
}
