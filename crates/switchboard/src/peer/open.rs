//! Opens a connection: the link, era negotiation, then the handshake if the era has one.
//!
//! Owns the order of steps and their deadlines. [`switchboard_protocol::negotiate`] decides what an answer means; this
//! module sends, waits and follows its decisions.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde_json::value::RawValue;
use switchboard_config::entry::Transport;
use switchboard_protocol::meta::{self, MetaMembers};
use switchboard_protocol::negotiate::{
    self, Because, Failure, HttpAnswer, NegotiationReply, Offer, Step,
};
use switchboard_protocol::types::capabilities::ServerCapabilities;
use switchboard_protocol::types::lifecycle::{
    DiscoverResult, Implementation, InitializeRequestParams, InitializeResult,
};
use switchboard_protocol::types::wire::{self, IntoOwned};
use switchboard_protocol::{Era, Incoming, Limits, Method, Revision, encode, headers, parse};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::inbound::{Notice, Observer, Receiver};
use super::input::answer_questions;
use super::pending::Reply;
use super::{Peer, Shared};
use crate::alarm::AbortOnDrop;
use crate::caller::with_tasks;
use crate::handler::ClientHandler;
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::transport::{
    Closed, Connector, HttpRefusal, Link, Outgoing, OutgoingKind, RequestFailure, TransportError,
};

/// Options for opening a connection.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The revisions this client supports.
    pub supported: Vec<Revision>,
    /// The revision negotiated last time, which is tried first.
    pub known: Option<Revision>,
    /// Name and version of this client, as sent to the server.
    pub client: Implementation<'static>,
    /// How long to wait for the answer to `server/discover` before the handshake is tried in parallel.
    pub discover_patience: Duration,
    /// Limits on received messages.
    pub limits: Limits,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let mut client = Implementation::new("switchboard".into());
        client.version = Some(env!("CARGO_PKG_VERSION").into());
        client.title = Some("Switchboard".into());
        Self {
            supported: Revision::ALL.to_vec(),
            known: None,
            client,
            discover_patience: Duration::from_secs(2),
            limits: Limits::DEFAULT,
        }
    }
}

/// Identity and capabilities that a server reported.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The negotiated revision.
    pub revision: Revision,
    /// The transport in use; `http` may have fallen back to `sse`.
    pub transport: Transport,
    /// Name and version; `None` if it did not send them.
    pub implementation: Option<Implementation<'static>>,
    /// `None` if it did not declare any: then everything may be tried.
    pub capabilities: Option<ServerCapabilities<'static>>,
    /// Usage instructions for the model.
    pub instructions: Option<String>,
}

/// The step an opening is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenStep {
    /// Spawning the process or opening the socket.
    Connect,
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
    /// Listing its tools.
    List,
}

impl OpenStep {
    /// Description of the step, for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::List => "tools/list",
        }
    }
}

/// Error that prevented a connection.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
pub struct OpenError {
    /// The step that failed.
    pub step: OpenStep,
    /// Cause of the failure.
    pub kind: OpenErrorKind,
}

/// Cause of a failed opening.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The link could not be opened.
    #[error("{0}")]
    Transport(TransportError),
    /// The link ended.
    #[error("{0}")]
    Closed(Closed),
    /// The server requires (other) credentials.
    #[error("the server requires authorization (HTTP status {})", .0.status)]
    Unauthorized(Box<HttpRefusal>),
    /// The server is temporarily unavailable.
    #[error("the server is temporarily unavailable (HTTP status {})", .0.status)]
    Unavailable(Box<HttpRefusal>),
    /// No common protocol revision.
    #[error("{0}")]
    Negotiation(Failure),
    /// The request failed otherwise.
    #[error("{0}")]
    Request(super::RequestError),
    /// The server redirected between versions without end.
    #[error("protocol version negotiation did not converge")]
    Circles,
}

/// How often one revision is tried.
const MAX_RETRIES: usize = 2;
const MAX_STEPS: usize = 8;
/// Factor for `discover_patience` over HTTP, where a server always answers, if slowly.
const HTTP_PATIENCE: u32 = 5;
/// How long to wait for the exit status that explains why a message could not be sent.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);
/// Level from which servers are asked for log messages.
const LOG_LEVEL: &str = "info";
/// How long to wait for the server's stream of unsolicited messages.
const LISTENING_PATIENCE: Duration = Duration::from_millis(500);

/// Opens a connection. Dropping the future undoes what was started.
///
/// `at` receives each step as it starts, so that a caller that times out knows the step.
pub async fn open(
    server: &ServerName,
    connector: &dyn Connector,
    options: &OpenOptions,
    observer: Arc<dyn Observer>,
    handler: Arc<dyn ClientHandler>,
    at: &(dyn Fn(OpenStep) + Send + Sync),
) -> Result<Peer, OpenError> {
    let mut opening = Opening {
        server,
        options,
        observer,
        handler,
        at,
        step: OpenStep::Connect,
    };
    // The revision that worked last time is tried first.
    let shake_hands = options.known.map(Revision::era) == Some(Era::Stateful);
    let outcome = match opening.run(connector, shake_hands).await {
        // A socket that closed on the handshake is opened again. A program is not: one that rejects the handshake
        // cannot be distinguished from one that does not work.
        Err(OpenErrorKind::Closed(_))
            if shake_hands && connector.transport() != Transport::Stdio =>
        {
            opening.run(connector, false).await
        }
        outcome => outcome,
    };
    outcome.map_err(|kind| OpenError {
        step: opening.step,
        kind,
    })
}

struct Opening<'a> {
    server: &'a ServerName,
    options: &'a OpenOptions,
    observer: Arc<dyn Observer>,
    handler: Arc<dyn ClientHandler>,
    at: &'a (dyn Fn(OpenStep) + Send + Sync),
    step: OpenStep,
}

struct Wire {
    transport: Transport,
    link: Arc<dyn Link>,
    receiver: Arc<Receiver>,
    attending: AbortOnDrop,
}

impl Wire {
    fn how_it_closed(&self) -> Closed {
        let closed = self.receiver.closed.borrow().clone();
        closed.unwrap_or(Closed::ByServer)
    }
}

/// A pending request of the opening.
struct Asked {
    revision: Revision,
    answer: oneshot::Receiver<Reply>,
}

/// The next step, with the result that led to it.
type Reached = (Step, Option<SharedJson>);

impl Opening<'_> {
    async fn run(
        &mut self,
        connector: &dyn Connector,
        shake_hands_first: bool,
    ) -> Result<Peer, OpenErrorKind> {
        let mut wire = self.connect(connector).await?;
        let mut step = self.first_step(wire.transport, shake_hands_first)?;
        let mut result = None;
        // A discover request that timed out may still be answered.
        let mut unanswered = None;
        let mut discovered = Vec::new();
        let mut is_first_start = true;
        for _ in 0..MAX_STEPS {
            if let Step::Retry(revision) = step {
                // A server that starts may reject a version and offer it again; a second rejection is final.
                if discovered
                    .iter()
                    .filter(|asked| **asked == revision)
                    .count()
                    == MAX_RETRIES
                {
                    return Err(OpenErrorKind::Circles);
                }
                discovered.push(revision);
            }
            (step, result) = match step {
                Step::Stateless(revision) => {
                    return self.stateless(wire, revision, result.as_ref());
                }
                Step::Stateful(revision) => {
                    return self.stateful(wire, revision, result.as_ref()).await;
                }
                Step::Retry(revision) => self.discover(&wire, revision, &mut unanswered).await?,
                Step::Initialize { revision, because } => {
                    if because == Because::Closed {
                        // A server that exited on an unknown request is started once more. One that read nothing would
                        // exit again. Messages sent after that request may be unread in either case.
                        if !is_first_start || wire.link.read_nothing() {
                            return Err(OpenErrorKind::Closed(wire.how_it_closed()));
                        }
                        is_first_start = false;
                        wire = self.connect(connector).await?;
                    }
                    self.initialize(&wire, revision, &mut unanswered).await?
                }
                Step::TryLegacyStream => {
                    let legacy = connector
                        .legacy()
                        .ok_or(OpenErrorKind::Negotiation(Failure::NotMcp { status: 404 }))?;
                    wire = self.connect(legacy).await?;
                    (self.first_step(wire.transport, true)?, None)
                }
                Step::Fail(failure) => {
                    // The revision of last time no longer works, so discovery follows over the same link.
                    if !shake_hands_first || !discovered.is_empty() {
                        return Err(OpenErrorKind::Negotiation(failure));
                    }
                    match self.first_step(wire.transport, false)? {
                        step @ Step::Retry(_) => (step, None),
                        _ => return Err(OpenErrorKind::Negotiation(failure)),
                    }
                }
                other => {
                    tracing::debug!(?other, "unexpected negotiation step");
                    return Err(OpenErrorKind::Circles);
                }
            };
        }
        Err(OpenErrorKind::Circles)
    }

    async fn connect(&mut self, connector: &dyn Connector) -> Result<Wire, OpenErrorKind> {
        self.begin(OpenStep::Connect);
        let (receiver, questions) = Receiver::new(self.options.limits, Arc::clone(&self.observer));
        let inbound: Arc<dyn crate::transport::Inbound> = Arc::<Receiver>::clone(&receiver);
        let link = connector
            .connect(inbound)
            .await
            .map_err(unauthorized_or_transport)?;
        if let Some(process) = link.process() {
            self.observer.notice(Notice::Started(process));
        }
        let answering = answer_questions(
            questions,
            Arc::downgrade(&receiver),
            Arc::downgrade(&link),
            self.server.clone(),
            Arc::clone(&self.handler),
        );
        let attending = tokio::spawn({
            let receiver = Arc::clone(&receiver);
            async move { tokio::join!(answering, receiver.watch_deadlines()) }
        });
        Ok(Wire {
            transport: connector.transport(),
            link,
            receiver,
            attending: AbortOnDrop::new(&attending),
        })
    }

    /// The first step: the newest supported revision, unless the transport or the last connection requires the
    /// handshake.
    fn first_step(&self, transport: Transport, shake_hands: bool) -> Result<Step, OpenErrorKind> {
        let newest = |era| {
            let supported = self.options.supported.iter().copied();
            supported.filter(|revision| revision.era() == era).max()
        };
        // The legacy transport exists only in the era with a handshake.
        let shake_hands = shake_hands || transport == Transport::Sse;
        match (newest(Era::Stateless), newest(Era::Stateful)) {
            (Some(revision), _) if !shake_hands => Ok(Step::Retry(revision)),
            (_, Some(revision)) => Ok(Step::Initialize {
                revision,
                because: Because::OnlyStatefulRevisions,
            }),
            _ => Err(OpenErrorKind::Negotiation(Failure::HandshakeNeeded(
                Because::OnlyStatefulRevisions,
            ))),
        }
    }

    async fn discover(
        &mut self,
        wire: &Wire,
        revision: Revision,
        unanswered: &mut Option<Asked>,
    ) -> Result<Reached, OpenErrorKind> {
        self.begin(OpenStep::Discover);
        let members = self.stateless_meta(revision)?;
        let mut asked = self
            .ask(wire, Method::Discover, revision, None, &members)
            .await?;
        // Without a fallback, only the deadline of the whole start applies.
        let supported = &self.options.supported;
        let can_shake_hands = supported.iter().any(|known| known.era() == Era::Stateful);
        let reply = if can_shake_hands {
            let patience = self.patience(wire);
            timeout(patience, &mut asked.answer).await.ok()
        } else {
            Some((&mut asked.answer).await)
        };
        if let Some(reply) = reply {
            return self.after_discover(wire, revision, reply_or_closed(reply));
        }
        *unanswered = Some(asked);
        let step = negotiate::after_discover(self.offer(revision), NegotiationReply::Silence);
        Ok((step, None))
    }

    /// How long the answer to `server/discover` is waited for.
    fn patience(&self, wire: &Wire) -> Duration {
        match wire.transport {
            Transport::Http => self.options.discover_patience * HTTP_PATIENCE,
            _ => self.options.discover_patience,
        }
    }

    fn after_discover(
        &self,
        wire: &Wire,
        revision: Revision,
        reply: Reply,
    ) -> Result<Reached, OpenErrorKind> {
        let offer = self.offer(revision);
        if wire.transport == Transport::Http {
            return http_step(reply, |answer| negotiate::after_modern_post(offer, answer));
        }
        let step = |answer| negotiate::after_discover(offer, answer);
        Ok(match reply {
            Reply::Result(result) => (step(NegotiationReply::Result(result.raw())), Some(result)),
            Reply::Error(error) => (step(NegotiationReply::Error(&error)), None),
            Reply::Unreadable(_) | Reply::TooDeep(..) | Reply::Overdue(_) => {
                (step(NegotiationReply::Unreadable), None)
            }
            Reply::Closed(_) => (step(NegotiationReply::Closed), None),
            Reply::Failed(failure) => return Err(failed(failure)),
        })
    }

    async fn initialize(
        &mut self,
        wire: &Wire,
        revision: Revision,
        unanswered: &mut Option<Asked>,
    ) -> Result<Reached, OpenErrorKind> {
        self.begin(OpenStep::Initialize);
        let params = InitializeRequestParams::new(
            revision.as_str().into(),
            self.handler.capabilities(),
            self.options.client.clone(),
        );
        let params = super::to_raw(&params).map_err(OpenErrorKind::Request)?;
        let was_probed = unanswered.is_some();
        let members = MetaMembers::new();
        let asked = self.ask(wire, Method::Initialize, revision, Some(&params), &members);
        let asked = match asked.await {
            Err(OpenErrorKind::Closed(closed)) if was_probed => {
                *unanswered = None;
                return self.after_handshake(wire, revision, Reply::Closed(closed), was_probed);
            }
            asked => asked?,
        };
        if let Some(probe) = unanswered.take() {
            return self.after_either(wire, asked, probe).await;
        }
        let reply = reply_or_closed(asked.answer.await);
        self.after_handshake(wire, revision, reply, was_probed)
    }

    /// Waits for the handshake and for the probe sent before it. A stateless server that started slowly may still answer
    /// the probe, also after it has rejected the handshake.
    async fn after_either(
        &self,
        wire: &Wire,
        mut asked: Asked,
        mut probe: Asked,
    ) -> Result<Reached, OpenErrorKind> {
        let is_stateless = |reached: &Result<Reached, OpenErrorKind>| {
            matches!(reached, Ok((Step::Stateless(_) | Step::Retry(_), _)))
        };
        let discovered = |reply| self.after_discover(wire, probe.revision, reply_or_closed(reply));
        let mut is_probe_answered = false;
        let reply = match select(&mut asked.answer, &mut probe.answer).await {
            Either::Left((reply, _)) => reply,
            Either::Right((reply, _)) => {
                let reached = discovered(reply);
                if is_stateless(&reached) {
                    return reached;
                }
                is_probe_answered = true;
                asked.answer.await
            }
        };
        let reply = reply_or_closed(reply);
        let shaken = self.after_handshake(wire, asked.revision, reply, true);
        let is_rejected = matches!(
            shaken,
            Ok((Step::Fail(_) | Step::Retry(_) | Step::TryLegacyStream, _))
        );
        if is_probe_answered || !is_rejected {
            return shaken;
        }
        match timeout(self.patience(wire), probe.answer).await {
            Ok(reply) => Some(discovered(reply))
                .filter(is_stateless)
                .unwrap_or(shaken),
            Err(_) => shaken,
        }
    }

    fn after_handshake(
        &self,
        wire: &Wire,
        revision: Revision,
        reply: Reply,
        was_probed: bool,
    ) -> Result<Reached, OpenErrorKind> {
        // A server that started slowly may have exited because of the probe, and may accept the handshake alone.
        if was_probed && matches!(reply, Reply::Closed(_)) {
            let because = Because::Closed;
            return Ok((Step::Initialize { revision, because }, None));
        }
        self.after_initialize(wire, revision, reply)
    }

    fn after_initialize(
        &self,
        wire: &Wire,
        revision: Revision,
        reply: Reply,
    ) -> Result<Reached, OpenErrorKind> {
        let offer = self.offer(revision);
        if wire.transport == Transport::Http {
            return http_step(reply, |answer| {
                negotiate::after_initialize_post(offer, answer)
            });
        }
        let step = |answer| negotiate::after_initialize(offer, answer);
        Ok(match reply {
            Reply::Result(result) => (step(NegotiationReply::Result(result.raw())), Some(result)),
            Reply::Error(error) => (step(NegotiationReply::Error(&error)), None),
            Reply::Unreadable(_) | Reply::TooDeep(..) | Reply::Overdue(_) => {
                (step(NegotiationReply::Unreadable), None)
            }
            Reply::Closed(closed) => return Err(OpenErrorKind::Closed(closed)),
            Reply::Failed(failure) => return Err(failed(failure)),
        })
    }

    /// Sends a request of the opening, without a deadline.
    async fn ask(
        &self,
        wire: &Wire,
        method: Method,
        revision: Revision,
        params: Option<&RawValue>,
        members: &MetaMembers,
    ) -> Result<Asked, OpenErrorKind> {
        let (id, answer) = wire
            .receiver
            .pending
            .enter(None, None, None)
            .map_err(OpenErrorKind::Closed)?;
        let mut payload = Vec::with_capacity(512);
        encode::request_with_meta(&mut payload, &id.into(), method.name(), params, members)
            .map_err(|error| OpenErrorKind::Request(super::unwritable(error)))?;
        let message = Outgoing {
            payload,
            kind: OutgoingKind::Request(id),
            era: revision.era(),
            headers: headers::standard(revision, method.name(), params, None),
        };
        let sent = wire.link.send(message).await;
        if let Err(error) = sent {
            // The exit status of the process explains more than the broken pipe, but arrives a little later.
            let mut closed = wire.receiver.closed.subscribe();
            let closed = timeout(STATUS_PATIENCE, closed.wait_for(Option::is_some)).await;
            let closed = closed
                .ok()
                .and_then(Result::ok)
                .and_then(|closed| closed.clone());
            return Err(closed.map_or(OpenErrorKind::Transport(error), OpenErrorKind::Closed));
        }
        Ok(Asked { revision, answer })
    }

    fn stateless(
        &self,
        wire: Wire,
        revision: Revision,
        result: Option<&SharedJson>,
    ) -> Result<Peer, OpenErrorKind> {
        let mut meta = self.stateless_meta(revision)?;
        let said: Option<DiscoverResult<'_>> =
            result.and_then(|result| wire::decode(result.raw()).ok());
        let capabilities = said.as_ref().and_then(|said| said.capabilities.as_ref());
        if capabilities.is_some_and(|capabilities| capabilities.logging.is_some()) {
            // In this era a server sends log messages only to clients that request them.
            meta.set(meta::LOG_LEVEL, LOG_LEVEL)
                .map_err(|error| OpenErrorKind::Request(super::unwritable(error)))?;
        }
        let facts = ServerFacts {
            revision,
            transport: wire.transport,
            implementation: said.as_ref().and_then(|said| {
                let info = said.meta.as_ref()?.field(meta::SERVER_INFO)?;
                info.decode::<Implementation<'_>>()
                    .ok()
                    .map(IntoOwned::into_owned)
            }),
            instructions: said
                .as_ref()
                .and_then(|said| said.instructions.as_ref())
                .map(|text| text.decode().into_owned()),
            capabilities: said
                .and_then(|said| said.capabilities)
                .map(IntoOwned::into_owned),
        };
        wire.link.opened(revision);
        Ok(self.peer(wire, facts, meta))
    }

    async fn stateful(
        &self,
        wire: Wire,
        revision: Revision,
        result: Option<&SharedJson>,
    ) -> Result<Peer, OpenErrorKind> {
        let said: Option<InitializeResult<'_>> =
            result.and_then(|result| wire::decode(result.raw()).ok());
        let facts = ServerFacts {
            revision,
            transport: wire.transport,
            implementation: said
                .as_ref()
                .and_then(|said| said.server_info.clone())
                .map(IntoOwned::into_owned),
            instructions: said
                .as_ref()
                .and_then(|said| said.instructions.as_ref())
                .map(|text| text.decode().into_owned()),
            capabilities: said
                .and_then(|said| said.capabilities)
                .map(IntoOwned::into_owned),
        };
        let peer = self.peer(wire, facts, MetaMembers::new());
        peer.notify(Method::Initialized, None)
            .await
            .map_err(OpenErrorKind::Request)?;
        peer.0.link.opened(revision);
        let _ = timeout(LISTENING_PATIENCE, peer.0.link.listening()).await;
        Ok(peer)
    }

    fn peer(&self, wire: Wire, facts: ServerFacts, meta: MetaMembers) -> Peer {
        Peer(
            Arc::new(Shared {
                server: self.server.clone(),
                link: wire.link,
                receiver: wire.receiver,
                facts,
                handler: Arc::clone(&self.handler),
                meta,
                attending: wire.attending,
                working: AtomicUsize::new(0),
                usage: super::usage::Usage::default(),
                cancelling: Arc::default(),
            }),
            None,
        )
    }

    /// The `_meta` members of every request of that revision.
    fn stateless_meta(&self, revision: Revision) -> Result<MetaMembers, OpenErrorKind> {
        let capabilities = with_tasks(self.handler.capabilities());
        MetaMembers::stateless(revision, &capabilities, Some(&self.options.client))
            .map_err(|error| OpenErrorKind::Request(super::unwritable(error)))
    }

    fn offer(&self, asked: Revision) -> Offer<'_> {
        Offer {
            supported: &self.options.supported,
            asked,
        }
    }

    fn begin(&mut self, step: OpenStep) {
        self.step = step;
        (self.at)(step);
    }
}

/// The step that follows an HTTP response.
fn http_step(
    reply: Reply,
    step: impl FnOnce(HttpAnswer<'_>) -> Step,
) -> Result<Reached, OpenErrorKind> {
    let taken = |answer| HttpAnswer {
        status: 200,
        answer,
    };
    let refusal = match reply {
        Reply::Failed(RequestFailure::Refused(refusal)) => refusal,
        Reply::Failed(failure) => return Err(failed(failure)),
        Reply::Closed(closed) => return Err(OpenErrorKind::Closed(closed)),
        Reply::Unreadable(_) | Reply::TooDeep(..) | Reply::Overdue(_) => {
            return Ok((step(taken(NegotiationReply::Unreadable)), None));
        }
        Reply::Result(result) => {
            let step = step(taken(NegotiationReply::Result(result.raw())));
            return Ok((step, Some(result)));
        }
        Reply::Error(error) => return Ok((step(taken(NegotiationReply::Error(&error))), None)),
    };
    let parsed = parse(&refusal.body, &Limits::DEFAULT);
    let step = step(HttpAnswer {
        status: refusal.status,
        answer: match &parsed {
            Ok(Incoming::Single(received)) => (&received.message).into(),
            _ => NegotiationReply::Unreadable,
        },
    });
    match step {
        Step::Authorize => Err(OpenErrorKind::Unauthorized(refusal)),
        Step::TryLater => Err(OpenErrorKind::Unavailable(refusal)),
        step => Ok((step, None)),
    }
}

fn failed(failure: RequestFailure) -> OpenErrorKind {
    match failure {
        RequestFailure::NotSent(error) | RequestFailure::Lost(error) => {
            OpenErrorKind::Transport(error)
        }
        failure => OpenErrorKind::Request(failure.into()),
    }
}

fn reply_or_closed(reply: Result<Reply, oneshot::error::RecvError>) -> Reply {
    reply.unwrap_or(Reply::Closed(Closed::ByUs))
}

/// Classifies the failure of a link that may have been refused for lack of credentials: a WebSocket, or the stream of
/// the legacy transport.
fn unauthorized_or_transport(mut error: TransportError) -> OpenErrorKind {
    match error.refusal.take() {
        Some(refusal) if matches!(refusal.status, 401 | 403) => {
            OpenErrorKind::Unauthorized(refusal)
        }
        refusal => OpenErrorKind::Transport(TransportError { refusal, ..error }),
    }
}
